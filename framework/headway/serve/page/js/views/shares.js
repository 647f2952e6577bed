// Shares of accounts and users, where a plugin counts them.

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
  root.append(said, body);

  function show() {
    const found = rows.filter(({ account, user }) => !wanted || account.toLowerCase().includes(wanted) || user.toLowerCase().includes(wanted));
    table.show(found.slice(0, 1000));
    const away = found.filter(({ effective_usage: used, norm_shares: has, user }) => user && has > 0 && used > has);
    fill(said, `${count(rows.filter(({ user }) => !user).length, "account")} and ${count(rows.filter(({ user }) => user).length, "user")}. `
      + `${count(away.length, "user")} used more than the share.` + (found.length > 1000 ? " The first 1,000 rows are shown." : ""));
  }

  words.addEventListener("input", () => { wanted = words.value.trim().toLowerCase(); show(); });

  async function refresh(signal) {
    try {
      ({ rows } = await told("shares", signal));
      body.hidden = false;
      show();
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 404) throw error;
      body.hidden = true;
      fill(said, "No enabled plugin counts shares: ", el("code", {}, "priority"), " and ", el("code", {}, "fair-share"), " do. The daemon says: ", error.message, ".");
    }
  }

  return { title: "Shares", refresh };
}
