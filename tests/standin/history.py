# SPDX-License-Identifier: MIT
"""The channels' history in an SQLite file, for the next start.

A thread of its own follows the store's events, as each chat page does, and
writes what changed; so the file is a moment behind, in which it gathers what
comes together, and kill -9 loses no more than that. Kept are the newest messages with their files, and the
interactions whose tokens live: who was answered before a restart may edit that
answer after it.
"""

import json
import os
import sqlite3
import sys
import threading

from sender import NOT_RESPONDING
from state import (ANSWERED, Attachment, FLAG_EPHEMERAL, Interaction, Message)

VERSION = 1
KEPT_MESSAGES = 1000
KEPT_INTERACTIONS = 1000
KEPT_BYTES = 64 << 20
BATCH_SECONDS = 0.25
TABLES = """
CREATE TABLE message (id INTEGER PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE attachment (id INTEGER PRIMARY KEY, message INTEGER NOT NULL
    REFERENCES message (id) ON DELETE CASCADE, body TEXT NOT NULL,
    data BLOB NOT NULL);
CREATE INDEX attachment_message ON attachment (message);
CREATE TABLE interaction (id INTEGER PRIMARY KEY, body TEXT NOT NULL);
"""
PRUNE = (
    ("DELETE FROM message WHERE id NOT IN "
     "(SELECT id FROM message ORDER BY id DESC LIMIT ?)", KEPT_MESSAGES),
    ("DELETE FROM interaction WHERE id NOT IN "
     "(SELECT id FROM interaction ORDER BY id DESC LIMIT ?)",
     KEPT_INTERACTIONS),
    ("DELETE FROM attachment WHERE id IN (SELECT id FROM (SELECT id, "
     "sum(length(data)) OVER (ORDER BY id DESC) AS total FROM attachment) "
     "WHERE total > ?)", KEPT_BYTES),
)
# What an interaction is after a restart; its messages are named by their ids.
INTERACTION = ("id", "token", "type", "user", "place", "created", "state",
               "answer_type", "source", "label", "target", "messages",
               "followups", "edits", "modal", "user_install_only",
               "attachment_size_limit")
NOT_MESSAGE = ("attachments", "history")
NOT_ATTACHMENT = ("data",)


def _body(thing, without):
    return json.dumps({name: value for name, value in vars(thing).items()
                       if name not in without})


