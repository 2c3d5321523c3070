# SPDX-License-Identifier: MIT
"""Discord's limits on what is not a message: modals, choices, commands."""

import unicodedata

from limits import (ROW, STRING_SELECT, TEXT, TEXT_INPUT, SELECTS,
                    check_select)

LABEL, FILE_UPLOAD = 18, 19
RADIO_GROUP, CHECKBOX_GROUP, CHECKBOX = 21, 22, 23
IN_LABEL = (TEXT_INPUT,) + SELECTS + (FILE_UPLOAD, RADIO_GROUP,
                                      CHECKBOX_GROUP, CHECKBOX)
SUB_COMMAND, SUB_COMMAND_GROUP, STRING = 1, 2, 3
INTEGER, BOOLEAN, NUMBER = 4, 5, 10
COMMAND_POINTS = 8000
FILE_KINDS = ("image", "video", "audio")
LOCALES = frozenset(
    "ar bg cs da de el en-GB en-US es-419 es-ES fi fr he hi hr hu id it ja ko "
    "lt nl no pl pt-BR ro ru sv-SE th tr uk vi zh-CN zh-TW".split())


def check_modal(data, errors):
    """Check the data of a MODAL response."""
    path = ("data",)
    if not errors.struct(path, data):
        return
    errors.text(path + ("custom_id",), data.get("custom_id"), 1, 100,
                required=True)
    errors.text(path + ("title",), data.get("title"), 1, 45, required=True)
    components = data.get("components")
    path += ("components",)
    if not errors.array(path, components, 1, 5, required=True):
        return
    seen = set()
    for index, component in enumerate(components):
        here = path + (index,)
        if not errors.struct(here, component):
            continue
        kind = component.get("type")
        if kind == LABEL:
            _check_label(here, component, errors, seen)
        elif kind == TEXT:
            errors.text(here + ("content",), component.get("content"),
                        1, 4000, required=True)
        elif kind == ROW:
            _check_legacy_row(here, component, errors, seen)
        else:
            errors.add(here + ("type",), "UNION_TYPE_CHOICES",
                       'Value of field "type" must be one of (1, 10, 18).')


def _check_label(path, component, errors, seen):
    errors.text(path + ("label",), component.get("label"), 1, 45,
                required=True)
    errors.text(path + ("description",), component.get("description"),
                0, 100)
    inner = component.get("component")
    path += ("component",)
    if not errors.struct(path, inner):
        return
    if inner.get("type") not in IN_LABEL:
        errors.add(path + ("type",), "UNION_TYPE_CHOICES",
                   'Value of field "type" is not allowed in a label.')
        return
    if inner.get("label") is not None:
        errors.add(path + ("label",), "COMPONENT_LABEL_NOT_ALLOWED",
                   "A component in a label has no label of its own")
    _check_field(path, inner, errors, seen)


def _check_legacy_row(path, component, errors, seen):
    inner = component.get("components")
    if not errors.array(path + ("components",), inner, 1, 1, required=True):
        return
    path += ("components", 0)
    if not errors.struct(path, inner[0]):
        return
    if inner[0].get("type") != TEXT_INPUT:
        errors.add(path + ("type",), "UNION_TYPE_CHOICES",
                   'Value of field "type" must be one of (4,).')
        return
    errors.text(path + ("label",), inner[0].get("label"), 1, 45,
                required=True)
    _check_field(path, inner[0], errors, seen)


def _check_field(path, field, errors, seen):
    custom_id = field.get("custom_id")
    if errors.text(path + ("custom_id",), custom_id, 1, 100, required=True):
        if custom_id in seen:
            errors.add(path + ("custom_id",),
                       "COMPONENT_CUSTOM_ID_DUPLICATED",
                       "Component custom id cannot be duplicated")
        seen.add(custom_id)
    errors.flag(path + ("required",), field.get("required"))
    kind = field["type"]
    if kind == TEXT_INPUT:
        _check_text_input(path, field, errors)
    elif kind in SELECTS:
        check_select(path, field, errors)
    elif kind == FILE_UPLOAD:
        errors.whole(path + ("min_values",), field.get("min_values"), 0, 10)
        errors.whole(path + ("max_values",), field.get("max_values"), 1, 10)
        _check_file_types(path, field, errors)
    elif kind in (RADIO_GROUP, CHECKBOX_GROUP):
        check_select(path, dict(field, type=STRING_SELECT), errors)


