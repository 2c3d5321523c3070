#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""One node, and what passes for others: the table changes while it runs, names
are resolved by a server that is away or lies, and nodes answer anything."""

import contextlib
import http.client
import http.server
import json
import os
import signal
import socket
import struct
import subprocess
import threading
import time

from served import Served, wait_for
from service import BUILD, free_port
from shared_nodes import (alice, folder, key_file, put_table, table, tokens,
                          upload)
from tap import run, test

OWN, PORT = free_port(), free_port()
CLOSED = free_port()
SOON = 2.5      # seconds: a second for a name, one for a node, and some
MIB = 1 << 20


def tag_of(name):
    """The digits that ids of a node have: FNV-1a, folded."""
    value = 0xcbf29ce484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001b3 % (1 << 64)
    return "%06x" % ((value ^ value >> 24 ^ value >> 48) & 0xffffff)


def path_of(name):
    """A file of that node."""
    return "/v1/files/01234567-89ab-4cde-8f01-234567" + tag_of(name)


class Node(http.server.BaseHTTPRequestHandler):
    """Another node, as this one's nginx sees it: it answers what it is told to
    answer, and keeps what it was asked.
    """

    protocol_version = "HTTP/1.1"
    asked = []
    answer = None       # bytes, or None: a file that says where it is

    def do_GET(self):
        length = int(self.headers.get("Content-Length", 0))
        got = 0
        while got < length:
            got += len(self.rfile.read(min(length - got, MIB)))
        self.asked.append((self.path, self.headers, got))
        if self.answer is not None:
            self.wfile.write(self.answer)
            self.close_connection = True
            return
        body = self.server.server_address[0].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_):
        pass


class Names(threading.Thread):
    """A name server of our own.  What it answers for a name is an address, or
    a function of the question.
    """

    def __init__(self):
        super().__init__(daemon=True)
        self.link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.link.bind(("127.0.0.1", 0))
        self.port = self.link.getsockname()[1]
        self.known = {}
        self.start()

    @staticmethod
    def reply(question, address=None, code=0):
        """The answer to a question of an address, or an error."""
        head = struct.pack("!2sHHHHH", question[:2], 0x8180 | code, 1,
                           1 if address else 0, 0, 0)
        end = question.index(b"\0", 12) + 5
        if not address:
            return head + question[12:end]
        return head + question[12:end] + struct.pack(
            "!HHHIH4s", 0xc00c, 1, 1, 3600, 4, socket.inet_aton(address))

    def run(self):
        while True:
            question, sender = self.link.recvfrom(4096)
            labels, at = [], 12
            while question[at]:
                labels.append(question[at + 1:at + 1 + question[at]].decode())
                at += 1 + question[at]
            answer = self.known.get(".".join(labels))
            if question[at + 1:at + 3] != b"\0\1":      # not of IPv4
                answer = self.reply(question)
            elif callable(answer):
                answer = answer(question)
            else:
                answer = self.reply(question, answer, 0 if answer else 3)
            if answer is not None:
                self.link.sendto(answer, sender)


names = Names()
nodes = [http.server.ThreadingHTTPServer((address, PORT), Node)
         for address in ("127.0.0.1", "127.0.0.2")]
for one in nodes:
    threading.Thread(target=one.serve_forever, daemon=True).start()
TABLE = f"node b 127.0.0.1:{OWN}\nnode a 127.0.0.1:{PORT}\n"
put_table(TABLE)
b = Served(IL_NODE="b", IL_NODES=table, IL_NODES_KEY_FILE=key_file,
           IL_API_TOKENS_FILE=tokens, IL_API_CELLS="2", IL_WORKERS="1",
           IL_LIBRECHAT_OPEN="1").__enter__()


def ask(name, method="GET", **headers):
    """What comes of a node's file, and how long it took."""
    begun = time.monotonic()
    answer = b.request(method, path_of(name), None, {**alice, **headers},
                       timeout=20)
    return answer, time.monotonic() - begun


def where(name):
    """Which of the two answers for a node."""
    answer = ask(name)[0]
    return answer.text if answer.status == 200 else answer.status


