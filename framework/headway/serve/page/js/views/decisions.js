// Decisions as they come, and the last cycle.

import { ask } from "../api.js";
import { el, fill, jobLink, linked } from "../dom.js";
import { memory } from "../memory.js";
import { Table } from "../table.js";
import { brief, count, listed, timed, whole, zone } from "../words.js";

const SHOWN = 200;

const counted = (kinds) => listed(Object.entries(kinds || {}).map(([kind, number]) => `${number} ${kind}`));

export function make(root) {
  let held = false, wanted = "";
  const said = el("p", { role: "status" });
  const remark = el("p", { class: "note", hidden: true });
  const words = el("input", { type: "search", size: 16, placeholder: "job, kind or reason", spellcheck: "false", maxlength: 128 });
  const hold = el("button", { type: "button", "aria-pressed": "false", title: "New decisions are not shown meanwhile" }, "Hold");
  const events = el("input", { type: "checkbox" });
  const tools = el("div", { class: "tools" }, el("label", {}, "Only ", words), el("label", { class: "check" }, events, " events, too"), hold);
  const table = new Table([
    { name: "at", head: `At (${zone()})`, cell: ({ at }) => (at ? el("time", { datetime: new Date(at * 1000).toISOString(), title: whole(at) }, brief(at)) : "") },
    { name: "what", head: "What", cell: ({ is, event }) => [event ? "event " : "", is] },
    { name: "job", head: "Job or node", cell: ({ job, node }) => (job ? jobLink(job) : node || "") },
    { name: "outcome", head: "Outcome", cell: ({ accepted, event }) => (event ? "" : accepted === false ? "✕ refused" : "✓ done") },
    { name: "why", head: "Why", cell: ({ reason, message }) => el("div", {}, linked([reason, message].filter(Boolean).join(": "), [])) },
  ], { key: ({ at, is, job, node }) => `${at} ${is} ${job || ""} ${node || ""}`, caption: "Decisions, the newest first", empty: "Nothing was decided since this page was opened." });
  root.append(said, remark, tools, table.element);

  function show() {
    if (held) return;
    const found = memory.happened.filter((one) => (events.checked || !one.event)
      && (!wanted || [one.is, one.job, one.node, one.reason, one.message].some((text) => text?.toLowerCase().includes(wanted))));
    table.show(found.slice(0, SHOWN));
  }

  hold.addEventListener("click", () => {
    held = !held;
    hold.setAttribute("aria-pressed", String(held));
    show();
  });
  words.addEventListener("input", () => { wanted = words.value.trim().toLowerCase(); show(); });
  events.addEventListener("change", show);

  async function refresh(signal) {
    const { data, remark: told } = await ask("cycle", {}, signal);
    memory.cycle(data);
    remark.hidden = !told;
    fill(remark, told);
    fill(said, `Cycle ${data.number} at ${timed(data.at)} took ${Math.round(data.seconds * 1000)} ms, of which the decisions took ${Math.round(data.step_seconds * 1000)} ms. `
      + `Events: ${counted(data.events) || "none"}. Decisions: ${counted(data.decisions) || "none"}.`
      + ((data.first || []).some((one) => one.accepted === false) ? ` ${count(data.first.filter((one) => one.accepted === false).length, "decision")} refused.` : ""));
    show();
  }

  return { title: "Decisions", refresh, item: (kind) => { if (kind === "decision" || kind === "event") show(); } };
}
