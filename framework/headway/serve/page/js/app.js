// The page: which view is on the screen, how the daemon is, and when to ask anew.

import { Refused, ask, begin } from "./api.js";
import { el, fill, kept, themeChanged } from "./dom.js";
import { listenToKeys } from "./keys.js";
import { Live } from "./live.js";
import { memory } from "./memory.js";
import { brief, count, span, timed, whole } from "./words.js";

/** The views with a place in the navigation; the file of a view is loaded when it is first opened. */
const VIEWS = [
  { name: "queue", title: "Queue" }, { name: "gantt", title: "Gantt" }, { name: "nodes", title: "Nodes" },
  { name: "time", title: "Over time" }, { name: "decisions", title: "Decisions" },
  { name: "shares", title: "Shares" }, { name: "when", title: "When" },
  { name: "what-if", title: "What if" },
];
const OTHERS = ["job"];

const place = document.getElementById("view");
const away = document.getElementById("away");
let shown = { view: null, name: "", abort: new AbortController() };
let lost = null, user = "";

// -- which view ------------------------------------------------------------------------------------

/** Of "#/job/7?x=1": the view's name, the rest of the path, and the parameters. */
function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/");
  const parameters = new URLSearchParams(query);
  let word = rest.join("/");
  try { word = decodeURIComponent(word); } catch { /* it is taken as it stands */ }
  return { name: name || "queue", word, parameters };
}

/** Another place in the same view's history, without opening the view anew. */
export function remember(name, parameters) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value)).toString();
  history.replaceState(null, "", `#/${name}${query ? `?${query}` : ""}`);
}

async function open() {
  const { name, word, parameters } = route();
  const known = VIEWS.some((view) => view.name === name) || OTHERS.includes(name);
  const before = shown.name;
  shown.view?.leave?.();
  shown.abort.abort();
  const mine = { view: null, name, abort: new AbortController() };
  shown = mine;
  delete document.documentElement.dataset.view;
  for (const link of document.querySelectorAll("#views a")) {
    if (link.dataset.name === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!known) {
    place.replaceChildren(el("h1", {}, "Not there"), el("p", {}, `The page has no view of the name “${name}”.`));
    return;
  }
  const { make } = await import(`./views/${name}.js`);
  if (mine !== shown) return;
  const root = el("div", { class: `view ${name}` });
  const error = el("p", { class: "notice", role: "status", hidden: true });
  mine.view = make(root, { word, parameters, remember });
  mine.error = error;
  document.title = `${mine.view.title} – headway`;
  place.replaceChildren(el("h1", { id: "title" }, mine.view.title), error, root);
  if (before && before !== name) {
    place.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  await refresh();
  if (mine !== shown) return;
  document.documentElement.dataset.view = name;
}

/** Asks anew for what is on the screen. */
async function refresh() {
  const mine = shown;
  if (!mine.view || mine.busy) return;
  mine.busy = true;
  try {
    await mine.view.refresh(mine.abort.signal);
    mine.error.hidden = true;
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof Refused)) throw error;
    if (error.status === 401) askForToken(error);
    mine.error.textContent = error.detail || error.message;
    mine.error.hidden = away.hidden === false;
  } finally {
    mine.busy = false;
  }
}

// -- how the daemon is -----------------------------------------------------------------------------

async function lookAtDaemon() {
  try {
    const answer = await ask("status");
    memory.status(answer.data);
    tellStatus(answer);
    tellAway("", answer.silent_since ?? null);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (error.status === 401) askForToken(error);
    else tellAway(error.message, lost ?? Date.now() / 1000);
  }
}

function tellStatus({ data, remark }) {
  const { cluster, mode, cycles, last_cycle: at, problems_in_all: problems = 0, outages = [] } = data;
  const problem = outages.length ? `${outages[0].cluster || "The batch system"} does not answer` : remark;
  fill(document.getElementById("about"), el("b", {}, cluster), ` ${mode}`, user ? ` · as ${user}` : "");
  const state = document.getElementById("state");
  state.className = `state ${outages.length ? "bad" : problems ? "warn" : "good"}`;
  fill(state, el("span", { class: "dot", "aria-hidden": "true" }, outages.length ? "✕" : problems ? "!" : "✓"),
    problem ? `${problem} · ` : "", problems ? `${count(problems, "problem")} · ` : "",
    at ? el("time", { datetime: new Date(at * 1000).toISOString(), title: whole(at) }, `cycle ${cycles} at ${timed(at)}`)
      : "no cycle yet");
}

