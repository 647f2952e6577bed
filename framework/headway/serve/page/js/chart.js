// Charts over time: uPlot, in the colours of the theme, with a sentence below each.

import { colours, el, fill } from "./dom.js";
import { brief, zone } from "./words.js";

const DASHES = [[], [8, 4], [2, 3], [8, 3, 2, 3], [14, 4], [4, 4], [1, 4], [12, 3, 3, 3]];

let library = null;

/** uPlot, loaded when it is first needed. */
export function plots() {
  library ||= new Promise((resolve, reject) => {
    document.head.append(
      el("link", { rel: "stylesheet", href: "vendor/uPlot.min.css" }),
      el("script", { src: "vendor/uPlot.iife.min.js", on: { load: () => resolve(window.uPlot), error: reject } }));
  });
  return library;
}

/** A time below a chart, as short as the step between two allows. */
function tick(seconds, step) {
  const date = new Date(seconds * 1000);
  if (step >= 86400) return date.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  return date.toLocaleTimeString("en-GB").slice(0, step < 60 ? 8 : 5);
}

/** A figure with a chart: lines {label, values} over times. */
export class Chart {
  constructor(title, unit) {
    this.unit = unit;
    this.place = el("div");
    this.said = el("p", { class: "note" });
    this.element = el("figure", {}, el("figcaption", {}, title), this.place, this.said);
    this.plot = null;
    this.watching = new ResizeObserver(() => this.plot?.setSize({ width: Math.max(200, this.place.clientWidth), height: 210 }));
    this.watching.observe(this.place);
  }

  show(uPlot, times, lines, said) {
    fill(this.said, said);
    const shape = JSON.stringify([times.length > 1, lines.map(({ label }) => label)]);
    // uPlot gives a single point half a year.
    const alone = times.length === 1;
    const data = [alone ? [times[0] - 60, times[0]] : times, ...lines.map(({ values }) => (alone ? [null, ...values] : values))];
    if (this.plot && this.shape === shape) { this.plot.setData(data); return; }
    this.drop();
    this.shape = shape;
    const tone = () => colours(), axis = { stroke: () => tone()["ink-2"], grid: { stroke: () => tone().line, width: 1 }, ticks: { stroke: () => tone().line, width: 1 } };
    this.plot = new uPlot({
      width: Math.max(200, this.place.clientWidth), height: 210, cursor: { y: false },
      scales: { y: { range: (_, low, high) => [0, Math.max(high || 0, 1) * 1.05] } },
      axes: [{ ...axis, values: (_, ticks, __, ___, step) => ticks.map((t) => tick(t, step)) },
        { ...axis, size: 72, values: (_, ticks) => ticks.map(this.unit) }],
      series: [{ label: zone(), value: (_, t) => (t ? brief(t) : "") }, ...lines.map(({ label }, place) => ({
        label, width: 2, dash: DASHES[place % DASHES.length], stroke: () => tone()[`series-${(place % 8) + 1}`],
        value: (_, value) => (value === null || value === undefined ? "" : this.unit(value)), points: { show: alone },
      }))],
    }, data, this.place);
    this.plot.root.querySelector("canvas").setAttribute("aria-hidden", "true");
  }

  redraw() { this.plot?.redraw(false, true); }

  drop() { this.plot?.destroy(); this.plot = null; }

  leave() { this.watching.disconnect(); this.drop(); }
}
