// Elements. Whatever comes from the cluster becomes text, never markup.

import { localTimes } from "./words.js";

/**
 * An element. `attributes`: "class", "data-…", "aria-…" and others as in HTML; "on" is an object of listeners;
 * true sets an attribute without a value, false and null leave it out. Children: nodes, texts, lists of these.
 */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [type, listener] of Object.entries(value)) made.addEventListener(type, listener);
    } else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, String(value));
  }
  made.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

/** Another content, if it is another one: an element that did not change keeps its focus and selection. */
export function fill(element, ...children) {
  const made = el("div", {}, ...children).childNodes;
  const before = element.childNodes;
  if (made.length === before.length && [...made].every((node, place) => node.isEqualNode(before[place]))) return;
  element.replaceChildren(...made);
}

/** The daemon's sentences: ids in them are links to their jobs, times are this browser's. */
export function linked(text, ids) {
  const known = [...new Set(ids)].filter(Boolean).sort((a, b) => b.length - a.length);
  const told = localTimes(text);
  if (!known.length) return [told];
  const escaped = known.map((id) => id.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const found = new RegExp(`(?<=\\b(?:jobs?|and) |[,:] )(${escaped.join("|")})(?![\\w[])`);
  return told.split(found).map((part, place) => (place % 2 ? jobLink(part) : part));
}

export function jobLink(id, text = id) {
  return el("a", { href: `#/job/${encodeURIComponent(id)}` }, text);
}

/** Kept in this browser, if that is allowed. */
export const kept = {
  get(name) {
    try { return localStorage.getItem(`headway.${name}`); } catch { return null; }
  },
  set(name, value) {
    try {
      if (value === null) localStorage.removeItem(`headway.${name}`);
      else localStorage.setItem(`headway.${name}`, value);
    } catch { /* storage is forbidden */ }
  },
};

const watched = ["paper", "panel", "ink", "ink-2", "line", "ground", "accent", "good", "warn", "bad", "off",
  "series-1", "series-2", "series-3", "series-4", "series-5", "series-6", "series-7", "series-8"];
let known = null;

/** The colours of the theme, for canvases: name -> "rgb(…)". */
export function colours() {
  if (known) return known;
  const probe = document.body.appendChild(el("span", { hidden: true }));
  known = {};
  for (const name of watched) {
    probe.style.color = `var(--${name})`;
    known[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return known;
}

/** Calls back when the theme has changed. */
export function onTheme(listener) {
  document.addEventListener("headway-theme", listener);
  return () => document.removeEventListener("headway-theme", listener);
}

export function themeChanged() {
  known = null;
  document.dispatchEvent(new Event("headway-theme"));
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themeChanged);

/** Calls at most once a frame. */
export function oncePerFrame(draw) {
  let asked = 0;
  const later = () => { if (!asked) asked = requestAnimationFrame(() => { asked = 0; draw(); }); };
  later.cancel = () => { cancelAnimationFrame(asked); asked = 0; };
  return later;
}

/** A canvas's context, with as many points as the screen has; units are CSS pixels. */
export function context(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  const wide = Math.max(1, Math.round(width * scale)), high = Math.max(1, Math.round(height * scale));
  if (canvas.width !== wide) canvas.width = wide;
  if (canvas.height !== high) canvas.height = high;
  const drawn = canvas.getContext("2d");
  drawn.setTransform(scale, 0, 0, scale, 0, 0);
  drawn.clearRect(0, 0, width, height);
  return drawn;
}
