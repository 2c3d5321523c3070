# SPDX-License-Identifier: MIT
"""Inline on hosts of its own, n1, n2, n3, which share the table of nodes and
their key; Discord and a load balancer are on the hub.

    with Nodes(3) as nodes:
        user = nodes[1].person()
        run = nodes.discord.send_command("py", code="print(1)", user=user,
                                         order=nodes[0].front)
"""

import atexit
import contextlib
import itertools
import os
import secrets
import select
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from engine import Engine, IMAGE, spread, start_registry
from hosts import HUB, NETWORK, ROOT, Host, Hub, session

for each in "standin", "fcgi":
    sys.path.insert(0, os.path.join(ROOT, "tests", each))
from client import Standin  # noqa: E402
from slots import settled_owner, slot_of  # noqa: E402

HTTP = 8080         # of each node
DISCORD = 9000      # the stand-in's, on the hub
BALANCER = 9001
START_SECONDS = 180
# The balancer brings an interaction to the node that this header names.
# Without it, any node takes it; one that fails is followed by the next.
TO = "Test-Node"
# On each host, below /var/lib/inline: what is the same on all of them.
SHARED = "shared"
FIRST_PERSON = 200000000000000000
NGINX = """daemon off; pid {folder}/pid; error_log {folder}/error.log;
worker_processes 1;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    proxy_http_version 1.1; proxy_set_header Host $http_host;
    upstream nodes {{ {servers} }}
{each}
    map $http_test_node $node {{ default nodes; ~^n[0-9]$ $http_test_node; }}
    server {{
        listen 127.0.0.1:{balancer};
        location / {{
            proxy_pass http://$node;
            proxy_connect_timeout 500ms;
            proxy_next_upstream error timeout http_502 http_503 non_idempotent;
            proxy_next_upstream_timeout 2500ms;
        }}
    }}
    # Discord's REST API, for the nodes.
    server {{
        listen {hub}:{discord};
        client_max_body_size 64m;
        location / {{ proxy_pass http://127.0.0.1:{standin}; }}
    }}
}}
"""


class Node:
    """A host with an engine and `ilctl run`."""

    def __init__(self, nodes, number):
        self.nodes = nodes
        self.number = number
        self.name = f"n{number}"
        self.front = {"headers": {TO: self.name}}
        self.host = Host(nodes.hub, self.name, number)
        self.engine = Engine(self.host, number)
        self.share("key", nodes.key)
        self.share("table", nodes.table())

    def share(self, name, text):
        """Put a file where this node reads it, whole or not at all."""
        folder = os.path.join(self.host.folder, "lib/inline", SHARED)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, name)
        with open(path + ".new", "w") as file:
            file.write(text)
        os.replace(path + ".new", path)

    def person(self):
        """A new person, who is this node's by the table without lines."""
        return next(user for user in self.nodes.ids
                    if self.nodes.home(user) is self)

    def settings(self, **settings):
        """Its configuration keys."""
        return {
            "IL_NODE": self.name, "IL_STATE_DIR": "/run/inline",
            "IL_NODES": f"/var/lib/inline/{SHARED}/table",
            "IL_NODES_KEY_FILE": f"/var/lib/inline/{SHARED}/key",
            "IL_BASE_DIR": "/var/lib/inline/sandboxes",
            "IL_API_FILES": "/var/lib/inline/files",
            "IL_DATABASE": "/var/lib/inline/database/inline.db",
            "IL_HTTP_PORT": str(HTTP), "IL_HTTP_TRUST": "none",
            "SANDBOX_IMAGE": IMAGE,
            "SANDBOX_PULL_ON_STARTUP": "0", "IL_TUNE_DERIVE": "0",
            "IL_TUNE_API_WARM": "0", "IL_API_CELLS": "1", "IL_API_SESSIONS": "1",
            "IL_TUNE_SPARE_CELLS": "0", "IL_USER_RATE": "1000", "IL_QUOTA": "16m",
            "IL_MEMORY": "64m", **self.nodes.keys, **self.nodes.settings,
            **settings}

    def start(self, env=None, **settings):
        """`ilctl run`; returns when it says that it is ready."""
        self.host.run("mkdir", "-p", "/var/lib/inline/database")
        process = self.host.start(
            "inline", "/srv/inline/bin/ilctl", "run",
            env={**self.settings(**settings), **(env or {})},
            stdout=subprocess.PIPE)
        deadline = time.monotonic() + START_SECONDS
        seen = b""
        while b"Inline is ready" not in seen:
            left = max(deadline - time.monotonic(), 0)
            ready, _, _ = select.select([process.stdout], [], [], left)
            piece = os.read(process.stdout.fileno(), 4096) if ready else b""
            assert piece, f"{self.name}: not ready: " + \
                self.host.said("inline")
            seen += piece

    def stop(self):
        """End `ilctl run` as an operator does."""
        return self.host.stop("inline")

    def boot(self):
        """Switch the host on again, with all that it had on its disk."""
        self.host.boot()
        self.engine.start()

    def ilctl(self, *words, **settings):
        """(status, text) of an ilctl on the host."""
        return self.host.ask("/srv/inline/bin/ilctl", *words,
                             env=self.settings(**settings))

    def sql(self, text):
        """The rows of a query to its database."""
        path = os.path.join(self.host.folder, "lib/inline/database/inline.db")
        with contextlib.closing(sqlite3.connect(path, timeout=30)) as database:
            return database.execute(text).fetchall()

    def marks(self):
        """What the runs of all users have left on this node's disk; nothing
        may run there.
        """
        return [word for text in self.workspaces().values()
                for word in text.split()]

    def workspaces(self):
        """{sandbox: what its file `marks` holds}."""
        found = {}
        base = os.path.join(self.host.folder, "lib/inline/sandboxes")
        for folder, _, names in os.walk(base):
            if "workspace.ext4" not in names:
                continue
            image = os.path.join(folder, "workspace.ext4")
            subprocess.run(["e2fsck", "-p", image], capture_output=True)
            found[os.path.basename(folder)] = subprocess.run(
                ["debugfs", "-R", "cat /marks", image],
                capture_output=True, text=True).stdout
        return found


