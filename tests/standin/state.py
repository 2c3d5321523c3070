# SPDX-License-Identifier: MIT
"""Everything the stand-in remembers, and how to wait for it to change.

One lock guards all of it; nothing blocks while it is held. Each interaction
has a condition variable of its own on that lock, so that a thousand waiting
tests do not wake each other.
"""

import collections
import secrets
import sys
import threading
import time

DISCORD_EPOCH_MS = 1420070400000
KEPT_INTERACTIONS = 20000
KEPT_MESSAGES = 40000
KEPT_EVENTS = 4000
KEPT_REQUESTS = 50000
KEPT_ATTACHMENT_BYTES = 512 << 20

GUILD_ID = "300000000000000001"
GUILD_CHANNEL_ID = "400000000000000001"
GROUP_CHANNEL_ID = "400000000000000002"

FLAG_SUPPRESS_EMBEDS = 4
FLAG_EPHEMERAL = 64
FLAG_LOADING = 128
FLAG_COMPONENTS_V2 = 32768

PENDING = "pending"
ANSWERED = "answered"
REFUSED = "refused"
FAILED = "failed"


def iso_time(seconds):
    """Return Unix seconds as Discord writes times."""
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{text}.{int(seconds % 1 * 1e6):06d}+00:00"


class Clock:
    """The stand-in's time; tests push it on to age tokens."""

    def __init__(self):
        self.offset = 0.0

    def now(self):
        """Return Unix seconds."""
        return time.time() + self.offset


class Interaction:
    """One interaction: what was sent, what came back, what it made."""

    def __init__(self, lock, identifier, kind, user, place):
        self.id = identifier
        self.token = secrets.token_urlsafe(32)
        self.type = kind
        self.user = user
        self.place = place
        self.condition = threading.Condition(lock)
        self.created = 0.0
        self.state = PENDING
        self.error = None
        self.sent = None
        self.sent_at = 0.0
        self.http = None
        self.answer = None
        self.answer_type = None
        self.answered_via = None
        self.answered_at = None
        self.answer_ms = None
        self.original = None
        self.source = None
        self.label = None
        self.target = None
        self.focused = None
        self.messages = []
        self.followups = 0
        self.edits = 0
        self.modal = None
        self.choices = None
        self.hostile = False
        self.user_install_only = False
        self.attachment_size_limit = None
        self.dead_uses = 0


class Message:
    """One message of the chat, with everything it ever showed."""

    def __init__(self, identifier, channel_id, author, created):
        self.id = identifier
        self.channel_id = channel_id
        self.author = author
        self.type = 0
        self.content = ""
        self.embeds = []
        self.components = []
        self.attachments = []
        self.flags = 0
        self.created = created
        self.edited = None
        self.loading = False
        self.deleted = None
        self.owner = None
        self.interaction = None
        self.metadata = None
        self.command = None
        self.notice = False
        self.edits = 0
        self.pings = 0
        self.history = []

    @property
    def ephemeral(self):
        """Whether only its owner sees it."""
        return bool(self.flags & FLAG_EPHEMERAL)


class Attachment:
    """A stored file."""

    def __init__(self, identifier, channel_id, filename, data):
        self.id = identifier
        self.channel_id = channel_id
        self.filename = filename
        self.data = data
        self.content_type = None
        self.description = None
        self.ephemeral = False
        self.width = None
        self.height = None
        self.sha256 = None
        self.size = len(data)
        self.title = None


class Bounded(collections.OrderedDict):
    """A dictionary that forgets its oldest entries."""

    def __init__(self, most):
        super().__init__()
        self.most = most

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        while len(self) > self.most:
            self.popitem(last=False)


