# SPDX-License-Identifier: MIT
"""What a test holds in its hands: files, messages, interactions."""

import base64
import urllib.parse

# Seconds: what is waited for comes, but perhaps on a machine that is busy.
PATIENCE = 120


class File:
    """A file that a person attaches."""

    def __init__(self, filename, data, content_type=None):
        self.filename = filename
        self.data = data.encode() if isinstance(data, str) else data
        self.content_type = content_type

    def order(self):
        """Return the file as the control API takes it."""
        order = {"filename": self.filename,
                 "base64": base64.b64encode(self.data).decode()}
        if self.content_type:
            order["content_type"] = self.content_type
        return order


class Attachment:
    """A file of a message."""

    def __init__(self, standin, view):
        self._standin = standin
        self.view = view
        self.id = view["id"]
        self.filename = view["filename"]
        self.title = view.get("title")
        self.description = view.get("description")
        self.size = view["size"]
        self.content_type = view.get("content_type")
        self.sha256 = view["sha256"]

    def read(self):
        """Fetch its bytes."""
        parts = urllib.parse.urlsplit(self.view["url"])
        return self._standin.fetch(f"{parts.path}?{parts.query}")

    def text(self):
        """Fetch it as UTF-8 text."""
        return self.read().decode()


class Message:
    """A message as it was when last asked for."""

    def __init__(self, standin, view):
        self._standin = standin
        self.view = view
        self.id = view["id"]
        self.content = view["content"]
        self.components = view["components"]
        self.embeds = view["embeds"]
        self.flags = view["flags"]
        known = view["standin"]
        self.loading = known["loading"]
        self.deleted = known["deleted"]
        self.ephemeral = known["ephemeral"]
        self.owner = known["owner"]
        self.edits = known["edits"]
        self.history = known.get("history", [])
        self.attachments = [Attachment(standin, one)
                            for one in view["attachments"]]

    def __repr__(self):
        return (f"<Message {self.id} {self.content!r} "
                f"files={[one.filename for one in self.attachments]}>")

    def refresh(self):
        """Return the message as it is now."""
        return self._standin.message(self.id)

    def attachment(self, filename):
        """Return the attachment of this name."""
        for one in self.attachments:
            if one.filename == filename:
                return one
        raise AssertionError(f"no attachment {filename!r} on {self!r}")

    def controls(self):
        """Return all buttons and select menus."""
        return [one for one in _walk(self.components)
                if one["type"] in (2, 3, 5, 6, 7, 8)]

    def buttons(self):
        """Return the labels of its buttons."""
        return [one.get("label") for one in self.controls()
                if one["type"] == 2]

    def control(self, name):
        """Return the control with this label, custom id or id's action."""
        for one in self.controls():
            custom_id = one.get("custom_id") or ""
            if name in (one.get("label"), custom_id,
                        custom_id.partition(":")[0]):
                return one
        raise AssertionError(f"no control {name!r} among "
                             f"{self.controls()!r}")

    def text(self):
        """Return all text that it shows, components' and embeds' too."""
        texts = [self.content]
        texts += [one["content"] for one in _walk(self.components)
                  if isinstance(one.get("content"), str)]
        for embed in self.embeds:
            texts += [embed.get("title") or "",
                      embed.get("description") or ""]
        return "\n".join(text for text in texts if text)


def _walk(components):
    for component in components:
        yield component
        yield from _walk(component.get("components") or ())
        if isinstance(component.get("accessory"), dict):
            yield component["accessory"]


class Interaction:
    """One interaction that was sent."""

    def __init__(self, standin, identifier):
        self._standin = standin
        self.id = identifier
        self.view = None

    def __repr__(self):
        view = self.view or {}
        return (f"<Interaction {self.id} {view.get('state')} type "
                f"{view.get('answer_type')} {self.messages!r} "
                f"error={view.get('error')!r}>")

    def refresh(self):
        """Ask for its present state."""
        self.view = self._standin.get(f"/control/interactions/{self.id}")
        return self

    def wait(self, what, timeout=PATIENCE, **wish):
        """Wait; asserts that what was wished for has come."""
        query = {key: value for key, value in wish.items()
                 if value is not None}
        query.update(wait=what, timeout=timeout)
        self.view = self._standin.get(
            f"/control/interactions/{self.id}?"
            + urllib.parse.urlencode(query), timeout + 10)
        if not self.view["satisfied"]:
            raise AssertionError(f"not {what} {wish} within {timeout} s: "
                                 f"{self!r}")
        return self

    def wait_answered(self, timeout=PATIENCE, match=None):
        """Wait for the endpoint's answer, whatever it is."""
        return self.wait("answered", timeout, match=match)

    def wait_final(self, match=None, timeout=PATIENCE):
        """Wait until nothing is "thinking" and, if given, a regular
        expression matches what is shown.
        """
        return self.wait("final", timeout, match=match)

    def wait_edits(self, count, timeout=PATIENCE, match=None):
        """Wait for so many edits with this interaction's token."""
        return self.wait("edited", timeout, count=count, match=match)

    def wait_followups(self, count=1, timeout=PATIENCE, match=None):
        """Wait for so many follow-up messages."""
        return self.wait("followup", timeout, count=count, match=match)

    def wait_deleted(self, timeout=PATIENCE):
        """Wait until the first response was deleted."""
        return self.wait("deleted", timeout)

    def _known(self, field):
        if self.view is None:
            self.refresh()
        return self.view[field]

    @property
    def state(self):
        """pending, answered, refused or failed."""
        return self._known("state")

    @property
    def http_status(self):
        """The status of the endpoint's HTTP answer, or None."""
        return (self._known("http") or {}).get("status")

    @property
    def answer(self):
        """The first answer, as an object."""
        return self._known("answer")

    @property
    def answer_type(self):
        """The type of the first answer."""
        return self._known("answer_type")

    @property
    def answer_ms(self):
        """The time it took, in milliseconds."""
        return self._known("answer_ms")

    @property
    def error(self):
        """Why it failed or was refused."""
        return self._known("error")

    @property
    def modal(self):
        """The modal that it opened."""
        return self._known("modal")

    @property
    def choices(self):
        """The autocomplete choices that came."""
        return self._known("choices")

    @property
    def edits(self):
        """How many edits were made with its token."""
        return self._known("edits")

    @property
    def messages(self):
        """Its messages, the first response first."""
        if self.view is None:
            return []
        return [Message(self._standin, one) for one in self.view["messages"]]

    @property
    def original(self):
        """The first response's message."""
        name = self._known("original")
        for message in self.messages:
            if message.id == name:
                return message
        raise AssertionError(f"no first message: {self!r}")

    @property
    def content(self):
        """The content of the first response's message."""
        return self.original.content

    def modal_values(self):
        """Return the text inputs of its modal as {custom id: value}."""
        values = {}
        for top in self.modal["components"]:
            inner = top.get("component") or (top.get("components") or [{}])[0]
            if inner.get("type") == 4:
                values[inner["custom_id"]] = inner.get("value") or ""
        return values
