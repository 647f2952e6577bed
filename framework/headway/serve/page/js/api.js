// Questions to the interface, version 1. All paths are relative, so that the page may lie below any prefix.

/** There is no answer: `status` as of HTTP (0: nothing came back), and why, in words. */
export class Refused extends Error {
  constructor(status, detail, title = "") {
    super(detail);
    this.status = status;
    this.title = title;
  }
}

/** Begins a session of the token's user: a cookie that this page cannot read. Raises Refused. */
export async function begin(token) {
  await fetched("v1/session", { method: "POST", headers: { Authorization: `Bearer ${token}` } });
}

export function address(path, parameters = {}) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== "" && value !== null && value !== undefined && value !== false) given.append(name, value);
  }
  const query = given.toString();
  return `v1/${path}${query ? `?${query}` : ""}`;
}

async function fetched(where, options) {
  let answer;
  try {
    answer = await fetch(where, { cache: "no-cache", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "headway serve does not answer");
  }
  if (answer.ok) return answer;
  let told = null;
  try { told = await answer.json(); } catch { /* a proxy's answer */ }
  throw new Refused(answer.status, told?.detail || answer.statusText || `status ${answer.status}`, told?.title);
}

async function told(answer) {
  let found;
  try {
    found = await answer.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(answer.status, "the answer is no JSON");
  }
  return { ...found, asOf: found.as_of, remark: found.remark || "" };
}

const JSON_TYPE = "application/json";

/** What is told of a resource: {data, asOf, remark, ...}. Raises Refused, and AbortError of `signal`. */
export async function ask(path, parameters = {}, signal = undefined) {
  return told(await fetched(address(path, parameters), { headers: { Accept: JSON_TYPE }, signal }));
}

/** The same of a question that has a body. */
export async function post(path, body, signal = undefined) {
  const headers = { Accept: JSON_TYPE, "Content-Type": JSON_TYPE };
  return told(await fetched(address(path), { method: "POST", headers, body: JSON.stringify(body), signal }));
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
