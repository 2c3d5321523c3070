/* SPDX-License-Identifier: MIT */
/* Attachments: images, file cards, previews of text. */

import { el, localPath, size } from "./dom.js";
import { codeBlock } from "./format.js";

const TEXT = /\.(txt|log|py|csv|json|md|toml|ini|cfg|ya?ml|xml|html|sh)$/i;
const PREVIEW_BYTES = 20000;
const MOST_WIDTH = 550;
const MOST_HEIGHT = 350;

/** Whether the browser shows this attachment as an image. */
export function isImage(attachment) {
  return /^image\/(png|jpeg|gif|webp)$/.test(attachment.content_type || "");
}

/** What people read as its name: the one that its owner gave it. */
function nameOf(attachment) {
  return attachment.title || attachment.filename;
}

/** Return the size at which an image is shown, so that nothing moves when
 * it has come. */
function fit(attachment) {
  const { width, height } = attachment;
  if (!width || !height) return {};
  const scale = Math.min(1, MOST_WIDTH / width, MOST_HEIGHT / height);
  return { width: Math.max(1, Math.round(width * scale)),
           height: Math.max(1, Math.round(height * scale)) };
}

/** Draw an image that opens in full when clicked. */
export function picture(attachment, description) {
  const path = localPath(attachment.url);
  const alt = description || attachment.description || nameOf(attachment);
  const image = el("img", { src: path, alt, ...fit(attachment),
                            data: { image: attachment.filename } });
  return el("a", { class: "picture", href: path, target: "_blank",
                   rel: "noopener", data: { attachment: attachment.filename } },
            image);
}

/** Draw a file with its size, a download link, and a preview of text. */
export function fileCard(attachment) {
  const path = localPath(attachment.url);
  const card = el("div", { class: "file",
                           data: { attachment: attachment.filename } });
  const link = el("a", { href: path, download: nameOf(attachment),
                         data: { download: attachment.filename },
                         text: nameOf(attachment) });
  card.append(el("div", { class: "file-name" }, link),
              el("div", { class: "file-size", text: size(attachment.size) }));
  if (TEXT.test(attachment.filename)) {
    const toggle = el("button", {
      type: "button", class: "preview", "aria-expanded": "false",
      text: "Show", on: { click: () => preview(card, toggle, attachment) } });
    card.append(toggle);
  }
  return card;
}

/** Show or hide the beginning of a text file. */
async function preview(card, toggle, attachment) {
  const shown = card.querySelector("pre");
  if (shown) {
    shown.remove();
    toggle.textContent = "Show";
    toggle.setAttribute("aria-expanded", "false");
    return;
  }
  const answer = await fetch(localPath(attachment.url));
  let text = answer.ok ? await answer.text() : "(no longer available)";
  if (text.length > PREVIEW_BYTES) {
    text = text.slice(0, PREVIEW_BYTES) + "\n…";
  }
  const kind = /\.py$/.test(attachment.filename) ? "py" : "";
  card.append(codeBlock(text, kind));
  toggle.textContent = "Hide";
  toggle.setAttribute("aria-expanded", "true");
}

/** Draw the attachments of a message that is not made of components, but for
 * the images that its embeds show. */
export function attachments(message) {
  const embedded = (message.embeds || []).flatMap(
    (e) => [e.image?.url, e.thumbnail?.url]);
  const shown = (message.attachments || []).filter(
    (one) => !embedded.includes(one.url)).map((one) =>
    (isImage(one) ? picture(one) : fileCard(one)));
  return shown.length ? el("div", { class: "attachments" }, ...shown) : null;
}