class Store:
    """The whole state; hold `lock` while reading or changing it."""

    def __init__(self, identity, settings):
        self.identity = identity
        self.settings = settings
        self.clock = Clock()
        self.lock = threading.RLock()
        self.feed_changed = threading.Condition(self.lock)
        self.stopping = threading.Event()
        self.leaving = threading.Event()    # pages are to let go
        self.secret = secrets.token_bytes(16)
        self._last_ms = 0
        self._last_count = 0
        self.users = _default_users(identity.application_id)
        self.commands = {}
        self.endpoint = settings.endpoint
        self.installs = {0, 1}  # contexts that the application allows
        self.clear()

    def clear(self):
        """Forget everything but identity, settings and commands."""
        with self.lock:
            self.interactions = Bounded(KEPT_INTERACTIONS)
            self.tokens = Bounded(KEPT_INTERACTIONS)
            self.messages = Bounded(KEPT_MESSAGES)
            self.attachments = collections.OrderedDict()
            self.attachment_bytes = 0
            self.requests = collections.deque(maxlen=KEPT_REQUESTS)
            self.request_count = 0
            self.violations = []
            self.invalid_requests = 0
            self.events = collections.deque(maxlen=KEPT_EVENTS)
            self.event_count = getattr(self, "event_count", 0)
            self.publish("reset", None)

    def snowflake(self):
        """Return a new id, unique and growing, as a string."""
        with self.lock:
            ms = max(int(time.time() * 1000), self._last_ms)
            if ms == self._last_ms:
                self._last_count += 1
                if self._last_count > 0x3fffff:
                    ms, self._last_count = ms + 1, 0
            else:
                self._last_count = 0
            self._last_ms = ms
            return str(((ms - DISCORD_EPOCH_MS) << 22) | self._last_count)

    def user(self, name):
        """Return the user of this name or id, made on first use."""
        with self.lock:
            name = str(name)
            for user in self.users.values():
                if name in (user["id"], user["username"]):
                    return user
            known = name.isdigit()
            user = {
                "id": name if known else self.snowflake(),
                "username": f"user{name[-4:]}" if known else name,
                "global_name": f"User {name[-4:]}" if known else name.title(),
                "discriminator": "0",
                "avatar": None,
                "avatar_decoration_data": None,
                "public_flags": 0,
            }
            self.users[user["id"]] = user
            return user

    def add_interaction(self, interaction):
        """Keep a new interaction; its token is known from now on."""
        with self.lock:
            interaction.created = self.clock.now()
            self.interactions[interaction.id] = interaction
            self.tokens[interaction.token] = interaction

    def add_message(self, message):
        """Keep and show a new message."""
        with self.lock:
            self.messages[message.id] = message
            self.publish("message", message.id)

    def add_attachment(self, attachment):
        """Keep a file; the oldest are dropped over a total size."""
        with self.lock:
            self.attachments[attachment.id] = attachment
            self.attachment_bytes += attachment.size
            while (self.attachment_bytes > KEPT_ATTACHMENT_BYTES
                   and len(self.attachments) > 1):
                _, oldest = self.attachments.popitem(last=False)
                self.attachment_bytes -= oldest.size

    def changed(self, *interactions):
        """Wake whoever waits for one of these interactions."""
        with self.lock:
            for interaction in interactions:
                if interaction is not None:
                    self.publish("interaction", interaction.id)
                    interaction.condition.notify_all()

    def publish(self, kind, identifier):
        """Tell the chat pages that something changed."""
        with self.lock:
            self.event_count += 1
            self.events.append((self.event_count, kind, identifier))
            self.feed_changed.notify_all()

    def events_since(self, seen):
        """Return [(kind, id)], each once and in the order of its latest
        event, or None when some of them are forgotten.
        """
        with self.lock:
            if self.event_count - seen > len(self.events):
                return None
            fresh = {}
            for number, kind, identifier in reversed(self.events):
                if number <= seen:
                    break
                fresh.setdefault((kind, identifier))
            return list(reversed(fresh))

    def violate(self, kind, detail, interaction=None, request=None):
        """Record a broken rule; the tests want none."""
        with self.lock:
            # "early" is how a request is slower than the next one.
            if self.settings.verbose and kind != "early":
                print(f"standin: {kind}: {detail}", file=sys.stderr,
                      flush=True)
            self.violations.append({
                "kind": kind,
                "detail": detail,
                "interaction": interaction.id if interaction else None,
                "request": request,
                "time": self.clock.now(),
            })

    def end_feeds(self):
        """End the event streams of the pages."""
        self.leaving.set()
        with self.lock:
            self.feed_changed.notify_all()

    def stop(self):
        """Let every waiting thread go."""
        self.stopping.set()
        self.end_feeds()
        with self.lock:
            for interaction in self.interactions.values():
                interaction.condition.notify_all()


def _default_users(application_id):
    users = {}
    people = (("100000000000000001", "alice", "Alice"),
              ("100000000000000002", "bob", "Bob"),
              ("100000000000000003", "carol", "Carol"))
    for identifier, username, name in people:
        users[identifier] = {
            "id": identifier,
            "username": username,
            "global_name": name,
            "discriminator": "0",
            "avatar": None,
            "avatar_decoration_data": None,
            "public_flags": 0,
        }
    users[application_id] = {
        "id": application_id,
        "username": "inline",
        "global_name": "Inline",
        "discriminator": "0000",
        "avatar": None,
        "avatar_decoration_data": None,
        "public_flags": 0,
        "bot": True,
    }
    return users
