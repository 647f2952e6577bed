// What the journal tells of the time before this page was opened.

import { Refused, ask } from "./api.js";

/** Entries that one question brings, and jobs that are kept of the past. */
const PAGE = 500, KEPT = 20000;

/** What was decided or happened, as the views show it: {at, is, job, node, reason, accepted, message, event}. */
export function shown(entry) {
  return entry.entry === "event" ? { ...entry, is: entry.kind, reason: entry.detail, event: true }
    : { ...entry, is: entry.decision, accepted: entry.accepted ?? null };
}

export const keyOf = ({ at, is, job, node }) => `${at} ${is} ${job || ""} ${node || ""}`;

/** Jobs that ran and have ended, back to a time: read further back as they are asked for, and kept. */
export class Work {
  constructor(pool) {
    this.pool = pool;
    this.jobs = [];
    /** All that ended since then is read; null: nothing is. */
    this.from = null;
    /** Why there is no more: too much, or the journal cannot be read. */
    this.why = "";
    this.reading = false;
  }

  /** Reads what ended since a time, and calls back after each page. */
  async back(since, now, told, signal) {
    if (this.reading || this.why || (this.from !== null && since >= this.from)) return;
    this.reading = true;
    try {
      const until = this.from ?? now;
      let after = "";
      do {
        const { data } = await ask("history/work", { from: since, until, after, count: PAGE, pool: this.pool }, signal);
        this.jobs.push(...data.jobs);
        after = data.next || "";
        if (this.jobs.length >= KEPT && after) {
          this.from = this.jobs.at(-1).ended;
          this.why = "Of the time before, there are more jobs than are shown.";
          told();
          return;
        }
        told();
      } while (after);
      this.from = since;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      // A daemon's journal may be read a moment later; other refusals stay.
      this.why = `The time before is not shown: ${error.message}.`;
      setTimeout(() => { this.why = ""; }, 60000);
      told();
    } finally {
      this.reading = false;
    }
  }
}

/** Decisions, and events if they are wanted, the newest first, page by page. */
export class Entries {
  constructor({ events, job, until }) {
    this.lists = ["decisions", ...(events ? ["events"] : [])].map((name) => ({ name, after: "", rows: [], over: false }));
    this.asked = { job, until };
  }

  get over() {
    return this.lists.every(({ rows, over }) => over && !rows.length);
  }

  /** The next so many; fewer where there are no more, or where it takes long to find them. */
  async next(most, signal) {
    const found = [];
    for (let asked = 0; found.length < most && asked < 8;) {
      const empty = this.lists.filter(({ rows, over }) => !rows.length && !over);
      asked += empty.length;
      await Promise.all(empty.map((list) => this.read(list, most, signal)));
      if (this.lists.some(({ rows, over }) => !rows.length && !over)) continue;
      const newest = this.lists.filter(({ rows }) => rows.length)
        .sort((a, b) => recorded(b.rows[0]) - recorded(a.rows[0]))[0];
      if (!newest) break;
      found.push(shown(newest.rows.shift()));
    }
    return found;
  }

  async read(list, count, signal) {
    const { data } = await ask(`history/${list.name}`, { ...this.asked, after: list.after, count }, signal);
    list.rows = data[list.name];
    list.after = data.next || list.after;
    list.over = !data.next;
  }
}

const recorded = ({ recorded: at, at: decided }) => at ?? decided ?? 0;
