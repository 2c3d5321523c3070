/* SPDX-License-Identifier: MIT */
/* The list above the line, of commands or of an option's values. Focus stays
 * in the line: the list is a listbox whose active entry the line names. */

import { el } from "./dom.js";

const MOST = 25;
const box = document.getElementById("composer");
const palette = document.getElementById("palette");
const state = document.getElementById("palette-state");

let items = [];
let active = -1;

/**
 * Show a list.
 *
 * An item has kind ("command" or "choice"), title, about and run(), and
 * `typed` when it is what the line says already. `marked` is the index of the
 * active one, -1 for none. Without items the list is hidden.
 */
export function showItems(list, marked = 0) {
  items = list.slice(0, MOST);
  palette.replaceChildren(...items.map((item, index) => el("div", {
    class: "item", role: "option", id: `item-${index}`,
    data: { [item.kind]: item.title },
    on: { click: () => item.run() },
  }, el("b", { text: item.title }), el("span", { text: item.about }))));
  open(items.length > 0);
  tell(items.length ? `${items.length} to choose from` : "");
  mark(Math.min(marked, items.length - 1));
}

/** Show how the list is coming, in place of it. */
export function showState(text) {
  items = [];
  palette.replaceChildren(el("div", { class: "item state", role: "option",
                                      "aria-disabled": "true", text }));
  open(true);
  tell(text);
  mark(-1);
}

/** Show or hide the list. */
function open(shown) {
  palette.hidden = !shown;
  box.setAttribute("aria-expanded", String(shown));
}

/** Tell who cannot see the list what it is like. */
function tell(text) {
  if (state.textContent !== text) state.textContent = text;
}

/** Make one item the active one. */
function mark(index) {
  active = index;
  [...palette.children].forEach((node, at) => {
    node.setAttribute("aria-selected", String(at === index));
    if (at === index) node.scrollIntoView({ block: "nearest" });
  });
  if (index >= 0) box.setAttribute("aria-activedescendant", `item-${index}`);
  else box.removeAttribute("aria-activedescendant");
}

/** Whether anything can be chosen. */
export function isOpen() {
  return items.length > 0;
}

/** Return the active item, or null. */
export function marked() {
  return items[active] || null;
}

/** Make the next (1) or the previous (-1) item the active one. */
export function step(by) {
  if (active < 0) mark(by > 0 ? 0 : items.length - 1);
  else mark((active + by + items.length) % items.length);
}

palette.addEventListener("mousedown", (event) => event.preventDefault());
