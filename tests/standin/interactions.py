# SPDX-License-Identifier: MIT
"""Interactions as Discord words them, from short orders.

An order is an object; the fields are described in CONTROL.md. What makes an
interaction one that Discord would never send (a wrong signature, a repeated
id, a body of one's own) marks it as hostile: Inline is then expected to
refuse it, and a refusal is no violation.
"""

import base64
import json

import forms
from chat import message_json
from files import attachment_json, make_attachment
from limits import ROW, STRING_SELECT, TEXT, TEXT_INPUT, SELECTS, walk
from state import (GROUP_CHANNEL_ID, GUILD_CHANNEL_ID, GUILD_ID, Interaction)

PING, COMMAND, COMPONENT, AUTOCOMPLETE, MODAL_SUBMIT = 1, 2, 3, 4, 5
GUILD_PERMISSIONS = "2248473465835073"
DM_PERMISSIONS = "180224"
KINDS = ("command", "component", "modal", "ping", "repeat", "raw",
         "raw_base64", "message_command")
FIELDS = KINDS + (
    "user", "place", "locale", "options", "sub", "focused", "values",
    "target", "fields", "remove", "signature", "timestamp", "skew",
    "headers", "force", "attachment_size_limit", "custom_id", "stale")


class OrderError(Exception):
    """An order that makes no sense; the text says why."""


def place_of(name, user):
    """Return where an interaction happens: guild, dm or group."""
    if name == "guild":
        return {"context": 0, "guild_id": GUILD_ID,
                "owners": {"0": GUILD_ID},
                "channel": {"id": GUILD_CHANNEL_ID, "name": "general",
                            "type": 0}}
    if name == "dm":
        return {"context": 1, "guild_id": None, "owners": {"0": "0"},
                "channel": {"id": dm_channel(user), "type": 1}}
    if name == "group":
        return {"context": 2, "guild_id": None,
                "owners": {"1": user["id"]},
                "channel": {"id": GROUP_CHANNEL_ID, "type": 3}}
    raise OrderError("place must be guild, dm or group")


def dm_channel(user):
    """Return the id of the channel between one user and Inline."""
    return f"41{int(user['id']) % 10**16:016d}"


