# SPDX-License-Identifier: MIT
"""The control API: what tests and the chat page tell the stand-in."""

import json
import re
import time

from chat import (add_user_message, delete_message, message_view)
from files import attachment_json, make_attachment
from interactions import OrderError, dm_channel, place_of
from limits import walk
from state import (FAILED, GROUP_CHANNEL_ID, GUILD_CHANNEL_ID, GUILD_ID,
                   PENDING, REFUSED)

LONGEST_WAIT = 600.0
SETTABLE = ("deadline", "token_life", "attachment_size_limit")
WAITS = ("answered", "final", "edited", "followup", "deleted")


class ControlError(Exception):
    """A request to the control API that makes no sense."""

    def __init__(self, message, status=400):
        super().__init__(message)
        self.status = status


def interaction_view(store, interaction, history=True):
    """Return all that is known of an interaction."""
    messages = [store.messages[name] for name in interaction.messages
                if name in store.messages]
    original = interaction.original
    if original is not None and original not in messages:
        messages.insert(0, original)
    return {
        "id": interaction.id,
        "type": interaction.type,
        "state": interaction.state,
        "error": interaction.error,
        "user": interaction.user["id"],
        "created": interaction.created,
        "sent": interaction.sent,
        "http": interaction.http,
        "answer": interaction.answer,
        "answer_type": interaction.answer_type,
        "answered_via": interaction.answered_via,
        "answer_ms": interaction.answer_ms,
        "original": original.id if original is not None else None,
        "source": interaction.source,
        "messages": [message_view(store, one, history) for one in messages],
        "modal": interaction.modal,
        "choices": interaction.choices,
        "edits": interaction.edits,
        "followups": interaction.followups,
        "token": interaction.token,
    }


def message_text(message):
    """Return all text that a message shows."""
    texts = [message.content]
    for component in walk(message.components):
        if isinstance(component.get("content"), str):
            texts.append(component["content"])
    for embed in message.embeds:
        texts += [embed.get("title") or "", embed.get("description") or ""]
        for field in embed.get("fields") or ():
            texts += [field.get("name") or "", field.get("value") or ""]
    return "\n".join(texts)


def goes_on(message):
    """Whether it has a button that cancels what it tells of."""
    return any((one.get("custom_id") or "").startswith("cancel:")
               for one in walk(message.components))


def is_final(interaction):
    """Whether nothing is "thinking" on this interaction any more, or goes on
    and shows it.
    """
    if interaction.state == PENDING:
        return False
    original = interaction.original
    if original is not None and goes_on(original):
        return False
    if interaction.answer_type == 5:
        return bool(original.deleted) or not original.loading
    if interaction.answer_type == 6:
        return (interaction.edits > 0 or interaction.followups > 0
                or bool(original.deleted))
    return True