def wait_where(name, want):
    wait_for(lambda: where(name) == want, 10)


def is_lost(name):
    answer, took = ask(name)
    assert answer.status == 404, (name, answer)
    assert answer.json == {"detail": "File with ID '%s' not found"
                           % path_of(name)[10:]}, (name, answer)
    assert took < SOON, (name, took)


def settle(text):
    """A table that every process has read, as each looks once in a second, and
    takes one that rests.
    """
    put_table(text)
    os.utime(table, (1, 1))
    time.sleep(1.1)


def wait_refused(why):
    """The table as it is now: the one of before stays, and it is told why."""
    def told():
        assert where("a") == "127.0.0.1"
        with open(b.log, errors="replace") as file:
            return any(why in line and "the table of before stays" in line
                       for line in file)
    wait_for(told, 10)


def use_names():
    """nginx asks our server, instead of this machine's."""
    path = os.path.join(b.settings["IL_STATE_DIR"], "nginx.conf")
    with open(path) as file:
        lines = file.read().split("\n")
    found = [i for i, line in enumerate(lines) if line.startswith("resolver ")]
    assert len(found) == 1, found
    assert lines[found[0]].endswith(" valid=2s;"), lines[found[0]]
    lines[found[0]] = f"resolver 127.0.0.1:{names.port} valid=2s;"
    with open(path, "w") as file:
        file.write("\n".join(lines))
    with open(os.path.join(b.settings["IL_STATE_DIR"], "nginx",
                           "nginx.pid")) as file:
        os.kill(int(file.read()), signal.SIGHUP)


@test
def a_table_that_changes_is_read_again():
    assert where("a") == "127.0.0.1"
    put_table(TABLE.replace(f"127.0.0.1:{PORT}", f"127.0.0.2:{PORT}"))
    wait_where("a", "127.0.0.2")
    put_table(f"node b 127.0.0.1:{OWN}\n")
    wait_where("a", 404)        # nobody's
    put_table(TABLE)
    wait_where("a", "127.0.0.1")


@test
def a_table_that_is_wrong_is_told_and_not_taken():
    for text, why in ((TABLE + "node a\n", "line 3: this name is there twice"),
                      (f"node a 127.0.0.1:{PORT}\n",
                       "this host, b (IL_NODE), is not in it"),
                      ("", "slot 0 has no node")):
        put_table(text)
        wait_refused(why)
    os.remove(table)
    wait_refused("No such file or directory")
    put_table(TABLE)


@test
def a_node_with_another_table_sends_nothing_round():
    settle(TABLE.replace(str(PORT), str(OWN)))
    is_lost("a")                # it is said to be here, where it is not
    session = "code-session-" + tag_of("a") + "0" * 26
    answer = b.post(f"/v1/sessions/{session}/bash", {"cmd": "true"}, alice)
    assert answer.status == 404 and session in answer.json["detail"], answer
    put_table(TABLE)
    wait_where("a", "127.0.0.1")


@test
def an_address_of_ipv6_is_one():
    if not os.path.exists("/proc/net/if_inet6"):
        return
    settle(TABLE + f"node six [::1]:{PORT}\nnode none [::1]:{CLOSED}\n")

    class Six(http.server.ThreadingHTTPServer):
        address_family = socket.AF_INET6
    with contextlib.suppress(OSError), Six(("::1", PORT), Node) as six:
        threading.Thread(target=six.serve_forever, daemon=True).start()
        wait_where("six", "::1")
        is_lost("none")
        six.shutdown()
    put_table(TABLE)


@test
def a_name_is_resolved_when_it_is_used():
    use_names()
    names.known["a.nodes.test"] = "127.0.0.1"
    put_table(TABLE.replace("a 127.0.0.1", "a a.nodes.test"))
    wait_where("a", "127.0.0.1")
    names.known["a.nodes.test"] = "127.0.0.2"   # it came back elsewhere
    wait_where("a", "127.0.0.2")
    names.known["a.nodes.test"] = "127.0.0.3"   # nobody listens there
    wait_where("a", 404)
    is_lost("a")
    names.known["a.nodes.test"] = "127.0.0.1"
    wait_where("a", "127.0.0.1")


