# SPDX-License-Identifier: MIT
"""The first answer to an interaction, over HTTP or by callback."""

import time

from chat import create_loading, create_message, edit_message, message_json
from errors import ApiError, FormErrors
from forms import check_choices, check_modal
from state import ANSWERED, FAILED, FLAG_EPHEMERAL, PENDING, REFUSED

PING, COMMAND, COMPONENT, AUTOCOMPLETE, MODAL_SUBMIT = 1, 2, 3, 4, 5
PONG, MESSAGE, DEFERRED_MESSAGE, DEFERRED_UPDATE, UPDATE = 1, 4, 5, 6, 7
CHOICES, MODAL = 8, 9

ALLOWED = {
    PING: (PONG,),
    COMMAND: (MESSAGE, DEFERRED_MESSAGE, MODAL),
    COMPONENT: (MESSAGE, DEFERRED_MESSAGE, DEFERRED_UPDATE, UPDATE, MODAL),
    AUTOCOMPLETE: (CHOICES,),
    MODAL_SUBMIT: (MESSAGE, DEFERRED_MESSAGE, DEFERRED_UPDATE, UPDATE),
}


def acknowledge(store, interaction, answer, files, via, request=None):
    """Take an interaction's first answer; raises ApiError.

    `via` is "http" or "callback". Returns the message made or changed, or
    None. Call it with the store's lock held.
    """
    if interaction.state in (FAILED, REFUSED):
        raise ApiError(10062)
    if interaction.state != PENDING:
        raise ApiError(40060)
    errors = FormErrors()
    if not errors.struct((), answer):
        errors.throw()
    kind = answer.get("type")
    if isinstance(kind, bool) or kind not in ALLOWED[interaction.type] or (
            kind in (DEFERRED_UPDATE, UPDATE) and interaction.source is None):
        errors.add(("type",), "BASE_TYPE_CHOICES",
                   f"Type {kind} cannot answer this interaction.")
        errors.throw()
    data = answer.get("data")
    if data is None:
        data = {}
    elif not isinstance(data, dict):
        errors.add(("data",), "DICT_TYPE_CONVERT",
                   "Only dictionaries may be used in a DictType")
        errors.throw()
    message = _carry_out(store, interaction, kind, data, files, via, request,
                         errors)
    interaction.state = ANSWERED
    interaction.answer = answer
    interaction.answer_type = kind
    interaction.answered_via = via
    interaction.answered_at = time.monotonic()
    store.changed(interaction)
    return message


def _carry_out(store, interaction, kind, data, files, via, request, errors):
    how = f"{via} {kind}"
    if kind == MESSAGE:
        message = create_message(store, interaction, data, files,
                                 _ephemeral(data), how, request)
        interaction.original = message
        return message
    if kind == DEFERRED_MESSAGE:
        flags = data.get("flags") or 0
        if not isinstance(flags, int) or flags & ~FLAG_EPHEMERAL or (
                set(data) - {"flags", "allowed_mentions"}):
            store.violate("deferral", "a deferral may only carry the flag "
                          f"EPHEMERAL, not {data!r}", interaction, request)
        interaction.original = create_loading(store, interaction,
                                              _ephemeral(data))
        return interaction.original
    if kind in (UPDATE, DEFERRED_UPDATE):
        message = store.messages.get(interaction.source)
        if message is None or message.deleted:
            raise ApiError(10008)
        interaction.original = message
        if kind == UPDATE:
            edit_message(store, interaction, message, data, files, how,
                         request)
            interaction.edits -= 1
        return message
    if kind == MODAL:
        check_modal(data, errors)
        errors.throw()
        interaction.modal = data
    elif kind == CHOICES:
        check_choices(data, interaction.focused, errors)
        errors.throw()
        interaction.choices = data["choices"]
    return None


def _ephemeral(data):
    flags = data.get("flags")
    return isinstance(flags, int) and bool(flags & FLAG_EPHEMERAL)


def callback_response(store, interaction, message):
    """Return the body that with_response=true asks for."""
    about = {"id": interaction.id, "type": interaction.type}
    body = {"interaction": about}
    if message is not None:
        about["response_message_id"] = message.id
        about["response_message_loading"] = message.loading
        about["response_message_ephemeral"] = message.ephemeral
        about["channel_id"] = message.channel_id
        body["resource"] = {"type": interaction.answer_type,
                            "message": message_json(store, message)}
    return body
