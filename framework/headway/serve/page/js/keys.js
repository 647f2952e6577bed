// The keyboard: every key has a row in the dialog that `?` opens.

import { el, kept } from "./dom.js";
import { moveRow } from "./table.js";

const typing = (target) => target.closest?.("input, select, textarea, [contenteditable]");

/** Single keys can be switched off: for those who dictate, and those with other keyboards. */
const singleKeys = () => kept.get("keys") !== "off";

/** `views`: [{name, title}] in their order; `actions`: what "theme" and "search" do. */
export function listenToKeys(views, actions) {
  const dialog = document.getElementById("keys");
  const click = (selector) => document.querySelector(`#view ${selector}:not([hidden])`)?.click();
  const keys = [
    ["?", "this list", () => open()],
    ["/", "search", actions.search],
    ["j", "next row", () => moveRow(1)],
    ["k", "row before", () => moveRow(-1)],
    ["n", "next page of a table", () => click("[data-do=next]")],
    ["p", "page before", () => click("[data-do=previous]")],
    ["t", "dark, light or as the system", actions.theme],
    ...views.map(({ name, title }, place) => [String(place + 1), title, () => { location.hash = `#/${name}`; }]),
  ];

  function open() {
    if (dialog.open) return;
    const use = el("input", { type: "checkbox", id: "single" });
    use.checked = singleKeys();
    use.addEventListener("change", () => kept.set("keys", use.checked ? null : "off"));
    dialog.replaceChildren(
      el("h2", { id: "keys-title" }, "Keys"),
      el("dl", { class: "keys" }, keys.map(([key, what]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, what)]),
        el("dt", {}, el("kbd", {}, "Enter")), el("dd", {}, "opens the job of the row"),
        el("dt", {}, el("kbd", {}, "←↑→↓")), el("dd", {}, "in a chart: move"),
        el("dt", {}, el("kbd", {}, "+ − 0")), el("dd", {}, "in a chart: closer, farther, all")),
      el("p", {}, el("label", {}, use, " Single keys are used")),
      el("form", { method: "dialog" }, el("button", {}, "Close")),
    );
    dialog.showModal();
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || dialog.open) return;
    if (typing(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (!singleKeys()) return;
    const found = keys.find(([key]) => key === event.key);
    if (!found) return;
    event.preventDefault();
    found[2]();
  });
  document.getElementById("help").addEventListener("click", open);
}
