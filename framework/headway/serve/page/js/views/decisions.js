// Decisions as they come, and the last cycle.

import { Refused, ask } from "../api.js";
import { el, fill, jobLink, linked } from "../dom.js";
import { memory } from "../memory.js";
import { Entries, keyOf } from "../past.js";
import { Table } from "../table.js";
import { brief, count, listed, timed, whole, zone } from "../words.js";

/** Entries that are read at once of the past, and rows of it that are kept. */
const PAGE = 100, KEPT = 2000;
/** What is looked for by the journal itself: a job's id. */
const JOB_ID = /^\d[\w.[\]-]*$/;

const counted = (kinds) => listed(Object.entries(kinds || {}).map(([kind, number]) => `${number} ${kind}`));

export function make(root) {
  let held = false, wanted = "", older = [], entries = null, reading = false, begun = false;
  const abort = new AbortController();
  const said = el("p", { role: "status" });
  const remark = el("p", { class: "note", hidden: true });
  const words = el("input", { type: "search", size: 16, placeholder: "job, kind or reason", spellcheck: "false", maxlength: 128 });
  const hold = el("button", { type: "button", "aria-pressed": "false", title: "New decisions are not shown meanwhile" }, "Hold");
  const before = el("input", { type: "datetime-local", title: "Show what was before this time; empty: until now" });
  const more = el("button", { type: "button", on: { click: () => back() } }, "Older ↓");
  const told = el("p", { class: "note", role: "status" });
  const events = el("input", { type: "checkbox" });
  const tools = el("div", { class: "tools" }, el("label", {}, "Only ", words), el("label", { class: "check" }, events, " events, too"), hold,
    el("label", {}, "Before ", before));
  const table = new Table([
    { name: "at", head: `At (${zone()})`, cell: ({ at }) => (at ? el("time", { datetime: new Date(at * 1000).toISOString(), title: whole(at) }, brief(at)) : "") },
    { name: "what", head: "What", cell: ({ is, event }) => [event ? "event " : "", is] },
    { name: "job", head: "Job or node", cell: ({ job, node }) => (job ? jobLink(job) : node || "") },
    { name: "outcome", head: "Outcome", cell: ({ accepted, event }) => (event ? "" : accepted === false ? "✕ refused" : accepted === null ? "not known" : "✓ done") },
    { name: "why", head: "Why", cell: ({ reason, message }) => el("div", {}, linked([reason, message].filter(Boolean).join(": "), [])) },
  ], { key: keyOf, caption: "Decisions, the newest first", empty: "Nothing like this was decided." });
  root.append(said, remark, tools, table.element, el("div", { class: "pages" }, more, told));

  function show() {
    if (held) return;
    const live = before.value ? [] : memory.happened, seen = new Set(), rows = [];
    for (const one of [...live, ...older]) {
      const key = keyOf(one);
      if (seen.has(key)) continue;
      seen.add(key);
      rows.push(one);
    }
    table.show(rows.filter((one) => (events.checked || !one.event)
      && (!wanted || [one.is, one.job, one.node, one.reason, one.message].some((text) => text?.toLowerCase().includes(wanted)))));
  }

  /** The past from the beginning: of another time, another job, or with events. */
  function anew() {
    older = [];
    entries = null;
    show();
    return back();
  }

  /** A page further back, below what is shown. */
  async function back() {
    if (reading) return;
    reading = true;
    const until = before.value ? Date.parse(before.value) / 1000 : "", asked = () => [before.value, events.checked, JOB_ID.test(wanted) ? wanted : ""].join();
    const mine = asked();
    entries ||= new Entries({ events: events.checked, job: JOB_ID.test(wanted) ? wanted : "", until });
    const from = entries;
    fill(told, "Reading");
    try {
      const found = await from.next(PAGE, abort.signal);
      if (from === entries) {
        older = [...older, ...found];
        more.hidden = from.over || older.length >= KEPT;
        const last = older.at(-1)?.at;
        fill(told, from.over ? "There is nothing older in the journal." : last ? `Back to ${timed(last)}` : "Nothing found yet; there is more to look at.",
          older.length >= KEPT ? ". Give an earlier time to go on." : "");
        show();
      }
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof Refused)) throw error;
      fill(told, `What was before is not shown: ${error.message}.`);
    } finally {
      reading = false;
    }
    if (mine !== asked()) anew();
  }

  hold.addEventListener("click", () => {
    held = !held;
    hold.setAttribute("aria-pressed", String(held));
    show();
  });
  words.addEventListener("input", () => { wanted = words.value.trim().toLowerCase(); show(); });
  words.addEventListener("change", () => { if (!entries || entries.asked.job !== (JOB_ID.test(wanted) ? wanted : "")) anew(); });
  for (const one of [events, before]) one.addEventListener("change", () => { anew(); });

  async function refresh(signal) {
    // Also without the daemon: the journal tells what was.
    if (!begun) { begun = true; back(); }
    const { data, remark: missing } = await ask("cycle", {}, signal);
    memory.cycle(data);
    remark.hidden = !missing;
    fill(remark, missing);
    fill(said, `Cycle ${data.number} at ${timed(data.at)} took ${Math.round(data.seconds * 1000)} ms, of which the decisions took ${Math.round(data.step_seconds * 1000)} ms. `
      + `Events: ${counted(data.events) || "none"}. Decisions: ${counted(data.decisions) || "none"}.`
      + ((data.first || []).some((one) => one.accepted === false) ? ` ${count(data.first.filter((one) => one.accepted === false).length, "decision")} refused.` : ""));
    show();
  }

  return { title: "Decisions", refresh, leave: () => abort.abort(), item: (kind) => { if (kind === "decision" || kind === "event") show(); } };
}
