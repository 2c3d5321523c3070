# SPDX-License-Identifier: MIT
"""Discord's limits on messages: lengths, counts, components, embeds.

Lengths are counted in Unicode code points. Everything wrong with a body is
gathered in one FormErrors, as Discord does.
"""

from errors import ApiError
from state import (FLAG_COMPONENTS_V2, FLAG_EPHEMERAL, FLAG_SUPPRESS_EMBEDS)

CONTENT = 2000
EMBEDS = 10
EMBED_TEXT = 6000
ATTACHMENTS = 10
LEGACY_ROWS = 5
V2_COMPONENTS = 40
V2_TEXT = 4000
V2_BYTES = 10170
V2_BYTES_EACH = 12

ROW, BUTTON, STRING_SELECT, TEXT_INPUT = 1, 2, 3, 4
USER_SELECT, ROLE_SELECT, MENTIONABLE_SELECT, CHANNEL_SELECT = 5, 6, 7, 8
SECTION, TEXT, THUMBNAIL, GALLERY, FILE, SEPARATOR = 9, 10, 11, 12, 13, 14
CONTAINER = 17
SELECTS = (STRING_SELECT, USER_SELECT, ROLE_SELECT, MENTIONABLE_SELECT,
           CHANNEL_SELECT)

V2_TOP = (ROW, SECTION, TEXT, GALLERY, FILE, SEPARATOR, CONTAINER)
V2_IN_CONTAINER = (ROW, SECTION, TEXT, GALLERY, FILE, SEPARATOR)


def check_message(payload, errors, *, v2):
    """Check the fields of a create or an edit, `v2` being its final mode."""
    errors.text(("content",), payload.get("content"), 0, CONTENT)
    embeds = payload.get("embeds")
    if errors.array(("embeds",), embeds, 0, EMBEDS):
        check_embeds(embeds, errors)
    components = payload.get("components")
    if errors.array(("components",), components, 0,
                    V2_COMPONENTS if v2 else LEGACY_ROWS):
        MessageComponents(errors, v2).check(components)
    if v2:
        for field in ("content", "embeds", "poll"):
            if payload.get(field):
                errors.add((field,), "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH"
                           "_COMPONENTS_V2", f"The '{field}' field cannot be "
                           "used when using MessageFlags.IS_COMPONENTS_V2")
    errors.whole(("flags",), payload.get("flags"), 0, 2**31 - 1)
    mentions = payload.get("allowed_mentions")
    if mentions is not None:
        errors.struct(("allowed_mentions",), mentions)
    if isinstance(payload.get("tts"), (str, int)) and not isinstance(
            payload.get("tts"), bool):
        errors.flag(("tts",), payload["tts"])


def check_embeds(embeds, errors):
    """Check embeds one by one and their text in total."""
    total = 0
    for index, embed in enumerate(embeds):
        path = ("embeds", index)
        if not errors.struct(path, embed):
            continue
        author = embed.get("author") or {}
        footer = embed.get("footer") or {}
        fields = embed.get("fields") or []
        texts = [
            (path + ("title",), embed.get("title"), 0, 256),
            (path + ("description",), embed.get("description"), 0, 4096),
            (path + ("author", "name"), author.get("name"), 0, 256),
            (path + ("footer", "text"), footer.get("text"), 0, 2048),
        ]
        if errors.array(path + ("fields",), fields, 0, 25):
            for at, field in enumerate(fields):
                here = path + ("fields", at)
                if errors.struct(here, field):
                    texts.append((here + ("name",),
                                  field.get("name", ""), 1, 256))
                    texts.append((here + ("value",),
                                  field.get("value", ""), 1, 1024))
        for where, value, low, high in texts:
            if errors.text(where, value, low, high):
                total += len(value)
        errors.whole(path + ("color",), embed.get("color"), 0, 0xffffff)
    if total > EMBED_TEXT:
        errors.add(("embeds",), "MAX_EMBED_SIZE_EXCEEDED",
                   f"Embed size exceeds maximum size of {EMBED_TEXT}")