def _check_text_input(path, field, errors):
    errors.whole(path + ("style",), field.get("style"), 1, 2, required=True)
    low, high = field.get("min_length"), field.get("max_length")
    errors.whole(path + ("min_length",), low, 0, 4000)
    bounded = errors.whole(path + ("max_length",), high, 1, 4000)
    errors.text(path + ("value",), field.get("value"), 0,
                high if bounded else 4000)
    errors.text(path + ("placeholder",), field.get("placeholder"), 0, 100)
    if isinstance(low, int) and isinstance(high, int) and low > high:
        errors.add(path + ("min_length",), "TEXT_INPUT_COMPONENT_LENGTH",
                   "min_length must not be greater than max_length")


def _check_file_types(path, field, errors):
    types = field.get("file_types")
    if errors.array(path + ("file_types",), types, 0, 10):
        for index, kind in enumerate(types):
            if not isinstance(kind, str) or not (
                    kind in FILE_KINDS or kind.startswith(".")):
                errors.add(path + ("file_types", index),
                           "BASE_TYPE_CHOICES", "Not a file type.")


def check_choices(data, kind, errors):
    """Check the data of an autocomplete result for an option of a kind."""
    if not errors.struct(("data",), data):
        return
    path = ("data", "choices")
    choices = data.get("choices")
    if not errors.array(path, choices, 0, 25, required=True):
        return
    for index, choice in enumerate(choices):
        here = path + (index,)
        if not errors.struct(here, choice):
            continue
        errors.text(here + ("name",), choice.get("name"), 1, 100,
                    required=True)
        for where, text in _localized(here, choice, "name", errors):
            errors.text(where, text, 1, 100, required=True)
        value = choice.get("value")
        if not fits(kind, value):
            errors.add(here + ("value",), "APPLICATION_COMMAND_OPTIONS"
                       "_VALUE_INVALID", "The value is not of its option's "
                       "type.")
        elif isinstance(value, str):
            errors.text(here + ("value",), value, 1, 100, required=True)


def fits(kind, value):
    """Whether a value is one of an option of that kind."""
    if kind == BOOLEAN:
        return isinstance(value, bool)
    if kind == INTEGER:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == NUMBER:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, str)


def check_commands(commands, errors):
    """Check the array of commands that an application registers."""
    if not isinstance(commands, list):
        errors.add((), "LIST_TYPE_CONVERT",
                   "Only iterables may be used in a ListType")
        return
    counts = {1: 100, 2: 15, 3: 15}
    seen = set()
    for index, command in enumerate(commands):
        path = (index,)
        if not errors.struct(path, command):
            continue
        kind = command.get("type", 1)
        if kind not in counts:
            errors.add(path + ("type",), "BASE_TYPE_CHOICES",
                       "Value must be one of {1, 2, 3}.")
            continue
        counts[kind] -= 1
        if counts[kind] == -1:
            errors.add(path, "APPLICATION_COMMANDS_MAX",
                       "Too many commands of this type.")
        if (kind, command.get("name")) in seen:
            errors.add(path + ("name",),
                       "APPLICATION_COMMANDS_DUPLICATE_NAME",
                       "Application command names must be unique")
        seen.add((kind, command.get("name")))
        _check_command(path, command, kind, errors)


def _check_command(path, command, kind, errors):
    name = command.get("name")
    if kind == 1:
        _check_words(path, command, errors)
        _check_options(path, command.get("options"), 0, errors)
    else:
        errors.text(path + ("name",), name, 1, 32, required=True)
        for where, text in _localized(path, command, "name", errors):
            errors.text(where, text, 1, 32, required=True)
        if command.get("description"):
            errors.add(path + ("description",),
                       "APPLICATION_COMMAND_CONTEXT_MENU_DESCRIPTION",
                       "Context menu commands cannot have description")
        if command.get("options"):
            errors.add(path + ("options",),
                       "APPLICATION_COMMAND_CONTEXT_MENU_OPTIONS",
                       "Context menu commands cannot have options")
    permissions = command.get("default_member_permissions")
    if permissions is not None and not str(permissions).isdigit():
        errors.add(path + ("default_member_permissions",),
                   "NUMBER_TYPE_COERCE", "Value is not a snowflake.")
    for field, high in (("integration_types", 1), ("contexts", 2)):
        values = command.get(field)
        if errors.array(path + (field,), values, 1, high + 1):
            for index, value in enumerate(values):
                errors.whole(path + (field, index), value, 0, high,
                             required=True)
    if _points(command) > COMMAND_POINTS:
        errors.add(path, "APPLICATION_COMMAND_TOO_LARGE",
                   "Command exceeds maximum size (8000)")


