// One job: what it does and why, when it starts, what was planned before, and what would start it sooner.

import { ask } from "../api.js";
import { el, fill, linked } from "../dom.js";
import { Table } from "../table.js";
import { STATUS, count, number, span, timed, whole } from "../words.js";

const time = (seconds) => el("time", { datetime: new Date(seconds * 1000).toISOString(), title: whole(seconds) }, timed(seconds));

/** What would let it start now, in words; the pool's name and the others are text. */
const SOONER = {
  limit: ({ limit }) => `with a time limit of at most ${span(limit)}`,
  size: ({ nodes, processors }) => `with at most ${nodes ? `${count(nodes, "node")} and ` : ""}${count(processors, "processor")}`,
  feature: ({ feature }) => `without the feature ${feature}`,
  resource: ({ resource }) => `with ${resource} instead of the same of another type`,
  pool: ({ pool }) => `in the pool ${pool}`,
};

function facts(job, asOf) {
  const nodes = job.placement?.length ? job.placement : job.planned_placement || [];
  const known = [
    ["Name", job.name], ["User", job.user], ["Account", job.account], ["QOS", job.qos],
    ["Pool", job.pools?.length ? job.pools.join(", ") : job.pool],
    ["Processors", `${number(job.processors)}${job.nodes ? ` on ${count(job.nodes, "node")}` : ""}`],
    ["Time limit", span(job.limit)],
    job.expected_runtime && job.expected_runtime !== job.limit
      && ["Planned with", `${span(job.expected_runtime)}${job.predicted_by ? ` (${job.predicted_by})` : ""}`],
    ["Submitted", time(job.submitted)],
    ["Waited", span((job.started || asOf) - job.submitted)],
    job.position && ["Place", `${number(job.position)} of ${number(job.queue_length)}`],
    job.planned_start && ["Planned start", time(job.planned_start)],
    job.started && ["Started", time(job.started)],
    job.expected_end && ["Expected end", time(job.expected_end)],
    nodes.length && [job.started ? "Nodes" : "Planned nodes", nodes.map(([node, cpus]) => `${node} (${cpus})`).join(", ")],
    job.array && ["Array", job.array],
    job.tier && job.tier !== "foreground" && ["Tier", job.tier],
  ];
  return known.filter((fact) => fact && fact[1]).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)));
}

export function make(root, { word }) {
  const headline = el("p", { class: "headline", role: "status" });
  const sentences = el("ul", { class: "sentences" });
  const sooner = el("section", { hidden: true });
  const dl = el("dl", { class: "facts" });
  const plan = el("section", { hidden: true });
  const gone = el("p", { class: "notice", role: "status", hidden: true });
  const changes = new Table([
    { name: "at", head: "Planned at", cell: ({ at }) => time(at) },
    { name: "start", head: "for a start at", cell: ({ start }) => time(start) },
    { name: "moved", head: "Change", cell: ({ moved }) => (moved === undefined ? "first plan"
      : `${span(Math.abs(moved))} ${moved > 0 ? "later" : "earlier"}`) },
  ], { key: ({ at }) => at, caption: "Planned starts of this job over time" });
  const remembered = el("ul", { class: "sentences" });
  plan.append(el("h2", {}, "The plan over time"), remembered, changes.element);
  root.append(gone, headline, el("div", { class: "two" },
    el("section", {}, el("h2", {}, "Why"), sentences, sooner), el("section", {}, el("h2", {}, "Facts"), dl)), plan);
  let title = `Job ${word}`;

  function show({ data, asOf }) {
    const { job, before, plan_history: history } = data;
    const ids = [...(job?.waits_for || []), ...(before?.named || [])].filter((id) => id !== data.id);
    title = `Job ${data.id}`;
    document.getElementById("title").textContent = title;
    document.title = `${title} – headway`;
    gone.hidden = true;
    fill(headline, job ? headlineOf(job, asOf) : "An array");
    fill(sentences, data.sentences.map((sentence) => el("li", {}, linked(sentence, ids))));
    sooner.hidden = !data.sooner?.length;
    fill(sooner, el("h2", {}, "What would start it now"),
      el("ul", { class: "sentences" }, (data.sooner || []).map((one) => el("li", {},
        `It would start now ${SOONER[one.change]?.(one) || `with another ${one.change}`}.`))));
    fill(dl, job ? facts(job, asOf) : []);
    showPlan(history, data.remembered || []);
  }

  function showPlan(history, said) {
    plan.hidden = !history && !said.length;
    fill(remembered, said.map((sentence) => el("li", {}, linked(sentence, []))));
    changes.element.hidden = !history;
    if (!history) return;
    const plans = [{ at: history.noted, start: history.first }, ...(history.latest || [])];
    plans.forEach((one, place) => {
      if (place) plans[place] = { ...one, moved: one.start - plans[place - 1].start };
    });
    changes.show(plans);
  }

  async function refresh(signal) {
    try {
      show(await ask(`jobs/${encodeURIComponent(word)}`, {}, signal));
    } catch (error) {
      if (error.status !== 404) throw error;
      gone.hidden = false;
      fill(gone, `${error.message}. `, sentences.childElementCount
        ? "It has ended, or left; what is below is the last that was known." : "It may have ended.");
    }
  }

  return { title, refresh };
}

function headlineOf(job, asOf) {
  const [sign, words] = STATUS[job.status] || ["?", job.status];
  const then = job.started ? `, started at ${timed(job.started)}`
    : job.planned_start ? `, planned to start at ${timed(job.planned_start)} (in ${span(job.planned_start - asOf)})` : "";
  return [el("span", { class: `pill ${job.status}` }, el("span", { "aria-hidden": "true" }, `${sign} `), job.status),
    ` The job ${words}${then}.`];
}