class MessageComponents:
    """Checks the component tree of one message."""

    def __init__(self, errors, v2):
        self.errors = errors
        self.v2 = v2
        self.custom_ids = set()
        self.ids = set()
        self.count = 0
        self.text_points = 0
        self.text_bytes = 0

    def check(self, components):
        """Check the whole tree."""
        top = V2_TOP if self.v2 else (ROW,)
        for index, component in enumerate(components):
            self.one(("components", index), component, top)
        if self.v2 and self.count > V2_COMPONENTS:
            self.errors.add(("components",), "COMPONENT_MAX_TOTAL_COMPONENTS",
                            "The maximum number of components is "
                            f"{V2_COMPONENTS}")
        if self.text_points > V2_TEXT:
            self.errors.add(("components",),
                            "COMPONENT_DISPLAYABLE_TEXT_SIZE_EXCEEDED",
                            "Displayable text size exceeds maximum size of "
                            f"{V2_TEXT}")
        elif (self.text_bytes + V2_BYTES_EACH * self.count > V2_BYTES
              and not self.errors.flat):
            # Discord gives no better answer than this to such a message.
            raise ApiError(0, status=500,
                           message="500: Internal Server Error")

    def one(self, path, component, allowed):
        """Check one component, its kind being one of `allowed`."""
        if not self.errors.struct(path, component):
            return
        self.count += 1
        kind = component.get("type")
        if isinstance(kind, bool) or kind not in allowed:
            choices = ", ".join(map(str, allowed))
            self.errors.add(path + ("type",), "UNION_TYPE_CHOICES",
                            f"Value of field \"type\" must be one of "
                            f"({choices}).")
            return
        identifier = component.get("id")
        if self.errors.whole(path + ("id",), identifier, 0, 2**31 - 1):
            if identifier and identifier in self.ids:
                self.errors.add(path + ("id",), "COMPONENT_DUPLICATED_ID",
                                "Component id cannot be duplicated")
            self.ids.add(identifier)
        check = {
            ROW: self.row, BUTTON: self.button, SECTION: self.section,
            TEXT: self.text, THUMBNAIL: self.media_holder,
            GALLERY: self.gallery, FILE: self.file,
            SEPARATOR: self.separator, CONTAINER: self.container,
        }.get(kind, self.select)
        check(path, component)

    def children(self, path, component, low, high, allowed):
        """Check the components inside one."""
        path += ("components",)
        inner = component.get("components")
        if self.errors.array(path, inner, low, high, required=True):
            for index, child in enumerate(inner):
                self.one(path + (index,), child, allowed)

    def custom_id(self, path, component):
        """Check a custom id, which must not appear twice."""
        value = component.get("custom_id")
        path += ("custom_id",)
        if self.errors.text(path, value, 1, 100, required=True):
            if value in self.custom_ids:
                self.errors.add(path, "COMPONENT_CUSTOM_ID_DUPLICATED",
                                "Component custom id cannot be duplicated")
            self.custom_ids.add(value)

    def row(self, path, component):
        """An action row: up to 5 buttons, or one select."""
        self.children(path, component, 1, 5, (BUTTON,) + SELECTS)
        inner = component.get("components")
        kinds = [child.get("type") for child in inner or ()
                 if isinstance(child, dict)] if isinstance(
                     inner, list) else []
        if len(kinds) > 1 and any(kind in SELECTS for kind in kinds):
            self.errors.add(path + ("components",),
                            "COMPONENT_LAYOUT_WIDTH_EXCEEDED",
                            "The specified component exceeds the maximum "
                            "width")

    def button(self, path, component):
        """A button: label or emoji, and a custom id or a URL."""
        style = component.get("style")
        if not self.errors.whole(path + ("style",), style, 1, 6,
                                 required=True):
            return
        label, emoji = component.get("label"), component.get("emoji")
        self.errors.text(path + ("label",), label, 0, 80)
        self.errors.flag(path + ("disabled",), component.get("disabled"))
        if style == 6:
            return
        if not label and not emoji:
            self.errors.add(path, "BUTTON_COMPONENT_INVALID",
                            "A button must have a label or emoji")
        url, custom_id = component.get("url"), component.get("custom_id")
        if style == 5:
            if custom_id is not None:
                self.errors.add(path,
                                "BUTTON_COMPONENT_CUSTOM_ID_URL_MUTUALLY"
                                "_EXCLUSIVE", "A custom id and url cannot "
                                "both be specified")
            if self.errors.text(path + ("url",), url, 1, 512, required=True):
                if not url.startswith(("http://", "https://", "discord://")):
                    self.errors.add(path + ("url",),
                                    "URL_TYPE_INVALID_SCHEME",
                                    "Scheme must be one of "
                                    "('http', 'https', 'discord').")
            return
        if url is not None:
            self.errors.add(path, "BUTTON_COMPONENT_CUSTOM_ID_URL_MUTUALLY"
                            "_EXCLUSIVE", "A custom id and url cannot both "
                            "be specified")
        self.custom_id(path, component)

    def select(self, path, component):
        """A select menu."""
        self.custom_id(path, component)
        check_select(path, component, self.errors)

    def section(self, path, component):
        """A section: one to three texts and an accessory."""
        self.children(path, component, 1, 3, (TEXT,))
        self.one(path + ("accessory",), component.get("accessory"),
                 (BUTTON, THUMBNAIL))

    def text(self, path, component):
        """A text display."""
        content = component.get("content")
        if self.errors.text(path + ("content",), content, 1, V2_TEXT,
                            required=True):
            self.text_points += len(content)
            self.text_bytes += len(content.encode("utf-8", "replace"))

    def media(self, path, media, attached):
        """A reference to a file or an address."""
        if not self.errors.struct(path, media):
            return
        url = media.get("url")
        if not self.errors.text(path + ("url",), url, 1, 2048, required=True):
            return
        allowed = ("attachment://",) if attached else (
            "attachment://", "http://", "https://")
        if not url.startswith(allowed):
            self.errors.add(path + ("url",), "URL_TYPE_INVALID_SCHEME",
                            "Scheme of url is not allowed here.")

    def media_holder(self, path, component):
        """A thumbnail."""
        self.media(path + ("media",), component.get("media"), False)
        self.errors.text(path + ("description",),
                         component.get("description"), 0, 1024)

    def gallery(self, path, component):
        """A media gallery of 1 to 10 items."""
        items = component.get("items")
        if self.errors.array(path + ("items",), items, 1, 10, required=True):
            for index, item in enumerate(items):
                here = path + ("items", index)
                if self.errors.struct(here, item):
                    self.media_holder(here, item)

    def file(self, path, component):
        """A file component, which must name an attachment."""
        self.media(path + ("file",), component.get("file"), True)

    def separator(self, path, component):
        """A separator."""
        self.errors.whole(path + ("spacing",), component.get("spacing"), 1, 2)
        self.errors.flag(path + ("divider",), component.get("divider"))

    def container(self, path, component):
        """A container of other components."""
        self.errors.whole(path + ("accent_color",),
                          component.get("accent_color"), 0, 0xffffff)
        self.children(path, component, 1, V2_COMPONENTS, V2_IN_CONTAINER)


