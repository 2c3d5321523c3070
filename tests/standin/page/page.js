/* SPDX-License-Identifier: MIT */
/* The chat page: people, places, messages as they come. */

import { answered, call, send } from "./api.js";
import { begin, setCommands, startComposer } from "./composer.js";
import { el } from "./dom.js";
import { openMenu, watchMessages } from "./menu.js";
import { draw } from "./messages.js";
import { openModal } from "./modal.js";
import { local } from "./parse.js";

const ABOUT = {
  guild: ["# general", "Everyone sees public answers here."],
  dm: ["@ Inline", "A direct message: you and the app."],
  group: ["+ group", "A group chat, with the app installed for you alone."],
};

const list = document.getElementById("messages");
const userMenu = document.getElementById("user");
const languageMenu = document.getElementById("language");
const link = document.getElementById("link");
const gone = document.getElementById("gone");

// What a client sends of itself; the names are for who reads that language.
const LANGUAGES = { "en-US": "English", de: "Deutsch", fr: "Français",
                    "es-ES": "Español", "pt-BR": "Português do Brasil",
                    ja: "日本語", "zh-CN": "中文", ru: "Русский" };
const RETRY_MS = 1000;
const GONE = "The service has gone. Start it again with “make run”: this " +
  "page comes back by itself, with all that was said.";

const messages = new Map();
const mine = new Map();
let user = "alice";
let place = "guild";
let channels = {};
let commands = [];
let feed = null;
let retry = null;
let atEnd = true;

/** Tell who and where the person is, and in which language. */
function where() {
  return { user, place, locale: languageMenu.value };
}

/** Compare two messages by age. */
function byAge(a, b) {
  return BigInt(a.id) < BigInt(b.id) ? -1 : 1;
}

/** Draw all messages of the present channel. */
function drawAll() {
  const shown = [...messages.values()]
    .filter((m) => m.channel_id === channels[place]).sort(byAge);
  list.replaceChildren(...shown.map((m) => draw(m, acts)));
  drawPending();
  list.scrollTop = list.scrollHeight;
}

/** Keep the end of the list in sight, if it was, while `change` is made. */
function stickily(change) {
  const stay = atEnd;
  change();
  if (stay) list.scrollTop = list.scrollHeight;
}

/** Notice whether the end is in sight, and keep it there when the list or
 * what is in it changes its size. */
function watchEnd() {
  let size = "";
  const measure = () => `${list.clientWidth} ${list.clientHeight}`;
  list.addEventListener("scroll", () => {
    if (measure() !== size) return; // moved by a resize, not by a person
    atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 80;
  });
  new ResizeObserver(() => {
    size = measure();
    if (atEnd) list.scrollTop = list.scrollHeight;
  }).observe(list);
}

/** Draw one new or changed message. */
function drawOne(message) {
  messages.set(message.id, message);
  if (message.channel_id !== channels[place]) return;
  stickily(() => {
    const old = find(message.id);
    const node = draw(message, acts);
    if (old) {
      const focused = old.contains(document.activeElement)
        ? document.activeElement.dataset.customId : null;
      old.replaceWith(node);
      if (focused) {
        [...node.querySelectorAll("[data-custom-id]")]
          .find((n) => n.dataset.customId === focused)?.focus();
      }
      return;
    }
    const later = [...list.querySelectorAll("[data-message-id]")].find(
      (n) => BigInt(n.dataset.messageId) > BigInt(message.id));
    list.insertBefore(node, later || list.querySelector("[data-pending]"));
  });
}

/** Find the drawn message of this id. */
function find(id) {
  return list.querySelector(`[data-message-id="${CSS.escape(id)}"]`);
}

/** Show the commands that have been sent and not been answered. */
function drawPending() {
  for (const node of list.querySelectorAll("[data-pending]")) node.remove();
  for (const [id, one] of mine) {
    if (one.label && one.place === place && one.user === user) {
      list.append(el("div", { class: "pending", data: { pending: id },
                              text: `Sending ${one.label} …` }));
    }
  }
}

/** Remember an interaction that this page has sent. */
function sent(id, label, message) {
  mine.set(id, { label, message, ...where() });
  stickily(drawPending);
  settle(id);
}

/** Wait for an interaction's answer; the feed may be late or broken. */
async function settle(id) {
  try {
    onInteraction(await answered(id));
  } catch {
    mine.delete(id);
    drawPending();
  }
}

/** Take what became of an interaction. */
function onInteraction(interaction) {
  const one = mine.get(interaction.id);
  if (!one || interaction.state === "pending") return;
  mine.delete(interaction.id);
  stickily(drawPending);
  // A menu in which something was chosen is as before: it can be once more.
  if (find(one.message)?.querySelector("select, fieldset")) {
    drawOne(messages.get(one.message));
  }
  const node = one.message && find(one.message);
  node?.classList.remove("busy");
  if (interaction.state !== "answered") {
    if (node) note(node, "This interaction failed");
  } else if (interaction.modal && one.user === user) {
    openModal(interaction.id, interaction.modal,
              { user: one.user, place: one.place, locale: one.locale },
              (id) => sent(id, null));
  }
}

