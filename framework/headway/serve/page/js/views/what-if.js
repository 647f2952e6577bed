// What would become of the jobs that wait under another policy, beside what is planned. For operators.

import { Refused, post } from "../api.js";
import { Chart, plots } from "../chart.js";
import { el, fill, jobLink, onTheme } from "../dom.js";
import { Table } from "../table.js";
import { brief, count, number, span, timed, whole, zone } from "../words.js";

/** Rows at a time; starts within so many seconds are the same. */
const PAGE = 100, SAME = 1;
const known = (value) => value !== null && value !== undefined;
const change = ({ present, other }) => (known(present) && known(other) ? other - present : null);
const share = (value) => (known(value) ? `${(100 * value).toFixed(1)} %` : "not known");

const time = (seconds) => (known(seconds)
  ? el("time", { datetime: new Date(seconds * 1000).toISOString(), title: whole(seconds) }, brief(seconds)) : "not known");

/** The change in words: a sign that does not need its colour. */
function moved(job) {
  const by = change(job);
  if (by === null) return "";
  if (Math.abs(by) < SAME) return "same";
  return by < 0 ? `▲ ${span(-by)} earlier` : `▼ ${span(by)} later`;
}

const SORTS = { present: ({ present }) => present, other: ({ other }) => other, change, processors: ({ processors }) => processors, submitted: ({ submitted }) => submitted };

function inOrder(jobs, by) {
  const of = SORTS[by.replace(/^-/, "")], turn = by.startsWith("-") ? -1 : 1;
  if (!of) return jobs;
  return [...jobs].sort((a, b) => {
    const [one, other] = [of(a), of(b)];
    if (!known(one) || !known(other)) return known(other) - known(one);
    return turn * (one - other);
  });
}