def check_select(path, component, errors):
    """Check a select menu but for its custom id."""
    errors.text(path + ("placeholder",), component.get("placeholder"), 0, 150)
    low = component.get("min_values")
    high = component.get("max_values")
    errors.whole(path + ("min_values",), low, 0, 25)
    errors.whole(path + ("max_values",), high, 1, 25)
    if component.get("type") != STRING_SELECT:
        return
    options = component.get("options")
    if not errors.array(path + ("options",), options, 1, 25, required=True):
        return
    values = set()
    for index, option in enumerate(options):
        here = path + ("options", index)
        if not errors.struct(here, option):
            continue
        errors.text(here + ("label",), option.get("label"), 1, 100,
                    required=True)
        value = option.get("value")
        if errors.text(here + ("value",), value, 1, 100, required=True):
            if value in values:
                errors.add(here + ("value",),
                           "SELECT_COMPONENT_OPTION_VALUE_DUPLICATED",
                           "The specified option value is already used")
            values.add(value)
        errors.text(here + ("description",), option.get("description"),
                    0, 100)
    for count in (low, high):
        if isinstance(count, int) and count > len(options):
            errors.add(path, "SELECT_COMPONENT_INVALID_LIMIT",
                       "More values than options")


def walk(components):
    """Yield every component of a checked tree, parents first."""
    for component in components:
        yield component
        inner = component.get("components")
        if isinstance(inner, list):
            yield from walk(inner)
        for single in ("accessory", "component"):
            if isinstance(component.get(single), dict):
                yield from walk([component[single]])


def edit_flags(old, wanted):
    """Return the flags of a message after an edit that asks for `wanted`.

    An edit can set and clear SUPPRESS_EMBEDS, can set IS_COMPONENTS_V2, and
    leaves all others alone.
    """
    if wanted is None:
        return old
    flags = (old & ~FLAG_SUPPRESS_EMBEDS) | (wanted & FLAG_SUPPRESS_EMBEDS)
    return flags | (wanted & FLAG_COMPONENTS_V2)


def create_flags(wanted, ephemeral):
    """Return the flags of a new message, its visibility being fixed."""
    keep = FLAG_SUPPRESS_EMBEDS | FLAG_COMPONENTS_V2 | 4096
    flags = (wanted or 0) & keep
    return flags | FLAG_EPHEMERAL if ephemeral else flags
