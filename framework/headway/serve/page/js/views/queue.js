// The queue: why each job waits, and when it is planned to start.

import { Refused, ask } from "../api.js";
import { el, fill, jobLink, linked } from "../dom.js";
import { memory } from "../memory.js";
import { Table } from "../table.js";
import { STATUS, brief, count, number, percent, span, whole, zone } from "../words.js";

const PAGE = 100;
const FIELDS = ["pool", "status", "user", "account", "qos", "name"];

const time = (seconds) => (seconds === null || seconds === undefined ? ""
  : el("time", { datetime: new Date(seconds * 1000).toISOString(), title: whole(seconds) }, brief(seconds)));

const where = (job) => (job.placement?.length ? ` on ${job.placement.slice(0, 3).map(([node]) => node).join(", ")}`
  + (job.placement.length > 3 ? ` and ${job.placement.length - 3} more` : "") : "");

function says(job, asOf) {
  if (job.why) return linked(job.why, job.waits_for || []);
  if (job.started) return `Runs for ${span(asOf - job.started)}${where(job)}`
    + (job.expected_end ? `, expected to end by ${brief(job.expected_end)} ${zone()}.` : ".");
  return STATUS[job.status] ? `It ${STATUS[job.status][1]}.` : "";
}

const columns = (asOf) => [
  { name: "place", head: "Place", number: true, cell: (job) => (job.position ? number(job.position) : "") },
  { name: "job", head: "Job", cell: (job) => jobLink(job.id) },
  { name: "name", head: "Name", sort: "name", cell: (job) => el("span", { title: job.name }, job.name || "") },
  { name: "user", head: "User", sort: "user", cell: (job) => job.user || "" },
  { name: "account", head: "Account", sort: "account", wide: true,
    cell: (job) => [job.account, job.qos].filter(Boolean).join(" / "), title: "Account and QOS" },
  { name: "pool", head: "Pool", sort: "pool", wide: true, cell: (job) => job.pool },
  { name: "size", head: "Processors", sort: "processors", number: true, cell: (job) => number(job.processors) },
  { name: "limit", head: "Limit", sort: "limit", number: true, cell: (job) => span(job.limit) },
  { name: "submitted", head: `Submitted (${zone()})`, sort: "submitted", wide: true, cell: (job) => time(job.submitted) },
  { name: "waits", head: "Waits", sort: "waited", number: true, title: "Since it was submitted, until it started",
    cell: (job) => span((job.started || asOf()) - job.submitted) },
  { name: "start", head: `Start (${zone()})`, sort: "start", title: "When it started, or is planned to start",
    cell: (job) => time(job.started ?? job.planned_start) },
  { name: "state", head: "State", wide: true, cell: (job) => [
    el("span", { "aria-hidden": "true" }, `${STATUS[job.status]?.[0] || "?"} `), job.status] },
  { name: "why", head: "Why", cell: (job) => el("div", {}, says(job, asOf())) },
];

function poolTile(pool) {
  const busy = pool.total - pool.free;
  const bar = el("span", { class: "meter", "aria-hidden": "true" }, el("i"));
  bar.firstChild.style.width = `${pool.total ? (100 * busy) / pool.total : 0}%`;
  return el("li", {}, el("b", {}, pool.name), pool.open === false ? " (closed)" : "", bar,
    el("span", { class: "note" }, `${percent(busy, pool.total)} of ${count(pool.total, "processor")} busy · `
      + `${number(pool.running)} run · ${number(pool.queued)} wait`
      + (pool.background ? ` · ${number(pool.background)} in the background` : "")));
}

