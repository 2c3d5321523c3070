# SPDX-License-Identifier: MIT
"""Validation of bodies against Discord's OpenAPI description, if at hand."""

import json
import threading


class Schemas:
    """The schemas of the bodies that Inline sends; all pass without them."""

    def __init__(self, path):
        self._lock = threading.Lock()
        self._validators = {}
        self._document = None
        self._library = None
        if path:
            self.load(path)

    def load(self, path):
        """Check against the description in `path` from now on."""
        try:
            import jsonschema
        except ImportError:
            return
        with open(path, "rb") as file:
            document = json.load(file)
        with self._lock:
            self._library = jsonschema
            self._validators = {}
            self._document = document

    @property
    def active(self):
        """Whether anything is checked at all."""
        return self._document is not None

    def _validator(self, pointer):
        if pointer not in self._validators:
            schema = dict(self._document)
            schema["$ref"] = pointer
            self._validators[pointer] = (
                self._library.Draft202012Validator(schema))
        return self._validators[pointer]

    def errors(self, pointer, value):
        """Return what is wrong with `value`, as a list of short texts."""
        if not self.active:
            return []
        with self._lock:
            found = self._validator(pointer).iter_errors(value)
            return [
                f"{error.json_path}: {_deepest(error).message}"[:300]
                for _, error in zip(range(5), found)]

    def answer_errors(self, answer):
        """Return what is wrong with an interaction's first answer."""
        kind = answer.get("type") if isinstance(answer, dict) else None
        pointer = CALLBACKS.get(kind) if isinstance(kind, int) else None
        return self.errors(pointer, answer) if pointer else []


def _deepest(error):
    """Return the error that says most about why a oneOf failed."""
    while error.context:
        error = max(error.context, key=lambda inner: len(inner.path))
    return error


COMPONENT = "#/components/schemas/"
EDIT = COMPONENT + "IncomingWebhookUpdateRequestPartial"
FOLLOWUP = COMPONENT + "IncomingWebhookRequestPartial"
COMMANDS = ("#/paths/~1applications~1{application_id}~1commands/put"
            "/requestBody/content/application~1json/schema")
CALLBACKS = {
    1: COMPONENT + "PongInteractionCallbackRequest",
    4: COMPONENT + "CreateMessageInteractionCallbackRequest",
    5: COMPONENT + "CreateMessageInteractionCallbackRequest",
    6: COMPONENT + "UpdateMessageInteractionCallbackRequest",
    7: COMPONENT + "UpdateMessageInteractionCallbackRequest",
    8: COMPONENT + "ApplicationCommandAutocompleteCallbackRequest",
    9: COMPONENT + "ModalInteractionCallbackRequest",
}
