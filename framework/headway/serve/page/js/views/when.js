// When a job would start if it was submitted now.

import { Refused, ask } from "../api.js";
import { el, fill, linked } from "../dom.js";
import { memory } from "../memory.js";
import { Table } from "../table.js";
import { count, parseSpan, span, timed } from "../words.js";

const OUTCOME = {
  now: () => "It would start now.",
  planned: ({ start }) => `Capacity would be kept for it: it would start at ${timed(start)}.`,
  foreseen: ({ start }) => `It would start at ${timed(start)}, if no other job comes and all run as long as they are planned with.`,
  later: ({ not_before: at }) => (at ? `It would not start before ${timed(at)}.` : "It would start later."),
  never: () => "It could never start as it is.",
};

export function make(root, { parameters, remember }) {
  const field = (name, title, attributes, hint = "") => {
    const input = el("input", { name, type: "text", size: 10, spellcheck: "false", maxlength: 64, value: parameters.get(name) || "", ...attributes });
    return el("label", {}, el("span", {}, title), input, hint ? el("small", { class: "note" }, ` ${hint}`) : "");
  };
  const whole = (name, title) => field(name, title, { type: "number", min: "0", step: "1" });
  const pools = el("select", { name: "pool" }, el("option", { value: "" }, "any"));
  const form = el("form", { class: "filter", "aria-label": "What the job asks for" },
    el("label", {}, el("span", {}, "Pool"), pools), whole("nodes", "Nodes"), whole("processors", "Processors"),
    whole("processors_per_node", "On each node"), field("memory", "Memory of a node, GiB", { type: "number", min: "0", step: "any" }),
    field("limit", "Time limit", { required: true, placeholder: "1h30m" }), field("account", "Account", {}), field("qos", "QOS", {}),
    el("button", {}, "When?"));
  const answer = el("div", { role: "status" });
  const smaller = new Table([
    { name: "start", head: "Start", cell: ({ start }) => timed(start) },
    { name: "nodes", head: "Nodes", number: true, cell: ({ nodes }) => (nodes ? String(nodes) : "") },
    { name: "processors", head: "Processors", number: true, cell: ({ processors }) => String(processors) },
    { name: "limit", head: "Limit", number: true, cell: ({ limit }) => span(limit) },
  ], { key: (one) => JSON.stringify(one), caption: "Smaller requests that would start earlier" });
  const earlier = el("section", { hidden: true }, el("h2", {}, "Smaller requests that would start earlier"), smaller.element);
  root.append(el("p", { class: "note" }, "What is told is the plan of this moment, for a job of yours. Nothing is submitted."), form, answer, earlier);
  form.addEventListener("submit", (event) => { event.preventDefault(); find(); });

  async function find() {
    const given = Object.fromEntries(new FormData(form)), seconds = parseSpan(given.limit);
    earlier.hidden = true;
    if (Number.isNaN(seconds)) {
      fill(answer, el("p", { class: "notice" }, `Time limit: expected a time such as 90m or 1h30m, found “${given.limit}”.`));
      return;
    }
    remember("when", given);
    const { limit, memory: gib, ...wanted } = given;
    for (const name of ["nodes", "processors", "processors_per_node"]) if (wanted[name] === "0") wanted[name] = "";
    try {
      const { data } = await ask("when", { ...wanted, seconds, memory_per_node: gib ? Math.round(Number(gib) * 2 ** 30) : "" });
      show(data);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      fill(answer, el("p", { class: "notice" }, error.message));
    }
  }

  function show(trial) {
    const { pool, placement = [], position, queue_length: length, why, waits_for: ids = [], account, qos } = trial;
    fill(answer, el("p", { class: "headline" }, OUTCOME[trial.outcome]?.(trial) || trial.outcome),
      el("ul", { class: "sentences" },
        el("li", {}, `Pool ${pool}${account ? `, account ${account}` : ""}${qos ? `, QOS ${qos}` : ""}.`),
        position ? el("li", {}, `It would be number ${position} of ${count(length, "job")} in the queue.`) : "",
        placement.length ? el("li", {}, `On ${placement.slice(0, 8).map(([node]) => node).join(", ")}${placement.length > 8 ? ` and ${placement.length - 8} more` : ""}.`) : "",
        why ? el("li", {}, linked(why, ids)) : ""));
    earlier.hidden = !trial.smaller?.length;
    smaller.show(trial.smaller || []);
  }

  async function refresh() {
    for (const { name } of memory.latest?.pools || []) {
      if (![...pools.options].some((option) => option.value === name)) pools.add(new Option(name, name, false, name === parameters.get("pool")));
    }
  }

  return { title: "When would a job start?", refresh };
}
