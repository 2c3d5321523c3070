# SPDX-License-Identifier: MIT
"""Nodes on loopback that people move between: each with a broker, volumes and
an nginx of its own, one table and one key, and one stand-in for Discord."""

import glob
import os
import secrets
import stat
import tempfile

from service import Service, wait_for
from client import Standin
from ports import free_port

folder = tempfile.TemporaryDirectory(prefix="inline-moving-")
os.chmod(folder.name, 0o755)
table = os.path.join(folder.name, "table")
key_file = os.path.join(folder.name, "key")
with open(key_file, "w") as key:
    key.write(secrets.token_hex(32) + "\n")
os.chmod(key_file, 0o644)
SLOTS = 1024


def put_table(text, path=table):
    """Write a table of nodes, whole or not at all."""
    with open(path + ".new", "w") as new:
        new.write(text)
    os.chmod(path + ".new", 0o644)
    os.replace(path + ".new", path)


def unnamed(folder):
    """Files of il-node on this disk that have no name."""
    found, disk = [], os.stat(folder).st_dev
    for path in glob.glob("/proc/[0-9]*/fd/*"):
        try:
            with open(path.rpartition("/fd/")[0] + "/comm") as comm:
                status = os.stat(path)
                if comm.read() == "il-node\n" and status.st_dev == disk and \
                        status.st_nlink == 0 and stat.S_ISREG(status.st_mode):
                    found.append(path)
        except OSError:
            pass    # it has just ended
    return found


class Node(Service):
    """A host of the table."""

    def __init__(self, name, standin, **settings):
        self.name = name
        self.nodes_port = free_port()
        self.standin = standin
        super().__init__(**{
            "IL_NODE": name, "IL_NODES": table, "IL_NODES_KEY_FILE": key_file,
            "IL_WORKERS": "2", "IL_API_CELLS": "1", **standin.environment(),
            **settings})

    def _standin_port(self):
        return self.standin.port

    def line(self, more=""):
        """What the table says of it."""
        return f"node {self.name} 127.0.0.1:{self.nodes_port} {more}\n"

    def take(self):
        """Whatever is sent comes to this node's front."""
        self.standin.settings(
            endpoint=f"http://127.0.0.1:{self.port}/interactions")
        return self

    def send(self, user, code, **options):
        self.take()
        return self.standin.send_command("py", user=user, code=code, **options)

    def ask(self, user, code, match=None, **options):
        """A run, and what was answered."""
        run = self.send(user, code, **options)
        run.wait_final(match=match)
        return run.original.text()

    def rows(self, user, of="sandboxes"):
        """How many rows a person has here."""
        return self.sql(f"SELECT count(*) FROM {of} WHERE user_id = ?",
                        int(user))[0][0]

    def here(self, user):
        """Whether a person has a sandbox here, with its folder."""
        found = self.sql("SELECT id FROM sandboxes WHERE user_id = ? AND "
                         "state = 'active'", int(user))
        return bool(found) and os.path.exists(os.path.join(
            self.settings["IL_BASE_DIR"], found[0][0], "workspace.ext4"))

    def moves(self):
        """{user, 0 for a slot's: state} of those who leave or have gone."""
        return dict(self.sql("SELECT user_id, state FROM moves "
                             "WHERE state <> 'come'"))

    def come(self):
        """The slots that have come."""
        return [slot for slot, in self.sql(
            "SELECT slot FROM moves WHERE state = 'come'")]

    def drafts(self):
        """Files without a name, of arrivals that are under way."""
        return unnamed(self.settings["IL_BASE_DIR"])

    def folders(self):
        """The sandboxes' folders."""
        return sorted(name for name in os.listdir(
            self.settings["IL_BASE_DIR"]) if len(name) == 32)


def clean(*nodes):
    """Nothing of a move is left anywhere, and each folder has its row."""
    for node in nodes:
        wait_for(lambda node=node: not node.sql(
            "SELECT 1 FROM sandboxes WHERE state = 'removing'"))
        wait_for(lambda node=node: not node.drafts() and node.folders() ==
                 sorted(row[0] for row in node.sql(
                     "SELECT id FROM sandboxes WHERE state = 'active'")))
