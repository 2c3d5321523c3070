#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""A local stand-in for Discord.

One process on one loopback port. It
  * signs interactions and posts them to Inline's endpoint, as Discord does;
  * implements the REST calls that Inline makes, as strictly as Discord;
  * serves a chat page at / in which a person uses Inline;
  * does wrong on order (404, 429, 500, hanging …), and records each rule of
    Discord's that Inline breaks.

Threads: the main one accepts connections, one serves each connection, and a
pool sends interactions. All of them share the Store (state.py) under its
lock. Nothing is written to disk but the key file and, where it is wished, the
channels' history.
"""

import argparse
import json
import os
import selectors
import signal
import socket
import sqlite3
import sys
import threading
import time
import types

sys.dont_write_bytecode = True

from control import Control  # noqa: E402
from errors import FormErrors  # noqa: E402
from faults import Faults  # noqa: E402
from forms import check_commands  # noqa: E402
from history import History  # noqa: E402
from keys import KeyFileError, create_identity, load_identity  # noqa: E402
from ratelimit import RateLimits  # noqa: E402
from rest import Rest, put_commands  # noqa: E402
from schema import Schemas  # noqa: E402
from sender import Sender  # noqa: E402
from server import Server  # noqa: E402
from state import DISCORD_EPOCH_MS, Store  # noqa: E402

EXIT_USAGE = 64
EXIT_CONFIG = 78


def parse_arguments(arguments):
    """Return the options; exits with 64 when they are wrong."""
    parser = argparse.ArgumentParser(
        description="A local stand-in for Discord, with a chat page.")
    add = parser.add_argument
    add("--port", type=int, default=0, help="loopback port (0: any free one)")
    add("--listen-fd", type=int, help="descriptor that listens on its port "
        "already")
    add("--endpoint", default="", help="URL that takes the interactions")
    add("--connect-to", metavar="NAME:PORT:ADDRESS:PORT",
        help="where an endpoint with that name and port really is")
    add("--key-file", help="where key pair, application id and bot token are "
        "kept; made when missing")
    add("--history", help="where messages are kept over a restart; made when "
        "missing")
    add("--verbose", action="store_true",
        help="write each rule that Inline breaks to standard error")
    add("--openapi", help="Discord's OpenAPI description, to check bodies by")
    add("--commands", help="JSON array of commands, used until some are "
        "registered")
    add("--deadline", type=float, default=3.0,
        help="seconds within which an interaction must be answered")
    add("--token-life", type=float, default=900.0,
        help="seconds for which an interaction's token lives")
    add("--attachment-size-limit", type=int, default=10 << 20,
        help="bytes that one uploaded file may have")
    add("--rate-limit", type=int, default=5,
        help="requests that a route and token have in a window")
    add("--rate-window", type=float, default=2.0,
        help="length of that window in seconds")
    add("--senders", type=int, default=256,
        help="interactions that may be on their way at once")
    add("--ready-fd", type=int, help="descriptor to which the port is "
        "written once connections are accepted")
    add("--print-env", action="store_true",
        help="print the settings for Inline, and exit")
    parser.error = lambda text: (
        print(f"standin: {text}", file=sys.stderr), sys.exit(EXIT_USAGE))
    return parser.parse_args(arguments)


def load_commands(store, path):
    """Take commands from a file, as if they were registered."""
    with open(path) as file:
        commands = json.load(file)
    errors = FormErrors()
    check_commands(commands, errors)
    if errors.flat:
        raise ValueError(f"{path}: {'; '.join(errors.flat)}")
    put_commands(store, "global", commands)


def _new_snowflake():
    return (int(time.time() * 1000) - DISCORD_EPOCH_MS) << 22


def _wake_on_signals():
    """Return a socket pair; the first has the numbers of the signals."""
    reader, writer = socket.socketpair()
    reader.setblocking(False)
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno())
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP,
                   signal.SIGWINCH):
        signal.signal(number, lambda *_: None)
    return reader, writer


def serve(server, store, wakeup):
    """Accept connections until a signal comes; SIGWINCH ends the pages' feeds."""
    with selectors.DefaultSelector() as selector:
        selector.register(server, selectors.EVENT_READ)
        selector.register(wakeup, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if wakeup in ready:
                if wakeup.recv(1)[0] != signal.SIGWINCH:
                    break
                store.end_feeds()
            if server in ready:
                server.handle_request()
    server.server_close()
    store.stop()


def main(arguments):
    """Run until SIGTERM or SIGINT; returns the exit code."""
    options = parse_arguments(arguments)
    threading.stack_size(512 << 10)
    try:
        identity = (load_identity(options.key_file, _new_snowflake())
                    if options.key_file else create_identity(_new_snowflake()))
    except (KeyFileError, OSError) as error:
        print(f"standin: {error}", file=sys.stderr)
        return EXIT_CONFIG
    origin = f"http://127.0.0.1:{options.port}"
    if options.print_env:
        for key, value in identity.environment(origin + "/api/v10").items():
            print(f"{key}={value}")
        return 0
    return run(options, identity)


def run(options, identity):
    """Serve with the given options."""
    settings = types.SimpleNamespace(
        endpoint=options.endpoint, connect_to=options.connect_to,
        origin=None, deadline=options.deadline,
        token_life=options.token_life, verbose=options.verbose,
        attachment_size_limit=options.attachment_size_limit)
    store = Store(identity, settings)
    faults = Faults()
    limits = RateLimits(options.rate_limit, options.rate_window)
    try:
        schemas = Schemas(options.openapi)
        api = Rest(store, schemas)
        if options.commands:
            load_commands(store, options.commands)
        sender = Sender(store, options.senders, schemas)
        api.verify_endpoint = sender.verify_endpoint
        control = Control(store, faults, limits, sender, schemas)
        wakeup, _writer = _wake_on_signals()
        server = Server(options.port, options.listen_fd, store, api, control,
                        faults, limits)
        history = History(store, options.history) if options.history else None
    except (OSError, ValueError, sqlite3.Error) as error:
        print(f"standin: {error}", file=sys.stderr)
        return EXIT_CONFIG
    settings.origin = f"http://127.0.0.1:{server.server_port}"
    if options.ready_fd is not None:
        os.write(options.ready_fd, f"{server.server_port}\n".encode())
        os.close(options.ready_fd)
    serve(server, store, wakeup)
    if history:
        history.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
