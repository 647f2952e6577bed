// A table whose rows keep their place in the document while their content changes.

import { el, fill } from "./dom.js";

/**
 * Columns: {name, head, cell(row), title, number, sort, wide}. `sort` is the field by which the server sorts;
 * `wide` columns are left out where there is little room. Roles are named, since narrow screens show rows as
 * blocks, and browsers forget then that this is a table.
 */
export class Table {
  constructor(columns, { key, caption, empty = "There is nothing to show.", onSort = null, mark = () => "" }) {
    Object.assign(this, { columns, key, mark, onSort, empty });
    this.rows = new Map();
    this.caption = el("caption", { class: "unseen" }, caption);
    this.heads = columns.map((column) => this.head(column));
    this.body = el("tbody", { role: "rowgroup" });
    this.none = el("p", { class: "note", hidden: true }, empty);
    const thead = el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, this.heads));
    this.element = el("div", { class: "scroll" },
      el("table", { role: "table", class: "rows" }, this.caption, thead, this.body), this.none);
  }

  head(column) {
    const { head, title, number, sort } = column;
    const content = sort && this.onSort
      ? el("button", { type: "button", on: { click: () => this.onSort(sort) } }, head) : head;
    return el("th", { role: "columnheader", scope: "col", title, class: this.classes(column, number) }, content);
  }

  classes({ name, wide }, number) {
    return [`c-${name}`, number ? "n" : "", wide ? "wide-only" : ""].filter(Boolean).join(" ");
  }

  /** Shows by what it is sorted: "submitted", or "-submitted" for the largest first. */
  sorted(by) {
    this.columns.forEach(({ sort }, place) => {
      const head = this.heads[place];
      if (sort && by === sort) head.setAttribute("aria-sort", "ascending");
      else if (sort && by === `-${sort}`) head.setAttribute("aria-sort", "descending");
      else head.removeAttribute("aria-sort");
    });
  }

  show(rows) {
    const before = this.rows;
    this.rows = new Map();
    const order = rows.map((row) => {
      const key = this.key(row);
      const tr = before.get(key) || el("tr", { role: "row", "data-key": key });
      this.rows.set(key, tr);
      this.refresh(tr, row);
      return tr;
    });
    for (const [key, tr] of before) if (!this.rows.has(key)) tr.remove();
    order.forEach((tr, place) => {
      if (this.body.children[place] !== tr) this.body.insertBefore(tr, this.body.children[place] || null);
    });
    this.none.hidden = rows.length > 0;
  }

  refresh(tr, row) {
    const mark = this.mark(row);
    if (tr.className !== mark) tr.className = mark;
    this.columns.forEach((column, place) => {
      const cell = tr.children[place] || tr.appendChild(el(place ? "td" : "th", {
        role: place ? "cell" : "rowheader", scope: place ? null : "row", "data-head": column.head,
        class: this.classes(column, column.number),
      }));
      fill(cell, column.cell(row));
    });
  }
}

/** Moves the focus by so many rows among the tables' rows on the screen. */
export function moveRow(by) {
  const rows = [...document.querySelectorAll("#view tbody tr")].filter((row) => row.querySelector("a, button"));
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + by, 0), rows.length - 1)];
  next.querySelector("a, button").focus();
  next.scrollIntoView({ block: "nearest" });
}
