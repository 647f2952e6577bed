// Past, running and booked work by node, over time.

import { Refused, all } from "../api.js";
import { KINDS, barAt, barsOf, keptOf, rowsOf, timeStep } from "../bars.js";
import { colours, context, el, fill, jobLink, oncePerFrame, onTheme } from "../dom.js";
import { memory } from "../memory.js";
import { Work } from "../past.js";
import { Table } from "../table.js";
import { brief, count, span, timed, whole, zone } from "../words.js";

const MARGIN = { left: 92, right: 6, top: 4, bottom: 34 };
/** Seconds between two readings of all nodes and reservations; pixels of a row that can be read; rows of the table. */
const NODES_AGAIN = 60, READABLE = 16, LISTED = 100;
const WORDS = { past: "ended", running: "runs", suspended: "is suspended", booked: "is booked" };

/** Fill of each kind: a colour and a texture. */
function fills(drawn, colour) {
  const striped = (ink, back, gap) => {
    const tile = document.createElement("canvas");
    tile.width = tile.height = gap;
    const on = tile.getContext("2d");
    if (back) { on.fillStyle = back; on.fillRect(0, 0, gap, gap); }
    on.strokeStyle = ink;
    on.lineWidth = 1.4;
    on.beginPath();
    for (const shift of [-gap, 0, gap]) { on.moveTo(shift, gap); on.lineTo(shift + gap, 0); }
    on.stroke();
    return drawn.createPattern(tile, "repeat");
  };
  return {
    past: colour.off, running: colour["series-1"], suspended: striped(colour["series-4"], colour.ground, 5),
    booked: striped(colour["series-2"], colour.paper, 7), reserved: striped(colour.warn, null, 4),
  };
}

const dated = (seconds) => new Date(seconds * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB").replace(/:00$/, "");

const known = (end) => (end === null || end === undefined ? Infinity : end);

/** What bars are made of: jobs that have ended, as the journal or this page knows, that run and are booked. */
function itemsOf(past, running, bookings, now) {
  const items = [], told = new Set();
  for (const job of past) {
    told.add(`${job.id} ${job.started}`);
    items.push({ ...job, start: job.started, end: job.ended ?? job.started, kind: "past" });
  }
  for (const job of memory.ended.values()) {
    if (!told.has(`${job.id} ${job.started}`)) items.push({ ...job, start: job.started, end: job.ended, kind: "past" });
  }
  for (const job of running) {
    items.push({ ...job, start: job.started ?? now, end: Math.max(known(job.expected_end), now),
      kind: job.status === "suspended" ? "suspended" : "running" });
  }
  for (const { job, start, end, ...booking } of bookings) {
    if (start !== null && start !== undefined) {
      items.push({ ...booking, id: job, start: Math.max(start, now), end: known(end), kind: "booked" });
    }
  }
  return items;
}

/** Rows for jobs of the past alone, of a cluster whose nodes nobody tells: as wide as the widest job. */
function nodesOf(past) {
  const widest = new Map();
  for (const { placement = [] } of past) {
    for (const [name, count_] of placement) widest.set(name, Math.max(count_, widest.get(name) || 1));
  }
  return [...widest].sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true }))
    .map(([name, processors]) => ({ name, processors, pools: [] }));
}

/** A time as a field of that kind has it: of this browser's zone. */
const local = (seconds) => new Date((seconds - new Date(seconds * 1000).getTimezoneOffset() * 60) * 1000).toISOString().slice(0, 16);

