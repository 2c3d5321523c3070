/* SPDX-License-Identifier: MIT */
/* The line in which people type: commands, options, files, plain text. */

import { answered, call, send, upload } from "./api.js";
import { el } from "./dom.js";
import { ATTACHMENT, BOOLEAN, STRING, callable, findCommand, parseOptions,
         suggestions } from "./parse.js";

const MOST_SUGGESTIONS = 25;
const AUTOCOMPLETE_DELAY = 200;

const box = document.getElementById("composer");
const palette = document.getElementById("palette");
const chips = document.getElementById("options");
const problem = document.getElementById("problem");
const picker = document.getElementById("picker");

let entries = [];
let items = [];
let active = -1;
let files = {};
let picking = null;
let asking = 0;
let timer = null;
let where = () => ({ user: "alice", place: "guild" });
let sent = () => {};

/** Start the composer. `place()` tells user and place; `told(id)` hears of
 * each interaction sent. */
export function startComposer(place, told) {
  where = place;
  sent = told;
  box.addEventListener("input", refresh);
  box.addEventListener("keydown", onKey);
  box.addEventListener("click", refresh);
  document.getElementById("entry").addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  picker.addEventListener("change", onPick);
}

/** Take the commands that can be called. */
export function setCommands(commands) {
  entries = callable(commands);
  refresh();
}

/** Return the command in the box, with its parsed options. */
function current() {
  const found = findCommand(box.value, entries);
  if (!found) return null;
  const text = box.value.slice(found.start);
  return { ...found, text,
           ...parseOptions(text, found.entry.options, files) };
}

/** Bring palette, option chips and height in line with the text. */
function refresh() {
  box.style.height = "auto";
  box.style.height = Math.min(box.scrollHeight, 280) + "px";
  say("");
  const typed = box.value;
  if (!typed.startsWith("/")) {
    files = {};
    showItems([]);
    chips.hidden = true;
    return;
  }
  const found = current();
  if (!found || (found.text === "" && !typed.endsWith(" "))) {
    chips.hidden = true;
    showItems(typed.includes("\n") ? [] : suggestions(typed, entries)
      .slice(0, MOST_SUGGESTIONS).map((entry) => ({
        kind: "command", title: entry.label, about: entry.description,
        run: () => complete(entry) })));
    return;
  }
  showChips(found);
  offerValues(found);
}

/** Put a chosen command into the box. */
function complete(entry) {
  box.value = entry.label + " ";
  box.focus();
  refresh();
}

/** Show the options of the command, filled or not. */
function showChips(found) {
  chips.hidden = found.entry.options.length === 0;
  chips.replaceChildren(...found.entry.options.map((option) => {
    const value = found.values[option.name];
    const isFile = option.type === ATTACHMENT;
    const text = value === undefined ? "" : isFile ? value.name
      : String(value);
    return el("button", {
      type: "button", class: value === undefined ? "chip" : "chip filled",
      title: option.description,
      data: { option: option.name, value: text || null },
      on: { click: () => onChip(option) },
    }, el("b", { text: option.name }), option.required ? " *" : "",
       text ? " " + (text.length > 24 ? text.slice(0, 24) + "…" : text)
         : isFile ? " choose…" : "");
  }));
}

/** Name an option in the text, or choose its file. */
function onChip(option) {
  if (option.type === ATTACHMENT) {
    picking = option.name;
    picker.value = "";
    picker.click();
    return;
  }
  const end = box.value.trimEnd();
  if (!new RegExp(`\\s${option.name}:`).test(box.value)) {
    const bare = end.includes("\n") ? "\n" : " ";
    box.value = `${end}${bare}${option.name}:` +
      (option.type === BOOLEAN ? "true" : "");
  }
  box.focus();
  box.setSelectionRange(box.value.length, box.value.length);
  refresh();
}

/** Keep a chosen file until the command is sent. */
function onPick() {
  if (picking && picker.files.length) files[picking] = picker.files[0];
  picking = null;
  box.focus();
  refresh();
}

/** Offer choices and autocompletion of the option at the cursor. */
function offerValues(found) {
  const cursor = box.selectionStart - found.start;
  const piece = found.pieces.filter((p) => cursor >= p.from && cursor <= p.to)
    .pop() || { text: "", from: found.text.length, to: found.text.length };
  const option = piece.name
    ? found.entry.options.find((o) => o.name === piece.name)
    : found.entry.options.find((o) => o.autocomplete || o.choices?.length);
  showItems([]);
  clearTimeout(timer);
  if (!option || (!piece.name && found.pieces.length)) return;
  const put = (choice) => putValue(found, piece, option, choice);
  if (option.choices?.length) {
    showItems(option.choices.filter((c) => c.name.startsWith(piece.text))
      .map((c) => ({ kind: "choice", title: c.name, about: option.name,
                     run: () => put(c) })));
  } else if (option.autocomplete) {
    timer = setTimeout(() => ask(found, piece, option, put),
                       AUTOCOMPLETE_DELAY);
  }
}

