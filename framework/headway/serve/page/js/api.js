// Questions to the interface, version 1. All paths are relative, so that the page may lie below any prefix.

/** There is no answer: `status` as of HTTP (0: nothing came back), and why, in words. */
export class Refused extends Error {
  constructor(status, detail, title = "") {
    super(detail);
    this.status = status;
    this.title = title;
  }
}

const TOKEN = "headway.token";

/** A token for the time of this tab; null forgets it. */
export function setToken(token) {
  try {
    if (token === null) sessionStorage.removeItem(TOKEN);
    else sessionStorage.setItem(TOKEN, token);
  } catch { /* storage is forbidden */ }
}

export function headers(more = {}) {
  let token = null;
  try { token = sessionStorage.getItem(TOKEN); } catch { /* storage is forbidden */ }
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
}

export function address(path, parameters = {}) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== "" && value !== null && value !== undefined && value !== false) given.append(name, value);
  }
  const query = given.toString();
  return `v1/${path}${query ? `?${query}` : ""}`;
}

/** What is told of a resource: {data, asOf, remark, ...}. Raises Refused, and AbortError of `signal`. */
export async function ask(path, parameters = {}, signal = undefined) {
  let answer;
  try {
    answer = await fetch(address(path, parameters), {
      headers: headers({ Accept: "application/json" }), signal, cache: "no-cache",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "headway serve does not answer");
  }
  let told = null;
  try {
    told = await answer.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
  }
  if (!answer.ok || told === null) {
    throw new Refused(answer.status, told?.detail || answer.statusText || "the answer is no JSON", told?.title);
  }
  return { ...told, asOf: told.as_of, remark: told.remark || "" };
}

/** All pages of a list, at most `most` items: {items, complete, asOf, remark}. `told` hears of each page. */
export async function all(path, parameters, name, { signal, most = 20000, told = () => {} } = {}) {
  const items = [];
  let first = 0, answer;
  do {
    answer = await ask(path, { ...parameters, first, count: 500 }, signal);
    for (const item of answer.data[name]) items.push(item);
    first = answer.data.next ?? null;
    told(items.length);
  } while (first !== null && items.length < most);
  return { items, complete: first === null, asOf: answer.asOf, remark: answer.remark };
}