@test
def a_name_server_that_is_away_or_lies_costs_that_node_alone():
    lies = {
        "silent": lambda q: None,
        "unknown": None,
        "failed": lambda q: names.reply(q, None, 2),
        "refused": lambda q: names.reply(q, None, 5),
        "empty": names.reply,
        "nobody": "192.0.2.1",
        "garbage": lambda q: b"\xff" * 40,
        "short": lambda q: names.reply(q, "127.0.0.1")[:-3],
        "cut": lambda q: q[:2] + b"\x83\x80" + q[4:],
        "other-id": lambda q: names.reply(b"\0\0" + q[2:], "127.0.0.1"),
        "other-name": lambda q: names.reply(
            q[:12] + b"\5other\4test\0\0\1\0\1", "127.0.0.1"),
        "loop": lambda q: names.reply(q, "127.0.0.1")[:-16]
            + b"\xc0\x0c\0\5\0\1\0\0\0\1\0\2\xc0\x0c",
    }
    names.known.update((f"{lie}.test", answer) for lie, answer in lies.items())
    settle(TABLE + "".join(f"node {lie} {lie}.test:{PORT}\n"
                           for lie in lies))
    for lie in lies:
        is_lost(lie)
        assert where("a") == "127.0.0.1", lie
    put_table(TABLE)


@test
def a_node_that_takes_no_connection_is_lost_in_a_second():
    """As one that was cut off: nothing comes back."""
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.4", 0))
        full.listen(0)
        address = full.getsockname()
        for _ in range(4):
            link = stack.enter_context(socket.socket())
            link.setblocking(False)
            link.connect_ex(address)
        settle(TABLE + "node full %s:%d\nnode closed 127.0.0.1:%d\n"
                  % (*address, CLOSED))
        is_lost("full")
        is_lost("closed")
    put_table(TABLE)


@test
def a_stranger_says_nothing_to_another_node():
    """Of what nodes say to each other, nginx sends its own words alone."""
    del Node.asked[:]
    forged = {"Inline-Node": "127.0.0.9:1", "Inline-Node-Key": "0" * 64,
              "Inline-Owner": "0" * 64, "Inline-User": "1",
              "Inline-By": "c", "Inline-Took": "0.1",
              "Inline-Foreign": "0", "Host": "evil.example"}
    assert ask("a", **forged)[0].status == 200
    (path, headers, _), = Node.asked
    assert path == path_of("a") and headers["Host"] == "evil.example"
    assert headers["Authorization"] == alice["Authorization"]
    assert headers["Inline-Foreign"] == "1", headers
    assert len(headers.get_all("Inline-Node-Key")) == 1
    assert headers["Inline-Node-Key"] not in ("", "0" * 64)
    assert {name for name in headers if name.startswith("Inline")} == {
        "Inline-Foreign", "Inline-Node-Key"}, headers


@test
def whatever_a_node_answers_ends_there():
    for answer, status in (
            (b"", 502), (b"HTTP/1.1 2", 502),
            (b"HTTP/1.1 500 X\r\nContent-Length: 1\r\n\r\nx", 500),
            (b"HTTP/1.1 403 X\r\nContent-Length: 1\r\n\r\nx", 403),
            (b"HTTP/1.1 200 X\r\nX-Accel-Redirect: @node_v1\r\n"
             b"Inline-Node: 127.0.0.1:%d\r\nContent-Length: 1\r\n\r\nx" % PORT,
             200),
            (b"HTTP/1.1 200 X\r\nX-Accel-Redirect: /metrics\r\n"
             b"Content-Length: 1\r\n\r\nx", 200)):
        del Node.asked[:]
        Node.answer = answer
        got = ask("a")[0]
        assert got.status == status, (answer, got)
        if status == 502:
            assert "its code may have run" in got.json["detail"], got
        else:
            assert got.body == b"x", got
        assert len(Node.asked) == 1, Node.asked
    Node.answer = None


