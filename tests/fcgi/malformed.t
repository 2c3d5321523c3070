#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What is no interaction: methods, lengths, sizes, and JSON that is well signed
and wrong.  The process lives through all of it."""
import os
import socket
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import front as f  # noqa: E402

tap = f.Tap()


def raw(front, request):
    """Send bytes and return the status of the answer."""
    with socket.create_connection(("127.0.0.1", front.port), 10) as sock:
        sock.sendall(request)
        line = sock.makefile("rb").readline()
    return int(line.split()[1])


def check_http(front):
    for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"):
        answer = front.request(method, "/interactions")
        tap.equal(answer.status, 405, method + " is 405")
        answer = front.direct(method, "/interactions")
        tap.ok(answer.status == 405 and answer.headers["Allow"] == "POST",
               method + " is 405 past nginx too", answer)
    for path in ("/elsewhere", "/interactions/", "/Interactions", "/"):
        tap.equal(front.request("POST", path, b"x").status, 404,
                  path + " is 404")
        tap.equal(front.direct("POST", path, b"x").status, 404,
                  path + " is 404 past nginx too")
    head = b"POST /interactions HTTP/1.1\r\nHost: x\r\n"
    tap.equal(raw(front, head + b"\r\n"), 411, "no length is 411")
    tap.equal(raw(front, head + b"Content-Length: 0\r\n\r\n"), 401,
              "an empty body is 401")
    tap.equal(raw(front, head + b"Content-Length: x\r\n\r\n"), 400,
              "a length that is no number is 400")
    tap.equal(front.request("POST", "/interactions", b"x" * (2 << 20)).status,
              413, "2 MiB are 413")
    answer = front.direct("POST", "/interactions", b"x" * ((1 << 20) + 1))
    tap.equal(answer.status, 413, "1 MiB and a byte is 413 past nginx too")
    answer = front.direct("POST", "/interactions", None)
    tap.equal(answer.status, 411, "no length is 411 past nginx too")
    body = b'{"type":1,"pad":"' + b"x" * (1 << 20)
    body = body[:(1 << 20) - 2] + b'"}'
    tap.equal(front.send(body).status, 200, "exactly 1 MiB is taken")
    answer = front.request("POST", "/interactions", body + b" ",
                           front.headers(body + b" "))
    tap.equal(answer.status, 413, "a byte more is 413")
    tap.equal(raw(front, head + b"Content-Length: 99\r\n"
                  b"Transfer-Encoding: chunked\r\n\r\n"), 400,
              "a length and chunks are 400")


def check_json(front):
    def rejected(name, body, status=400):
        if isinstance(body, dict):
            body = f.encode(body)
        answer = front.send(body)
        tap.ok(answer.status == status and front.alive(),
               "%s: %d" % (name, status), answer)

    rejected("not JSON", b"hello")
    rejected("cut off", b'{"type":1')
    rejected("an array", b"[]")
    rejected("invalid UTF-8", b'{"type":1,"a":"\xff"}')
    rejected("100,000 deep", b"[" * 100000)
    rejected("100,000 deep in an object", b'{"type":1,"a":' + b"[" * 100000)
    rejected("100,000 deep and closed",
             b'{"type":1,"a":' + b"[" * 100000 + b"]" * 100000 + b"}")
    rejected("unknown type", f.interaction(6, {}))
    rejected("type 0", f.interaction(0, {}))
    rejected("no type", {"id": "1"})
    rejected("no user", f.interaction(2, {"name": "il"}, member=None))
    rejected("no id", f.interaction(2, {"name": "il"}, id=None))
    rejected("an id that is a number", f.interaction(2, {"name": "il"}, id=5))
    rejected("no token", f.interaction(2, {"name": "il"}, token=None))
    rejected("a token with a slash",
             f.interaction(2, {"name": "il"}, token="../../x"))
    rejected("no data", f.interaction(2, None))
    rejected("another application", f.interaction(
        2, {"name": "il"}, application_id="200000000000000002"))
    rejected("an option without a value", f.interaction(2, {
        "name": "il", "options": [{"name": "py", "type": 1, "options": [
            {"name": "code", "type": 3}]}]}))
    tap.equal(front.jobs(), [], "none of it is a job")


UNREAD = (b'"\\ud800"', b"123456789012345678901234567890", b"1e400",
          b'{"k":1,"k":2}')


def check_unread(front):
    """What is odd where nobody reads it is taken, after its signature."""
    for number, value in enumerate(UNREAD, 1):
        ping = b'{"type":1,"new":' + value + b"}"
        tap.equal(front.send(ping).json, {"type": 1},
                  "a PING with %s" % value.decode())
        body = f.encode(f.interaction(2, {
            "name": "il", "type": 1, "options": [
                {"name": "create", "type": 1}]}, user=f.USER + number))
        body = body[:-1] + b',"new":[' + value + b"]}"
        tap.equal(front.send(body).status, 200, "and a command")
        tap.equal(len(front.jobs()), number, "is a job")
        answer = front.request("POST", "/interactions", body, {
            **front.headers(body), "X-Signature-Ed25519": "0" * 128})
        tap.equal(answer.status, 401, "where it is well signed")
    text = {"name": "il", "type": 1, "options": [
        {"name": "py", "type": 1, "options": [
            {"name": "code", "type": 3, "value": "HALF"}]}]}
    body = f.encode(f.interaction(2, text)).replace(b"HALF", b"x\\udfff")
    tap.ok("NUL" in front.send(body).json["data"]["content"],
           "in a text that is read its sender is told")


with f.Front() as front:
    front.add_sandbox()
    process = front.process.pid
    check_http(front)
    check_json(front)
    check_unread(front)
    tap.equal(front.send(f.interaction(1, None)).json, {"type": 1},
              "a PING is answered after all that")
    tap.ok(front.alive() and front.process.pid == process,
           "by the same process")
    tap.ok("aW50ZXJhY3Rpb24" not in front.log(), "no token is in the log")
tap.done()
