// Shares of accounts and users, and limits, where plugins count them.

import { Refused, ask } from "../api.js";
import { el, fill } from "../dom.js";
import { Table } from "../table.js";
import { count, number } from "../words.js";

const part = (value) => (value === null || value === undefined ? "" : value.toFixed(4));
const of = (value, head, name, more = {}) => ({ name, head, number: true, cell: value, ...more });

/** All pages of a plugin's answer. */
async function told(name, signal) {
  const rows = [];
  let first = 0, answer;
  do {
    answer = await ask(`plugins/${name}`, { text: JSON.stringify({ first }) }, signal);
    for (const row of answer.data.answer.rows || []) rows.push(row);
    first = answer.data.answer.next ?? null;
  } while (first !== null && rows.length < 20000);
  return { rows, remark: answer.remark };
}

export function make(root) {
  let rows = [], wanted = "";
  const said = el("p", { role: "status" });
  const words = el("input", { type: "search", size: 16, placeholder: "account or user", spellcheck: "false", maxlength: 128 });
  const table = new Table([
    { name: "account", head: "Account", cell: ({ account, depth }) => `${" ".repeat(2 * depth)}${account}` },
    { name: "user", head: "User", cell: ({ user }) => user || "" },
    of(({ shares }) => (shares === null ? "" : number(shares)), "Shares", "shares"),
    of(({ norm_shares: value }) => part(value), "Part", "norm", { title: "Of the shares beside it, or of the machine" }),
    of(({ usage }) => number(Math.round(usage)), "Usage", "usage", { wide: true, title: "Units times seconds, decayed" }),
    of(({ effective_usage: value }) => part(value), "Used part", "used"),
    of(({ fair_share: value }) => part(value), "Fair share", "fair", { title: "From 0 to 1; the higher, the earlier" }),
    of(({ level_fair_share: value }) => part(value), "Shares over use", "level", { wide: true }),
  ], { key: ({ account, user }) => `${account} ${user}`, caption: "Shares, the tree of accounts from the root down", empty: "No account is like this." });
  const body = el("div", {}, el("div", { class: "tools" }, el("label", {}, "Only ", words)), table.element);
  const limits = new Table([
    { name: "of", head: "Limit of", cell: ({ of }) => of },
    { name: "what", head: "What", cell: ({ unit }) => unit.replace(/,$/, "") },
    of(({ limit }) => number(limit), "Limit", "limit"),
    of(({ used }) => (used === undefined || used === null ? "one job" : number(Math.round(used))), "In use", "used"),
  ], { key: ({ of, measure, used }) => `${of} ${measure} ${used === undefined || used === null}`, caption: "Limits that jobs came under", empty: "No job came under a limit." });
  const limited = el("section", { hidden: true }, el("h2", {}, "Limits"), limits.element);
  root.append(said, body, limited);

  function show() {
    const found = rows.filter(({ account, user }) => !wanted || account.toLowerCase().includes(wanted) || user.toLowerCase().includes(wanted));
    table.show(found.slice(0, 1000));
    const away = found.filter(({ effective_usage: used, norm_shares: has, user }) => user && has > 0 && used > has);
    fill(said, `${count(rows.filter(({ user }) => !user).length, "account")} and ${count(rows.filter(({ user }) => user).length, "user")}. `
      + `${count(away.length, "user")} used more than the share.` + (found.length > 1000 ? " The first 1,000 rows are shown." : ""));
  }

  words.addEventListener("input", () => { wanted = words.value.trim().toLowerCase(); show(); });

  /** A plugin's answer; the daemon's word where no plugin has one. */
  async function answered(name, signal) {
    try {
      return await told(name, signal);
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 404) throw error;
      return { none: error.message };
    }
  }

  async function refresh(signal) {
    const [shares, under] = [await answered("shares", signal), await answered("limits", signal)];
    body.hidden = shares.rows === undefined;
    if (body.hidden) {
      fill(said, "No enabled plugin counts shares. The daemon says: ", shares.none, ".");
    } else {
      ({ rows } = shares);
      show();
    }
    limited.hidden = under.rows === undefined;
    if (!limited.hidden) limits.show(under.rows.slice(0, 1000));
  }

  return { title: "Shares", refresh };
}
