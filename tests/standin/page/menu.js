/* SPDX-License-Identifier: MIT */
/* The menu of a message: by its button, a right click or a long press. */

import { el } from "./dom.js";

const LONG_PRESS_MS = 500;
const MOVED = 10;

let opener = null;

/** Close the menu; focus goes back to where it came from if it was in it. */
export function closeMenu() {
  const menu = document.getElementById("menu");
  if (!menu) return;
  const inside = menu.contains(document.activeElement);
  menu.remove();
  opener?.setAttribute("aria-expanded", "false");
  if (inside) opener?.focus();
  opener = null;
}

/**
 * Open a menu at a point of the window.
 *
 * `groups` are {label, entries}, each entry [text, act, kind]; `from` is the
 * button that has the focus afterwards.
 */
export function openMenu(point, groups, from) {
  closeMenu();
  opener = from;
  opener.setAttribute("aria-expanded", "true");
  const menu = el("div", { id: "menu", role: "menu",
                           "aria-label": "Message actions" },
    ...groups.filter((g) => g.entries.length).map((group, index) => el(
      "div", { role: "group", "aria-label": group.label, class: "group" },
      el("div", { class: "group-label", "aria-hidden": "true",
                  text: group.label }),
      ...group.entries.map(([text, act, kind]) => el("button", {
        type: "button", role: "menuitem", tabindex: "-1", text,
        class: kind, data: { action: text, group: String(index) },
        on: { click: () => {
          closeMenu();
          act();
        } } })))));
  menu.addEventListener("keydown", onKey);
  document.body.append(menu);
  const { width, height } = menu.getBoundingClientRect();
  menu.style.left = Math.max(4, Math.min(point.x, innerWidth - width - 4)) +
    "px";
  menu.style.top = Math.max(4, Math.min(point.y, innerHeight - height - 4)) +
    "px";
  menu.querySelector("button").focus();
}

/** Move in the menu, or leave it. */
function onKey(event) {
  const entries = [...event.currentTarget.querySelectorAll("button")];
  const at = entries.indexOf(document.activeElement);
  const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0,
                 End: -1 }[event.key];
  if (next !== undefined) {
    event.preventDefault();
    entries.at(next % entries.length).focus();
  } else if (event.key === "Tab" || event.key === "Escape") {
    event.preventDefault();
    closeMenu();
  }
}

/** Return the message that an event is about, if the menu is its answer: a
 * link, a picture, a field and marked text have the browser's own. */
function messageAt(target) {
  if (!document.getSelection().isCollapsed) return null;
  if (target.closest("a, input, textarea, select")) return null;
  return target.closest("[data-message-id]");
}

/** Call `open(message element, point)` for right clicks and long presses. */
export function watchMessages(list, open) {
  let timer = null;
  let start = null;
  const end = () => clearTimeout(timer);
  const show = (target, x, y) => {
    const message = messageAt(target);
    if (!message) return false;
    const box = target.getBoundingClientRect();
    open(message, x || y ? { x, y } : { x: box.left, y: box.bottom });
    return true;
  };
  list.addEventListener("contextmenu", (event) => {
    end();
    if (show(event.target, event.clientX, event.clientY)) {
      event.preventDefault();
    }
  });
  list.addEventListener("pointerdown", (event) => {
    end();
    if (event.pointerType !== "touch") return;
    start = { x: event.clientX, y: event.clientY };
    timer = setTimeout(() => show(event.target, start.x, start.y),
                       LONG_PRESS_MS);
  });
  list.addEventListener("pointermove", (event) => {
    if (start && Math.hypot(event.clientX - start.x,
                            event.clientY - start.y) > MOVED) end();
  });
  for (const kind of ("pointerup pointercancel scroll").split(" ")) {
    list.addEventListener(kind, end);
  }
  // Not by "scroll": new messages move the list, too.
  list.addEventListener("wheel", closeMenu, { passive: true });
  list.addEventListener("touchmove", closeMenu, { passive: true });
  window.addEventListener("resize", closeMenu);
  document.addEventListener("pointerdown", (event) => {
    if (!event.target.closest("#menu, .menu")) closeMenu();
  });
}
