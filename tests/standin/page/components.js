/* SPDX-License-Identifier: MIT */
/* Message components: buttons, selects, and the V2 layout. */

import { el, localPath } from "./dom.js";
import { format } from "./format.js";
import { fileCard, picture } from "./files.js";

const STYLES = { 1: "primary", 2: "secondary", 3: "success", 4: "danger",
                 5: "link", 6: "premium" };

/** Draw a message's component tree; `use` is told of presses. */
export function components(message, use) {
  return (message.components || []).map((one) => draw(one, message, use));
}

/** Draw one component. */
function draw(one, message, use) {
  switch (one.type) {
    case 1:
      return el("div", { class: "row" },
                ...one.components.map((c) => draw(c, message, use)));
    case 2:
      return button(one, message, use);
    case 3: case 5: case 6: case 7: case 8:
      return select(one, message, use);
    case 9:
      return el("div", { class: "section" },
                el("div", {}, ...one.components.map(
                  (c) => draw(c, message, use))),
                draw(one.accessory, message, use));
    case 10:
      return el("div", { class: "text", data: { part: "text" } },
                ...format(one.content));
    case 11:
      return media(one, message, "thumbnail");
    case 12:
      return el("div", { class: "gallery",
                         data: { count: String(one.items.length) } },
                ...one.items.map(
                  (item) => media(item, message, "gallery-item")));
    case 13:
      return file(one, message);
    case 14:
      return el("hr", { class: one.divider === false ? "space" : "divider" });
    case 17:
      return container(one, message, use);
    default:
      return el("div", { class: "unknown", text: `component ${one.type}` });
  }
}

/** Draw a button. */
function button(one, message, use) {
  const face = [];
  if (one.emoji && one.emoji.name) {
    face.push(el("span", { class: "emoji", text: one.emoji.name }));
  }
  if (one.label) face.push(el("span", { text: one.label }));
  const style = STYLES[one.style] || "secondary";
  if (one.style === 5) {
    const safe = /^https?:/.test(one.url) ? one.url : null;
    return el("a", { class: `button ${style}`, href: safe, target: "_blank",
                     rel: "noopener noreferrer" }, ...face);
  }
  return el("button", {
    type: "button", class: `button ${style}`, disabled: one.disabled,
    data: { customId: one.custom_id, label: one.label },
    on: { click: () => use(message, one, undefined) } }, ...face);
}

/** Draw a select menu: a list, or boxes where several can be chosen. */
function select(one, message, use) {
  if ((one.max_values || 1) > 1) return boxes(one, message, use);
  const menu = el("select", {
    disabled: one.disabled, "aria-label": one.placeholder || "Choose",
    data: { customId: one.custom_id },
    on: { change: () => use(message, one, [menu.value]) } });
  if (!(one.options || []).some((o) => o.default)) {
    menu.append(el("option", { value: "", selected: true, disabled: true,
                               text: one.placeholder || "Make a selection" }));
  }
  for (const option of one.options || []) {
    menu.append(el("option", { value: option.value, text: face(option),
                               selected: option.default }));
  }
  return menu;
}

/** Return how an option of a select menu reads. */
function face(option) {
  const label = [option.emoji?.name, option.label].filter(Boolean).join(" ");
  return option.description ? `${label} — ${option.description}` : label;
}

/** Draw a select menu for several options. */
function boxes(one, message, use) {
  const inputs = (one.options || []).map((option) => el("input", {
    type: "checkbox", value: option.value, checked: option.default }));
  const chosen = () => inputs.filter((i) => i.checked).map((i) => i.value);
  const apply = el("button", {
    type: "button", class: "button secondary", text: "Apply",
    on: { click: () => use(message, one, chosen()) } });
  const check = () => {
    const count = chosen().length;
    apply.disabled = count < (one.min_values ?? 1) || count > one.max_values;
  };
  check();
  return el("fieldset", { class: "many", disabled: one.disabled,
                          data: { customId: one.custom_id },
                          on: { change: check } },
            el("legend", { text: one.placeholder || "Choose" }),
            ...(one.options || []).map((option, index) => el(
              "label", {}, inputs[index], " " + face(option))), apply);
}

/** Find the attachment that a reference names. */
function attachmentOf(url, message) {
  const path = localPath(url);
  return (message.attachments || []).find(
    (a) => path && localPath(a.url)?.split("?")[0] === path.split("?")[0]);
}

/** Draw an item of a gallery, or a thumbnail. */
function media(item, message, kind) {
  const attachment = attachmentOf(item.media.url, message);
  if (!attachment) return el("span", { class: "missing", text: "(media)" });
  return el("div", { class: kind }, picture(attachment, item.description));
}

/** Draw a file component. */
function file(one, message) {
  const attachment = attachmentOf(one.file.url, message);
  if (!attachment) return el("span", { class: "missing", text: "(file)" });
  return fileCard(attachment);
}

/** Draw a container. */
function container(one, message, use) {
  const box = el("div", { class: "container", data: { part: "container" } },
                 ...one.components.map((c) => draw(c, message, use)));
  if (Number.isInteger(one.accent_color)) {
    box.style.borderLeftColor =
      "#" + one.accent_color.toString(16).padStart(6, "0");
  }
  return box;
}
