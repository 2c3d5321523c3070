/* SPDX-License-Identifier: MIT */
// Lets each operation be tried: what stands in a form is shown as a command
// for a shell, and is sent.  What is answered is a stranger's: it becomes text,
// or the picture or file that it is, and never markup.
(() => {
  "use strict";

  const SHOWN_MAX = 200000;
  const INDENT_MAX = 40;
  const FILES_MAX = 50;
  const ARGUMENT_MAX = 100000; // of a command line; Linux has 128 KiB
  const HEADERS = ["content-type", "content-disposition", "location", "allow",
    "retry-after", "www-authenticate", "inline-left-out",
    "inline-reference"];
  const PICTURES = [
    ["image/png", /^\x89PNG\r\n/], ["image/jpeg", /^\xff\xd8\xff/],
    ["image/gif", /^GIF8/], ["image/webp", /^RIFF[^]{4}WEBP/]];

  const access = document.querySelector(".access");
  const token = access.querySelector("input");

  const make = (name, given, ...children) => {
    const node = Object.assign(document.createElement(name), given);
    node.append(...children);
    return node;
  };
  const size = (n) => n < 10000 ? `${n} bytes` :
    n < 1e6 ? `${(n / 1e3).toFixed()} kB` : `${(n / 1e6).toFixed(1)} MB`;
  const base = (path) => path.split("/").pop() || "file";

  // ---- the request, and the command that sends the same ----

  const fields = (form, where) =>
    [...form.querySelectorAll(`[data-in=${where}]`)];

  // What the form says: path, headers, body as text, files.
  const readForm = (form) => {
    const { method, path, type } = form.dataset;
    const headers = fields(form, "header")
      .filter((field) => field.value)
      .map((field) => [field.dataset.name, field.value]);
    const [body] = fields(form, "body");
    let target = path;
    for (const { dataset, value } of fields(form, "path"))
      if (value)
        target = target.replace(`{${dataset.name}}`,
          () => encodeURIComponent(value));
    if (body)
      headers.push(["Content-Type", type]);
    if (token.value)
      headers.push(["Authorization", `Bearer ${token.value}`]);
    return { method, path: target, headers, body: body?.value,
      files: fields(form, "form") };
  };

  // For sh: one word, whatever it holds.
  const quote = (word) => /^[\w%+:,.\/=@-]+$/.test(word) ? word :
    `'${word.replaceAll("'", "'\\''")}'`;

  // For -F: a file's name, in which curl finds nothing to interpret.
  const fileName = (field) => {
    const name = field.files[0]?.name ?? "data.csv";
    return `"${name.replace(/["\\]/g, "\\$&")}"`;
  };

  const writeCommand = (form) => {
    const { method, path, headers, body, files } = readForm(form);
    const parts = [`curl -sS${form.hasAttribute("data-stream") ? "N" : ""} ` +
      quote(location.origin + path)];
    if (method === "DELETE")
      parts.push("-X DELETE");
    for (const [name, value] of headers)
      parts.push(`-H ${quote(`${name}: ${value}`)}`);
    if (body !== undefined)
      parts.push(body.length > ARGUMENT_MAX ?
        "--data-binary @body.json" : `--data-raw ${quote(body)}`);
    for (const field of files)
      parts.push("-F " +
        quote(`${field.dataset.name}=@${fileName(field)}`));
    return parts.join(" \\\n  ");
  };

  const update = (form) => {
    const note = form.querySelector(".note");
    const [body] = fields(form, "body");
    form.querySelector(".command").textContent = writeCommand(form);
    if (!body)
      return;
    try {
      JSON.parse(body.value);
      note.textContent = "";
    } catch (error) {
      note.textContent = `This is not JSON: ${error.message}`;
    }
  };

  // ---- what is answered ----

  const urls = new WeakMap();

  // An address for bytes; it ends with the form's next answer.
  const address = (form, bytes, type) => {
    const url = URL.createObjectURL(new Blob([bytes], { type }));
    urls.get(form).push(url);
    return url;
  };

  const forget = (form) => {
    for (const url of urls.get(form) ?? [])
      URL.revokeObjectURL(url);
    urls.set(form, []);
  };

  // JSON with its own words, numbers and order, in lines.
  const pretty = (text) => {
    let depth = 0;
    let out = "";
    let before = "";
    const line = () => "\n" + "  ".repeat(Math.min(depth, INDENT_MAX));

    JSON.parse(text);
    for (const [word] of text.matchAll(
      /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g)) {
      const closes = word === "}" || word === "]";
      const empty = closes && (before === "{" || before === "[");
      depth -= closes;
      if (closes ? !empty : before === "{" || before === "[" ||
        before === ",")
        out += line();
      out += word === ":" ? ": " : word;
      depth += word === "{" || word === "[";
      before = word;
    }
    return out.trimStart();
  };

  // A file: shown if it is a picture, to be saved in any case.  Its type
  // is none that a browser would open as a page of ours.
  const showFile = (form, name, bytes) => {
    const start = String.fromCharCode(...bytes.subarray(0, 16));
    const [type] = PICTURES.find(([, is]) => is.test(start)) ?? [];
    const figure = make("figure", {}, make("figcaption", {},
      make("code", { textContent: name }), ` ${size(bytes.length)} `,
      make("a", { textContent: "Save", download: base(name),
        href: address(form, bytes, "application/octet-stream"),
        ariaLabel: `Save ${name}` })));
    if (type)
      figure.append(make("img",
        { src: address(form, bytes, type), alt: name }));
    return figure;
  };

  // A file that the service keeps: it is fetched when that is asked for.
  const offerFile = (form, name, id) => {
    const figure = make("figure", {}, make("code", { textContent: name }));
    const button = make("button",
      { type: "button", textContent: "Fetch", ariaLabel: `Fetch ${name}` });
    const fetchIt = async () => {
      const answer = await fetch(`/v1/files/${encodeURIComponent(id)}`, {
        headers: token.value ?
          { Authorization: `Bearer ${token.value}` } : {},
        credentials: "omit", cache: "no-store" });
      if (!answer.ok)
        throw new Error(`the answer is ${answer.status}`);
      figure.replaceWith(showFile(form, name,
        new Uint8Array(await answer.arrayBuffer())));
    };
    button.onclick = () => fetchIt().catch((error) => {
      figure.append(` ${error.message}`);
    });
    figure.append(" ", button);
    return figure;
  };

  // An answer may hold anything: what goes into a path is an id and no more.
  const ID = /^[\w-]+$/;

  // The files that an answer speaks of, in either contract's way.
  const filesOf = function* (form, value) {
    for (const file of value.files.slice(0, FILES_MAX)) {
      const name = file?.path ?? file?.filename;
      if (typeof name !== "string")
        continue;
      if (typeof file.content === "string")
        yield showFile(form, name, Uint8Array.from(
          atob(file.content), (c) => c.charCodeAt(0)));
      else if (typeof file.file_id === "string" && ID.test(file.file_id))
        yield offerFile(form, name, file.file_id);
    }
  };

  // An id that was made is filled in wherever it is asked for.
  const passOn = (value) => {
    for (const field of document.querySelectorAll("[data-in=path]")) {
      const id = value[field.dataset.name];
      if (typeof id !== "string" || !ID.test(id))
        continue;
      field.value = id;
      update(field.form);
    }
  };

  // What can be done with an answer beyond reading it.
  const showParts = (form, answer, text) => {
    let value = null;
    try {
      value = JSON.parse(text);
      if (Array.isArray(value?.files))
        answer.append(...filesOf(form, value));
    } catch {
      return; // no JSON, or no base64: the text is all there is
    }
    if (value !== null && typeof value === "object")
      passOn(value);
  };

  const showText = (answer, text) => {
    answer.append(make("pre", { className: "body",
      textContent: text.slice(0, SHOWN_MAX) }));
    if (text.length > SHOWN_MAX)
      answer.append(make("p", { textContent:
        `Shown are the first ${SHOWN_MAX} of ${text.length} ` +
        "characters." }));
  };

  const decode = (bytes) => {
    try {
      const text = new TextDecoder("utf-8", { fatal: true,
        ignoreBOM: true }).decode(bytes);
      return text.includes("\0") ? null : text;
    } catch {
      return null;
    }
  };

  const nameFrom = (response, path) => {
    const [, name] = /filename="([^"]*)"/.exec(
      response.headers.get("content-disposition") ?? "") ?? [];
    return name || base(path);
  };

  const showBody = (form, answer, response, bytes) => {
    const text = decode(bytes);
    const type = response.headers.get("content-type") ?? "";
    if (text === null || text.length > SHOWN_MAX ||
      type.startsWith("application/octet-stream"))
      answer.append(showFile(form,
        nameFrom(response, form.dataset.path), bytes));
    if (text === null || text === "")
      return;
    try {
      showText(answer, text.length > SHOWN_MAX ? text : pretty(text));
    } catch {
      showText(answer, text);
    }
    showParts(form, answer, text);
  };

  // Events as they come; the data of the last one is the result.
  const showStream = async (form, answer, response) => {
    const shown = make("pre", { className: "body" });
    const decoder = new TextDecoder();
    let text = "";
    let bytes = 0;
    answer.append(shown);
    const reader = response.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done)
        break;
      const piece = decoder.decode(value, { stream: true });
      bytes += value.length;
      if (text.length <= SHOWN_MAX)
        shown.append(piece.slice(0, SHOWN_MAX - text.length));
      text += piece;
    }
    showParts(form, answer, text.slice(text.lastIndexOf("\ndata: ") + 7));
    return bytes;
  };

  // ---- sending ----

  const running = new WeakMap();

  // What the document says of a status.
  const meaning = (form, status) => {
    const section = form.closest("section");
    return section.querySelector(`[data-status="${status}"]`) ??
      [...section.querySelectorAll(".errors th")].find((head) =>
        head.textContent === `${status}`)?.nextSibling.firstChild;
  };

  const headOf = (form, response) => {
    const meant = meaning(form, response.status);
    const rows = HEADERS.filter((name) => response.headers.has(name))
      .map((name) => `${name}: ${response.headers.get(name)}\n`);
    return [
      ...meant ? [make("p", { textContent: meant.textContent })] : [],
      make("pre", { className: "headers",
        textContent: rows.join("").trimEnd() })];
  };

  const bodyOf = (request) => {
    if (request.files.length === 0)
      return request.body;
    const data = new FormData();
    for (const field of request.files)
      for (const file of field.files)
        data.append(field.dataset.name, file);
    return data;
  };

  const exchange = async (form, answer, status, signal) => {
    const request = readForm(form);
    const began = performance.now();
    const ms = () => `${Math.round(performance.now() - began)} ms`;
    const response = await fetch(request.path, {
      method: request.method, headers: request.headers,
      body: bodyOf(request), signal, credentials: "omit",
      cache: "no-store" });
    const is = `${response.status} ${response.statusText}`.trim();
    status.textContent = is;
    status.className = response.ok ? "status good" : "status bad";
    answer.append(...headOf(form, response));
    if (response.headers.get("content-type")?.startsWith(
      "text/event-stream")) {
      const count = await showStream(form, answer, response);
      status.textContent = `${is} · ${ms()} · ${size(count)}`;
      return;
    }
    const bytes = new Uint8Array(await response.arrayBuffer());
    status.textContent = `${is} · ${ms()} · ${size(bytes.length)}`;
    showBody(form, answer, response, bytes);
  };

  const send = async (form) => {
    const answer = form.querySelector(".answer");
    const stop = form.querySelector(".stop");
    const status = make("p", { className: "status", role: "status" });
    const control = new AbortController();

    running.get(form)?.abort();
    running.set(form, control);
    forget(form);
    answer.replaceChildren(status);
    answer.hidden = stop.hidden = false;
    status.textContent = "Waiting for the answer …";
    answer.scrollIntoView({ block: "nearest" });
    try {
      await exchange(form, answer, status, control.signal);
    } catch (error) {
      if (running.get(form) !== control)
        return;
      status.className = "status bad";
      status.textContent = control.signal.aborted ? "Stopped." :
        `No answer, or not all of it: ${error.message}`;
    }
    if (running.get(form) !== control)
      return;
    running.delete(form);
    if (form.contains(document.activeElement))
      answer.scrollIntoView({ block: "nearest" });
    if (document.activeElement === stop)
      form.querySelector("button").focus();
    stop.hidden = true;
  };

  // ---- the page ----

  const copy = async (form, button) => {
    const command = form.querySelector(".command");
    try {
      await navigator.clipboard.writeText(command.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(command);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  };

  const forms = [...document.querySelectorAll("form")];
  const rest = document.querySelector("template").content;
  for (const form of forms) {
    form.append(rest.cloneNode(true));
    const copier = form.querySelector(".copy");
    form.oninput = form.onchange = () => update(form);
    form.onreset = () => setTimeout(update, 0, form);
    form.onsubmit = (event) => {
      event.preventDefault();
      send(form);
    };
    form.onkeydown = (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey))
        form.requestSubmit();
    };
    form.querySelector(".stop").onclick =
      () => running.get(form)?.abort();
    copier.onclick = () => copy(form, copier);
    form.parentNode.hidden = false;
    update(form);
  }
  token.oninput = () => forms.forEach(update);
  access.hidden = false;
})();