def _localized(path, node, field, errors):
    """Yield the path and text of each translation of a field."""
    field += "_localizations"
    given = node.get(field)
    if given is None or not errors.struct(path + (field,), given):
        return
    for locale, text in given.items():
        where = path + (field, locale)
        if locale not in LOCALES:
            errors.add(where, "BASE_TYPE_CHOICES",
                       f"{locale} is not a locale.")
        yield where, text


def _check_words(path, node, errors):
    """Check name and description of a command or an option, translated."""
    _check_name(path + ("name",), node.get("name"), errors)
    for where, text in _localized(path, node, "name", errors):
        _check_name(where, text, errors)
    errors.text(path + ("description",), node.get("description"), 1, 100,
                required=True)
    for where, text in _localized(path, node, "description", errors):
        errors.text(where, text, 1, 100, required=True)


def _check_name(path, name, errors):
    if not errors.text(path, name, 1, 32, required=True):
        return
    for letter in name:
        if letter not in "-_'" and unicodedata.category(letter)[0] not in "LN":
            errors.add(path, "STRING_TYPE_REGEX",
                       "String value did not match validation regex.")
            return
    if name != name.lower():
        errors.add(path, "APPLICATION_COMMAND_INVALID_NAME",
                   "Command name is invalid")


def _check_options(path, options, depth, errors):
    path += ("options",)
    if not errors.array(path, options, 0, 25):
        return
    names = set()
    optional_seen = False
    for index, option in enumerate(options):
        here = path + (index,)
        if not errors.struct(here, option):
            continue
        _check_words(here, option, errors)
        if option.get("name") in names:
            errors.add(here + ("name",),
                       "APPLICATION_COMMAND_OPTIONS_NAME_INVALID",
                       "Option name is already used")
        names.add(option.get("name"))
        kind = option.get("type")
        if not errors.whole(here + ("type",), kind, 1, 11, required=True):
            continue
        if kind in (SUB_COMMAND, SUB_COMMAND_GROUP):
            if depth >= (2 if kind == SUB_COMMAND else 1):
                errors.add(here + ("type",), "BASE_TYPE_CHOICES",
                           "Sub-commands cannot be nested deeper.")
            _check_options(here, option.get("options"),
                           depth + (1 if kind == SUB_COMMAND_GROUP else 2),
                           errors)
            continue
        if option.get("required"):
            if optional_seen:
                errors.add(here, "APPLICATION_COMMAND_OPTIONS_REQUIRED"
                           "_INVALID", "Required options must be placed "
                           "before non-required options")
        else:
            optional_seen = True
        _check_leaf(here, option, kind, errors)


def _check_leaf(path, option, kind, errors):
    choices = option.get("choices")
    errors.flag(path + ("autocomplete",), option.get("autocomplete"))
    if errors.array(path + ("choices",), choices, 0, 25) and choices:
        if option.get("autocomplete"):
            errors.add(path + ("autocomplete",), "APPLICATION_COMMAND"
                       "_AUTOCOMPLETE_AND_CHOICES", "Autocomplete and "
                       "choices exclude each other")
        for index, choice in enumerate(choices):
            here = path + ("choices", index)
            if errors.struct(here, choice):
                errors.text(here + ("name",), choice.get("name"), 1, 100,
                            required=True)
                for where, text in _localized(here, choice, "name", errors):
                    errors.text(where, text, 1, 100, required=True)
                if kind == STRING:
                    errors.text(here + ("value",), choice.get("value"),
                                1, 100, required=True)
    errors.whole(path + ("min_length",), option.get("min_length"), 0, 6000)
    errors.whole(path + ("max_length",), option.get("max_length"), 1, 6000)


def _points(node):
    """Count the characters of names, descriptions and choice values, of the
    longest translation each.
    """
    total = 0
    for field in ("name", "description", "value"):
        texts = [node.get(field)]
        translated = node.get(field + "_localizations")
        if isinstance(translated, dict):
            texts += translated.values()
        total += max(len(one) if isinstance(one, str) else 0
                     for one in texts)
    for field in ("options", "choices"):
        inner = node.get(field)
        for child in inner if isinstance(inner, list) else ():
            if isinstance(child, dict):
                total += _points(child)
    return total