class History:
    """The file, and the thread that writes it."""

    def __init__(self, store, path):
        """Fill the store out of the file, and follow it from then on.

        A file that is none of ours is moved aside. Raises sqlite3.Error when
        it can be neither read nor made.
        """
        self.store = store
        self.path = path
        self.stored = set()
        self.link = self._open()
        try:
            self._load()
        except (sqlite3.DatabaseError, LookupError, TypeError,
                ValueError) as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            print(f"standin: {path}: {error}; it is moved to {path}.broken",
                  file=sys.stderr, flush=True)
            self.link.close()
            os.replace(path, path + ".broken")
            store.clear()
            self.link = self._open()
            self._load()
        self.seen = store.event_count
        self.thread = threading.Thread(target=self._follow, daemon=True)
        self.thread.start()

    def close(self):
        """Wait until all is written; the store is stopping."""
        self.thread.join()
        self.link.close()

    def _open(self):
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC,
                         0o600))
        return sqlite3.connect(self.path, check_same_thread=False)

    # Reading

    def _load(self):
        with self.link:
            self.link.execute("PRAGMA journal_mode = WAL")
            self.link.execute("PRAGMA synchronous = NORMAL")
            self.link.execute("PRAGMA foreign_keys = ON")
            [version] = self.link.execute("PRAGMA user_version").fetchone()
            if version == 0:
                self.link.executescript(
                    TABLES + f"PRAGMA user_version = {VERSION}")
            elif version != VERSION:
                raise ValueError(f"of version {version}")
        with self.store.lock:
            for [body] in self._rows("message", "body"):
                self._take_message(json.loads(body))
            for owner, body, data in self._rows("attachment",
                                                "message, body, data"):
                self._take_attachment(str(owner), json.loads(body), data)
            for [body] in self._rows("interaction", "body"):
                self._take_interaction(json.loads(body))
            self._end_thoughts()

    def _rows(self, table, columns):
        return self.link.execute(
            f"SELECT {columns} FROM {table} ORDER BY id")

    def _take_message(self, body):
        message = Message(body["id"], body["channel_id"], body["author"],
                          body["created"])
        vars(message).update(body)
        for user in (message.author, (message.metadata or {}).get("user")):
            if user:
                self.store.users.setdefault(user["id"], user)
        self.store.messages[message.id] = message

    def _take_attachment(self, owner, body, data):
        attachment = Attachment(body["id"], body["channel_id"],
                                body["filename"], data)
        vars(attachment).update(body)
        self.store.add_attachment(attachment)
        self.store.messages[owner].attachments.append(attachment)
        self.stored.add(attachment.id)

    def _take_interaction(self, body):
        interaction = Interaction(self.store.lock, body["id"], body["type"],
                                  body["user"], body["place"])
        vars(interaction).update(
            {name: body[name] for name in INTERACTION})
        interaction.original = self.store.messages.get(body["original"])
        self.store.interactions[interaction.id] = interaction
        self.store.tokens[interaction.token] = interaction

    def _end_thoughts(self):
        """Nobody can answer any more what is thinking without a token."""
        for message in self.store.messages.values():
            if message.loading and not self._lives(
                    self.store.interactions.get(message.interaction)):
                message.loading = False
                message.notice = True
                message.flags = FLAG_EPHEMERAL
                message.content = NOT_RESPONDING

    def _lives(self, interaction):
        """Whether an interaction was answered and its token is good."""
        store = self.store
        return (interaction is not None and interaction.state == ANSWERED
                and store.clock.now() - interaction.created
                < store.settings.token_life)

    # Writing

    def _follow(self):
        store = self.store
        try:
            while True:
                with store.lock:
                    store.feed_changed.wait_for(
                        lambda: store.event_count > self.seen
                        or store.stopping.is_set())
                last = store.stopping.wait(BATCH_SECONDS)
                with store.lock:
                    work = self._changes()
                with self.link:
                    for statement, *values in work:
                        self.link.execute(statement, values)
                    for statement, most in PRUNE:
                        self.link.execute(statement, [most])
                if last:
                    return
        except sqlite3.Error as error:
            print(f"standin: {self.path}: {error}; history is no longer kept",
                  file=sys.stderr, flush=True)

    def _changes(self):
        """Return the statements, with values, that make the file true."""
        store = self.store
        fresh = store.events_since(self.seen)
        self.seen = store.event_count
        work = []
        if fresh is None or ("reset", None) in fresh:
            self.stored.clear()
            work += [("DELETE FROM message",), ("DELETE FROM interaction",)]
            fresh = [("message", one) for one in store.messages]
            fresh += [("interaction", one) for one in store.interactions]
        for kind, identifier in fresh:
            if kind == "message":
                work += self._message(identifier)
            elif kind == "interaction":
                work += self._interaction(identifier)
        return work

    def _message(self, identifier):
        message = self.store.messages.get(identifier)
        if message is None or message.deleted:
            yield "DELETE FROM message WHERE id = ?", int(identifier)
            return
        yield ("INSERT INTO message VALUES (?, ?) ON CONFLICT (id) DO UPDATE "
               "SET body = excluded.body", int(identifier),
               _body(message, NOT_MESSAGE))
        kept = [int(one.id) for one in message.attachments]
        yield ("DELETE FROM attachment WHERE message = ? AND id NOT IN "
               "(SELECT value FROM json_each(?))", int(identifier),
               json.dumps(kept))
        for one in message.attachments:
            if one.id in self.stored:
                yield ("UPDATE attachment SET body = ? WHERE id = ?",
                       _body(one, NOT_ATTACHMENT), int(one.id))
            else:
                self.stored.add(one.id)
                yield ("INSERT INTO attachment VALUES (?, ?, ?, ?) "
                       "ON CONFLICT DO NOTHING",
                       int(one.id), int(identifier),
                       _body(one, NOT_ATTACHMENT), one.data)

    def _interaction(self, identifier):
        interaction = self.store.interactions.get(identifier)
        if not self._lives(interaction) or interaction.choices is not None:
            yield "DELETE FROM interaction WHERE id = ?", int(identifier)
            return
        body = {name: getattr(interaction, name) for name in INTERACTION}
        body["original"] = interaction.original and interaction.original.id
        yield ("INSERT INTO interaction VALUES (?, ?) ON CONFLICT (id) DO "
               "UPDATE SET body = excluded.body", int(identifier),
               json.dumps(body))
