/* SPDX-License-Identifier: MIT */
/* Discord's markdown, as DOM. */

import { el } from "./dom.js";

const ESCAPE = "\u001b";
const KEYWORDS = new Set(("False None True and as assert async await break " +
  "class continue def del elif else except finally for from global if import" +
  " in is lambda nonlocal not or pass raise return try while with yield " +
  "match case").split(" "));

const INLINE = [
  [/^`([^`\n]+)`/, (m) => el("code", { text: m[1] })],
  [/^\*\*\*([\s\S]+?)\*\*\*/, (m) => el("strong", {},
    el("em", {}, ...inline(m[1])))],
  [/^\*\*([\s\S]+?)\*\*/, (m) => el("strong", {}, ...inline(m[1]))],
  [/^__([\s\S]+?)__/, (m) => el("u", {}, ...inline(m[1]))],
  [/^\*(?!\s)([^*\n]+?)\*/, (m) => el("em", {}, ...inline(m[1]))],
  [/^_(?!\s)([^_\n]+?)_(?!\w)/, (m) => el("em", {}, ...inline(m[1]))],
  [/^~~([\s\S]+?)~~/, (m) => el("s", {}, ...inline(m[1]))],
  [/^\|\|([\s\S]+?)\|\|/, (m) => spoiler(m[1])],
  [/^\[([^\]\n]+)\]\(<?(https?:\/\/[^\s)>]+)>?\)/, (m) => link(m[2], m[1])],
  [/^<(https?:\/\/[^\s>]+)>/, (m) => link(m[1], m[1])],
  [/^https?:\/\/[^\s<>)\]]+/, (m) => link(m[0], m[0])],
  [/^<\/([^:>\n]{1,100}):\d+>/, (m) => el("button", {
    type: "button", class: "mention", data: { begin: `/${m[1]} ` },
    text: "/" + m[1] })],
  [/^<@!?(\d+)>/, (m) => el("span", { class: "mention",
                                        text: "@" + nameOf(m[1]) })],
  [/^<t:(-?\d+)(?::([tTdDfFR]))?>/, (m) => time(Number(m[1]), m[2])],
  [/^\\([^A-Za-z0-9\s])/, (m) => m[1]],
];

/** Return what a person is called who is known here; else the number. */
function nameOf(id) {
  const known = document.querySelector(`#user option[data-id="${id}"]`);
  return known ? known.textContent : id;
}

/** Make a link that tells its target nothing. */
function link(url, text) {
  return el("a", { href: url, target: "_blank",
                   rel: "noopener noreferrer nofollow", text });
}

/** Make a text that shows itself when clicked. */
function spoiler(text) {
  const show = (event) => event.currentTarget.classList.add("shown");
  return el("button", { type: "button", class: "spoiler",
                        "aria-label": "Spoiler", on: { click: show } },
            ...inline(text));
}

/** Show a time stamp as Discord does. */
function time(seconds, style) {
  const date = new Date(seconds * 1000);
  let text = date.toLocaleString();
  if (style === "R") {
    const away = Math.round((date - Date.now()) / 1000);
    const units = [["day", 86400], ["hour", 3600], ["minute", 60],
                   ["second", 1]];
    const [unit, length] = units.find(([, n]) => Math.abs(away) >= n) ||
      units[3];
    text = new Intl.RelativeTimeFormat("en").format(
      Math.round(away / length), unit);
  } else if (style === "d" || style === "D") {
    text = date.toLocaleDateString();
  } else if (style === "t" || style === "T") {
    text = date.toLocaleTimeString();
  }
  return el("time", { datetime: date.toISOString(), title: date.toString(),
                      text });
}

/** Turn the marks within lines into nodes and strings. */
function inline(text) {
  const nodes = [];
  let plain = "";
  let at = 0;
  const flush = () => {
    if (plain) nodes.push(plain);
    plain = "";
  };
  while (at < text.length) {
    const rest = text.slice(at, at + 4096);
    let hit = null;
    if ("`*_~|[<h\\".includes(rest[0]) && !(
      rest[0] === "_" && /\w/.test(text[at - 1] || ""))) {
      for (const [pattern, make] of INLINE) {
        const m = pattern.exec(rest);
        if (m) {
          hit = [m[0].length, make(m)];
          break;
        }
      }
    }
    if (hit) {
      flush();
      nodes.push(hit[1]);
      at += hit[0];
    } else {
      plain += text[at];
      at += 1;
    }
  }
  flush();
  return nodes;
}

