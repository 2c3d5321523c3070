/* SPDX-License-Identifier: MIT */
/* The line in which people type: commands, options, files, plain text. */

import { answered, call, send, upload } from "./api.js";
import { el } from "./dom.js";
import { isOpen, marked, showItems, showState, step } from "./palette.js";
import { ATTACHMENT, BOOLEAN, callable, choicesOf, findCommand, local,
         parseOptions, suggestions } from "./parse.js";
import { recall, remember } from "./recall.js";

const AUTOCOMPLETE_DELAY = 200;
const MOST_FILES = 10;

const box = document.getElementById("composer");
const chips = document.getElementById("options");
const problem = document.getElementById("problem");
const picker = document.getElementById("picker");
const attach = document.getElementById("attach");

let entries = [];
let files = {};
let attached = [];
let picking = null;
let asking = 0;
let timer = null;
let where = () => ({});
let sent = () => {};

/** Start the composer. `place()` tells user, place and locale; `told(id)`
 * hears of each interaction sent. */
export function startComposer(place, told) {
  where = place;
  sent = told;
  box.addEventListener("input", () => refresh());
  box.addEventListener("keydown", onKey);
  box.addEventListener("click", () => refresh());
  document.getElementById("entry").addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  picker.addEventListener("change", onPick);
  attach.addEventListener("click", () => pick(null));
}

/** Take the commands that can be called. */
export function setCommands(commands) {
  entries = callable(commands, where().locale);
  refresh();
}

/** Put the beginning of a line into the box. */
export function begin(text) {
  box.value = text;
  box.focus();
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

/** Bring palette, option chips and height in line with the text. With `quiet`
 * nothing is offered. */
function refresh(quiet = false) {
  stopAsking();
  box.style.height = "auto";
  box.style.height = Math.min(box.scrollHeight, 280) + "px";
  say("");
  showItems([]);
  const typed = box.value;
  attach.hidden = typed.startsWith("/");
  if (!typed.startsWith("/")) {
    files = {};
    showAttached();
    return;
  }
  const found = current();
  if (!found || (found.text === "" && !typed.endsWith(" "))) {
    chips.hidden = true;
    showItems(quiet || typed.includes("\n") ? []
      : suggestions(typed, entries).map((entry) => ({
        kind: "command", title: entry.label, about: entry.description,
        typed: entry === found?.entry,
        run: () => begin(entry.label + " ") })));
    return;
  }
  showChips(found);
  if (!quiet) offerValues(found);
}

/** Show the files that go with a message, each to be taken away again. */
function showAttached() {
  chips.hidden = attached.length === 0;
  chips.replaceChildren(...attached.map((file) => el("button", {
    type: "button", class: "chip filled", data: { file: file.name },
    "aria-label": `Remove ${file.name}`,
    on: { click: () => {
      attached = attached.filter((one) => one !== file);
      box.focus();
      refresh();
    } } }, file.name, " ✕")));
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
    pick(option.name);
    return;
  }
  const end = box.value.trimEnd();
  if (!new RegExp(`\\s${option.name}:`).test(box.value)) {
    const bare = end.includes("\n") ? "\n" : " ";
    box.value = `${end}${bare}${option.name}:` +
      (option.type === BOOLEAN ? "True" : "");
  }
  box.focus();
  box.setSelectionRange(box.value.length, box.value.length);
  refresh();
}

/** Open the file chooser, for an option or (null) for a message. */
function pick(option) {
  picking = option;
  picker.multiple = option === null;
  picker.value = "";
  picker.click();
}

/** Keep chosen files until they are sent. */
function onPick() {
  if (picking === null) {
    attached = [...attached, ...picker.files].slice(0, MOST_FILES);
  } else if (picker.files.length) {
    files[picking] = picker.files[0];
  }
  box.focus();
  refresh();
}

/** Offer choices or autocompletion of the option at the cursor. */
function offerValues(found) {
  const cursor = box.selectionStart - found.start;
  const piece = found.pieces.filter((p) => cursor >= p.from && cursor <= p.to)
    .pop() || { text: "", from: found.text.length, to: found.text.length };
  const option = piece.name
    ? found.entry.options.find((o) => o.name === piece.name) : found.bare;
  if (!option || (!piece.name && found.pieces.length)) return;
  const typed = piece.text.toLowerCase();
  const choices = choicesOf(option);
  if (choices.length) {
    offer(found, piece, option, choices.filter(
      (c) => c.name.toLowerCase().startsWith(typed)), (c) => c.name);
  } else if (option.autocomplete) {
    showState("Loading options…");
    timer = setTimeout(() => ask(found, piece, option), AUTOCOMPLETE_DELAY);
  }
}

