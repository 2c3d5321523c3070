# SPDX-License-Identifier: MIT
"""Messages: creating, editing, deleting and showing them."""

from errors import ApiError, FormErrors
from files import attachment_json, clean_filename, make_attachment
from limits import (ATTACHMENTS, check_message, create_flags, edit_flags,
                    walk)
from state import (FLAG_COMPONENTS_V2, FLAG_EPHEMERAL, FLAG_LOADING, Message,
                   iso_time)

SHOWN_FIELDS = ("content", "embeds", "components")
NO_PING = {"parse": []}


def _plan_attachments(payload, files, existing, errors):
    """Return [(old attachment or None, file or None, entry)] after a change.

    `files` maps n to (filename, type, bytes). An `attachments` array names
    every file that stays and every new one; without it all stay.
    """
    listed = payload.get("attachments")
    if listed is None:
        plan = [(old, None, {}) for old in existing]
        plan += [(None, files[n], {}) for n in sorted(files)]
        if len(plan) > ATTACHMENTS:
            errors.add(("attachments",), "BASE_TYPE_MAX_LENGTH",
                       f"Must be {ATTACHMENTS} or fewer in length.")
        return plan
    plan = []
    if not errors.array(("attachments",), listed, 0, ATTACHMENTS):
        return plan
    by_id = {old.id: old for old in existing}
    unused = {str(n): files[n] for n in files}
    for index, entry in enumerate(listed):
        path = ("attachments", index)
        if not errors.struct(path, entry):
            continue
        identifier = entry.get("id")
        if not isinstance(identifier, str) or not identifier.isdigit():
            errors.add(path + ("id",), "NUMBER_TYPE_COERCE",
                       f'Value "{identifier}" is not snowflake.')
            continue
        errors.text(path + ("filename",), entry.get("filename"), 1, 1024)
        errors.text(path + ("title",), entry.get("title"), 0, 1024)
        errors.text(path + ("description",), entry.get("description"),
                    0, 1024)
        if identifier in unused:
            plan.append((None, unused.pop(identifier), entry))
        elif identifier in by_id:
            plan.append((by_id.pop(identifier), None, entry))
        else:
            errors.add(path + ("id",), "ATTACHMENT_NOT_FOUND",
                       "No file and no attachment has this id")
    for number in unused:
        errors.add(("attachments",), "ATTACHMENT_NOT_LISTED",
                   f"files[{number}] is not listed")
    return plan


def _planned_name(old, file, entry):
    if old is not None:
        return old.filename
    return clean_filename(entry.get("filename") or file[0] or "unknown")


def _check_references(payload, plan, errors):
    """Check that each attachment:// names a file of the message."""
    names = {_planned_name(*item) for item in plan}
    used = []
    for component in walk(payload.get("components") or ()):
        for field in ("file", "media"):
            if isinstance(component.get(field), dict):
                used.append(component[field].get("url"))
        for item in component.get("items") or ():
            used.append(item["media"].get("url"))
    for embed in payload.get("embeds") or ():
        for field in ("image", "thumbnail"):
            if isinstance(embed.get(field), dict):
                used.append(embed[field].get("url"))
    for url in used:
        if isinstance(url, str) and url.startswith("attachment://"):
            if url[13:] not in names:
                errors.add(("components",), "UNFURLED_MEDIA_ITEM_REFERENCED"
                           "_ATTACHMENT_NOT_FOUND",
                           f"There is no attachment {url[13:]!r}")


def _number_components(components):
    """Give ids to the components that have none, as Discord does."""
    taken = {component.get("id") for component in walk(components)}
    following = 1
    for component in walk(components):
        if not component.get("id"):
            while following in taken:
                following += 1
            component["id"] = following
            taken.add(following)


def _check_mentions(store, interaction, message, payload, request):
    if payload.get("allowed_mentions") == NO_PING:
        return
    message.pings += 1
    store.violate("allowed_mentions", 'allowed_mentions is not {"parse":[]}: '
                  f"{payload.get('allowed_mentions')!r}", interaction, request)