export function make(root, { parameters, remember }) {
  const wanted = Object.fromEntries(FIELDS.map((name) => [name, parameters.get(name) || ""]));
  let first = Number(parameters.get("first")) || 0, sort = parameters.get("sort") || "";
  let mine = parameters.get("mine") === "true", next = null, asOf = Date.now() / 1000;
  const before = [];

  const pools = el("ul", { class: "tiles" });
  const remark = el("p", { class: "note", hidden: true });
  const table = new Table(columns(() => asOf), {
    key: (job) => job.id, caption: "Jobs: queues in their order, then jobs outside of them, then jobs on nodes",
    empty: "No job is like this.", mark: (job) => job.status,
    onSort: (field) => { sort = sort === field ? `-${field}` : sort === `-${field}` ? "" : field; again(); },
  });
  const inputs = {};
  const field = (name, title, made) => {
    inputs[name] = made;
    made.value = wanted[name];
    made.addEventListener("change", () => { wanted[name] = made.value.trim(); again(); });
    return el("label", {}, el("span", {}, title), made);
  };
  const text = (name, title) => field(name, title, el("input", { type: "text", size: 9, spellcheck: "false", maxlength: 256 }));
  const choice = (name, title, options) => field(name, title, el("select", {}, el("option", { value: "" }, "any"),
    options.map((option) => el("option", {}, option))));
  const own = el("input", { type: "checkbox" });
  own.checked = mine;
  own.addEventListener("change", () => { mine = own.checked; again(); });
  const filter = el("form", { class: "filter", "aria-label": "Which jobs" },
    choice("pool", "Pool", wanted.pool ? [wanted.pool] : []), choice("status", "State", Object.keys(STATUS)),
    text("user", "User"), text("account", "Account"), text("qos", "QOS"), text("name", "Name"),
    el("label", { class: "check" }, own, " only mine"),
    el("button", { type: "button", on: { click: clear } }, "All jobs"));
  filter.addEventListener("submit", (event) => { event.preventDefault(); again(); });
  const shown = el("p", { class: "note", role: "status" });
  const previous = el("button", { type: "button", "data-do": "previous", on: { click: () => turn(before.pop() ?? 0) } }, "← Before");
  const following = el("button", { type: "button", "data-do": "next",
    on: { click: () => { before.push(first); turn(next); } } }, "Next →");
  root.append(pools, filter, remark, table.element, el("div", { class: "pages" }, previous, shown, following));
  previous.hidden = following.hidden = true;

  function clear() {
    for (const name of FIELDS) { wanted[name] = ""; inputs[name].value = ""; }
    own.checked = mine = false;
    sort = "";
    again();
  }

  function turn(to) {
    first = to;
    note();
    ask_().catch(fail);
  }

  function again() {
    before.length = 0;
    turn(0);
  }

  const note = () => remember("queue", { ...wanted, sort, mine: mine ? "true" : "", first: first || "" });

  const fail = (error) => {
    if (error.name === "AbortError") return;
    if (!(error instanceof Refused)) throw error;
    fill(shown, error.message);
  };

  async function ask_(signal) {
    const asked = JSON.stringify([wanted, sort, mine, first]);
    const answer = await ask("jobs", { ...wanted, sort, mine, first: first || "", count: PAGE }, signal);
    if (asked !== JSON.stringify([wanted, sort, mine, first])) return;
    const { jobs } = answer.data;
    next = answer.data.next ?? null;
    asOf = answer.asOf || Date.now() / 1000;
    table.show(jobs);
    table.sorted(sort);
    fill(shown, jobs.length ? `Jobs ${number(first + 1)} to ${number(first + jobs.length)}`
      + (next === null ? ", the last" : "") : "");
    previous.hidden = first === 0;
    following.hidden = next === null;
    remark.hidden = !answer.remark;
    fill(remark, answer.remark);
    tellPools();
  }

  function tellPools() {
    const known = memory.latest?.pools || [];
    fill(pools, known.map(poolTile));
    const select = inputs.pool, names = [...select.options].map((option) => option.value);
    for (const { name } of known) if (!names.includes(name)) select.add(new Option(name));
  }

  return { title: "Queue", refresh: ask_ };
}