/** Ask the application for what could complete an option. */
async function ask(found, piece, option, put) {
  const mine = ++asking;
  const [command, ...sub] = found.entry.words;
  const values = { ...found.values, [option.name]: piece.text };
  for (const name of Object.keys(files)) delete values[name];
  try {
    const id = await send({ command, sub, options: values,
                            focused: option.name, ...where() });
    const done = await answered(id, 4);
    if (mine !== asking || !findCommand(box.value, entries)) return;
    showItems((done.choices || []).map((c) => ({
      kind: "choice", title: c.name, about: option.name,
      run: () => put(c) })));
  } catch {
    /* without completion one types on */
  }
}

/** Put a chosen value in the place of what was typed. */
function putValue(found, piece, option, choice) {
  const text = found.text;
  const named = piece.name
    ? text.slice(piece.from).startsWith(option.name + ":")
    : option !== found.entry.options.find((o) => o.type === STRING);
  const value = (named ? option.name + ":" : "") + String(choice.value);
  const before = text.slice(0, piece.from);
  box.value = found.entry.label + before + (/\s$/.test(before) ? "" : " ") +
    value + " " + text.slice(piece.to).trimStart();
  box.focus();
  refresh();
  showItems([]);
  clearTimeout(timer);
  asking += 1;
}

/** Fill the palette; without items it is hidden. */
function showItems(list) {
  items = list;
  active = list.length ? 0 : -1;
  palette.hidden = list.length === 0;
  box.setAttribute("aria-expanded", String(list.length > 0));
  palette.replaceChildren(...list.map((item, index) => el("div", {
    class: "item", role: "option", id: `item-${index}`,
    data: { [item.kind]: item.title },
    on: { mousedown: (event) => event.preventDefault(),
          click: () => item.run() },
  }, el("b", { text: item.title }), el("span", { text: item.about }))));
  mark(active);
}

/** Mark one item of the palette as the active one. */
function mark(index) {
  active = index;
  [...palette.children].forEach((node, at) => {
    node.setAttribute("aria-selected", String(at === index));
    if (at === index) node.scrollIntoView({ block: "nearest" });
  });
  if (index >= 0) box.setAttribute("aria-activedescendant", `item-${index}`);
  else box.removeAttribute("aria-activedescendant");
}

/** Whether the cursor is in a code block that is still open. */
function inFence() {
  return box.value.slice(0, box.selectionStart).split("```").length % 2 === 0
    && !box.value.slice(box.selectionStart).includes("```");
}

/** Answer the keys that have a meaning. */
function onKey(event) {
  const open = items.length > 0;
  if (open && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
    event.preventDefault();
    const step = event.key === "ArrowDown" ? 1 : items.length - 1;
    mark((active + step) % items.length);
  } else if (open && event.key === "Escape") {
    event.preventDefault();
    showItems([]);
  } else if (open && event.key === "Tab" && !event.shiftKey) {
    event.preventDefault();
    items[active].run();
  } else if (event.key === "Enter" && !event.shiftKey &&
             !event.isComposing && !inFence()) {
    event.preventDefault();
    const found = current();
    const ready = found && items[active]?.title === found.entry.label;
    if (open && items[active].kind === "command" && !ready) {
      items[active].run();
    } else {
      submit();
    }
  }
}

/** Say what is wrong, or take it back. */
function say(text) {
  problem.textContent = text;
  problem.hidden = !text;
}

/** Say why a command cannot be sent; returns whether it can. */
function check(found) {
  if (!found) say("There is no such command.");
  else if (found.errors.length) say(found.errors.join(". ") + ".");
  return Boolean(found && !found.errors.length);
}

/** Send what is in the box. It is empty at once, so that nothing is sent
 * twice; what could not be sent comes back. */
async function submit() {
  const text = box.value;
  if (!text.trim()) return;
  const found = text.startsWith("/") ? current() : null;
  if (text.startsWith("/") && !check(found)) return;
  const chosen = files;
  box.value = "";
  files = {};
  refresh();
  try {
    if (found) await sendCommand(found);
    else await call("POST", "message", { content: text, ...where() });
  } catch (error) {
    if (box.value === "") {
      box.value = text;
      files = chosen;
      refresh();
    }
    say(error.message);
  }
}

/** Send a command with its options and files. */
async function sendCommand(found) {
  const [command, ...sub] = found.entry.words;
  const options = {};
  for (const option of found.entry.options) {
    const value = found.values[option.name];
    if (value === undefined) continue;
    options[option.name] = option.type === ATTACHMENT
      ? { attachment: (await upload(value)).id } : value;
  }
  sent(await send({ command, sub, options, ...where() }), found.entry.label);
}