export function make(root, { parameters, remember }) {
  let pool = parameters.get("pool") || "";
  let layout = { rows: [], place: new Map() }, chart = { bars: [], from: new Int32Array(1) }, kept = new Map();
  let nodes = [], reservations = [], nodesAt = -Infinity, now = Date.now() / 1000, marked = null, follows = true, telling = 0;
  let view = null, drag = null, past = new Work(pool), jobs = [], bookings = [], remarks = "";
  const abort = new AbortController();

  const canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": "Work by node over time. The sentences and the table below say the same.", "aria-describedby": "gantt-said" });
  const tip = el("div", { class: "tip", hidden: true });
  const choice = el("select", {}, el("option", { value: "" }, "all pools"));
  const press = (title, label, action) => el("button", { type: "button", title, "aria-label": title, on: { click: action } }, label);
  const nowButton = press("Follow the time", "Now", () => { follows = true; begin(); draw(); });
  const goTo = el("input", { type: "datetime-local", title: "A time to look at" });
  goTo.addEventListener("change", () => {
    const at = Date.parse(goTo.value) / 1000;
    if (!view || Number.isNaN(at)) return;
    const length = view.t1 - view.t0;
    follows = false;
    Object.assign(view, { t0: at - length / 2, t1: at + length / 2 });
    draw();
  });
  const tools = el("div", { class: "tools" },
    el("label", {}, "Pool ", choice), el("label", {}, "Go to ", goTo),
    el("div", { class: "buttons", role: "group", "aria-label": "Time" },
      press("Earlier", "←", () => move(-0.25, 0)), press("Later", "→", () => move(0.25, 0)),
      press("Closer in time", "+", () => zoomTime(0.5)), press("Farther in time", "−", () => zoomTime(2)), nowButton),
    el("div", { class: "buttons", role: "group", "aria-label": "Nodes" },
      press("Nodes above", "↑", () => move(0, -0.5)), press("Nodes below", "↓", () => move(0, 0.5)),
      press("Higher rows", "⊕", () => zoomRows(0.5)), press("Lower rows", "⊖", () => zoomRows(2)),
      press("All nodes", "All", () => { view.r0 = 0; view.r1 = layout.rows.length; draw(); })));
  const legend = el("ul", { class: "legend", "aria-label": "What is drawn" });
  const said = el("p", { class: "said", id: "gantt-said" });
  const remark = el("p", { class: "note", hidden: true });
  const table = new Table([
    { name: "job", head: "Job", cell: ({ item }) => jobLink(item.id) },
    { name: "is", head: "State", cell: ({ item }) => item.outcome || WORDS[item.kind] },
    { name: "where", head: "On", cell: ({ item }) => (item.placement?.length
      ? item.placement.map(([name]) => name).join(", ") : item.pool) },
    { name: "size", head: "Processors", number: true, cell: ({ item }) => String(item.processors) },
    { name: "from", head: `From (${zone()})`, cell: ({ item }) => brief(item.start) },
    { name: "until", head: `Until (${zone()})`, cell: ({ item }) => (item.end === Infinity ? "no end" : brief(item.end)) },
  ], { key: ({ item }) => `${item.kind} ${item.id} ${item.start}`, caption: "Jobs of the nodes and the time that are shown", empty: "No job is shown." });
  const text = el("details", {}, el("summary", {}, "As a table"), table.element);
  root.append(tools, legend, remark, el("div", { class: "stage" }, canvas, tip), said, text);
  text.addEventListener("toggle", () => list());

  // -- what is shown ---------------------------------------------------------------------------------

  const area = () => ({
    x: MARGIN.left, y: MARGIN.top,
    w: Math.max(canvas.clientWidth - MARGIN.left - MARGIN.right, 20),
    h: Math.max(canvas.clientHeight - MARGIN.top - MARGIN.bottom, 20),
  });

  /** The first view: from a while before now to the end of what is planned; rows that can be read. */
  function begin() {
    const ends = chart.bars.map((bar) => bar.end).filter((end) => end < Infinity).sort((a, b) => a - b);
    const ahead = Math.min(Math.max((ends[Math.floor(ends.length * 0.98)] || now) - now, 600), 2 * 86400);
    const rows = view && view.r1 > 0 ? [view.r0, view.r1] : [0, Math.min(layout.rows.length, Math.max(1, Math.floor(area().h / READABLE)))];
    view = { t0: now - 0.5 * ahead, t1: now + 1.1 * ahead, r0: rows[0], r1: rows[1] };
  }

  function bounded() {
    const most = Math.max(layout.rows.length, 1), rows = Math.min(Math.max(view.r1 - view.r0, 1), most);
    view.r0 = Math.min(Math.max(view.r0, 0), most - rows);
    view.r1 = view.r0 + rows;
    const length = Math.min(Math.max(view.t1 - view.t0, 10), 400 * 86400);
    view.t1 = view.t0 + length;
  }

  function move(times, rows) {
    if (!view) return;
    const t = (view.t1 - view.t0) * times, r = (view.r1 - view.r0) * rows;
    if (times) follows = false;
    Object.assign(view, { t0: view.t0 + t, t1: view.t1 + t, r0: view.r0 + r, r1: view.r1 + r });
    draw();
  }

  function zoomTime(factor, at = follows ? now : (view.t0 + view.t1) / 2) {
    view.t0 = at - (at - view.t0) * factor;
    view.t1 = at + (view.t1 - at) * factor;
    draw();
  }

  function zoomRows(factor, at = view.r0) {
    view.r0 = at - (at - view.r0) * factor;
    view.r1 = at + (view.r1 - at) * factor;
    draw();
  }

  // -- drawing ---------------------------------------------------------------------------------------

  const draw = oncePerFrame(paint);

  function paint() {
    if (!view) return;
    bounded();
    const width = canvas.clientWidth, height = canvas.clientHeight, drawn = context(canvas, width, height);
    const colour = colours(), fillOf = fills(drawn, colour), { x, y, w, h } = area();
    drawn.fillStyle = colour.ground;
    drawn.fillRect(x, y, w, h);
    paintTimes(drawn, colour);
    paintRows(drawn, colour, fillOf);
    drawn.save();
    drawn.beginPath();
    drawn.rect(x, y, w, h);
    drawn.clip();
    paintKept(drawn, fillOf.reserved);
    paintBars(drawn, colour, fillOf);
    const at = x + ((now - view.t0) / (view.t1 - view.t0)) * w;
    drawn.fillStyle = colour.bad;
    drawn.fillRect(at - 0.75, y, 1.5, h);
    drawn.restore();
    nowButton.setAttribute("aria-pressed", String(follows));
    // The words follow once the hand rests.
    clearTimeout(telling);
    telling = setTimeout(() => { tell(); look(); }, 150);
  }

  /** The past of what is on the screen is read, a little further back than is shown. */
  function look() {
    if (!view || document.activeElement !== goTo) goTo.value = view ? local((view.t0 + view.t1) / 2) : "";
    const since = Math.floor(view.t0 - 0.25 * (view.t1 - view.t0)), mine = past;
    if (since >= now) return;
    mine.back(since, now, () => { if (mine === past) { lay(); draw(); } }, abort.signal).catch((error) => {
      if (error.name !== "AbortError") throw error;
    });
  }

  /** Bars of what is known. */
  function lay() {
    layout = rowsOf(nodes.length ? nodes : nodesOf(past.jobs), memory.latest?.pools || [], pool);
    chart = barsOf(itemsOf(past.jobs, jobs, bookings, now), layout);
    kept = keptOf(reservations, layout);
    const said_ = [remarks, past.why].filter(Boolean).join(" ");
    remark.hidden = !said_;
    fill(remark, said_);
  }

  function paintTimes(drawn, colour) {
    const { x, y, w, h } = area(), length = view.t1 - view.t0;
    const step = timeStep((length * 95) / w), shift = new Date().getTimezoneOffset() * 60;
    drawn.font = "12px system-ui, sans-serif";
    drawn.textAlign = "center";
    drawn.textBaseline = "top";
    let before = dated(now);
    for (let t = Math.ceil((view.t0 - shift) / step) * step + shift; t <= view.t1; t += step) {
      const at = x + ((t - view.t0) / length) * w;
      drawn.fillStyle = colour.line;
      drawn.fillRect(at, y, 1, h + 4);
      drawn.fillStyle = colour["ink-2"];
      const label = dated(t) === before ? clock(t) : `${dated(t)} ${clock(t)}`;
      before = dated(t);
      if (at > x + 20 && at < x + w - 24) drawn.fillText(label, at, y + h + 6);
    }
    drawn.textAlign = "left";
    drawn.fillText(zone(), 4, y + h + 6);
  }

  function paintRows(drawn, colour, fillOf) {
    const { x, y, w, h } = area(), tall = h / (view.r1 - view.r0), last = Math.min(layout.rows.length, Math.ceil(view.r1));
    drawn.font = `${Math.min(12, Math.max(9, tall - 2))}px system-ui, sans-serif`;
    drawn.textAlign = "right";
    drawn.textBaseline = "middle";
    const every = Math.max(1, Math.ceil(13 / tall));
    for (let row = Math.floor(view.r0); row < last; row += 1) {
      const { name, available, reserved } = layout.rows[row], top = y + (row - view.r0) * tall;
      if (tall > 3) { drawn.fillStyle = colour.line; drawn.fillRect(x, Math.max(y, top), w, 0.7); }
      if (reserved) { drawn.fillStyle = fillOf.reserved; drawn.fillRect(x - 5, Math.max(y, top), 4, Math.min(tall, y + h - top)); }
      const middle = top + tall / 2;
      if (row % every || middle < y + 5 || middle > y + h - 3) continue;
      drawn.fillStyle = available ? colour.ink : colour.bad;
      drawn.fillText(`${available ? "" : "✕ "}${name.length > 13 ? `…${name.slice(-12)}` : name}`, x - 8, middle, x - 10);
    }
  }

  /** Reservations, under the bars. */
  function paintKept(drawn, fillOf) {
    const { x, y, w, h } = area(), perSecond = w / (view.t1 - view.t0), tall = h / (view.r1 - view.r0);
    drawn.fillStyle = fillOf;
    for (const [row, these] of kept) {
      if (row + 1 < view.r0 || row > view.r1) continue;
      for (const { start, end } of these) {
        const left = Math.max(x, x + (start - view.t0) * perSecond), right = Math.min(x + w, x + (end - view.t0) * perSecond);
        if (right > left) drawn.fillRect(left, y + (row - view.r0) * tall, right - left, Math.max(0.4, tall - 0.7));
      }
    }
  }

  function paintBars(drawn, colour, fillOf) {
    const { x, y, w, h } = area(), perSecond = w / (view.t1 - view.t0), tall = h / (view.r1 - view.r0);
    const first = Math.max(0, Math.floor(view.r0)), last = Math.min(layout.rows.length, Math.ceil(view.r1));
    const labels = [], outlined = [];
    let kind = "";
    drawn.strokeStyle = colour["series-2"];
    drawn.lineWidth = 1;
    for (let place = chart.from[first]; place < chart.from[last]; place += 1) {
      const bar = chart.bars[place];
      if (bar.end < view.t0 || bar.start > view.t1) continue;
      const left = Math.max(x - 2, x + (bar.start - view.t0) * perSecond);
      const wide = Math.min(x + w + 2, x + (bar.end - view.t0) * perSecond) - left;
      const top = y + (bar.row + bar.low - view.r0) * tall, high = (bar.high - bar.low) * tall;
      if (bar.kind !== kind) { kind = bar.kind; drawn.fillStyle = fillOf[kind]; }
      const gapX = wide > 4 ? 0.8 : 0, gapY = high > 5 ? 0.8 : 0;
      drawn.fillRect(left, top, Math.max(wide - gapX, 0.6), Math.max(high - gapY, 0.4));
      if (kind === "booked" && wide > 5 && high > 4) drawn.strokeRect(left + 0.5, top + 0.5, wide - 1.5, high - 1.5);
      if (bar.item === marked || (marked && bar.item.id === marked.id)) outlined.push([left, top, wide, high]);
      if (wide > 46 && high > 10) labels.push([bar, left, top, wide, high]);
    }
    drawn.font = "11px system-ui, sans-serif";
    drawn.textAlign = "left";
    drawn.textBaseline = "middle";
    for (const [bar, left, top, wide, high] of labels) {
      const label = String(bar.item.id);
      if (bar.kind === "booked" || bar.kind === "suspended") {
        drawn.fillStyle = colour.paper;
        drawn.fillRect(left + 2, top + high / 2 - 6, Math.min(drawn.measureText(label).width + 4, wide - 4), 12);
      }
      drawn.fillStyle = bar.kind === "running" ? colour.paper : colour.ink;
      drawn.fillText(label, left + 4, top + high / 2 + 0.5, wide - 8);
    }
    drawn.strokeStyle = colour.ink;
    drawn.lineWidth = 2;
    for (const [left, top, wide, high] of outlined) drawn.strokeRect(left, top, wide, high);
  }

  function showLegend() {
    const names = { past: "ended", running: "runs, to its expected end",
      suspended: "is suspended", booked: "booked, as the last cycle planned it", reserved: "reserved" };
    legend.replaceChildren(...Object.entries(names).map(([kind, name]) => {
      const sample = el("canvas", { "aria-hidden": "true" }), drawn = context(sample, 18, 14);
      drawn.fillStyle = fills(drawn, colours())[kind];
      drawn.fillRect(0, 0, 18, 14);
      return el("li", {}, sample, name);
    }));
  }

  // -- in words --------------------------------------------------------------------------------------

  /** The bars of the view, a job once. */
  function inView() {
    const found = new Map(), last = Math.min(layout.rows.length, Math.ceil(view.r1));
    for (let place = chart.from[Math.max(0, Math.floor(view.r0))]; place < chart.from[last]; place += 1) {
      const bar = chart.bars[place];
      if (bar.end >= view.t0 && bar.start <= view.t1) found.set(`${bar.kind} ${bar.item.id} ${bar.item.start}`, bar);
    }
    return [...found.values()];
  }

  /** The reservations of the view. */
  function inTime() {
    const found = new Set();
    for (const [row, these] of kept) {
      if (row + 1 <= view.r0 || row >= view.r1) continue;
      for (const one of these) if (one.end >= view.t0 && one.start <= view.t1) found.add(one);
    }
    return found;
  }

  function tell() {
    const number = Object.fromEntries(KINDS.map((kind) => [kind, 0]));
    for (const bar of inView()) number[bar.kind] += 1;
    const first = layout.rows[Math.floor(view.r0)]?.name, last = layout.rows[Math.min(layout.rows.length, Math.ceil(view.r1)) - 1]?.name;
    fill(said, layout.rows.length ? `From ${timed(view.t0)} to ${timed(view.t1)}, ${first} to ${last} of ${count(layout.rows.length, "row")}: `
      + `${count(number.running, "job")} running, ${number.booked} booked, ${number.past} ended`
      + (inTime().size ? `, ${count(inTime().size, "reservation")}` : "") + (number.suspended ? `, ${number.suspended} suspended.` : ".") : "There are no nodes to show.");
    list();
  }

  function list() {
    if (text.open && view) table.show(inView().sort((a, b) => a.start - b.start).slice(0, LISTED));
  }

  function describe({ item }) {
    return [`Job ${item.id} ${WORDS[item.kind]}${item.outcome ? `: ${item.outcome}` : ""}`, item.name && `${item.name}`, item.user && `user ${item.user}`,
      `${count(item.processors, "processor")}${item.placement?.length ? ` on ${count(item.placement.length, "node")}` : ""}`,
      `from ${whole(item.start)}`,
      item.end === Infinity ? "without an end" : `until ${whole(item.end)} (${span(item.end - item.start)})`,
    ].filter(Boolean).join("\n");
  }

  const inWords = ({ id, start, end, users = [], accounts = [], reason }) => [`Reserved${id ? `: ${id}` : ""}`,
    `from ${whole(start)}`, `until ${whole(end)}`, users.length ? `users ${users.join(", ")}` : "",
    accounts.length ? `accounts ${accounts.join(", ")}` : "", reason].filter(Boolean).join("\n");

  // -- by hand ---------------------------------------------------------------------------------------

  function point(event) {
    const box = canvas.getBoundingClientRect(), { x, y, w, h } = area();
    const px = event.clientX - box.left, py = event.clientY - box.top;
    return { px, py, t: view.t0 + ((px - x) / w) * (view.t1 - view.t0), r: view.r0 + ((py - y) / h) * (view.r1 - view.r0) };
  }

  function hover(event) {
    const { px, py, t, r } = point(event), { x, w } = area();
    const row = Math.floor(r), bar = px < x ? null : barAt(chart, r, t, (2 * (view.t1 - view.t0)) / w);
    const note = px < x ? layout.rows[row] : null;
    const reserved = bar || note ? null : kept.get(row)?.find(({ start, end }) => t >= start && t < end);
    if ((bar?.item || null) !== marked) { marked = bar?.item || null; draw(); }
    tip.hidden = !bar && !note && !reserved;
    canvas.style.cursor = bar ? "pointer" : "";
    if (tip.hidden) return;
    tip.textContent = bar ? describe(bar) : reserved ? inWords(reserved) : `${note.name}\n${count(note.processors, "processor")}${note.note ? `\n${note.note}` : ""}`;
    const right = px > canvas.clientWidth / 2;
    tip.style.left = right ? "" : `${px + 14}px`;
    tip.style.right = right ? `${canvas.clientWidth - px + 14}px` : "";
    tip.style.top = `${Math.max(0, Math.min(py + 10, canvas.clientHeight - 130))}px`;
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !view) return;
    drag = { x: event.clientX, y: event.clientY, from: { ...view }, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!view) return;
    if (!drag) { hover(event); return; }
    const dx = event.clientX - drag.x, dy = event.clientY - drag.y, { w, h } = area();
    drag.moved ||= Math.abs(dx) + Math.abs(dy) > 4;
    if (!drag.moved) return;
    tip.hidden = true;
    follows = follows && Math.abs(dx) < 4;
    const t = ((drag.from.t1 - drag.from.t0) * dx) / w, r = ((drag.from.r1 - drag.from.r0) * dy) / h;
    view = { t0: drag.from.t0 - t, t1: drag.from.t1 - t, r0: drag.from.r0 - r, r1: drag.from.r1 - r };
    draw();
  });
  canvas.addEventListener("pointerup", (event) => {
    const clicked = drag && !drag.moved;
    drag = null;
    if (!clicked) return;
    const { t, r } = point(event), bar = barAt(chart, r, t, (2 * (view.t1 - view.t0)) / area().w);
    if (bar) location.hash = `#/job/${encodeURIComponent(bar.item.id)}`;
  });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; if (marked) { marked = null; draw(); } });
  canvas.addEventListener("wheel", (event) => {
    if (!view) return;
    const { t, r } = point(event), before = { ...view };
    if (event.ctrlKey || event.metaKey) zoomTime(event.deltaY < 0 ? 0.8 : 1.25, t);
    else if (event.altKey) zoomRows(event.deltaY < 0 ? 0.8 : 1.25, r);
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) move(Math.sign(event.deltaX || event.deltaY) * 0.1, 0);
    else move(0, Math.sign(event.deltaY) * 0.15);
    bounded();
    // At the end of the rows the page scrolls on.
    if (before.r0 !== view.r0 || before.r1 !== view.r1 || before.t0 !== view.t0 || event.ctrlKey) event.preventDefault();
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const action = {
      ArrowLeft: () => move(-0.25, 0), ArrowRight: () => move(0.25, 0), ArrowUp: () => move(0, -0.25),
      ArrowDown: () => move(0, 0.25), "+": () => zoomTime(0.5), "=": () => zoomTime(0.5), "-": () => zoomTime(2),
      0: () => { view = null; follows = true; begin(); view.r0 = 0; view.r1 = layout.rows.length; draw(); },
      "[": () => zoomRows(2), "]": () => zoomRows(0.5),
    }[event.key];
    if (!action || !view || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  });
  choice.addEventListener("change", () => {
    pool = choice.value;
    nodesAt = -Infinity;
    view = null;
    past = new Work(pool);
    remember("gantt", { pool });
    refresh().catch((error) => { fill(said, error.message); });
  });
  const watching = new ResizeObserver(draw);
  watching.observe(canvas);
  const themed = onTheme(() => { showLegend(); draw(); });
  showLegend();

  // -- what is asked ---------------------------------------------------------------------------------

  async function refresh(signal) {
    const told = (what) => (number) => { if (!view) fill(said, `Reading: ${count(number, what)}`); };
    const before = now;
    try {
      await readLive(signal, told);
    } catch (error) {
      // Without the daemon, and if nothing is known of it, the journal still tells of the past.
      if (!(error instanceof Refused) || error.status === 401 || view) throw error;
      now = Date.now() / 1000;
      await past.back(Math.floor(now - 86400), now, () => {}, signal);
      if (!past.jobs.length) throw error;
      remarks = `${error.message}. Only what has ended is shown.`;
    }
    lay();
    if (!view) begin();
    if (!nodes.length && past.jobs.length && follows) showPast();
    else if (follows) { view.t0 += now - before; view.t1 += now - before; }
    for (const { name } of memory.latest?.pools || []) {
      if (![...choice.options].some((option) => option.value === name)) choice.add(new Option(name));
    }
    choice.value = pool;
    draw();
  }

  /** The view on the jobs that ended last, where nothing is known of what runs. */
  function showPast() {
    follows = false;
    const length = Math.max(600, now - Math.min(...past.jobs.slice(0, LISTED).map(({ started }) => started)));
    Object.assign(view, { t0: now - 1.02 * length, t1: now + 0.02 * length });
  }

  async function readLive(signal, told) {
    if (performance.now() / 1000 - nodesAt > NODES_AGAIN) {
      ({ items: nodes } = await all("nodes", { pool }, "nodes", { signal, told: told("node") }));
      ({ items: reservations } = await all("reservations", {}, "reservations", { signal, most: 2000 }));
      nodesAt = performance.now() / 1000;
    }
    const [running, suspended, booked] = await Promise.all([
      all("jobs", { pool, status: "running" }, "jobs", { signal, told: told("job") }),
      all("jobs", { pool, status: "suspended" }, "jobs", { signal }), all("bookings", { pool }, "bookings", { signal, most: 5000 }),
    ]);
    now = running.asOf || Date.now() / 1000;
    jobs = [...running.items, ...suspended.items];
    bookings = booked.items;
    if (!pool && running.complete) memory.onNodes(jobs, now);
    remarks = running.remark + (running.complete ? "" : ` The first ${count(jobs.length, "job")} are shown.`);
  }

  return {
    title: "Gantt", refresh,
    leave() { watching.disconnect(); themed(); draw.cancel(); clearTimeout(telling); abort.abort(); },
  };
}
