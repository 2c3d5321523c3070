/* SPDX-License-Identifier: MIT */
/* The lines that were sent, for the arrow keys to bring back. */

const MOST = 50;
const LONGEST = 8000;
const KEY = "inline-lines";

let lines = load();
let at = null;

/** Return what an earlier visit left. */
function load() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY));
    return Array.isArray(kept) ? kept.filter((l) => typeof l === "string")
      : [];
  } catch {
    return [];
  }
}

/** Keep a line that was sent. */
export function remember(text) {
  at = null;
  if (text.length > LONGEST) return;
  lines = [...lines.filter((l) => l !== text), text].slice(-MOST);
  try {
    localStorage.setItem(KEY, JSON.stringify(lines));
  } catch {
    /* then for as long as the page is open */
  }
}

/**
 * Return the line before (-1) or after (1) the one that stands in the box,
 * or null when the key means something else: what stands there was not
 * brought back, or the cursor can move on within it.
 */
export function recall(box, by) {
  if (at !== null && box.value !== lines[at]) at = null;
  if (at === null && (box.value !== "" || by > 0)) return null;
  const rest = by < 0 ? box.value.slice(0, box.selectionStart)
    : box.value.slice(box.selectionEnd);
  if (rest.includes("\n")) return null;
  const next = (at ?? lines.length) + by;
  if (next < 0) return null;
  at = next < lines.length ? next : null;
  return at === null ? "" : lines[at];
}
