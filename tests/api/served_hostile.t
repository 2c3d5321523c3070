#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Requests that are wrong as HTTP, to any route: the contract's answer or a
clear refusal in JSON; no process dies, and the next request is served.
"""

import json
import os
import socket
import struct

from served import Served
from service import children
from tap import run, test

served = Served(IL_API_CELLS="1", IL_API_SESSIONS="1").__enter__()
BODY = b'{"input": "print(1)", "code": "print(1)", "cmd": "echo 1"}'
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
HEAD = (b"Host: localhost\r\nConnection: close\r\n"
        b"Content-Type: application/json\r\n")
POSTS = (b"/eval", b"/v1/execute", b"/v1/execute/stream", b"/v1/files",
         b"/v1/sessions", b"/v1/sessions/x/bash")
OTHERS = (b"/health", b"/versions", b"/metrics", b"/v1/files/x", b"/docs",
          b"/nothing")
RUN = {b"/eval": b'"stdout": "1\\n"', b"/v1/execute": b'"stdout":"1\\n"',
       b"/v1/execute/stream": b'"data":"1'}


def programs():
    parents = served.pids("il-api")
    return sorted(parents + children(parents))


before = programs()
assert len(before) == 38, before


def exchange(data, end=False):
    """All that comes back, until the connection is closed."""
    with socket.create_connection(("127.0.0.1", served.port), 30) as link:
        link.sendall(data)
        if end:
            link.shutdown(socket.SHUT_WR)
        got = b""
        try:
            while piece := link.recv(65536):
                got += piece
        except ConnectionResetError:
            pass
        return got


def post(path, head, body=b"", version=b"1.1", **more):
    return exchange(b"POST %s HTTP/%s\r\n%s%s\r\n%s" % (
        path, version, HEAD, head, body), **more)


def split(got):
    """(status, headers, body) of an answer."""
    head, _, body = got.partition(b"\r\n\r\n")
    first, _, headers = head.partition(b"\r\n")
    assert first.startswith(b"HTTP/1.1 "), got[:200]
    return int(first.split()[1]), headers.lower(), body


def still_served(what):
    assert programs() == before, (what, before, programs())
    assert served.eval(input="print(1)")["stdout"] == "1\n", what


def refused(got, statuses, what):
    status, headers, body = split(got)
    assert status in statuses, (what, got[:300])
    assert b"content-type: application/json" in headers, (what, got[:300])
    assert json.loads(body), (what, body)


def each_is_refused(cases, statuses, paths=POSTS + OTHERS):
    for name, (head, body) in cases.items():
        for path in paths:
            refused(post(path, head, body), statuses, (name, path))
        still_served(name)


@test
def a_length_that_is_none():
    each_is_refused({
        "negative": (b"Content-Length: -1\r\n", BODY),
        "signed": (b"Content-Length: +5\r\n", BODY),
        "word": (b"Content-Length: abc\r\n", BODY),
        "empty": (b"Content-Length: \r\n", BODY),
        "twenty digits": (b"Content-Length: 99999999999999999999\r\n", BODY),
        "twice": (LENGTH + LENGTH, BODY),
        "twice, not the same": (LENGTH + b"Content-Length: 3\r\n", BODY),
        "beside chunks": (LENGTH + b"Transfer-Encoding: chunked\r\n",
                          CHUNKED),
    }, {400})


@test
def a_length_that_is_too_much():
    for path in POSTS + (b"/health", b"/docs"):
        with socket.create_connection(("127.0.0.1", served.port), 30) as link:
            link.sendall(b"POST %s HTTP/1.1\r\n%sContent-Length: 1000000000000"
                         b"\r\n\r\n" % (path, HEAD) + BODY)
            got = link.recv(65536)
        refused(got, {413}, path)
    still_served("too much")


@test
def codings_that_are_none():
    each_is_refused({
        "twice": (b"Transfer-Encoding: chunked\r\n" * 2, CHUNKED),
        "unknown": (b"Transfer-Encoding: xchunked\r\n", CHUNKED),
        "two": (b"Transfer-Encoding: gzip, chunked\r\n", CHUNKED),
        "identity": (b"Transfer-Encoding: identity\r\n" + LENGTH, BODY),
        "10,000 bytes": (b"Transfer-Encoding: %s\r\n" % (b"x" * 7000),
                         CHUNKED),
    }, {400, 501})
    for path in POSTS + OTHERS:
        got = post(path, b"Transfer-Encoding: chunked\r\n", CHUNKED, b"1.0")
        refused(got, {400}, path)
    still_served("1.0")


@test
def chunks_that_are_none():
    head = b"Transfer-Encoding: chunked\r\n"
    each_is_refused({
        "no number": (head, b"zz\r\n" + BODY),
        "too large a number": (head, b"ffffffffffffffffff\r\n" + BODY),
        "negative": (head, b"-1\r\n" + BODY),
        "longer than it says": (head, b"3\r\n%s\r\n0\r\n\r\n" % BODY),
    }, {400}, POSTS)


@test
def chunks_that_are_right_are_as_the_contract_has_them():
    head = b"Transfer-Encoding: chunked\r\n"
    status, _, body = split(post(b"/eval", head, CHUNKED))
    assert status == 400 and b"The body is empty" in body, body
    for path in (b"/v1/execute", b"/v1/execute/stream"):
        status, _, body = split(post(path, head, CHUNKED))
        assert status == 200 and RUN[path] in body, body
    pieces = b"".join(b"1\r\n%c\r\n" % byte for byte in BODY) + b"0\r\n\r\n"
    status, _, body = split(post(b"/v1/execute", head, pieces))
    assert status == 200 and RUN[b"/v1/execute"] in body, body
    still_served("chunks")


@test
def a_body_that_ends_early_runs_nothing():
    for path in POSTS:
        for head, body in ((b"Content-Length: 100\r\n", BODY),
                           (b"Transfer-Encoding: chunked\r\n",
                            b"ff\r\n" + BODY)):
            got = post(path, head, body, end=True)
            if got:
                refused(got, {400}, path)
        still_served(path)


@test
def a_body_longer_than_it_says_is_cut_there():
    for path in POSTS:
        status, _, body = split(post(path, b"Content-Length: 5\r\n", BODY))
        assert status in (400, 404, 422), (path, status, body)
        assert not any(text in body for text in RUN.values()), body
    still_served("longer")


@test
def no_body_is_what_the_contract_says():
    for head, version in ((b"", b"1.1"), (b"Content-Length: 0\r\n", b"1.1"),
                          (b"", b"1.0")):
        for path in POSTS:
            status, _, body = split(post(path, head, b"", version))
            want = (400, b"The body is empty") if path == b"/eval" else \
                (422, b"file is missing" if path == b"/v1/files" else
                 b"The body is empty")
            assert (status, want[1] in body) == (want[0], True), (path, body)
    still_served("nothing")


@test
def headers_that_are_none():
    each_is_refused({
        "one of 10,000 bytes": (b"X: %s\r\n" % (b"x" * 10000) + LENGTH, BODY),
        "a name of 10,000 bytes": (b"x" * 10000 + b": 1\r\n" + LENGTH, BODY),
        "many": (b"".join(b"X-%d: %s\r\n" % (i, b"x" * 50)
                          for i in range(1000)) + LENGTH, BODY),
        "a NUL": (b"X: a\0b\r\n" + LENGTH, BODY),
        "a folded one": (b"X: a\r\n b\r\n" + LENGTH, BODY),
        "two hosts": (b"Host: localhost\r\n" + LENGTH, BODY),
    }, {400})


@test
def odd_headers_that_mean_nothing():
    for head in (b"nonsense\r\n", b"Expect: x\r\n", b"Upgrade: h2c\r\n",
                 b"Content-Encoding: gzip\r\n", b"X-\xff\xfe: \xff\r\n",
                 b"Authorization: Bearer il_%s\r\n" % (b"f" * 64),
                 b"Accept: %s\r\n" % (b"*/*;q=0.1," * 700),
                 b"Inline-Foreign: 1\r\nInline_Foreign: 1\r\n",
                 b"Document-Uri: /health\r\nRequest-Scheme: x\r\n",
                 b"Proxy: http://x/\r\nStatus: 500\r\n"):
        for path, want in RUN.items():
            status, _, body = split(post(path, head + LENGTH, BODY))
            assert (status, want in body) == (200, True), (path, head, body)
        still_served(head)


@test
def lines_that_are_no_request():
    head = HEAD + b"\r\n"
    for data, statuses in (
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
             {400}),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400, 505}),
            (b"CONNECT localhost:80 HTTP/1.1\r\n" + head, {400, 405}),
            (b"OPTIONS * HTTP/1.1\r\n" + head, {400}),
            (b"GET /v1/files HTTP/9.9\r\n" + head, {505}),
            (b"GET /v1/files HTTP/x\r\n" + head, {400}),
            (b"GET  HTTP/1.1\r\n" + head, {400}),
            (b"GET v1/files HTTP/1.1\r\n" + head, {400}),
            (b"GET /v1/files%00 HTTP/1.1\r\n" + head, {400}),
            (b"GET /v1/%zz HTTP/1.1\r\n" + head, {400}),
            (b"GET /v1/../../../../x HTTP/1.1\r\n" + head, {400}),
            (b"GET /eval/%s HTTP/1.1\r\n" % (b"x" * 10000) + head, {414}),
            (b"%s /eval HTTP/1.1\r\n" % (b"X" * 10000) + head, {400, 414}),
            (b"TRACE /eval HTTP/1.1\r\n" + head, {405}),
            (b"TRACE /v1/files HTTP/1.1\r\n" + head, {405}),
            (b"POST /eval HTTP/1.1\r\n\r\n", {400}),
            (bytes(range(256)) + b"\r\n\r\n", {400})):
        refused(exchange(data), statuses, data[:60])
        still_served(data[:60])


@test
def requests_that_come_together_are_answered_in_order():
    count = 20
    data = b"".join(
        b"POST /eval HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/"
        b"json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        for body in (b'{"input": "print(%d)"}' % (1000 + i)
                     for i in range(count)))
    got = exchange(data + b"GET /health HTTP/1.0\r\n\r\n")
    found = [int(part[:4]) for part in got.split(b'"stdout": "')[1:]]
    assert found == list(range(1000, 1000 + count)), got[:2000]
    still_served("together")


@test
def http_1_0_is_served():
    for path, want in RUN.items():
        status, headers, body = split(post(path, LENGTH, BODY, b"1.0"))
        assert (status, want in body) == (200, True), (path, body)
        assert b"transfer-encoding" not in headers, headers
    still_served("1.0")


@test
def a_slow_body_takes_nobodys_place():
    slow = []
    for path in RUN:
        link = socket.create_connection(("127.0.0.1", served.port), 30)
        link.sendall(b"POST %s HTTP/1.1\r\n%s%s\r\n" % (path, HEAD, LENGTH))
        link.sendall(BODY[:10])
        slow.append((path, link))
    still_served("slow")
    for byte in BODY[10:]:
        for _, link in slow:
            link.sendall(bytes([byte]))
    for path, link in slow:
        got = b""
        while piece := link.recv(65536):
            got += piece
        assert RUN[path] in got, got
        link.close()
    still_served("slow, but done")


@test
def what_is_no_fastcgi_at_the_sockets_is_dropped():
    begin = struct.pack(">BBHHBx", 1, 1, 1, 8, 0) + struct.pack(
        ">HB5x", 1, 0)
    for data in (b"", b"GET / HTTP/1.1\r\n\r\n", os.urandom(100000),
                 b"\x01" * 65536, begin, begin * 1000,
                 begin + struct.pack(">BBHHBx", 1, 4, 1, 65535, 255),
                 begin + struct.pack(">BBHHBx", 1, 4, 1, 8, 0) + b"\xff" * 8,
                 begin + struct.pack(">BBHHBx", 1, 4, 1, 0, 0)):
        for name in ("api.sock", "run.sock", "files.sock",
                     "session.sock", "mcp.sock"):
            with socket.socket(socket.AF_UNIX) as link:
                link.settimeout(30)
                link.connect(os.path.join(served.settings["IL_STATE_DIR"],
                                          name))
                try:
                    link.sendall(data)
                    link.shutdown(socket.SHUT_WR)
                    while link.recv(65536):
                        pass
                except (BrokenPipeError, ConnectionResetError):
                    pass
        still_served(data[:20])


try:
    run()
finally:
    served.close()
