// One job: what it does and why, when it starts, what was planned before, and what would start it sooner.

import { Refused, ask } from "../api.js";
import { el, fill, jobLink, linked } from "../dom.js";
import { shown } from "../past.js";
import { Table } from "../table.js";
import { STATUS, count, number, span, timed, whole, zone } from "../words.js";

/** Seconds until the past of a job that has not changed is read again. */
const AGAIN = 60;

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

/** What the journal knows of a job that is not there any more, as facts. */
function factsOf(job) {
  const known = [
    ["Name", job.name], ["User", job.user], ["Account", job.account], ["QOS", job.qos],
    ["Pool", job.pools?.length ? job.pools.join(", ") : job.pool],
    ["Processors", `${number(job.processors)}${job.nodes ? ` on ${count(job.nodes, "node")}` : ""}`],
    ["Time limit", span(job.limit)],
    job.submitted !== null && ["Submitted", time(job.submitted)],
    job.started && ["Started", time(job.started)],
    job.ended && ["Ended", time(job.ended)],
    job.started && job.ended && ["Ran", span(job.ended - job.started)],
    ["Outcome", [job.outcome, job.reason].filter(Boolean).join(": ")],
    job.exit_code && ["Exit code", String(job.exit_code)],
    job.placement?.length && ["Nodes", job.placement.map(([node, cpus]) => `${node} (${cpus})`).join(", ")],
    ["Array", job.array],
  ];
  return known.filter((fact) => fact && fact[1]).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)));
}

function headlineOfPast({ started, ended, outcome, reason, placement = [] }) {
  const why = reason && outcome !== "completed" ? `: ${reason}` : "";
  if (!ended) return started ? `The job began at ${timed(started)}; no end of it is recorded.` : "The job came; nothing more is recorded of it.";
  const ran = started ? `, after ${span(ended - started)}${placement.length ? ` on ${count(placement.length, "node")}` : ""}` : ", before it began";
  return `The job is over: ${outcome || "ended"}${why} at ${timed(ended)}${ran}.`;
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
  const past = el("section", { hidden: true });
  const pastNote = el("p", { class: "note" });
  const entries = new Table([
    { name: "at", head: `At (${zone()})`, cell: ({ at }) => (at ? time(at) : "") },
    { name: "what", head: "What", cell: ({ is, event }) => (event ? is : `decided: ${is}`) },
    { name: "outcome", head: "Outcome", cell: ({ accepted, event }) => (event || accepted === null ? "" : accepted ? "✓ done" : "✕ refused") },
    { name: "why", head: "Why", cell: ({ reason, message, placement }) => el("div", {}, linked([reason, message].filter(Boolean).join(": "), []),
      placement?.length && !reason ? placement.map(([node]) => node).join(", ") : "") },
  ], { key: ({ number: place, entry }) => `${entry} ${place}`, caption: "What happened to this job and what was decided about it, oldest first" });
  past.append(el("h2", {}, "What is recorded"), pastNote, entries.element);
  plan.append(el("h2", {}, "The plan over time"), remembered, changes.element);
  root.append(gone, headline, el("div", { class: "two" },
    el("section", {}, el("h2", {}, "Why"), sentences, sooner), el("section", {}, el("h2", {}, "Facts"), dl)), plan, past);
  const why = sentences.parentElement;
  let status = "", readAt = -Infinity;
  let title = `Job ${word}`;

  function show({ data, asOf }) {
    const { job, before, plan_history: history } = data;
    const ids = [...(job?.waits_for || []), ...(before?.named || [])].filter((id) => id !== data.id);
    title = `Job ${data.id}`;
    document.getElementById("title").textContent = title;
    document.title = `${title} – headway`;
    gone.hidden = true;
    why.hidden = false;
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
    let lost = null;
    try {
      const answer = await ask(`jobs/${encodeURIComponent(word)}`, {}, signal);
      show(answer);
      await readPast(answer.data.id, answer.data.job?.status || "array", signal);
    } catch (error) {
      if (!(error instanceof Refused) || ![0, 404, 503].includes(error.status)) throw error;
      lost = error;
    }
    if (lost) await withoutIt(lost, signal);
  }

  /** The job is not there, or nobody can say: what the journal tells is shown. */
  async function withoutIt(error, signal) {
    const told = await readPast(word, "gone", signal);
    const last = told?.jobs?.[0];
    why.hidden = !sentences.childElementCount;
    gone.hidden = false;
    if (last) {
      fill(headline, headlineOfPast(last));
      fill(dl, factsOf(last));
    }
    if (error.status === 404) {
      fill(gone, last ? "The job is not in the cluster's queue any more. This is what the journal tells of it."
        : `${error.message}. ${sentences.childElementCount ? "It has ended, or left; what is below is the last that was known." : "It may have ended."}`);
    } else if (last || told?.elements?.length) {
      fill(gone, `${error.message}. This is what the journal tells.`);
    } else if (!sentences.childElementCount) {
      throw error;
    } else fill(gone, `${error.message}.`);
  }

  /** Reads the past once, again when the job's state is another one, and now and then. */
  async function readPast(id, now, signal) {
    if (now === status && performance.now() - readAt < AGAIN * 1000) return past.told;
    try {
      const { data } = await ask(`history/jobs/${encodeURIComponent(id)}`, {}, signal);
      status = now;
      readAt = performance.now();
      past.told = data;
      past.hidden = false;
      const { jobs = [], elements = [], more, last_failure: failure } = data;
      fill(pastNote, elements.length ? ["Elements of the array: ", elements.map((one, place) => [place ? ", " : "", jobLink(one)])] : "",
        jobs.length > 1 ? `${count(jobs.length, "part")}: it was requeued or moved. ` : "",
        failure ? `The last start failed: ${failure}. ` : "", more ? "There is more than is shown." : "");
      entries.element.hidden = elements.length > 0;
      entries.show((data.entries || []).map(shown));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      past.told = null;
      status = now;
      readAt = performance.now();
      past.hidden = error.status === 404;
      entries.element.hidden = true;
      fill(pastNote, `The past is not shown: ${error.message}.`);
    }
    return past.told;
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
