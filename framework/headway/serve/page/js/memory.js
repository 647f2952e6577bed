// What this page has seen since it was opened: bounded, and gone with it.

/** So many states over time, decisions and ended jobs are kept; of states every second one goes beyond that. */
const STATES = 2000, DECISIONS = 500, ENDED = 20000;

class Memory {
  constructor() {
    /** [{at, pools: {name: {total, free, queued, running}}}], oldest first. */
    this.states = [];
    /** The last status. */
    this.latest = null;
    /** Decisions and events of the stream, and decisions of cycles that were asked for; newest first. */
    this.happened = [];
    this.seen = new Set();
    this.cycleAt = null;
    /** Jobs on nodes by id, as last told, and those that have left: {…job, ended}. */
    this.running = new Map();
    this.ended = new Map();
  }

  status(report) {
    this.latest = report;
    const at = report.last_cycle;
    if (!at || this.states.at(-1)?.at >= at) return;
    const pools = {};
    for (const { name, total, free, queued, running } of report.pools || []) {
      pools[name] = { total, free, queued, running };
    }
    this.states.push({ at, pools });
    if (this.states.length > STATES) this.states = this.states.filter((_, place) => place % 2 || place > STATES - 50);
  }

  /** An item of the stream. A cycle's decisions come behind it, and events with times of their own. */
  item(kind, data) {
    if (kind === "cycle") this.cycleAt = data.at;
    else if (kind === "decision") this.happens({ at: this.cycleAt, is: data.decision, ...data });
    else if (kind === "event") this.happens({ ...data, is: data.kind, event: true });
  }

  /** A cycle that was asked for: its decisions. */
  cycle(report) {
    for (const one of report.first || []) this.happens({ at: report.at, is: one.decision, ...one });
  }

  /** A decision or an event, once: {at, is, job, node, reason, accepted, message, event}. */
  happens(what) {
    const key = `${what.at} ${what.is} ${what.job || ""} ${what.node || ""}`;
    if (this.seen.has(key)) return;
    this.seen.add(key);
    this.happened.unshift(what);
    if (this.happened.length > DECISIONS) this.happened.length = DECISIONS;
    if (this.seen.size > 4 * DECISIONS) this.seen = new Set([...this.seen].slice(-2 * DECISIONS));
  }

  /** The jobs on nodes as of a time, all of them: those that were there before and are not now have ended. */
  onNodes(jobs, asOf) {
    const now = new Map(jobs.map((job) => [job.id, job]));
    for (const [id, job] of this.running) {
      if (!now.has(id)) this.ended.set(id, { ...job, ended: asOf });
    }
    for (const id of [...this.ended.keys()].slice(0, Math.max(0, this.ended.size - ENDED))) this.ended.delete(id);
    this.running = now;
  }
}

export const memory = new Memory();