class Control:
    """Answers the requests under /control."""

    def __init__(self, store, faults, limits, sender, schemas):
        self.store = store
        self.schemas = schemas
        self.faults = faults
        self.limits = limits
        self.sender = sender
        self.routes = (
            ("POST", r"interaction", self.post_interaction),
            ("POST", r"interactions", self.post_interactions),
            ("GET", r"interactions", self.get_interactions),
            ("GET", r"interactions/(\d+)", self.get_interaction),
            ("POST", r"wait", self.post_wait),
            ("GET", r"requests", self.get_requests),
            ("GET", r"violations", self.get_violations),
            ("DELETE", r"violations", self.delete_violations),
            ("POST", r"fault", self.post_fault),
            ("GET", r"fault", self.get_fault),
            ("DELETE", r"fault", self.delete_fault),
            ("POST", r"clock", self.post_clock),
            ("GET", r"settings", self.get_settings),
            ("POST", r"settings", self.post_settings),
            ("POST", r"attachment", self.post_attachment),
            ("POST", r"message", self.post_message),
            ("GET", r"messages/(\d+)", self.get_message),
            ("DELETE", r"messages/(\d+)", self.delete_message),
            ("GET", r"commands", self.get_commands),
            ("POST", r"reset", self.post_reset),
        )

    def answer(self, method, path, query, body, content_type):
        """Carry out one request; returns (status, JSON value)."""
        for wanted, pattern, function in self.routes:
            found = re.fullmatch(r"/control/" + pattern, path)
            if found and method == wanted:
                break
        else:
            raise ControlError("no such thing", 404)
        value = {}
        if function == self.post_attachment:
            value = body
        elif method == "POST":
            if content_type.split(";")[0].strip() != "application/json":
                raise ControlError("Content-Type must be application/json")
            try:
                value = json.loads(body or b"{}")
            except (ValueError, RecursionError):
                raise ControlError("not JSON")
            if not isinstance(value, dict):
                raise ControlError("not an object")
        try:
            return 200, function(value, query, *found.groups())
        except (OrderError, OSError, ValueError, TypeError,
                KeyError) as error:
            raise ControlError(f"{type(error).__name__}: {error}")

    def post_interaction(self, order, query):
        """Send one interaction."""
        return {"id": self.sender.order(order).id}

    def post_interactions(self, value, query):
        """Send many interactions at once."""
        return {"ids": [self.sender.order(order).id
                        for order in value["orders"]]}

    def get_interactions(self, _, query):
        """List the interactions, without their messages' history."""
        with self.store.lock:
            return [interaction_view(self.store, one, history=False)
                    for one in self.store.interactions.values()]

    def _interaction(self, identifier):
        found = self.store.interactions.get(identifier)
        if found is None:
            raise ControlError("no such interaction", 404)
        return found

    def get_interaction(self, _, query, identifier):
        """Return one interaction, having waited for it where asked."""
        wish = {key: values[0] for key, values in query.items()}
        with self.store.lock:
            interaction = self._interaction(identifier)
            satisfied = self._wait(interaction, wish)
            return dict(interaction_view(self.store, interaction),
                        satisfied=satisfied)

    def post_wait(self, wish, query):
        """Wait for many interactions, one timeout for all."""
        with self.store.lock:
            found = [self._interaction(one) for one in wish["ids"]]
            end = time.monotonic() + float(wish.get("timeout", 30))
            views = []
            for one in found:
                left = max(0.0, end - time.monotonic())
                satisfied = self._wait(one, dict(wish, timeout=left))
                views.append(dict(interaction_view(self.store, one, False),
                                  satisfied=satisfied))
            return views

    def _wait(self, interaction, wish):
        what = wish.get("wait")
        if what is None:
            return True
        if what not in WAITS:
            raise ControlError(f"wait must be one of {WAITS}")
        count = int(wish.get("count", 1))
        pattern = wish.get("match")
        pattern = re.compile(pattern, re.S) if pattern else None
        timeout = min(LONGEST_WAIT, float(wish.get("timeout", 30)))

        def over():
            return (interaction.state in (FAILED, REFUSED)
                    or self.store.stopping.is_set())

        def satisfied():
            if what == "answered":
                good = interaction.state != PENDING
            elif what == "edited":
                good = interaction.edits >= count
            elif what == "followup":
                good = interaction.followups >= count
            elif what == "deleted":
                good = bool(interaction.original is not None
                            and interaction.original.deleted)
            else:
                good = is_final(interaction)
            return good and (pattern is None
                             or self._matches(interaction, pattern))

        interaction.condition.wait_for(lambda: satisfied() or over(),
                                       timeout)
        return satisfied()

    def _matches(self, interaction, pattern):
        messages = [self.store.messages.get(name)
                    for name in interaction.messages]
        if interaction.original is not None:
            messages.append(interaction.original)
        return any(pattern.search(message_text(one)) for one in messages
                   if one is not None and not one.deleted)

    def get_requests(self, _, query):
        """Return the log of REST requests, oldest first."""
        wanted = {key: values[0] for key, values in query.items()}
        with self.store.lock:
            views = [one.view() for one in self.store.requests]
        return [view for view in views
                if all(str(view.get(key)) == value
                       for key, value in wanted.items())]

    def get_violations(self, _, query):
        """Return every broken rule, but for the kinds in `ignore`."""
        ignored = ",".join(query.get("ignore", [])).split(",")
        with self.store.lock:
            return [one for one in self.store.violations
                    if one["kind"] not in ignored]

    def delete_violations(self, _, query):
        """Forget the violations; returns them."""
        with self.store.lock:
            violations = self.store.violations
            self.store.violations = []
            return violations

    def post_fault(self, order, query):
        """Put a fault in force."""
        return self.faults.add(order).view()

    def get_fault(self, _, query):
        """List the faults."""
        return self.faults.view()

    def delete_fault(self, _, query):
        """End all faults."""
        self.faults.clear()
        return []

    def post_clock(self, value, query):
        """Push the stand-in's clock on."""
        with self.store.lock:
            self.store.clock.offset += float(value["advance"])
            return {"now": self.store.clock.now()}

    def get_settings(self, _, query):
        """Return identity, users, and what can be set."""
        with self.store.lock:
            shown = {name: getattr(self.store.settings, name)
                     for name in SETTABLE}
            shown.update(
                endpoint=self.store.endpoint,
                installs=sorted(self.store.installs),
                origin=self.store.settings.origin,
                public_key=self.store.identity.public_key,
                application_id=self.store.identity.application_id,
                bot_token=self.store.identity.bot_token,
                openapi=self.schemas.active,
                rate_limit=self.limits.limit,
                rate_window=self.limits.window,
                invalid_requests=self.store.invalid_requests,
                users=[user for user in self.store.users.values()
                       if not user.get("bot")])
            return shown

    def post_settings(self, value, query):
        """Change settings while running."""
        with self.store.lock:
            for name, given in value.items():
                if name in SETTABLE:
                    setattr(self.store.settings, name, float(given)
                            if name != "attachment_size_limit"
                            else int(given))
                elif name == "endpoint":
                    self.store.endpoint = str(given)
                elif name == "installs":
                    self.store.installs = {int(one) for one in given}
                elif name == "openapi":
                    self.schemas.load(str(given))
                elif name == "rate_limit":
                    self.limits.limit = int(given)
                elif name == "rate_window":
                    self.limits.window = float(given)
                else:
                    raise ControlError(f"{name} cannot be set")
        return self.get_settings(None, query)

    def post_attachment(self, data, query):
        """Keep an uploaded file, for an option or a modal."""
        filename = query.get("filename", ["file"])[0]
        kind = query.get("content_type", [None])[0]
        if len(data) > self.store.settings.attachment_size_limit:
            raise ControlError("the file is too large", 413)
        with self.store.lock:
            attachment = make_attachment(self.store, GUILD_CHANNEL_ID,
                                         filename, data, kind)
            attachment.ephemeral = True
            self.store.add_attachment(attachment)
            return attachment_json(self.store, attachment)

    def post_message(self, value, query):
        """Write a message as a person."""
        content = str(value.get("content", ""))
        if len(content) > 4000 or not (content or value.get("attachments")):
            raise ControlError("content must have 1 to 4000 characters")
        with self.store.lock:
            user = self.store.user(value.get("user", "alice"))
            place = place_of(value.get("place", "guild"), user)
            files = [self.store.attachments[one]
                     for one in value.get("attachments", [])]
            message = add_user_message(self.store, user,
                                       place["channel"]["id"], content,
                                       files)
            return message_view(self.store, message)

    def _message(self, identifier):
        message = self.store.messages.get(identifier)
        if message is None:
            raise ControlError("no such message", 404)
        return message

    def get_message(self, _, query, identifier):
        """Return one message with its history."""
        with self.store.lock:
            return message_view(self.store, self._message(identifier), True)

    def delete_message(self, _, query, identifier):
        """Delete or dismiss a message as a person."""
        with self.store.lock:
            delete_message(self.store, self._message(identifier), "user")
            return {}

    def get_commands(self, _, query):
        """Return the commands that a user can choose from."""
        with self.store.lock:
            chosen = {}
            for scope in ("global", GUILD_ID):
                for one in self.store.commands.get(scope, ()):
                    chosen[(one["type"], one["name"])] = one
            return list(chosen.values())

    def post_reset(self, _, query):
        """Forget all interactions, messages, logs and faults."""
        self.faults.clear()
        self.store.clear()
        return {}