class Nodes:
    """All of it."""

    def __init__(self, count=3, start=True, joining=0, **settings):
        self.names = [f"n{i}" for i in range(1, count + 1)]
        self.settled = self.names[:count - joining]
        self.settings = settings
        self.begin = start
        self.key = secrets.token_hex(32) + "\n"
        self.ids = itertools.count(FIRST_PERSON)
        self.keys = {}
        self.nodes = []
        self.discord = None
        self.balancer = None

    def __enter__(self):
        atexit.register(self.show)
        self.hub = Hub()
        start_registry()
        self.nodes = [Node(self, i) for i in range(1, len(self.names) + 1)]
        spread([node.engine for node in self.nodes], IMAGE)
        self.start_discord()
        if self.begin:
            self.start()
        atexit.unregister(self.show)
        return self

    def __exit__(self, kind, error, _):
        if kind is not None and not (kind is SystemExit and not error.code):
            self.show()
        self.discord.stop()

    def __getitem__(self, i):
        return self.nodes[i]

    def __iter__(self):
        return iter(self.nodes)

    def start(self):
        """Start all of them at one time."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda node: node.start(), self.nodes))

    def table(self, *lines):
        """The text of the table of nodes, with these lines at its end."""
        return "".join(
            f"node {name} {NETWORK}{number}"
            f"{'' if name in self.settled else ' joining'}\n"
            for number, name in enumerate(self.names, 1)
        ) + "".join(line + "\n" for line in lines)

    def home(self, user):
        """The node of a person, by the table without lines."""
        return self[self.names.index(settled_owner(slot_of(user),
                                                   self.settled))]

    def show(self):
        """The ends of the logs, for who looks for a fault."""
        for node in self.nodes:
            for line in node.host.said("inline", 25).splitlines():
                print(f"# {node.name} {line}", flush=True)

    def start_discord(self):
        """The stand-in, and what brings its interactions to the nodes."""
        self.discord = Standin(f"http://127.0.0.1:{BALANCER}/interactions",
                               rate_limit=1000).start()
        self.keys = {key: value for key, value in
                     self.discord.environment().items()
                     if key != "DISCORD_TOKEN"}
        self.keys["IL_TUNE_DISCORD_API_BASE"] = f"http://{HUB}:{DISCORD}/api/v10"
        folder = os.path.join(session(), "balancer")
        os.makedirs(folder)
        servers = {node.name: f"server {node.host.address}:{HTTP} max_fails=0;"
                   for node in self.nodes}
        text = NGINX.format(
            folder=folder, balancer=BALANCER, hub=HUB, discord=DISCORD,
            standin=self.discord.port, servers=" ".join(servers.values()),
            each="\n".join(f"    upstream {name} {{ {server} }}"
                           for name, server in servers.items()))
        with open(folder + "/nginx.conf", "w") as file:
            file.write(text)
        self.balancer = subprocess.Popen(
            ["nginx", "-e", folder + "/error.log", "-c",
             folder + "/nginx.conf"], stdin=subprocess.DEVNULL)