/** Show values to choose from; `written` is how one stands in the line. While
 * nothing is typed none is active, so that Enter sends the command as it is.
 */
function offer(found, piece, option, choices, written) {
  const text = piece.text.toLowerCase();
  const same = choices.findIndex((c) => text === c.name.toLowerCase() ||
    text === String(c.value).toLowerCase());
  showItems(choices.map((c, index) => ({
    kind: "choice", title: c.name, about: "", typed: index === same,
    run: () => putValue(found, piece, option, written(c)) })),
    text === "" ? -1 : Math.max(same, 0));
}

/** Nothing that was asked for is wanted any more. */
function stopAsking() {
  clearTimeout(timer);
  asking += 1;
}

/** Ask the application for what could complete an option. What is wrong with
 * the other options is left out. */
async function ask(found, piece, option) {
  const mine = asking;
  const [command, ...sub] = found.entry.words;
  const options = { [option.key]: piece.text };
  for (const one of found.entry.options) {
    const value = found.values[one.name];
    if (one !== option && value !== undefined && one.type !== ATTACHMENT) {
      options[one.key] = value;
    }
  }
  let choices = null;
  try {
    choices = (await answered(await send({
      command, sub, options, focused: option.key, ...where() })))
      .choices?.map((c) => ({ ...c, name: local(c, "name", where().locale) }));
  } catch {
    /* as when there is no answer */
  }
  if (mine !== asking) return;
  if (!choices) showState("Loading options failed");
  else if (!choices.length) showState("No options match your search");
  else offer(found, piece, option, choices, (c) => String(c.value));
}

/** Put a chosen value in the place of what was typed. */
function putValue(found, piece, option, written) {
  const text = found.text;
  const named = text.slice(piece.from).startsWith(option.name + ":");
  const value = (named ? option.name + ":" : "") + written;
  const before = text.slice(0, piece.from);
  box.value = found.entry.label + before + (/\s$/.test(before) ? "" : " ") +
    value + " " + text.slice(piece.to).trimStart();
  box.focus();
  refresh(true);
}

/** Whether the cursor is in a code block that is still open. */
function inFence() {
  return box.value.slice(0, box.selectionStart).split("```").length % 2 === 0
    && !box.value.slice(box.selectionStart).includes("```");
}

/** Answer the keys that have a meaning. */
function onKey(event) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (by && isOpen()) {
    event.preventDefault();
    step(by);
  } else if (by && !event.shiftKey) {
    const line = recall(box, by);
    if (line === null) return;
    event.preventDefault();
    box.value = line;
    box.setSelectionRange(line.length, line.length);
    refresh(true);
  } else if (event.key === "Escape") {
    stopAsking();
    showItems([]);
  } else if (event.key === "Tab" && !event.shiftKey && isOpen()) {
    event.preventDefault();
    if (!marked()) step(1);
    marked().run();
  } else if (event.key === "Enter" && !event.shiftKey &&
             !event.isComposing && !inFence()) {
    event.preventDefault();
    const item = marked();
    if (item && !item.typed) item.run();
    else submit();
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
  const taken = { files, attached };
  if (!text.trim() && !attached.length) return;
  const found = text.startsWith("/") ? current() : null;
  if (text.startsWith("/") && !check(found)) return;
  if (text.trim()) remember(text);
  box.value = "";
  files = {};
  attached = found ? attached : [];
  refresh();
  try {
    if (found) await sendCommand(found);
    else await sendMessage(text, taken.attached);
  } catch (error) {
    if (box.value === "") {
      box.value = text;
      ({ files, attached } = taken);
      refresh(true);
    }
    say(error.message);
  }
}

/** Say something, with files. */
async function sendMessage(content, chosen) {
  const stored = [];
  for (const file of chosen) stored.push((await upload(file)).id);
  await call("POST", "message", { content, attachments: stored, ...where() });
}

/** Send a command with its options and files. */
async function sendCommand(found) {
  const [command, ...sub] = found.entry.words;
  const options = {};
  for (const option of found.entry.options) {
    const value = found.values[option.name];
    if (value === undefined) continue;
    options[option.key] = option.type === ATTACHMENT
      ? { attachment: (await upload(value)).id } : value;
  }
  sent(await send({ command, sub, options, ...where() }), found.entry.label);
}
