// All nodes at a glance: state, processors, GPUs and power.

import { all } from "../api.js";
import { colours, context, el, fill, jobLink, oncePerFrame, onTheme } from "../dom.js";
import { memory } from "../memory.js";
import { Table } from "../table.js";
import { bytes, count, number, percent } from "../words.js";

/** Seconds between two readings of all nodes; rows of a page of the table. */
const AGAIN = 15, PAGE = 100;

const gpus = (node) => (node.gres || []).filter(([name]) => /^gpu/.test(name))
  .reduce(([all, free], [, has, left]) => [all + has, free + left], [0, 0]);
const busy = (node) => node.processors - node.free;
const usable = (node) => node.available !== false;

/** A state in a word, and the sign that is drawn over the cell. */
function state(node) {
  if (!usable(node)) return ["down", "✕"];
  if (node.power && node.power !== "on") return [node.power, { asleep: "z", waking: "↑", "falling asleep": "↓" }[node.power] || "?"];
  if (node.reservations?.length && !node.jobs?.length) return ["reserved", "r"];
  return [busy(node) <= 0 ? "free" : node.free > 0 ? "partly busy" : "busy", ""];
}

const few = (names, most = 6) => (names.length > most ? [...names.slice(0, most), `${names.length - most} more`] : names);

/** What cells can be coloured by: a part from 0 to 1 (null: there is none), and the same in words. */
const BY = {
  processors: { title: "Processors busy", part: (node) => (node.processors ? busy(node) / node.processors : null),
    words: (node) => `${number(busy(node))} of ${count(node.processors, "processor")} busy` },
  gpus: { title: "GPUs busy", part: (node) => { const [has, free] = gpus(node); return has ? (has - free) / has : null; },
    words: (node) => { const [has, free] = gpus(node); return has ? `${has - free} of ${count(has, "GPU")} busy` : "no GPU"; } },
  memory: { title: "Memory given", part: (node) => (node.memory ? 1 - (node.memory_free ?? 0) / node.memory : null),
    words: (node) => (node.memory ? `${bytes(node.memory - (node.memory_free ?? 0))} of ${bytes(node.memory)} given` : "memory is not managed") },
  power: { title: "Power drawn", part: (node, most) => { const w = watts(node); return w === null ? null : w / most; },
    words: (node) => (watts(node) === null ? "not measured" : `${Math.round(watts(node))} W`) },
};
const watts = (node) => memory.latest?.watts?.[node.name] ?? null;