export function make(root, { parameters, remember }) {
  let asked = null, found = null, first = 0, sort = "", uPlot = null;
  const field = (name, title, attributes) => el("label", {}, el("span", {}, title),
    el("input", { name, type: "text", spellcheck: "false", autocomplete: "off", value: parameters.get(name) || "", ...attributes }));
  const go = el("button", {}, "What if?");
  const stop = el("button", { type: "button", hidden: true, on: { click: () => asked?.abort() } }, "Stop");
  const form = el("form", { class: "filter", "aria-label": "The other policy" },
    field("policy", "Policy", { required: true, maxlength: 64, size: 16, placeholder: "easy" }),
    field("options", "Its options, as JSON", { maxlength: 4000, size: 30, placeholder: '{"bookings": 3}' }), go, stop);
  const answer = el("div", { role: "status" });
  const sums = new Table([
    { name: "course", head: "Course", cell: ({ name }) => name },
    { name: "plugins", head: "Plugins", cell: ({ plugins }) => plugins.join(", ") },
    { name: "starts", head: "Starts known", number: true, cell: ({ starts }) => number(starts) },
    { name: "mean", head: "Mean wait", number: true, cell: ({ mean_wait: wait }) => (known(wait) ? span(wait) : "") },
    { name: "median", head: "Median wait", number: true, cell: ({ median_wait: wait }) => (known(wait) ? span(wait) : "") },
    { name: "use", head: "Busy", number: true, cell: ({ use }) => share(use) },
    { name: "known", head: `Known until (${zone()})`, cell: (course) => (known(course.known_until) ? time(course.known_until) : "the end") },
    { name: "why", head: "Why no further", cell: ({ ended }) => el("div", {}, ended || "") },
  ], { key: ({ name }) => name, caption: "Both courses: waits are of the jobs whose start is known under both" });
  const use = new Chart("Processors busy", (value) => `${Math.round(value)} %`);
  const jobs = new Table([
    { name: "job", head: "Job", cell: ({ id }) => jobLink(id) },
    { name: "user", head: "User", cell: ({ user }) => user },
    { name: "pool", head: "Pool", wide: true, cell: ({ pool }) => pool },
    { name: "size", head: "Processors", number: true, sort: "processors", cell: ({ processors }) => number(processors) },
    { name: "submitted", head: `Submitted (${zone()})`, wide: true, sort: "submitted", cell: ({ submitted }) => time(submitted) },
    { name: "present", head: `As it is (${zone()})`, sort: "present", cell: ({ present }) => time(present) },
    { name: "other", head: `Other policy (${zone()})`, sort: "other", cell: ({ other }) => time(other) },
    { name: "change", head: "Change", sort: "change", cell: moved },
  ], { key: ({ id }) => id, caption: "Jobs that wait, in the order in which they are served now",
    onSort: (by) => { sort = sort === by ? `-${by}` : sort === `-${by}` ? "" : by; first = 0; rows(); } });
  const before = el("button", { type: "button", "data-do": "previous", on: { click: () => { first -= PAGE; rows(); } } }, "Before");
  const next = el("button", { type: "button", "data-do": "next", on: { click: () => { first += PAGE; rows(); } } }, "Next");
  const where = el("span", { class: "note" });
  const told = el("section", { hidden: true }, sums.element, el("div", { class: "plots" }, use.element), el("h2", {}, "Jobs that wait"), jobs.element,
    el("div", { class: "pages" }, before, next, where));
  root.append(el("p", { class: "note" }, "The queue of this moment under another policy, as if no other job came and all jobs ran as long as they are planned with. ",
    "For operators; it takes up to 20 s, and changes nothing. ", el("code", {}, "headway plugins"), " lists the policies."), form, answer, told);
  form.addEventListener("submit", (event) => { event.preventDefault(); find(); });

  async function find() {
    const { policy, options } = Object.fromEntries(new FormData(form));
    let given = {};
    try {
      given = options.trim() ? JSON.parse(options) : {};
    } catch {
      given = null;
    }
    if (given === null || typeof given !== "object" || Array.isArray(given)) {
      say(el("p", { class: "notice" }, `Options: expected an object in JSON such as {"bookings": 3}, found “${options}”.`));
      return;
    }
    remember("what-if", { policy, options });
    asked?.abort();
    const mine = asked = new AbortController();
    go.disabled = true;
    stop.hidden = false;
    say(el("p", { class: "note" }, "It is being worked out."));
    try {
      const answered = await post("what-if", { policy: policy.trim(), options: given }, mine.signal);
      uPlot = await plots();
      if (mine === asked) show(answered);
    } catch (error) {
      if (error.name !== "AbortError" && !(error instanceof Refused)) throw error;
      if (mine === asked) say(el("p", { class: "notice" }, error instanceof Refused ? error.message : "Stopped."));
    } finally {
      if (mine === asked) { go.disabled = false; stop.hidden = true; }
    }
  }

  function say(...said) {
    found = null;
    told.hidden = true;
    fill(answer, ...said);
  }

  function show({ data, remark }) {
    found = data;
    [first, sort] = [0, ""];
    const { policy, waiting, earlier = 0, later = 0, same = 0, unknown = 0, until, present, other } = data;
    fill(answer, el("p", { class: "headline" }, `Under ${policy}, of ${count(waiting, "waiting job")} ${number(earlier)} would start earlier, `
      + `${number(later)} later and ${number(same)} at the same time${unknown ? `; of ${number(unknown)} that is not known` : ""}.`),
    el("p", { class: "note" }, `As of ${timed(data.now)}.`, remark ? ` ${remark}` : ""));
    told.hidden = false;
    sums.show([{ name: "As it is", ...present }, { name: `Under ${policy}`, ...other }]);
    const times = data.use?.times || [], line = (values) => values.map((value) => 100 * value);
    use.element.hidden = !times.length;
    if (times.length) {
      use.show(uPlot, times, [{ label: "as it is", values: line(data.use.present) }, { label: policy, values: line(data.use.other) }],
        `${share(present.use)} of the processors are busy until ${timed(until)} as it is, and ${share(other.use)} under ${policy}.`);
    }
    rows();
  }

  function rows() {
    const { jobs: all = [], left_out: left = 0 } = found || {}, last = Math.min(first + PAGE, all.length);
    jobs.show(inOrder(all, sort).slice(first, last));
    jobs.sorted(sort);
    before.hidden = first === 0;
    next.hidden = last >= all.length;
    fill(where, `${all.length ? `Jobs ${number(first + 1)} to ${number(last)} of ${number(all.length)}` : "No job"}`,
      left ? `; ${count(left, "more job")} behind these ${left === 1 ? "is" : "are"} left out` : "", ".");
  }

  const themed = onTheme(() => use.redraw());
  return { title: "What if another policy decided?", refresh: async () => {}, leave() { asked?.abort(); asked = null; themed(); use.leave(); } };
}
