// Times, durations and amounts in words. Times are absolute seconds and are shown in this browser's zone.

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const zoned = new Intl.DateTimeFormat("en-GB", {
  weekday: "short", day: "numeric", month: "short", year: "numeric",
  hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short",
});

/** The zone's short name, such as "CET", now. */
export const zone = () => zoned.formatToParts(new Date()).find((part) => part.type === "timeZoneName").value;

/** As short as it is clear in a column whose head names the zone: the date only if it is not today's. */
export function brief(seconds) {
  if (seconds === null || seconds === undefined) return "";
  const date = new Date(seconds * 1000);
  const today = date.toDateString() === new Date().toDateString();
  return today ? clock.format(date) : `${day.format(date)} ${clock.format(date).slice(0, 5)}`;
}

/** The whole date and time with its zone. */
export const whole = (seconds) => zoned.format(new Date(seconds * 1000));

/** A time with its zone. */
export const timed = (seconds) => `${brief(seconds)} ${zone()}`;

/** The daemon's times in its sentences, as this browser's: those of UTC, and those of a zone of the same name. */
export function localTimes(text) {
  return text.replace(/(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) ([A-Z]{3,5})\b/g, (told, date, hours, name) => {
    const at = name === "UTC" || name === "GMT" ? Date.parse(`${date}T${hours}Z`)
      : name === zone() ? Date.parse(`${date}T${hours}`) : NaN;
    return Number.isNaN(at) ? told : timed(at / 1000);
  });
}

const two = (number) => String(number).padStart(2, "0");

export function span(seconds) {
  if (seconds === null || seconds === undefined) return "no limit";
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return s % 60 && s < 600 ? `${Math.floor(s / 60)} min ${two(s % 60)} s` : `${Math.round(s / 60)} min`;
  if (s < 172800) return `${Math.floor(s / 3600)} h ${two(Math.floor((s % 3600) / 60))} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** Seconds of "90", "10m", "1h30m", "2d"; NaN if it is none of these. */
export function parseSpan(text) {
  const told = text.trim().toLowerCase();
  if (/^\d+(\.\d+)?$/.test(told)) return Number(told);
  if (!/^(\d+(\.\d+)?\s*[smhd]\s*)+$/.test(told)) return NaN;
  const unit = { s: 1, m: 60, h: 3600, d: 86400 };
  return [...told.matchAll(/(\d+(?:\.\d+)?)\s*([smhd])/g)].reduce((sum, [, n, u]) => sum + Number(n) * unit[u], 0);
}

const grouped = new Intl.NumberFormat("en-GB");
export const number = (value) => grouped.format(value);

/** "1 job", "2 jobs". */
export const count = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;

export function bytes(value) {
  if (value === null || value === undefined) return "";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let place = 0;
  while (value >= 1024 && place < units.length - 1) { value /= 1024; place += 1; }
  return `${value < 10 && place ? value.toFixed(1) : Math.round(value)} ${units[place]}`;
}

export const percent = (part, all) => (all > 0 ? `${Math.round((100 * part) / all)} %` : "–");

/** "a, b and c". */
export function listed(words) {
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

/** What a status means, with a sign that does not need its colour. */
export const STATUS = {
  pending: ["◷", "waits in its queue"], waiting: ["⏸", "waits outside of the queue"],
  starting: ["◐", "is being started"], running: ["▶", "runs"], suspended: ["‖", "is suspended"],
};