class Feed:
    """One chat page's view: its state, then what changes."""

    def __init__(self, store, user_name):
        self.store = store
        with store.lock:
            self.user = store.user(user_name)
            self.seen = store.event_count

    def sees(self, message):
        """Whether this page's user may see a message."""
        if message.owner not in (None, self.user["id"]):
            return False
        return message.channel_id in (GUILD_CHANNEL_ID, GROUP_CHANNEL_ID,
                                      dm_channel(self.user))

    def state(self):
        """Return what a page needs at its start."""
        with self.store.lock:
            self.seen = self.store.event_count
            return {
                "user": self.user,
                "channels": {"guild": GUILD_CHANNEL_ID,
                             "dm": dm_channel(self.user),
                             "group": GROUP_CHANNEL_ID},
                "messages": [message_view(self.store, one)
                             for one in self.store.messages.values()
                             if not one.deleted and self.sees(one)],
            }

    def next_events(self, timeout):
        """Wait for changes; returns [(kind, value)], empty on a timeout."""
        store = self.store
        with store.lock:
            store.feed_changed.wait_for(
                lambda: store.event_count > self.seen
                or store.leaving.is_set(), timeout)
            fresh = store.events_since(self.seen)
            if fresh is None:
                return [("state", self.state())]
            self.seen = store.event_count
            return [event for kind, identifier in fresh
                    for event in self._event(kind, identifier)]

    def _event(self, kind, identifier):
        store = self.store
        if kind == "reset":
            return [("state", self.state())]
        if kind == "commands":
            return [("commands", {})]
        if kind == "message":
            message = store.messages.get(identifier)
            if message is None or not self.sees(message):
                return []
            if message.deleted:
                return [("gone", {"id": message.id, "by": message.deleted})]
            return [("message", message_view(store, message))]
        interaction = store.interactions.get(identifier)
        if interaction is None or interaction.user["id"] != self.user["id"]:
            return []
        return [("interaction", {
            "id": interaction.id, "type": interaction.type,
            "state": interaction.state,
            "answer_type": interaction.answer_type,
            "modal": interaction.modal})]