@test
def half_an_answer_is_none():
    """To whoever reads it, and to a run that is to have the file."""
    Node.answer = b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\nhalf"
    try:
        got = ask("a")[0]
    except http.client.IncompleteRead as error:
        assert error.partial == b"half", error
    else:
        raise AssertionError(got)
    for answer, status in (
            (Node.answer, 503), (b"HTTP/1.1 200 X\r\n\r\nhalf", 503),
            (b"HTTP/1.1 200 X\r\nContent-Length: 104857601\r\n\r\nx", 503),
            (b"HTTP/1.1 200 X\r\nContent-Length: 4\r\nInline-Name: %f\r\n"
             b"\r\nfile", 503),
            (b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n", 503),
            (b"HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n", 404), (b"", 404),
            (b"HTTP/1.1 200 X\r\nContent-Length: 4\r\n\r\nfile", 200)):
        Node.answer = answer
        got = b.post("/v1/execute", {
            "code": "print(open('p').read())", "files": [
                {"path": "p", "file_id": path_of("a")[10:]}]}, alice)
        assert got.status == status, (answer, got)
    assert got.json["stdout"] == "file\n", got
    Node.answer = None


@test
def ilctl_says_how_a_node_is_whatever_it_answers():
    def whole(status, body):
        return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (
            status, len(body), body)

    def states(**settings):
        code, out, said = b.ilctl("nodes", "--json", **settings)
        return [row["state"] for row in json.loads(out)], code, said
    for answer, state in (
            (whole(200, b'{"status": "ok", "message": null}'), "ok"),
            (whole(200, b'{"status": "bad", "message": "d\xc3\xa4\\u001b[1m"}'),
             "bad: d\u00e4"),
            (whole(200, b"[]"), "is no node: its answer makes no sense"),
            (whole(200, b"x" * 9000), "is no node: its answer makes no sense"),
            (whole(403, b""), "has another key"),
            (whole(500, b""), "answers 500"), (b"HTTP/1.1 2", "away")):
        Node.answer = answer
        assert states() == (["ok", state], 0, ""), (answer, states())
    Node.answer = None
    put_table(TABLE + f"node joins 127.0.0.1:{CLOSED} joining\n")
    out = b.ilctl("nodes")[1].splitlines()
    assert out[3].split()[2:] == ["0", "away", "(joining)"], out
    settle(TABLE)
    told, code, said = states(IL_STATE_DIR=folder.name)
    assert (told, code) == (["not asked", "not asked"], 1), (told, code)
    assert "nginx does not listen at" in said, said
    assert b.ilctl("nodes", IL_NODES="") == (
        0, "IL_NODES is not set: this host alone.\n", "")
    assert b.ilctl("nodes", IL_NODE="c")[0] == 78


@test
def a_body_of_the_limit_arrives_whole_and_none_beyond():
    session = "code-session-" + tag_of("a") + "0" * 26
    for size, status in (128 * MIB, 200), (128 * MIB + 1, 413):
        del Node.asked[:]
        answer = b.request("POST", f"/v1/sessions/{session}/bash",
                           b"x" * size, alice)
        assert answer.status == status, answer
        assert [got for _, _, got in Node.asked] == [size] * (
            status == 200), Node.asked


@test
def a_table_without_a_key_starts_nothing():
    for settings, why in (
            ({"IL_NODES_KEY_FILE": ""},
             "IL_NODES_KEY_FILE: must be set, where IL_NODES is"),
            ({"IL_NODES": os.path.join(folder.name, "none")},
             "No such file"), ({"IL_NODE": "c"}, "is not in it")):
        done = subprocess.run(
            [os.path.join(BUILD, "bin", "il-api")],
            env={**b.environment(), **settings}, capture_output=True,
            text=True, check=False, timeout=60)
        assert done.returncode == 78 and why in done.stderr, (settings, done)


@test
def its_own_is_here_whatever_the_others_do():
    file_id = upload(b, b"mine")
    assert b.request("GET", "/v1/files/" + file_id, None,
                     alice).body == b"mine"


try:
    run()
finally:
    b.close()
    for one in nodes:
        one.shutdown()
    folder.cleanup()
