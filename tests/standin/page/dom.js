/* SPDX-License-Identifier: MIT */
/* Building the page's DOM. User text only ever becomes text nodes. */

/**
 * Make an element.
 *
 * `props` sets attributes; `on` is an object of listeners, `data` of data
 * attributes, `text` the text content. null, false and undefined are left
 * out. Children are nodes or strings.
 */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [kind, listener] of Object.entries(value)) {
        node.addEventListener(kind, listener);
      }
    } else if (name === "data") {
      for (const [key, text] of Object.entries(value)) {
        if (text !== null && text !== undefined) node.dataset[key] = text;
      }
    } else if (name === "text") {
      node.textContent = value;
    } else if (value === true) {
      node.setAttribute(name, "");
    } else {
      node.setAttribute(name, value);
    }
  }
  node.append(...children.filter((c) => c !== null && c !== undefined));
  return node;
}

/** Return the path of a file's address, which is on this page's origin. */
export function localPath(url) {
  try {
    const parts = new URL(url);
    if (parts.pathname.startsWith("/attachments/")) {
      return parts.pathname + parts.search;
    }
  } catch {
    /* not an address */
  }
  return null;
}

/** Write a number of bytes for people. */
export function size(bytes) {
  if (bytes < 1024) return `${bytes} byte${bytes === 1 ? "" : "s"}`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}

/** Write a time of day for people. */
export function clock(stamp) {
  return new Date(stamp).toLocaleTimeString([], {
    hour: "2-digit", minute: "2-digit" });
}
