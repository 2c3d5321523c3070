/* SPDX-License-Identifier: MIT */
/* Drawing messages. */

import { attachments, picture } from "./files.js";
import { clock, el, localPath } from "./dom.js";
import { components } from "./components.js";
import { format } from "./format.js";

const V2 = 32768;
const SUPPRESS_EMBEDS = 4;

/**
 * Draw one message.
 *
 * `acts` has use(message, component, values), dismiss(message) and
 * menu(message, button).
 */
export function draw(message, acts) {
  const known = message.standin;
  const state = known.notice ? "notice" : known.loading ? "thinking" : "final";
  const body = el("div", { class: "body" });
  const node = el("article", {
    class: "message", "aria-label": `Message by ${name(message.author)}`,
    data: {
      messageId: message.id, state, author: message.author.username,
      ephemeral: known.ephemeral ? "true" : "false",
      edits: String(known.edits), interaction: known.interaction,
      pings: known.pings ? "true" : null,
    },
  }, avatar(message.author), body);
  const origin = commandLine(message, known);
  if (origin) body.append(origin);
  body.append(head(message, acts));
  if (known.loading) body.append(thinking());
  else body.append(...content(message, acts));
  if (known.ephemeral) body.append(onlyYou(message, acts));
  return node;
}

/** Return what a person is called. */
function name(user) {
  return user.global_name || user.username;
}

/** Draw a person's sign. */
function avatar(user) {
  const hue = Number(BigInt(user.id) % 6n);
  return el("div", { class: `avatar tone-${hue}`, "aria-hidden": "true",
                     text: name(user).charAt(0).toUpperCase() });
}

/** Draw "Alice used /il py" above an answer. */
function commandLine(message, known) {
  const by = message.interaction_metadata;
  if (!by || !known.command) return null;
  return el("div", { class: "used", data: { part: "used" } },
            el("b", { text: name(by.user) }), " used ",
            el("span", { class: "mention", text: known.command }));
}

/** Draw who wrote it and when, and the message's menu. */
function head(message, acts) {
  const parts = [el("span", { class: "author", text: name(message.author) })];
  if (message.author.bot) parts.push(el("span", { class: "tag",
                                                  text: "APP" }));
  parts.push(el("time", { datetime: message.timestamp,
                          text: clock(message.timestamp) }));
  const menu = el("button", {
    type: "button", class: "menu", "aria-label": "Message actions",
    "aria-haspopup": "menu", "aria-expanded": "false",
    data: { menu: message.id }, text: "⋯",
    on: { click: (event) => acts.menu(message, event.currentTarget) } });
  return el("div", { class: "head" }, ...parts, menu);
}

/** Draw the sign of a deferral. */
function thinking() {
  return el("div", { class: "thinking", data: { part: "thinking" } },
            el("span", { class: "dots", "aria-hidden": "true" },
               el("i"), el("i"), el("i")), " Inline is thinking…");
}

/** Draw all that a message holds. */
function content(message, acts) {
  const nodes = [];
  const v2 = Boolean(message.flags & V2);
  if (message.content) {
    nodes.push(el("div", { class: "content", data: { part: "content" } },
                  ...format(message.content), ...edited(message)));
  }
  if (!v2) {
    if (!(message.flags & SUPPRESS_EMBEDS)) {
      nodes.push(...(message.embeds || []).map(
        (e) => embed(e, message)));
    }
    const files = attachments(message);
    if (files) nodes.push(files);
  }
  nodes.push(...components(message, acts.use));
  if (!message.content) nodes.push(...edited(message));
  return nodes;
}

/** Draw "(edited)" where it belongs. */
function edited(message) {
  if (!message.edited_timestamp) return [];
  return [el("span", { class: "edited", data: { part: "edited" },
                       title: clock(message.edited_timestamp),
                       text: " (edited)" })];
}

/** Draw an embed. */
function embed(one, message) {
  const box = el("div", { class: "embed", data: { part: "embed" } });
  if (Number.isInteger(one.color)) {
    box.style.borderLeftColor = "#" + one.color.toString(16).padStart(6, "0");
  }
  if (one.author?.name) box.append(el("div", { class: "embed-author",
                                               text: one.author.name }));
  if (one.title) box.append(el("div", { class: "embed-title" },
                               ...format(one.title)));
  if (one.description) box.append(el("div", {}, ...format(one.description)));
  for (const field of one.fields || []) {
    box.append(el("div", { class: field.inline ? "field inline" : "field" },
                  el("b", { text: field.name }),
                  el("div", {}, ...format(field.value))));
  }
  const path = one.image?.url && localPath(one.image.url);
  const file = (message.attachments || []).find(
    (a) => path && localPath(a.url) === path);
  if (file) box.append(picture(file, one.title));
  if (one.footer?.text) box.append(el("div", { class: "embed-footer",
                                               text: one.footer.text }));
  return box;
}

/** Draw the note of a message that only one person sees. */
function onlyYou(message, acts) {
  return el("div", { class: "only", data: { part: "ephemeral" } },
            "Only you can see this · ",
            el("button", { type: "button", class: "dismiss",
                           text: "Dismiss message",
                           on: { click: () => acts.dismiss(message) } }));
}