class Builder:
    """Makes the Interaction and its JSON out of one order."""

    def __init__(self, store, order):
        unknown = set(order) - set(FIELDS)
        if unknown:
            raise OrderError(f"unknown fields {sorted(unknown)}")
        self.store = store
        self.order = order
        self.user = store.user(order.get("user", "alice"))
        self.place = place_of(order.get("place", "guild"), self.user)
        self.resolved = {}
        self.source = None
        self.label = None
        self.target = None
        self.focused = None

    def build(self):
        """Return (interaction, body bytes); the interaction is kept."""
        chosen = [kind for kind in KINDS if kind in self.order]
        if len(chosen) != 1:
            raise OrderError(f"an order has exactly one of {KINDS}")
        kind, data = getattr(self, "_" + chosen[0])()
        interaction = Interaction(self.store.lock, self.store.snowflake(),
                                  kind, self.user, self.place)
        interaction.source = self.source
        interaction.label = self.label
        interaction.target = self.target
        interaction.focused = self.focused
        interaction.user_install_only = "0" not in self.place["owners"]
        interaction.attachment_size_limit = self.order.get(
            "attachment_size_limit",
            self.store.settings.attachment_size_limit)
        interaction.hostile = any(
            field in self.order for field in (
                "repeat", "raw", "raw_base64", "fields", "remove",
                "signature", "timestamp", "skew", "headers", "stale"))
        self.store.add_interaction(interaction)
        if isinstance(data, bytes):
            return interaction, data
        body = self._envelope(interaction, data)
        for field in self.order.get("remove", ()):
            body.pop(field, None)
        body.update(self.order.get("fields", {}))
        return interaction, json.dumps(
            body, sort_keys=True, separators=(",", ":"),
            ensure_ascii=False).encode("utf-8", "surrogatepass")

    def _envelope(self, interaction, data):
        body = {
            "app_permissions": (GUILD_PERMISSIONS if self.place["guild_id"]
                                else DM_PERMISSIONS),
            "application_id": self.store.identity.application_id,
            "entitlements": [],
            "id": interaction.id,
            "token": interaction.token,
            "type": interaction.type,
            "version": 1,
        }
        if interaction.type == PING:
            body["user"] = self.user
            return body
        locale = self.order.get("locale", "en-US")
        body.update({
            "attachment_size_limit": interaction.attachment_size_limit,
            "authorizing_integration_owners": self.place["owners"],
            "channel": self.place["channel"],
            "channel_id": self.place["channel"]["id"],
            "context": self.place["context"],
            "data": data,
            "locale": locale,
        })
        if self.resolved:
            data["resolved"] = self.resolved
        if self.source is not None:
            body["message"] = message_json(self.store,
                                           self.store.messages[self.source])
        if self.place["guild_id"]:
            body["guild"] = {"features": [], "id": GUILD_ID,
                             "locale": "en-US"}
            body["guild_id"] = GUILD_ID
            body["guild_locale"] = "en-US"
            body["member"] = self._member()
        else:
            body["user"] = self.user
        return body

    def _member(self):
        return {
            "avatar": None, "communication_disabled_until": None,
            "deaf": False, "flags": 0,
            "joined_at": "2026-01-01T00:00:00.000000+00:00", "mute": False,
            "nick": None, "pending": False,
            "permissions": GUILD_PERMISSIONS, "premium_since": None,
            "roles": [], "user": self.user,
        }

    def _ping(self):
        self.user = {
            "avatar": None, "avatar_decoration_data": None, "bot": True,
            "discriminator": "0", "global_name": "Discord",
            "id": "643945264868098049", "public_flags": 0, "system": True,
            "username": "discord"}
        return PING, {}

    def _repeat(self):
        with self.store.lock:
            first = self.store.interactions.get(self.order["repeat"])
        if first is None or first.sent is None:
            raise OrderError("repeat: no such interaction")
        return first.type, first.sent["body"].encode()

    def _raw(self):
        return COMMAND, self.order["raw"].encode("utf-8", "surrogatepass")

    def _raw_base64(self):
        return COMMAND, base64.b64decode(self.order["raw_base64"])

    def _find_command(self, name, kind):
        scopes = self.store.commands
        for scope in (GUILD_ID, "global"):
            for command in scopes.get(scope, ()):
                if command["name"] == name and command["type"] == kind:
                    return command
        return {"id": "500000000000000001", "name": name, "type": kind}

    def _command(self):
        with self.store.lock:
            command = self._find_command(self.order["command"], 1)
        sub = self.order.get("sub", [])
        path = [sub] if isinstance(sub, str) else list(sub)
        self.label = "/" + " ".join([command["name"]] + path)
        known = command.get("options", [])
        for name in path:
            known = next((one.get("options", []) for one in known
                          if one["name"] == name), [])
        types = {one["name"]: one["type"] for one in known}
        options = self._options(self.order.get("options", {}), types)
        for depth, name in enumerate(reversed(path)):
            kind = 1 if depth == 0 else 2
            options = [{"name": name, "type": kind, "options": options}]
        data = {"id": command["id"], "name": command["name"], "type": 1}
        if options:
            data["options"] = options
        focused = self.order.get("focused")
        if not focused:
            return COMMAND, data
        if focused not in self.order.get("options", {}) and (
                not isinstance(self.order["options"], list)):
            raise OrderError("focused: no such option is given")
        self.focused = types.get(focused, forms.STRING)
        return AUTOCOMPLETE, data

    def _options(self, given, types):
        if isinstance(given, list):
            return given
        options = []
        for name, value in given.items():
            kind = types.get(name)
            if isinstance(value, dict):
                kind, value = 11, self._attach(value)
            elif kind is None:
                kind = (5 if isinstance(value, bool) else
                        4 if isinstance(value, int) else
                        10 if isinstance(value, float) else 3)
            option = {"name": name, "type": kind, "value": value}
            if name == self.order.get("focused"):
                option["focused"] = True
            elif not forms.fits(kind, value) and not self.order.get("force"):
                raise OrderError(f"options: {name} cannot be {value!r}")
            options.append(option)
        return options

    def _attach(self, given):
        """Return the id of an uploaded or enclosed file, and resolve it."""
        with self.store.lock:
            attachment = self.store.attachments.get(given.get("attachment"))
            if attachment is None and "filename" in given:
                data = (base64.b64decode(given["base64"])
                        if "base64" in given else given["text"].encode())
                attachment = make_attachment(
                    self.store, self.place["channel"]["id"],
                    given["filename"], data, given.get("content_type"))
                attachment.ephemeral = True
                self.store.add_attachment(attachment)
            if attachment is None:
                raise OrderError("no such attachment")
            files = self.resolved.setdefault("attachments", {})
            files[attachment.id] = attachment_json(self.store, attachment)
            return attachment.id

    def _message_command(self):
        with self.store.lock:
            command = self._find_command(self.order["message_command"], 3)
            target = self.store.messages.get(self.order.get("target"))
            if target is None or target.deleted or target.notice:
                raise OrderError("target: no such message")
            if target.owner not in (None, self.user["id"]) and (
                    not self.order.get("force")):
                raise OrderError("target: this user cannot see it")
            self.target = target.id
            self.resolved["messages"] = {
                target.id: message_json(self.store, target)}
        self.label = command["name"]
        return COMMAND, {"id": command["id"], "name": command["name"],
                         "type": 3, "target_id": target.id}

    def _component(self):
        force = self.order.get("force")
        with self.store.lock:
            message = self.store.messages.get(self.order["component"])
            if message is None:
                raise OrderError("component: no such message")
            if message.deleted and not force:
                raise OrderError("component: the message is deleted")
            if message.owner not in (None, self.user["id"]) and not force:
                raise OrderError("component: this user cannot see it")
            self.source = message.id
            custom_id = self.order.get("custom_id")
            found = next((one for one in walk(message.components)
                          if one.get("custom_id") == custom_id), None)
        if found is None:
            if not force:
                raise OrderError(f"component: no custom id {custom_id!r}")
            found = {"type": 2, "id": 1}
        if found.get("disabled") and not force:
            raise OrderError("component: it is disabled")
        data = {"component_type": found["type"], "custom_id": custom_id,
                "id": found["id"]}
        if found["type"] in SELECTS:
            data["values"] = self.order.get("values", [])
            if not force:
                self._check_values(found, data["values"])
        return COMPONENT, data

    def _check_values(self, select, values):
        known = [one["value"] for one in select.get("options", ())]
        if select["type"] == STRING_SELECT and not set(values) <= set(known):
            raise OrderError("component: no such option")
        low, high = select.get("min_values"), select.get("max_values")
        if not (1 if low is None else low) <= len(values) <= (high or 1) or (
                len(set(values)) != len(values)):
            raise OrderError("component: a wrong number of values")

    def _modal(self):
        with self.store.lock:
            opener = self.store.interactions.get(self.order["modal"])
        if opener is None or opener.modal is None:
            raise OrderError("modal: this interaction opened none")
        self.source = opener.source
        self.label = opener.label
        given = self.order.get("values", {})
        data = {"custom_id": opener.modal["custom_id"], "components": []}
        number = 0
        for top in opener.modal["components"]:
            number += 1
            shown = {"type": top["type"], "id": top.get("id") or number}
            inner = top.get("component") or (top.get("components") or [0])[0]
            if top["type"] != TEXT:
                number += 1
                answer = self._field(inner, inner.get("id") or number, given)
                if top["type"] == ROW:
                    shown["components"] = [answer]
                else:
                    shown["component"] = answer
            data["components"].append(shown)
        return MODAL_SUBMIT, data

    def _field(self, field, number, given):
        name, kind = field["custom_id"], field["type"]
        answer = {"type": kind, "id": number, "custom_id": name}
        value = given.get(name)
        if kind == TEXT_INPUT:
            answer["value"] = field.get("value") or "" if value is None \
                else value
            self._check_text(field, answer["value"])
        elif kind == forms.FILE_UPLOAD:
            files = value or []
            low = field.get("min_values", 1) if files or field.get(
                "required", True) else 0
            if not low <= len(files) <= field.get("max_values", 1) and (
                    not self.order.get("force")):
                raise OrderError(f"modal: {name} needs {low} or more files")
            answer["values"] = [self._attach(one) for one in files]
        elif kind == forms.CHECKBOX:
            answer["value"] = bool(field.get("default")
                                   if value is None else value)
        elif kind == forms.RADIO_GROUP:
            answer["value"] = value
        else:
            answer["values"] = value or []
        return answer

    def _check_text(self, field, text):
        if self.order.get("force"):
            return
        low = field.get("min_length", 0)
        if field.get("required", True):
            low = max(1, low)
        if not (low <= len(text) <= field.get("max_length", 4000)
                or (not text and not field.get("required", True))):
            raise OrderError(f"modal: {field['custom_id']} has a wrong "
                             "length")