/** Colour the terminal's escape sequences in a text. */
function ansi(text) {
  const nodes = [];
  let bold = false, line = false, front = null, back = null;
  for (const [index, part] of text.split(ESCAPE + "[").entries()) {
    let shown = part;
    if (index > 0) {
      const m = /^([\d;]*)m/.exec(part);
      if (!m) {
        shown = part.replace(/^[\d;]*[A-Za-z]?/, "");
      } else {
        shown = part.slice(m[0].length);
        for (const code of (m[1] || "0").split(";").map(Number)) {
          if (code === 0) {
            bold = line = false;
            front = back = null;
          } else if (code === 1) bold = true;
          else if (code === 4) line = true;
          else if (code >= 30 && code <= 37) front = code;
          else if (code >= 40 && code <= 47) back = code;
        }
      }
    }
    if (!shown) continue;
    const classes = [bold && "ansi-bold", line && "ansi-line",
                     front && "ansi-" + front, back && "ansi-" + back]
      .filter(Boolean).join(" ");
    nodes.push(classes ? el("span", { class: classes, text: shown }) : shown);
  }
  return nodes;
}

/** Colour Python's words, strings, numbers and comments. */
function python(text) {
  const pattern = new RegExp([
    "(#[^\\n]*)",
    "([rbfuRBFU]{0,2}(?:'''[\\s\\S]*?(?:'''|$)|\"\"\"[\\s\\S]*?(?:\"\"\"|$)" +
      "|'(?:\\\\.|[^'\\\\\\n])*'?|\"(?:\\\\.|[^\"\\\\\\n])*\"?))",
    "(\\b\\d[\\w.]*\\b)",
    "([A-Za-z_]\\w*)",
  ].join("|"), "g");
  const nodes = [];
  let last = 0;
  for (let m = pattern.exec(text); m; m = pattern.exec(text)) {
    const kind = m[1] !== undefined ? "comment" : m[2] !== undefined
      ? "string" : m[3] !== undefined ? "number"
        : KEYWORDS.has(m[4]) ? "keyword" : null;
    if (!kind) continue;
    nodes.push(text.slice(last, m.index),
               el("span", { class: "syntax-" + kind, text: m[0] }));
    last = m.index + m[0].length;
  }
  nodes.push(text.slice(last));
  return nodes;
}

/** Make a code block. */
export function codeBlock(text, language) {
  const kind = (language || "").toLowerCase();
  const inner = kind === "ansi" ? ansi(text)
    : kind === "py" || kind === "python" ? python(text) : [text];
  return el("pre", { data: { lang: kind }, tabindex: "0" },
            el("code", {}, ...inner));
}

/** Make the nodes of one line, by the mark it begins with. */
function lineNodes(line) {
  const m = /^(-# |#{1,3} |> |[-*] )(.*)$/.exec(line);
  if (!m) return null;
  const tag = { "-# ": "small", "# ": "h1", "## ": "h2", "### ": "h3",
                "> ": "blockquote" }[m[1]];
  if (tag) return el(tag, { class: "line" }, ...inline(m[2]));
  return el("div", { class: "line bullet" }, ...inline(m[2]));
}

/** Turn text without code blocks into nodes. */
function paragraphs(text) {
  const nodes = [];
  let plain = [];
  const flush = () => {
    if (plain.length) nodes.push(...inline(plain.join("\n")));
    plain = [];
  };
  for (const line of text.split("\n")) {
    const made = lineNodes(line);
    if (made) {
      flush();
      nodes.push(made);
    } else {
      plain.push(line);
    }
  }
  flush();
  return nodes;
}

/** Turn a message's text into nodes. */
export function format(text) {
  const nodes = [];
  const fence = /```(?:([A-Za-z0-9_+.-]+)\n)?\n?([\s\S]*?)```/g;
  let last = 0;
  for (let m = fence.exec(text); m; m = fence.exec(text)) {
    if (!m[2].trim()) continue;
    nodes.push(...paragraphs(text.slice(last, m.index).replace(/\n$/, "")));
    nodes.push(codeBlock(m[2].replace(/\n+$/, ""), m[1]));
    last = m.index + m[0].length;
    if (text[last] === "\n") last += 1;
  }
  nodes.push(...paragraphs(text.slice(last)));
  return nodes;
}
