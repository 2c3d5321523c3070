/* SPDX-License-Identifier: MIT */
/* Modals: the forms that a command or a button opens. */

import { answered, send, upload } from "./api.js";
import { el } from "./dom.js";
import { format } from "./format.js";

const dialog = document.getElementById("modal");
const form = document.getElementById("modal-form");
const fields = document.getElementById("modal-fields");
const problem = document.getElementById("modal-problem");
const submit = document.getElementById("modal-submit");
let current = null;
let readers = [];

document.getElementById("modal-cancel").addEventListener(
  "click", () => dialog.close());
dialog.addEventListener("close", () => { current = null; });
form.addEventListener("submit", (event) => {
  event.preventDefault();
  onSubmit();
});

/**
 * Open the modal of an interaction.
 *
 * `where` is {user, place}; `sent` is called with the new interaction's id.
 */
export function openModal(interaction, modal, where, sent) {
  if (dialog.open) return;
  current = { interaction, where, sent };
  readers = [];
  document.getElementById("modal-title").textContent = modal.title;
  fields.replaceChildren(...modal.components.map(top));
  dialog.dataset.customId = modal.custom_id;
  say("");
  submit.disabled = false;
  dialog.showModal();
  fields.querySelector("input, textarea, select")?.focus();
}

/** Show, or take away, what is wrong. */
function say(text) {
  problem.textContent = text;
  problem.hidden = !text;
}

/** Draw one top-level component. */
function top(component) {
  if (component.type === 10) {
    return el("div", { class: "field-text" }, ...format(component.content));
  }
  if (component.type === 1) {
    const inner = component.components[0];
    return field(inner, inner.label, null);
  }
  return field(component.component, component.label, component.description);
}

/** Draw a labelled field and remember how to read it. */
function field(one, label, description) {
  const id = `field-${readers.length}`;
  const made = control(one, id);
  const needed = one.required !== false && one.type !== 23;
  const parts = [el("label", { for: id }, label, needed
    ? el("span", { class: "needed", title: "required", text: " *" }) : null)];
  if (description) parts.push(el("p", { class: "about", text: description }));
  readers.push({ name: one.custom_id, label, needed, ...made });
  return el("div", { class: "form-field" }, ...parts, made.node,
            made.note || null);
}

/** Make the control of a field: {node, note?, read(), wrong?()}. */
function control(one, id) {
  const data = { field: one.custom_id };
  if (one.type === 4) return textInput(one, id, data);
  if (one.type === 19) return fileInput(one, id, data);
  if (one.type === 23) {
    const box = el("input", { id, type: "checkbox", data,
                              checked: one.default });
    return { node: box, read: () => box.checked };
  }
  const many = one.type === 3 && one.max_values > 1;
  if (one.type === 21 || one.type === 22 || many) {
    return choices(one, id, data);
  }
  const menu = el("select", { id, data });
  menu.append(el("option", { value: "", text: one.placeholder ||
                             "Make a selection" }));
  for (const option of one.options || []) {
    menu.append(el("option", { value: option.value, text: option.label,
                               selected: option.default }));
  }
  return { node: menu, empty: () => menu.value === "",
           read: () => [...menu.selectedOptions].map((o) => o.value)
             .filter((v) => v !== "") };
}

/** Make a text input with a counter. */
function textInput(one, id, data) {
  const long = one.style === 2;
  const most = one.max_length || 4000;
  const input = el(long ? "textarea" : "input", {
    id, data, placeholder: one.placeholder, spellcheck: "false",
    autocomplete: "off", rows: long ? "10" : null,
    type: long ? null : "text" });
  input.value = one.value || "";
  const note = el("div", { class: "counter" });
  const count = () => {
    note.textContent = `${[...input.value].length}/${most}`;
  };
  input.addEventListener("input", count);
  count();
  return {
    node: input, note, read: () => input.value,
    empty: () => input.value === "",
    wrong: () => {
      const length = [...input.value].length;
      if (length > most) return `at most ${most} characters`;
      if (length && length < (one.min_length || 0)) {
        return `at least ${one.min_length} characters`;
      }
      return null;
    },
  };
}

/** Make a file input. */
function fileInput(one, id, data) {
  const input = el("input", { id, data, type: "file",
                              multiple: (one.max_values || 1) > 1 });
  if (one.file_types) {
    input.accept = one.file_types.map(
      (t) => (t.startsWith(".") ? t : t + "/*")).join(",");
  }
  return {
    node: input, empty: () => input.files.length === 0,
    wrong: () => ([...input.files].every((file) => fits(file, one))
      ? outside(input.files.length, one, 1, "file")
      : `only ${one.file_types.join(", ")}`),
    read: async () => {
      const stored = [];
      for (const file of input.files) {
        stored.push({ attachment: (await upload(file)).id });
      }
      return stored;
    },
  };
}

/** Whether a file is of the kinds that a field takes. */
function fits(file, one) {
  return !one.file_types || one.file_types.some((kind) => (
    kind.startsWith(".") ? file.name.toLowerCase().endsWith(kind)
      : file.type.startsWith(kind + "/")));
}

/** Say what is wrong with how many there are, if anything. */
function outside(count, one, most, what) {
  const low = one.min_values ?? 1;
  const high = one.max_values ?? most;
  if (count > high) return `at most ${high} ${what}${high === 1 ? "" : "s"}`;
  return count && count < low ? `at least ${low} ${what}s` : null;
}

/** Make a group of radio buttons or of check boxes. */
function choices(one, id, data) {
  const radio = one.type === 21;
  const boxes = (one.options || []).map((option) => el("input", {
    type: radio ? "radio" : "checkbox", name: id, value: option.value,
    checked: option.default }));
  const node = el("div", { id, class: "choices", role: "group", data },
                  ...(one.options || []).map((option, index) =>
                    el("label", {}, boxes[index], " " + option.label)));
  const values = () => boxes.filter((b) => b.checked).map((b) => b.value);
  return { node, empty: () => values().length === 0,
           wrong: () => (radio ? null
             : outside(values().length, one, boxes.length, "choice")),
           read: () => (radio ? values()[0] ?? null : values()) };
}

/** Send the form; it stays open, text and all, when that fails. */
async function onSubmit() {
  for (const reader of readers) {
    if (reader.needed && reader.empty?.()) {
      say(`${reader.label} is required.`);
      return;
    }
    const wrong = reader.wrong?.();
    if (wrong) {
      say(`${reader.label}: ${wrong}.`);
      return;
    }
  }
  say("");
  submit.disabled = true;
  try {
    const values = {};
    for (const reader of readers) values[reader.name] = await reader.read();
    const id = await send({ modal: current.interaction, values,
                            ...current.where });
    const sent = current.sent;
    const done = await answered(id);
    if (done.state !== "answered") throw new Error("failed");
    sent(id);
    dialog.close();
  } catch (error) {
    say("Something went wrong. Try again. " +
        (error.message === "failed" ? "" : error.message));
  } finally {
    submit.disabled = false;
  }
}
