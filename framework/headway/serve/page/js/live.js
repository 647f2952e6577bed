// What happens, as it happens: the stream of the interface, or a question every few seconds where there is none.

/** Seconds between two questions without a stream, and at least between two that the stream gives rise to. */
const EVERY = 5, SOONEST = 2;
/** Seconds until the stream is tried again: after it ended, and after it was refused. */
const AGAIN = 3, REFUSED = 60;

/**
 * Calls `onChange()` when something may have changed, and `onItem(kind, data, id)` for each item of the stream.
 * Nothing is asked while the page is not on the screen.
 */
export class Live {
  constructor(onChange, onItem) {
    this.onChange = onChange;
    this.onItem = onItem;
    this.streams = false;
    this.last = -Infinity;
    this.id = "";
    this.due = null;
    this.reading = null;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.stop() : this.start()));
  }

  start() {
    if (document.hidden || this.reading) return;
    this.changed();
    this.timer = setInterval(() => { if (!this.streams) this.changed(); }, EVERY * 1000);
    this.reading = new AbortController();
    this.read(this.reading.signal);
  }

  stop() {
    this.reading?.abort();
    this.reading = null;
    this.streams = false;
    clearInterval(this.timer);
    clearTimeout(this.due);
    this.due = null;
  }

  /** Something may have changed: it is asked for soon, and not more often than every SOONEST seconds. */
  changed() {
    if (this.due !== null || document.hidden) return;
    const wait = Math.max(0, this.last + SOONEST * 1000 - performance.now());
    this.due = setTimeout(() => {
      this.due = null;
      this.last = performance.now();
      this.onChange();
    }, wait);
  }

  async read(signal) {
    while (!signal.aborted) {
      let wait = AGAIN;
      try {
        const more = this.id ? { "Last-Event-ID": this.id } : {};
        const answer = await fetch("v1/stream", { headers: { Accept: "text/event-stream", ...more }, signal });
        const type = answer.headers.get("content-type") || "";
        if (answer.ok && type.startsWith("text/event-stream")) {
          this.streams = true;
          this.changed();
          await this.items(answer.body);
        } else {
          // With a number that is no longer known it begins from now on.
          if (this.id) this.id = "";
          else wait = REFUSED;
          await answer.body?.cancel();
        }
      } catch { /* the connection ended; `signal` tells whether it is wanted again */ }
      if (signal.aborted) return;
      this.streams = false;
      await new Promise((resolve) => { setTimeout(resolve, wait * 1000); });
    }
  }

  async items(body) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "", item = { event: "message", data: [], id: this.id };
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split(/\r\n|\n|\r/);
      rest = lines.pop();
      for (const line of lines) {
        if (line === "") {
          // Of an item that was cut off nothing counts, its number either.
          this.id = item.id;
          if (item.data.length) this.told(item);
          item = { event: "message", data: [], id: this.id };
          continue;
        }
        const [, name, text] = /^([^:]*):? ?(.*)$/.exec(line);
        if (name === "data") item.data.push(text);
        else if (name === "event") item.event = text;
        else if (name === "id") item.id = text;
      }
    }
  }

  told({ event, data }) {
    let content;
    try { content = JSON.parse(data.join("\n")); } catch { return; }
    this.onItem(event, content, this.id);
    this.changed();
  }
}