export function make(root, { parameters, remember }) {
  let nodes = [], asked = -Infinity, pool = parameters.get("pool") || "", by = parameters.get("by") in BY ? parameters.get("by") : "processors";
  let selected = -1, first = 0, shown = [], grid = { columns: 1, size: 10 };
  const choice = el("select", {}, el("option", { value: "" }, "all pools"));
  const colour = el("select", {}, Object.entries(BY).map(([name, { title }]) => el("option", { value: name }, title)));
  colour.value = by;
  const words = el("input", { type: "search", size: 14, placeholder: "name or state", spellcheck: "false", maxlength: 128 });
  const tools = el("div", { class: "tools" }, el("label", {}, "Pool ", choice), el("label", {}, "Colour ", colour), el("label", {}, "Only ", words));
  const said = el("p", { class: "note", role: "status" });
  const legend = el("ul", { class: "legend", "aria-label": "What is drawn" });
  const canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": "Map of the nodes. Arrow keys go from node to node; the table below says the same." });
  const tip = el("div", { class: "tip", hidden: true });
  const about = el("p", { class: "said", "aria-live": "polite" });
  const table = new Table([
    { name: "node", head: "Node", cell: (node) => node.name },
    { name: "is", head: "State", cell: (node) => state(node)[0] },
    { name: "busy", head: "Busy", number: true, cell: (node) => `${busy(node)} / ${node.processors}` },
    { name: "gpus", head: "GPUs busy", number: true, cell: (node) => { const [has, free] = gpus(node); return has ? `${has - free} / ${has}` : ""; } },
    { name: "memory", head: "Memory free", number: true, cell: (node) => bytes(node.memory_free) },
    { name: "watts", head: "Watts", number: true, cell: (node) => (watts(node) === null ? "" : String(Math.round(watts(node)))) },
    { name: "pools", head: "Pools", wide: true, cell: (node) => few(node.pools || [], 3).join(", ") },
    { name: "jobs", head: "Jobs", cell: (node) => (node.jobs || []).slice(0, 4).flatMap((id, place) => [place ? ", " : "", jobLink(id)])
      .concat((node.jobs || []).length > 4 ? ` and ${node.jobs.length - 4} more` : "") },
    { name: "why", head: "Remark", cell: (node) => [node.reason, node.reservations?.length ? `reserved: ${few(node.reservations, 3).join(", ")}` : ""].filter(Boolean).join("; ") },
  ], { key: (node) => node.name, caption: "Nodes", empty: "No node is like this." });
  const previous = el("button", { type: "button", "data-do": "previous", on: { click: () => turn(first - PAGE) } }, "← Before");
  const following = el("button", { type: "button", "data-do": "next", on: { click: () => turn(first + PAGE) } }, "Next →");
  const where = el("span", { class: "note" });
  root.append(tools, said, legend, el("div", { class: "stage" }, canvas, tip), about,
    table.element, el("div", { class: "pages" }, previous, where, following));

  const draw = oncePerFrame(paint);

  function paint() {
    const width = canvas.parentElement.clientWidth, most = Math.max(...shown.map((node) => watts(node) || 0), 1);
    const size = Math.max(6, Math.min(26, Math.floor(Math.sqrt((width * Math.max(160, innerHeight * 0.45)) / Math.max(shown.length, 1)))));
    const columns = Math.max(1, Math.floor(width / size)), high = Math.max(size, Math.ceil(shown.length / columns) * size);
    grid = { columns, size };
    canvas.style.height = `${high}px`;
    const drawn = context(canvas, width, high), tone = colours(), { part } = BY[by];
    drawn.font = `${Math.max(7, size - 3)}px system-ui, sans-serif`;
    drawn.textAlign = "center";
    drawn.textBaseline = "middle";
    const side = size - (size > 8 ? 2 : 1);
    shown.forEach((node, place) => {
      const x = (place % columns) * size, y = Math.floor(place / columns) * size, value = part(node, most);
      cell(drawn, tone, x, y, side, usable(node) ? value : null);
      const sign = state(node)[1];
      if (sign && size >= 8) { drawn.fillStyle = usable(node) ? tone.ink : tone.bad; drawn.fillText(sign, x + side / 2, y + side / 2 + 0.5); }
      else if (sign) { drawn.fillStyle = usable(node) ? tone.ink : tone.bad; drawn.fillRect(x + side / 2 - 1, y + 1, 2, side - 2); }
    });
    if (selected >= 0 && selected < shown.length) {
      drawn.strokeStyle = tone.ink;
      drawn.lineWidth = 2;
      drawn.strokeRect((selected % columns) * size, Math.floor(selected / columns) * size, side, side);
    }
  }

  /** A cell that fills from below: how much is told by its height, too. */
  function cell(drawn, tone, x, y, side, value) {
    drawn.fillStyle = value === null ? tone.paper : tone.off;
    drawn.fillRect(x, y, side, side);
    if (value === null) { drawn.strokeStyle = tone.off; drawn.lineWidth = 1; drawn.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1); return; }
    const high = Math.min(side, Math.ceil(side * value));
    drawn.fillStyle = tone["series-1"];
    drawn.fillRect(x, y + side - high, side, high);
  }

  function showLegend() {
    const tone = colours();
    const sample = (draws, title) => {
      const made = el("canvas", { "aria-hidden": "true" }), drawn = context(made, 18, 14);
      draws(drawn);
      return el("li", {}, made, title);
    };
    const sign = (text, ink) => (drawn) => { cell(drawn, tone, 2, 0, 14, null); drawn.fillStyle = ink; drawn.textAlign = "center"; drawn.fillText(text, 9, 11); };
    legend.replaceChildren(
      sample((drawn) => cell(drawn, tone, 2, 0, 14, 0), "nothing of it"), sample((drawn) => cell(drawn, tone, 2, 0, 14, 0.5), "half"),
      sample((drawn) => cell(drawn, tone, 2, 0, 14, 1), "all"), sample((drawn) => cell(drawn, tone, 2, 0, 14, null), "does not apply"),
      sample(sign("✕", tone.bad), "down"), sample(sign("z", tone.ink), "asleep"), sample(sign("r", tone.ink), "reserved, and free"));
  }

  function tell() {
    const states = new Map();
    for (const node of shown) states.set(state(node)[0], (states.get(state(node)[0]) || 0) + 1);
    const total = shown.reduce((sum, node) => sum + node.processors, 0), taken = shown.reduce((sum, node) => sum + busy(node), 0);
    const [has, free] = shown.map(gpus).reduce(([a, b], [c, d]) => [a + c, b + d], [0, 0]);
    const drawn = shown.map(watts).filter((value) => value !== null), asleep = Object.entries(memory.latest?.power || {});
    fill(said, [`${count(shown.length, "node")}: ${[...states].sort((a, b) => b[1] - a[1]).map(([name, n]) => `${number(n)} ${name}`).join(", ") || "none"}.`,
      `${percent(taken, total)} of ${count(total, "processor")} are busy.`,
      has ? `${number(has - free)} of ${count(has, "GPU")} are busy.` : "",
      drawn.length ? `${count(drawn.length, "node")} draw${drawn.length === 1 ? "s" : ""} ${number(Math.round(drawn.reduce((a, b) => a + b, 0) / 100) / 10)} kW.` : "",
      asleep.length ? `Power: ${asleep.map(([name, n]) => `${number(n)} ${name}`).join(", ")}.` : ""].filter(Boolean).join(" "));
  }

  function inWords(node) {
    return `${node.name}: ${state(node)[0]}${node.reason ? ` (${node.reason})` : ""}, ${BY.processors.words(node)}, ${BY.gpus.words(node)}, ${BY.power.words(node)}`;
  }

  function select(place) {
    selected = place;
    const node = shown[place];
    fill(about, node ? [inWords(node), node.jobs?.length ? "; jobs " : "", (node.jobs || []).slice(0, 12).flatMap((id, at) => [at ? ", " : "", jobLink(id)])] : "");
    draw();
  }

  function turn(to) {
    first = Math.max(0, Math.min(to, Math.max(0, Math.ceil(shown.length / PAGE) - 1) * PAGE));
    table.show(shown.slice(first, first + PAGE));
    previous.hidden = first === 0;
    following.hidden = first + PAGE >= shown.length;
    fill(where, shown.length > PAGE ? `${number(first + 1)} to ${number(Math.min(first + PAGE, shown.length))} of ${number(shown.length)}` : "");
  }

  function choose() {
    const wanted = words.value.trim().toLowerCase();
    shown = wanted ? nodes.filter((node) => node.name.toLowerCase().includes(wanted) || state(node)[0].includes(wanted)) : nodes;
    if (selected >= shown.length) selected = -1;
    tell();
    turn(first);
    draw();
  }

  const placeOf = (event) => {
    const box = canvas.getBoundingClientRect(), column = Math.floor((event.clientX - box.left) / grid.size);
    const place = Math.floor((event.clientY - box.top) / grid.size) * grid.columns + column;
    return column < grid.columns && place < shown.length ? place : -1;
  };
  canvas.addEventListener("pointermove", (event) => {
    const node = shown[placeOf(event)];
    tip.hidden = !node;
    if (!node) return;
    tip.textContent = `${inWords(node).replaceAll(", ", "\n")}\n${BY.memory.words(node)}${node.jobs?.length ? `\n${count(node.jobs.length, "job")}` : ""}`;
    const box = canvas.getBoundingClientRect(), px = event.clientX - box.left, right = px > canvas.clientWidth / 2;
    tip.style.left = right ? "" : `${px + 14}px`;
    tip.style.right = right ? `${canvas.clientWidth - px + 14}px` : "";
    tip.style.top = `${event.clientY - box.top + 12}px`;
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("click", (event) => select(placeOf(event)));
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -grid.columns, ArrowDown: grid.columns }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    select(Math.max(0, Math.min(shown.length - 1, selected < 0 ? 0 : selected + step)));
  });
  const note = () => remember("nodes", { pool, by: by === "processors" ? "" : by });
  choice.addEventListener("change", () => { pool = choice.value; asked = -Infinity; note(); refresh().catch((error) => { fill(said, error.message); }); });
  colour.addEventListener("change", () => { by = colour.value; note(); draw(); });
  words.addEventListener("input", () => { first = 0; choose(); });
  const watching = new ResizeObserver(draw);
  watching.observe(canvas.parentElement);
  const themed = onTheme(() => { showLegend(); draw(); });
  showLegend();

  async function refresh(signal) {
    for (const { name } of memory.latest?.pools || []) {
      if (![...choice.options].some((option) => option.value === name)) choice.add(new Option(name));
    }
    choice.value = pool;
    if (performance.now() / 1000 - asked < AGAIN) return;
    const told = (read) => { if (!nodes.length) fill(said, `Reading: ${count(read, "node")}`); };
    ({ items: nodes } = await all("nodes", { pool }, "nodes", { signal, told }));
    asked = performance.now() / 1000;
    choose();
  }

  return { title: "Nodes", refresh, leave() { watching.disconnect(); themed(); draw.cancel(); } };
}
