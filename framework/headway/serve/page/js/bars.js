// Jobs as bars over rows of nodes: which processors of a node a bar takes, and what lies at a place. No drawing.

/** What a bar is, from the bottom to the top. */
export const KINDS = ["past", "running", "suspended", "booked"];
/** Processors of a row that are told apart; rows with more share one. */
const LANES = 512;

/** Rows: a node each, and one for a pool without nodes: [{name, processors, note}]; and name -> place. */
export function rowsOf(nodes, pools, onlyPool) {
  const withNodes = new Set(nodes.flatMap((node) => node.pools || []));
  const rows = nodes.map(({ name, processors, available = true, reason = "", reservations = [] }) => ({
    name, processors, note: [available ? "" : `not usable${reason ? `: ${reason}` : ""}`,
      reservations.length ? `reserved: ${reservations.join(", ")}` : ""].filter(Boolean).join("; "),
    reserved: reservations.length > 0, available,
  }));
  for (const { name, total } of pools) {
    if (withNodes.has(name) || (onlyPool && onlyPool !== name)) continue;
    rows.push({ name, processors: total, note: "a pool without nodes", reserved: false, available: true });
  }
  return { rows, place: new Map(rows.map(({ name }, at) => [name, at])) };
}

/**
 * The bars of jobs: {row, low, high, start, end, kind, item}, row by row, each row by start. `items` are
 * {id, pool, processors, placement, start, end, kind}; an end that is not known is Infinity.
 */
export function barsOf(items, { rows, place }) {
  const byRow = rows.map(() => []);
  for (const item of items) {
    const at = item.placement?.length ? item.placement : [[item.pool, item.processors]];
    for (const [name, processors] of at) {
      const row = place.get(name);
      if (row !== undefined) byRow[row].push([item, processors]);
    }
  }
  const bars = [], from = new Int32Array(rows.length + 1);
  byRow.forEach((parts, row) => {
    from[row] = bars.length;
    packed(parts, Math.max(1, rows[row].processors), row, bars);
  });
  from[rows.length] = bars.length;
  return { bars, from };
}

/** Gives each part the lowest processors that are free by then; a bar may be in several pieces. */
function packed(parts, processors, row, bars) {
  const lanes = Math.min(LANES, processors), free = new Float64Array(lanes).fill(-Infinity);
  parts.sort(([a], [b]) => a.start - b.start || KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind));
  for (const [item, taken] of parts) {
    let wanted = Math.max(1, Math.round((taken / processors) * lanes)), low = -1;
    const piece = (first, high) => bars.push({
      row, low: first / lanes, high: high / lanes, start: item.start, end: item.end, kind: item.kind, item,
    });
    for (let lane = 0; lane < lanes && wanted > 0; lane += 1) {
      if (free[lane] <= item.start + 1) {
        if (low < 0) low = lane;
        free[lane] = item.end;
        wanted -= 1;
      } else if (low >= 0) {
        piece(low, lane);
        low = -1;
      }
      if (wanted === 0 && low >= 0) { piece(low, lane + 1); low = -1; }
    }
    if (low >= 0) piece(low, lanes);
    // More than the node has: what was planned no longer fits what runs. It is shown over the others.
    if (wanted > 0) piece(0, Math.min(1, wanted / lanes) * lanes);
  }
}

/** Row -> the reservations of it. */
export function keptOf(reservations, { rows, place }) {
  const found = new Map();
  for (const one of reservations) {
    const names = one.nodes?.length ? one.nodes : one.pool ? [one.pool] : rows.map(({ name }) => name);
    for (const name of names) {
      const row = place.get(name);
      if (row === undefined) continue;
      if (!found.has(row)) found.set(row, []);
      found.get(row).push(one);
    }
  }
  return found;
}

/** The bar at a row (with a fraction) and a time, the topmost; null. `slack`: seconds that thin bars are wider. */
export function barAt({ bars, from }, row, time, slack) {
  const at = Math.floor(row), height = row - at;
  if (at < 0 || at + 1 >= from.length) return null;
  let near = null;
  for (let place = from[at + 1] - 1; place >= from[at]; place -= 1) {
    const bar = bars[place];
    if (height < bar.low || height > bar.high) continue;
    if (time >= bar.start && time < bar.end) return bar;
    if (Math.abs(time - bar.start) < slack || Math.abs(time - bar.end) < slack) near = bar;
  }
  return near;
}

/** A round step of time, at least so many seconds: its seconds. */
export function timeStep(least) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
    172800, 604800, 1209600, 2592000, 7776000, 31536000];
  return steps.find((step) => step >= least) || Math.ceil(least / 31536000) * 31536000;
}