def _check_sizes(files, limit):
    for _, _, data in files.values():
        if len(data) > limit:
            raise ApiError(40005)


def _put_attachments(store, message, plan):
    attachments = []
    for old, file, entry in plan:
        attachment = old
        if attachment is None:
            name = entry.get("filename") or file[0] or "unknown"
            attachment = make_attachment(store, message.channel_id, name,
                                         file[2], file[1])
            attachment.ephemeral = message.ephemeral
            store.add_attachment(attachment)
        for field in ("title", "description"):
            if field in entry and (old is None or field != "title"):
                setattr(attachment, field, entry[field])
        attachments.append(attachment)
    message.attachments = attachments


def _remember(store, interaction, message, how, request):
    message.history.append({
        "time": store.clock.now(),
        "how": how,
        "interaction": interaction.id if interaction else None,
        "request": request,
        "content": message.content,
        "embeds": message.embeds,
        "components": message.components,
        "attachments": [{"id": one.id, "filename": one.filename,
                         "size": one.size, "sha256": one.sha256}
                        for one in message.attachments],
        "flags": message.flags,
    })


def _new_message(store, interaction, ephemeral):
    application = store.user(store.identity.application_id)
    message = Message(store.snowflake(), interaction.place["channel"]["id"],
                      application, store.clock.now())
    message.type = {2: 20, 3: 19}.get(interaction.type, 0)
    if interaction.target:
        message.type = 23
    message.interaction = interaction.id
    message.command = interaction.label
    message.metadata = {
        "id": interaction.id,
        "type": interaction.type,
        "user": interaction.user,
        "authorizing_integration_owners": interaction.place["owners"],
    }
    if interaction.target:
        message.metadata["target_message_id"] = interaction.target
    message.owner = interaction.user["id"] if ephemeral else None
    return message


def create_message(store, interaction, payload, files, ephemeral, how,
                   request=None):
    """Check and add a message; raises ApiError."""
    message = _new_message(store, interaction, ephemeral)
    errors = FormErrors()
    wanted = payload.get("flags")
    v2 = isinstance(wanted, int) and bool(wanted & FLAG_COMPONENTS_V2)
    check_message(payload, errors, v2=v2)
    _check_sizes(files, interaction.attachment_size_limit)
    plan = _plan_attachments(payload, files, [], errors)
    errors.throw()
    _check_references(payload, plan, errors)
    errors.throw()
    if not plan and not any(payload.get(field) for field in SHOWN_FIELDS):
        raise ApiError(50006)
    message.flags = create_flags(wanted, ephemeral)
    message.content = payload.get("content") or ""
    message.embeds = payload.get("embeds") or []
    message.components = payload.get("components") or []
    _number_components(message.components)
    _put_attachments(store, message, plan)
    _check_mentions(store, interaction, message, payload, request)
    _remember(store, interaction, message, how, request)
    store.add_message(message)
    interaction.messages.append(message.id)
    return message


def create_loading(store, interaction, ephemeral):
    """Add the "thinking…" message of a deferral."""
    message = _new_message(store, interaction, ephemeral)
    message.loading = True
    message.flags = FLAG_LOADING | (FLAG_EPHEMERAL if ephemeral else 0)
    store.add_message(message)
    interaction.messages.append(message.id)
    return message


