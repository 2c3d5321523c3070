#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""What is run of a message whose run is on another node: one request through
the nginx of this host, in whose place a socket of ours stands."""

import contextlib
import json
import os
import secrets
import socket
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__))))

from house import House, N, says  # noqa: E402
from tap import run, test  # noqa: E402

folder = tempfile.TemporaryDirectory(prefix="inline-worker-nodes-")
AWAY = "does not answer just now"
RUN = {"text": "print('theirs')", "input": "7", "version": "", "timeit": False}
ran = []        # (source, input) that cells were given


def put(name, text):
    path = os.path.join(folder.name, name)
    with open(path, "w") as file:
        file.write(text)
    return path


house = House(
    IL_NODE="a", IL_NODES_KEY_FILE=put("key", secrets.token_hex(32)),
    IL_NODES=put("table", "node a\nnode b b.example.org:81\n"
                          "slots 0-511 a\nslots 512-1023 b\n"))


def row(slot):
    """The id of a row that is in a slot."""
    return int(time.time() * 1000) - 1420070400000 << 22 | slot << 12


OURS, THEIRS = row(3), row(700)


class Nginx:
    """Answers each request with these bytes."""

    def __init__(self, answer):
        self.answer = answer
        self.heads = []
        path = os.path.join(house.state, "nodes", "nginx.sock")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                with self.listener.accept()[0] as peer:
                    self.heads.append(peer.recv(65536).decode())
                    peer.sendall(self.answer)
                    if not self.answer.endswith(b"}"):
                        peer.settimeout(5)
                        peer.recv(1)    # until it gives up


def answer(status, body, length=None):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return b"HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n" % (
        status, len(body) if length is None else length) + body


def cell(cell):
    if cell.op == "RUN":
        ran.append((cell.parts.get(N["PART_SOURCE"], b"").decode(),
                    cell.parts.get(N["PART_STDIN"], b"").decode()))
    says(b"done\n")(cell)


def told(**columns):
    """Send "Run Python"; returns what is told, and what has run."""
    before = len(ran)
    text = house.send("message-run", **columns).wait_final(
        timeout=120).original.text()
    return text, ran[before:]


@test
def a_run_of_another_node_is_asked_for_once():
    with Nginx(answer(200, RUN)) as nginx:
        text, done = told(text="```ansi\n42\n```", view_id=THEIRS)
    assert done == [("print('theirs')", "7")] and "done" in text, (text, done)
    assert len(nginx.heads) == 1, nginx.heads
    lines = nginx.heads[0].split("\r\n")
    assert lines[0] == f"GET /nodes/views/{THEIRS} HTTP/1.0", lines
    assert f"Inline-User: {house.user_id()}" in lines, lines
    assert "Inline-Node: b.example.org:81" in lines, lines


@test
def what_is_ours_is_not_asked_for():
    with Nginx(answer(200, RUN)) as nginx:
        for view in OURS, 41, 0:
            text, done = told(text="```py\nx = 1\n```", view_id=view)
            assert done == [("x = 1\n", "")], (text, done)
    assert nginx.heads == []


@test
def what_has_gone_is_asked_for_where_it_went():
    house.sql("INSERT INTO moves VALUES (3, 0, 'b', 'gone')")
    with Nginx(answer(200, RUN)) as nginx:
        done = told(text="```py\nx = 1\n```", view_id=OURS)[1]
    house.sql("DELETE FROM moves")
    assert done == [("print('theirs')", "7")], done
    assert "Inline-Node: b.example.org:81" in nginx.heads[0], nginx.heads


@test
def what_is_not_there_is_none():
    with Nginx(answer(404, b"{}")):
        assert told(text="```py\nx = 1\n```", view_id=THEIRS)[1] == [
            ("x = 1\n", "")]
        text, done = told(text="```ansi\n42\n```", view_id=THEIRS)
        assert "no code" in text and done == [], text


@test
def a_node_that_is_away_is_told_in_words():
    whole = answer(200, RUN)
    for what in (answer(502, b"{}"), answer(504, b"{}"), answer(403, b"{}"),
                 answer(200, b"{}"), answer(200, {**RUN, "text": ""}),
                 answer(200, RUN, 1000),
                 answer(200, b"x}"), whole[:-9] + b"}", b"", b"HTTP/1.1 2",
                 answer(200, b"{" + b" " * (2 << 20) + b"}")):
        with Nginx(what):
            began = time.monotonic()
            text, done = told(text="```py\nx = 1\n```", view_id=THEIRS)
            assert AWAY in text and done == [], (what[:80], text, done)
            assert time.monotonic() - began < 8
    text, done = told(text="```py\nx = 1\n```", view_id=THEIRS)
    assert AWAY in text and done == [], "no nginx"
    assert "node b does not say what view" in house.log(), house.log()


@test
def an_editor_holds_it_too():
    with Nginx(answer(200, RUN)):
        [(view,)] = house.sql(
            "INSERT INTO views (user_id, kind, page, created_ms) VALUES "
            "(?, 'message-edit', ?, 1) RETURNING id", house.user_id(), THEIRS)
        sent = house.begin("message-edit", kind_of_answer="callback",
                           view_id=view).wait_answered(timeout=60)
    parts = sent.view["modal"]["components"]
    assert [part["component"].get("value") for part in parts] == [
        "print('theirs')", "7"], parts


with house:
    house.sandbox()
    house.broker.cell = cell
    run()
