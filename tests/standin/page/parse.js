/* SPDX-License-Identifier: MIT */
/* What is typed after a slash, as a command and its options. Pure: no DOM. */

export const SUB_COMMAND = 1;
export const GROUP = 2;
export const STRING = 3;
export const INTEGER = 4;
export const BOOLEAN = 5;
export const NUMBER = 10;
export const ATTACHMENT = 11;

/** Return a name or description as people of a locale see it. */
export function local(node, field, locale) {
  return node[field + "_localizations"]?.[locale] || node[field] || "";
}

/** Return an option as it is seen; `key` is what the application calls it. */
function seen(option, locale) {
  return {
    ...option, key: option.name, name: local(option, "name", locale),
    description: local(option, "description", locale),
    choices: option.choices?.map(
      (c) => ({ ...c, name: local(c, "name", locale) })),
  };
}

/**
 * List every callable command as {words, label, description, options}.
 *
 * `words` are the application's names; all else is what people of a locale
 * see.
 */
export function callable(commands, locale) {
  const found = [];
  const visit = (words, names, node) => {
    const inner = (node.options || []).filter((o) => o.type <= GROUP);
    if (inner.length === 0) {
      found.push({
        words,
        label: "/" + names.join(" "),
        description: local(node, "description", locale),
        options: (node.options || []).map((o) => seen(o, locale)),
      });
    }
    for (const child of inner) {
      visit([...words, child.name],
            [...names, local(child, "name", locale)], child);
    }
  };
  for (const one of commands) {
    if ((one.type || 1) === 1) visit([one.name], [local(one, "name", locale)],
                                     one);
  }
  return found;
}

/** Find the command that a text calls, and where its options begin. */
export function findCommand(text, entries) {
  let best = null;
  for (const entry of entries) {
    const head = entry.label;
    const next = text.charAt(head.length);
    if (text.startsWith(head) && (next === "" || /\s/.test(next)) &&
        (!best || head.length > best.entry.label.length)) {
      best = { entry, start: head.length };
    }
  }
  return best;
}

/** List the commands whose label begins with, or has, what is typed. */
export function suggestions(text, entries) {
  const typed = text.toLowerCase().replace(/\s+/g, " ");
  const begins = entries.filter((e) => e.label.startsWith(typed.trimEnd()));
  const word = typed.slice(1).trim();
  const has = entries.filter(
    (e) => word && !begins.includes(e) &&
      [...e.words, ...e.label.slice(1).split(" ")].some(
        (w) => w.startsWith(word)));
  return [...begins, ...has];
}