/** Write a note under a message. */
function note(node, text) {
  node.querySelector(".failed")?.remove();
  node.querySelector(".body").append(el("div", {
    class: "failed", role: "alert", text }));
}

/** What people do with messages. */
const acts = {
  /** Press a button, or choose in a select menu. */
  async use(message, component, values) {
    const node = find(message.id);
    node?.querySelector(".failed")?.remove();
    node?.classList.add("busy");
    try {
      const id = await send({ component: message.id, values,
                              custom_id: component.custom_id, ...where() });
      sent(id, null, message.id);
    } catch (error) {
      node?.classList.remove("busy");
      if (node) note(node, error.message);
    }
  },

  /** Take away a message that only this person sees. */
  dismiss(message) {
    call("DELETE", `messages/${message.id}`);
  },

  /** Open the menu of a message, below its button or at a point. */
  menu(message, button, point) {
    const box = button.getBoundingClientRect();
    const known = message.standin;
    const own = known.ephemeral ? "Dismiss message" : "Delete message";
    const by = message.interaction_metadata?.user || message.author;
    const apps = known.notice || known.loading ? []
      : commands.filter((c) => c.type === 3);
    openMenu(point || { x: box.right - 200, y: box.bottom + 4 }, [
      { label: "Apps", entries: apps.map(
        (c) => [local(c, "name", languageMenu.value),
                () => acts.run(c.name, message)]) },
      { label: "Message", entries: [
        ["Copy text", () => navigator.clipboard?.writeText(
          message.content || find(message.id).innerText)],
        ...(by.username === user
          ? [[own, () => acts.dismiss(message), "danger"]] : []),
      ] },
    ], button);
  },

  /** Run a message command on a message. */
  async run(name, message) {
    try {
      sent(await send({ message_command: name, target: message.id,
                        ...where() }), name);
    } catch (error) {
      const node = find(message.id);
      if (node) note(node, error.message);
    }
  },
};

/** Fetch the commands that can be called. */
async function loadCommands() {
  commands = await call("GET", "commands");
  setCommands(commands);
}

/** Say that nothing is heard, and try again. */
function lost() {
  feed.close();
  mine.clear();
  link.dataset.state = "broken";
  link.textContent = "no connection";
  if (gone.hidden) {
    gone.textContent = GONE;
    gone.hidden = false;
  }
  retry = setTimeout(listen, RETRY_MS);
}

/** Listen to what happens, as the present user. */
function listen() {
  feed?.close();
  clearTimeout(retry);
  const source = feed =
    new EventSource(`/control/feed?user=${encodeURIComponent(user)}`);
  const on = (kind, act) => feed.addEventListener(
    kind, (event) => act(JSON.parse(event.data)));
  on("state", async (value) => {
    messages.clear();
    for (const message of value.messages) messages.set(message.id, message);
    channels = value.channels;
    drawAll();
    await loadCommands();
    if (source !== feed) return;
    gone.hidden = true;
    link.dataset.state = "live";
    link.textContent = "live";
  });
  on("message", drawOne);
  on("gone", (value) => {
    messages.delete(value.id);
    find(value.id)?.remove();
  });
  on("interaction", onInteraction);
  on("commands", loadCommands);
  feed.onerror = lost;
}

/** Go to another channel. */
function go(name) {
  place = name;
  for (const button of document.querySelectorAll("[data-channel]")) {
    button.setAttribute("aria-pressed",
                        String(button.dataset.channel === name));
  }
  document.getElementById("channel-name").textContent = ABOUT[name][0];
  document.getElementById("channel-about").textContent = ABOUT[name][1];
  drawAll();
}

/** Start the page. */
async function start() {
  const settings = await call("GET", "settings");
  const people = settings.users.slice(0, 20);
  userMenu.append(...people.map((one) => el("option", {
    value: one.username, text: one.global_name, data: { id: one.id } })));
  userMenu.addEventListener("change", () => {
    user = userMenu.value;
    listen();
  });
  languageMenu.append(...Object.entries(LANGUAGES).map(
    ([value, text]) => el("option", { value, text, lang: value })));
  languageMenu.addEventListener("change", () => setCommands(commands));
  for (const button of document.querySelectorAll("[data-channel]")) {
    button.addEventListener("click", () => go(button.dataset.channel));
  }
  list.addEventListener("click", (event) => {
    const mention = event.target.closest("[data-begin]");
    if (mention) begin(mention.dataset.begin);
  });
  watchMessages(list, (node, point) => acts.menu(
    messages.get(node.dataset.messageId), node.querySelector(".menu"), point));
  watchEnd();
  startComposer(where, sent);
  listen();
  document.getElementById("composer").focus();
}

start();