function tellAway(why, since) {
  lost = since;
  away.hidden = since === null;
  document.documentElement.classList.toggle("stale", since !== null);
  if (since === null) return;
  const ago = span(Date.now() / 1000 - since);
  fill(away, el("b", {}, "The daemon is away"), ` since ${timed(since)} (for ${ago})${why ? `: ${why}` : ""}. `,
    "What is shown is the last that is known. The page goes on asking.");
  const state = document.getElementById("state");
  state.className = "state bad";
  fill(state, el("span", { class: "dot", "aria-hidden": "true" }, "✕"), `no answer since ${brief(since)}`);
}

function askForToken(error) {
  if (document.getElementById("token")) return;
  const field = el("input", { id: "token", type: "password", autocomplete: "off", required: true });
  const form = el("form", { class: "notice" },
    el("p", {}, el("b", {}, "Who asks?"), ` ${error.message}. A token is made by `, el("code", {}, "headway token create"),
      "; this browser is known by it for some hours."),
    el("label", {}, "Token ", field), " ", el("button", {}, "Go on"));
  const said = el("span", { role: "status" });
  form.append(" ", said);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await begin(field.value.trim());
    } catch (refused) {
      said.textContent = refused.message;
      return;
    }
    form.remove();
    lookWhoAsks();
    live.stop();
    live.start();
    open();
  });
  place.before(form);
}

// -- search, theme, keys ---------------------------------------------------------------------------

async function search(text) {
  const [, field, value] = /^(user|account|pool|qos|name|status):(.*)$/.exec(text) || [];
  if (field) {
    location.hash = `#/queue?${new URLSearchParams({ [field]: value.trim() })}`;
    return;
  }
  try {
    const { data } = await ask(`jobs/${encodeURIComponent(text)}`);
    location.hash = `#/job/${encodeURIComponent(data.id)}`;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    location.hash = error.status === 404 && !(await hasPast(text)) ? `#/queue?${new URLSearchParams({ name: text })}`
      : `#/job/${encodeURIComponent(text)}`;
  }
}

/** Whether the journal tells of a job that is not there any more. */
async function hasPast(id) {
  try {
    await ask(`history/jobs/${encodeURIComponent(id)}`);
    return true;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return false;
  }
}

function changeTheme() {
  const root = document.documentElement, next = { "": "dark", dark: "light", light: "" }[root.dataset.theme || ""];
  if (next) root.dataset.theme = next;
  else delete root.dataset.theme;
  kept.set("theme", next || null);
  themeChanged();
  nameTheme();
}

function nameTheme() {
  const theme = document.documentElement.dataset.theme;
  const button = document.getElementById("theme");
  button.textContent = theme ? { dark: "Dark", light: "Light" }[theme] : "Auto";
  button.setAttribute("aria-label", `Theme: ${theme || "as the system"}; changes it`);
}

const find = document.getElementById("find");
document.getElementById("search").addEventListener("submit", (event) => {
  event.preventDefault();
  if (find.value.trim()) search(find.value.trim());
});
document.getElementById("theme").addEventListener("click", changeTheme);
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); place.focus(); });
document.getElementById("views").append(...VIEWS.map(({ name, title }) =>
  el("li", {}, el("a", { href: `#/${name}`, "data-name": name }, title))));
listenToKeys(VIEWS, { theme: changeTheme, search: () => { find.focus(); find.select(); } });
nameTheme();
addEventListener("hashchange", open);

const live = new Live(
  () => { lookAtDaemon(); refresh(); },
  (kind, data, id) => { memory.item(kind, data); if (kind === "daemon") lookAtDaemon(); shown.view?.item?.(kind, data, id); },
);
/** As whom the page asks; a refusal is told by the other questions. */
async function lookWhoAsks() {
  try { user = (await ask("self")).user || ""; } catch { user = ""; }
}

lookWhoAsks();
live.start();
open();