def edit_message(store, interaction, message, payload, files, how,
                 request=None):
    """Check and apply an edit; raises ApiError and then changes nothing."""
    errors = FormErrors()
    wanted = payload.get("flags")
    flags = message.flags
    if isinstance(wanted, int) and not isinstance(wanted, bool):
        flags = edit_flags(message.flags, wanted)
        if wanted & ~(flags | FLAG_EPHEMERAL):
            store.violate("flags", f"an edit cannot set flags {wanted}",
                          interaction, request)
    v2 = bool(flags & FLAG_COMPONENTS_V2)
    check_message(payload, errors, v2=v2)
    _check_sizes(files, interaction.attachment_size_limit)
    plan = _plan_attachments(payload, files, message.attachments, errors)
    errors.throw()
    _check_references(payload, plan, errors)
    after = {field: payload[field] if field in payload
             else getattr(message, field) for field in SHOWN_FIELDS}
    if v2:
        check_message(dict(after, components=None), errors, v2=True)
    errors.throw()
    if not plan and not any(after.values()):
        raise ApiError(50006)
    first = message.loading
    message.loading = False
    message.flags = flags & ~FLAG_LOADING
    message.content = after["content"] or ""
    message.embeds = after["embeds"] or []
    message.components = after["components"] or []
    _number_components(message.components)
    _put_attachments(store, message, plan)
    if not first:
        message.edited = store.clock.now()
    message.edits += 1
    interaction.edits += 1
    _check_mentions(store, interaction, message, payload, request)
    _remember(store, interaction, message, how, request)
    touched(store, message, interaction)
    return message


def touched(store, message, *interactions):
    """Tell everyone that a message changed."""
    store.publish("message", message.id)
    creator = store.interactions.get(message.interaction)
    store.changed(creator, *(one for one in interactions
                             if one is not creator))


def delete_message(store, message, by, interaction=None):
    """Take a message away; `by` says who did (user or app)."""
    message.deleted = by
    _remember(store, interaction, message, f"deleted by {by}", None)
    touched(store, message, interaction)


def add_notice(store, interaction, text):
    """Show the caller what Discord's own client says, as in a failure."""
    message = _new_message(store, interaction, True)
    message.flags = FLAG_EPHEMERAL
    message.notice = True
    message.content = text
    store.add_message(message)


def add_user_message(store, user, channel_id, content, attachments=()):
    """Add what a person wrote."""
    message = Message(store.snowflake(), channel_id, user,
                      store.clock.now())
    message.content = content
    message.attachments = list(attachments)
    for one in attachments:
        one.ephemeral = False
        one.channel_id = channel_id
    _remember(store, None, message, "written", None)
    store.add_message(message)
    return message


def _resolved(node, urls):
    """Return components or embeds with attachment:// made real."""
    if isinstance(node, dict):
        return {key: urls.get(value, value)
                if key == "url" and isinstance(value, str)
                else _resolved(value, urls) for key, value in node.items()}
    if isinstance(node, list):
        return [_resolved(item, urls) for item in node]
    return node


def message_json(store, message):
    """Return a message as the REST API shows it."""
    shown = [attachment_json(store, one) for one in message.attachments]
    urls = {"attachment://" + one["filename"]: one["url"] for one in shown}
    body = {
        "id": message.id,
        "type": message.type,
        "channel_id": message.channel_id,
        "author": message.author,
        "content": message.content,
        "attachments": shown,
        "embeds": _resolved(message.embeds, urls),
        "components": _resolved(message.components, urls),
        "flags": message.flags,
        "timestamp": iso_time(message.created),
        "edited_timestamp": (iso_time(message.edited)
                             if message.edited else None),
        "mentions": [], "mention_roles": [], "mention_everyone": False,
        "pinned": False, "tts": False,
    }
    if message.author.get("bot"):
        body["application_id"] = store.identity.application_id
        body["webhook_id"] = store.identity.application_id
    if message.metadata:
        body["interaction_metadata"] = message.metadata
    return body


def message_view(store, message, history=False):
    """Return a message with all that the stand-in knows of it."""
    view = message_json(store, message)
    view["standin"] = {
        "loading": message.loading,
        "deleted": message.deleted,
        "notice": message.notice,
        "ephemeral": message.ephemeral,
        "owner": message.owner,
        "edits": message.edits,
        "pings": message.pings,
        "interaction": message.interaction,
        "command": message.command,
    }
    for shown, one in zip(view["attachments"], message.attachments):
        shown["sha256"] = one.sha256
    if history:
        view["standin"]["history"] = message.history
    return view
