// Use, queue and waits over time: what this page has seen since it was opened, and what the daemon can tell of before.

import { all } from "../api.js";
import { Chart, plots } from "../chart.js";
import { el, fill, onTheme } from "../dom.js";
import { memory } from "../memory.js";
import { Table } from "../table.js";
import { brief, count, number, percent, span, timed, zone } from "../words.js";

/** Seconds between two readings of the jobs that run; pools that have a line of their own; rows of the table. */
const AGAIN = 30, LINES = 8, ROWS = 60;

const quantile = (sorted, part) => (sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] : null);

/** Waits of jobs by when they started: half waited less, and 90 %, in at most 40 pieces of time. */
function waits(jobs) {
  const started = jobs.filter((job) => job.started).sort((a, b) => a.started - b.started);
  if (!started.length) return { times: [], half: [], most: [], all: [] };
  const first = started[0].started, last = started.at(-1).started, length = Math.max(60, (last - first) / 40);
  const pieces = new Map();
  for (const job of started) {
    const piece = Math.floor((job.started - first) / length);
    if (!pieces.has(piece)) pieces.set(piece, []);
    pieces.get(piece).push(Math.max(0, job.started - job.submitted));
  }
  const found = { times: [], half: [], most: [], all: started.map((job) => Math.max(0, job.started - job.submitted)).sort((a, b) => a - b) };
  for (const [piece, these] of pieces) {
    these.sort((a, b) => a - b);
    found.times.push(first + (piece + 0.5) * length);
    found.half.push(quantile(these, 0.5));
    found.most.push(quantile(these, 0.9));
  }
  return found;
}

export function make(root) {
  let asked = -Infinity, uPlot = null;
  const remark = el("p", { class: "note" });
  const use = new Chart("Processors busy", (value) => `${Math.round(value)} %`);
  const queue = new Chart("Jobs", (value) => number(Math.round(value)));
  const waited = new Chart("Waits of jobs, by when they started", (value) => span(value));
  const charts = [use, queue, waited];
  const table = new Table([
    { name: "at", head: `At (${zone()})`, cell: ({ at }) => brief(at) },
    { name: "busy", head: "Busy", number: true, cell: ({ busy, total }) => `${percent(busy, total)} (${number(busy)} of ${number(total)})` },
    { name: "running", head: "Run", number: true, cell: ({ running }) => number(running) },
    { name: "queued", head: "Wait", number: true, cell: ({ queued }) => number(queued) },
  ], { key: ({ at }) => at, caption: "Use and queue over time, the newest first" });
  const text = el("details", {}, el("summary", {}, "As a table"), table.element);
  root.append(remark, el("div", { class: "plots" }, charts.map((chart) => chart.element)), text);
  text.addEventListener("toggle", () => show());

  const summed = ({ at, pools }) => Object.values(pools).reduce((sum, pool) => ({
    at, total: sum.total + pool.total, busy: sum.busy + pool.total - pool.free, queued: sum.queued + pool.queued, running: sum.running + pool.running,
  }), { at, total: 0, busy: 0, queued: 0, running: 0 });

  function show() {
    const states = memory.states, sums = states.map(summed), times = sums.map(({ at }) => at), last = sums.at(-1);
    if (!last || !uPlot) return;
    const names = Object.keys(states.at(-1).pools).sort((a, b) => states.at(-1).pools[b].total - states.at(-1).pools[a].total).slice(0, LINES);
    use.show(uPlot, times, names.map((name) => ({ label: name, values: states.map(({ pools }) => {
      const pool = pools[name];
      return pool?.total ? (100 * (pool.total - pool.free)) / pool.total : null;
    }) })), `${percent(last.busy, last.total)} of ${count(last.total, "processor")} are busy at ${timed(last.at)}; ${percent(sums[0].busy, sums[0].total)} were at ${timed(sums[0].at)}.`);
    queue.show(uPlot, times, [{ label: "run", values: sums.map(({ running }) => running) }, { label: "wait", values: sums.map(({ queued }) => queued) }],
      `${count(last.running, "job")} run and ${number(last.queued)} wait at ${timed(last.at)}; ${number(sums[0].running)} ran and ${number(sums[0].queued)} waited at ${timed(sums[0].at)}.`);
    const found = waits([...memory.running.values(), ...memory.ended.values()]);
    waited.show(uPlot, found.times, [{ label: "half waited less", values: found.half }, { label: "90 % waited less", values: found.most }],
      found.all.length ? `Of ${count(found.all.length, "job")} that run or have ended since this page was opened, half waited less than ${span(quantile(found.all, 0.5))}, and 90 % less than ${span(quantile(found.all, 0.9))}.`
        : "No job is known that has started.");
    fill(remark, `From ${timed(times[0])}, when this page was opened, to ${timed(last.at)}.`);
    if (text.open) table.show(sums.slice(-ROWS).reverse());
  }

  const themed = onTheme(() => charts.forEach((chart) => chart.redraw()));

  async function refresh(signal) {
    uPlot = await plots();
    if (performance.now() / 1000 - asked > AGAIN) {
      const running = await all("jobs", { status: "running" }, "jobs", { signal });
      if (running.complete) memory.onNodes(running.items, running.asOf);
      asked = performance.now() / 1000;
    }
    show();
  }

  return { title: "Over time", refresh, leave() { themed(); charts.forEach((chart) => chart.leave()); } };
}