/** Return the spans of a text that are code: ``` fences and `ticks`. */
function codeSpans(text) {
  const spans = [];
  const pattern = /```[\s\S]*?```|`[^`\n]+`/g;
  for (let m = pattern.exec(text); m; m = pattern.exec(text)) {
    spans.push([m.index, m.index + m[0].length]);
  }
  return spans;
}

/**
 * Find where options are named in a text.
 *
 * `as file:` is common Python, so within text that no name began, a name
 * counts only with its value right after the colon (`page:2`). In text that
 * begins with a name (`code: …`), a space may come between.
 */
function findNames(text, options) {
  // Of letters, digits, - _ and ' alone: nothing that a pattern would take
  // for more.
  const names = options.map((o) => o.name);
  if (names.length === 0) return [];
  const spans = codeSpans(text);
  const pattern = new RegExp(`(^|\\s)(${names.join("|")}):`, "gu");
  const found = [];
  const named = new RegExp(`^\\s*(${names.join("|")}):`, "u").test(text);
  for (let m = pattern.exec(text); m; m = pattern.exec(text)) {
    pattern.lastIndex = m.index + m[0].length;
    const at = m.index + m[1].length;
    const value = m.index + m[0].length;
    const inCode = spans.some(([a, b]) => at >= a && at < b);
    const close = named ? /[^\n]|^$/ : /\S/;
    const first = text.slice(0, at).trim() === "";
    const last = text.slice(value) === "";
    if (!inCode && (first || last || close.test(text.charAt(value)))) {
      found.push({ at, value, name: m[2] });
    }
  }
  return found;
}

/** List the values that an option can have, where they are counted. */
export function choicesOf(option) {
  if (option.type !== BOOLEAN) return option.choices || [];
  return [{ name: "True", value: true }, { name: "False", value: false }];
}

/** Turn one option's text into its value, or say what is wrong with it. */
function convert(option, text) {
  const choices = choicesOf(option);
  if (choices.length) {
    const choice = choices.find(
      (c) => c.name.toLowerCase() === text.toLowerCase());
    if (choice) return { value: choice.value };
    return { error: `${option.name} must be ` +
             (choices.length > 5 ? "one of the choices"
               : choices.map((c) => c.name).join(" or ")) };
  }
  if (option.type === INTEGER || option.type === NUMBER) {
    const number = Number(text);
    const whole = option.type === INTEGER;
    const form = whole ? /^[+-]?\d+$/ : /^[+-]?(\d+\.?\d*|\.\d+)$/;
    if (!form.test(text) || (whole && !Number.isSafeInteger(number))) {
      return { error: `${option.name} must be a ${whole ? "whole " : ""}` +
               "number" };
    }
    if (option.min_value !== undefined && number < option.min_value) {
      return { error: `${option.name} must be at least ${option.min_value}` };
    }
    if (option.max_value !== undefined && number > option.max_value) {
      return { error: `${option.name} must be at most ${option.max_value}` };
    }
    return { value: number };
  }
  const length = [...text].length;
  if (option.max_length && length > option.max_length) {
    return { error: `${option.name} has more than ${option.max_length} ` +
             "characters" };
  }
  if (option.min_length && length < option.min_length) {
    return { error: `${option.name} has fewer than ${option.min_length} ` +
             "characters" };
  }
  return { value: text };
}

/**
 * Parse what follows a command's name.
 *
 * Returns {pieces, values, errors, bare}: each piece is {name, from, to,
 * text}. The first text without a name is `bare`'s, the first string option
 * or, without one, the first that is typed. `files` maps the names of
 * attachment options to chosen files.
 */
export function parseOptions(text, options, files = {}) {
  const pieces = [];
  const names = findNames(text, options);
  const bare = text.slice(0, names.length ? names[0].at : text.length);
  const owner = options.find(
    (o) => o.type === STRING && !names.some((n) => n.name === o.name)) ||
    options.find((o) => [INTEGER, NUMBER, BOOLEAN].includes(o.type));
  const errors = [];
  if (bare.trim()) {
    if (owner) {
      pieces.push({ name: owner.name, from: 0, to: bare.length,
                    text: bare.trim() });
    } else {
      errors.push(`"${bare.trim()}" belongs to no option`);
    }
  }
  names.forEach((found, index) => {
    const next = names[index + 1];
    const to = next ? next.at : text.length;
    pieces.push({ name: found.name, from: found.at, to,
                  text: text.slice(found.value, to).trim() });
  });
  const values = {};
  for (const piece of pieces) {
    const option = options.find((o) => o.name === piece.name);
    if (option.type === ATTACHMENT) continue;
    if (piece.name in values) errors.push(`${piece.name} is given twice`);
    if (piece.text === "") {
      errors.push(`${piece.name} has no value`);
      continue;
    }
    const made = convert(option, piece.text);
    if (made.error) errors.push(made.error);
    else values[piece.name] = made.value;
  }
  for (const [name, file] of Object.entries(files)) values[name] = file;
  for (const option of options) {
    if (option.required && !(option.name in values) &&
        !errors.some((e) => e.startsWith(option.name))) {
      errors.push(`${option.name} is required`);
    }
  }
  return { pieces, values, errors, bare: owner };
}
