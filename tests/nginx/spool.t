#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What nginx takes in for whom: a body is read when it is known that it may
come, and so much of them at one time that the disk has room for it."""

import http.client
import os
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "api"))
from served import Answer, JSON, Served, open_below, wait_for  # noqa: E402
from service import BUILD, ROOT, children  # noqa: E402
from tap import run, test  # noqa: E402

LARGE = 90 << 20
FORM = "multipart/form-data; boundary=b"
FORM_HEAD = (b"--b\r\nContent-Disposition: form-data; name=\"file\";"
             b" filename=\"a\"\r\n\r\n")
folder = tempfile.TemporaryDirectory(prefix="inline-spool-")
path = os.path.join(folder.name, "tokens")


def add(name, *limits):
    text = subprocess.run([os.path.join(BUILD, "bin", "ilctl"), "token", "-f",
                           path, *limits, "add", name], check=True,
                          capture_output=True, text=True).stdout
    secret = next(word for word in text.split() if word.startswith("il_"))
    return {"Authorization": "Bearer " + secret}


def begin(served, route, body=b"", length=LARGE, chunked=False,
          method="POST", **headers):
    """Send the head of a request and the beginning of its body."""
    headers = {"Host": "localhost", "Content-Type": "application/json",
               **{key.replace("_", "-"): value
                  for key, value in headers.items()}}
    if chunked:
        headers["Transfer-Encoding"] = "chunked"
        body = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
    else:
        headers["Content-Length"] = str(length)
    link = socket.create_connection(("127.0.0.1", served.port), 30)
    link.sendall(("%s %s HTTP/1.1\r\n" % (method, route) + "".join(
        "%s: %s\r\n" % item for item in headers.items()) + "\r\n").encode()
        + body)
    return link


def receive(link):
    """The answer, while the body is still on its way."""
    reply = http.client.HTTPResponse(link)
    reply.begin()
    return Answer(reply)


def ask(*words, **more):
    with begin(*words, **more) as link:
        return receive(link)


def is_full(*words, **more):
    """Is one more refused?  Those before it are counted when they have been
    asked for their tokens: one that is let in goes again."""
    with begin(*words, **more) as link:
        return bool(select.select([link], [], [], 2)[0]) and receive(
            link).status == 503


def spooled(served):
    place = os.path.join(served.settings["IL_STATE_DIR"], "nginx/")
    return open_below(place, children(served.pids("nginx")))


first, second, third = add("first"), add("second"), add("third")
slow = add("slow", "-r", "1")
served = Served(IL_API_TOKENS_FILE=path, IL_API_CELLS="1").__enter__()
ROUTES = ("/eval", "/v1/execute", "/v1/execute/stream", "/v1/sessions",
          "/v1/sessions/x/bash", "/v1/files")


@test
def who_has_no_token_is_told_before_the_body_is_read():
    for route in ROUTES:
        for more in ({}, {"chunked": True}, {"Authorization": "Bearer il_0"},
                     {"length": 500_000}, {"Host": "else.example"},
                     {"Host": "else.example", "length": 5000}):
            answer = ask(served, route, **more)
            want = '{"title": "401 Unauthorized"}' if route == "/eval" else \
                '{"detail":"Not authenticated"}'
            assert (answer.status, answer.text) == (401, want), (
                route, more, answer)
            assert answer.headers.get_all("WWW-Authenticate") == ["Bearer"], (
                route, more, answer.headers.items())
            assert answer.headers.get_all("Content-Type") == [
                "application/json"], (route, answer.headers.items())
    assert spooled(served) == 0


@test
def a_token_that_has_used_up_its_minute_is_told_as_well():
    assert served.get("/v1/files", **slow).status == 200
    for route in ROUTES:
        answer = ask(served, route, **slow)
        small = served.post(route, {"input": "1"}, slow)
        assert answer.status == small.status == 429, (route, answer, small)
        assert answer.body == small.body, (route, answer, small)
        assert 1 <= int(answer.headers["Retry-After"]) <= 60, answer.headers
        assert answer.headers["Content-Type"] == "application/json"
    text = served.get("/metrics", **first).text
    assert 'route="/v1/files",status="429"} 2' in text, text


@test
def who_may_is_counted_once():
    own = add("once", "-r", "2")
    body = b'{"input": "1"}' + b" " * 300_000
    for status in 200, 200, 429:
        answer = served.post("/eval", body, own)
        assert answer.status == status, answer


def upload(headers, size=0):
    """Begin a large upload; returns when nginx writes it to the disk."""
    before = spooled(served)
    link = begin(served, "/v1/files", FORM_HEAD + bytes(1 << 20),
                 Content_Type=FORM, **headers)
    wait_for(lambda: spooled(served) == before + 1)
    return link


def is_busy(headers):
    answer = ask(served, "/v1/files", Content_Type=FORM, **headers)
    assert (answer.status, answer.text) == (
        503, '{"detail":"Too many requests are waiting, or Inline is '
        'starting"}'), answer
    assert answer.headers["Retry-After"] == "1", answer.headers
    answer = ask(served, "/eval", **headers)
    assert (answer.status, answer.text) == (
        503, '{"title": "503 Service Unavailable"}'), answer


@test
def so_many_large_ones_come_at_one_time_and_each_token_has_its_share():
    links = [upload(first), upload(first)]
    is_busy(first)
    links += [upload(second), upload(second)]
    is_busy(third)
    assert spooled(served) == 4
    # Others, who are not large, are not concerned, however slow those are.
    for headers in first, third:
        answer = served.post("/eval", {"input": "print(1)"}, headers)
        assert answer.json["stdout"] == "1\n", answer
        answer = served.post("/eval", b'{"input": "print(2)"}' +
                             b" " * 1_000_000, headers)
        assert answer.json["stdout"] == "2\n", answer
    for link in links:
        link.close()
    wait_for(lambda: spooled(served) == 0)
    upload(third).close()


@test
def a_token_has_its_share_however_it_is_written():
    secret = first["Authorization"].split()[1]
    links = [upload({"Authorization": scheme + secret})
             for scheme in ("Bearer ", "bearer  ")]
    for scheme in "BEARER ", "Bearer   ":
        is_busy({"Authorization": scheme + secret})
    upload(second).close()
    for link in links:
        link.close()
    wait_for(lambda: spooled(served) == 0)


@test
def a_token_leaves_room_for_others_middling_ones():
    form = FORM_HEAD + bytes(300_000)
    body = b'{"input": "print(1)"}' + b" " * 300_000
    links = [begin(served, "/v1/files", form, 7_000_000, Content_Type=FORM,
                   **first) for _ in range(8)]
    wait_for(lambda: spooled(served) == 8)
    answer = served.post("/eval", body, first)
    assert answer.status == 503, answer
    answer = served.post("/eval", body, second)
    assert answer.json["stdout"] == "1\n", answer
    for link in links:
        link.close()
    wait_for(lambda: spooled(served) == 0)


@test
def who_asks_much_of_the_files_leaves_room_for_others():
    # More than 16: some of those before may still be counted.
    links = [begin(served, "/v1/files", FORM_HEAD, 2000, Content_Type=FORM,
                   **first) for _ in range(24)]
    wait_for(lambda: is_full(served, "/v1/files", FORM_HEAD, 2000,
                             Content_Type=FORM, **first))
    answer = served.get("/v1/files", **first)
    assert answer.status == 503, answer
    assert answer.headers["Retry-After"] == "1", answer.headers
    assert served.get("/v1/files", **second).status == 200
    for link in links:
        link.close()
    wait_for(lambda: served.get("/v1/files", **first).status == 200)


def get(path, headers):
    """Ask for it, and read no more than a byte."""
    link = socket.create_connection(("127.0.0.1", served.port), 30)
    link.sendall(("GET %s HTTP/1.1\r\nHost: localhost\r\n" % path + "".join(
        "%s: %s\r\n" % item for item in headers.items()) + "\r\n").encode())
    assert link.recv(1) == b"H"
    return link


def keep(headers, content, name=b"a"):
    head = FORM_HEAD.replace(b'"a"', b'"%s"' % name)
    answer = served.post("/v1/files", head + content + b"\r\n--b--\r\n",
                         {"Content-Type": FORM, **headers})
    return "/v1/files/" + answer.json["file_id"]


def take(link, length):
    """Read on, through so many bytes."""
    taken = b""
    while len(taken) < length:
        piece = link.recv(1 << 20)
        assert piece, "%d of %d" % (len(taken), length)
        taken += piece
    return taken


@test
def what_slow_readers_leave_is_not_on_the_disk():
    content = os.urandom(20_000_000)
    path = keep(first, content)
    links = [get(path, first) for _ in range(6)]
    answer = served.get(path, **first)
    assert (answer.status, answer.headers["Retry-After"]) == (503, "1"), answer
    own = keep(second, b"hello" + bytes(3_000_000))
    links += [get(own, second) for _ in range(5)]
    assert served.get(own, **second).text.startswith("hello")
    assert spooled(served) == 0
    assert take(links[0], len(content)).endswith(content[-1_000_000:])
    for link in links:
        link.close()
    wait_for(lambda: served.get(path, **first).status == 200)


@test
def a_token_takes_half_of_the_readers_places():
    """The others' are left, whether it reads files or the list of them."""
    for _ in range(1000):
        keep(third, b"", b"n" * 7800)
    path = keep(first, b"hello")
    size = len(served.get("/v1/files", **third).body)
    assert size > 7_000_000, size
    links = [get("/v1/files", third) for _ in range(16)]
    assert served.get(path, **first).text == "hello"
    for link in links:
        link.close()


@test
def who_has_no_token_takes_no_reader_s_place():
    path = keep(first, b"hello")
    for host in "else.example", "localhost":
        for route in "/v1/files/x", "/v1/files":
            links = [begin(served, route, b"", 0, method="GET", Host=host)
                     for _ in range(16)]
            assert {receive(link).status for link in links} <= {401, 503, 429}
            links += [begin(served, route, b"", 100, method="GET", Host=host)
                      for _ in range(16)]
            assert served.get(path, **first).text == "hello", (host, route)
            for link in links:
                link.close()


@test
def a_reader_sends_no_body():
    path = keep(first, b"hello")
    for route in path, "/v1/files":
        assert ask(served, route, length=5, method="GET",
                   **first).status == 400
        assert ask(served, route, chunked=True, method="GET",
                   **first).status == 400
        assert ask(served, route, length=0, method="GET",
                   **first).status == 200


@test
def a_long_answer_waits_for_its_reader_and_not_on_the_disk():
    body = b'{"input": "print(chr(1) * 900_000)"}'  # 6 bytes each in JSON
    with begin(served, "/eval", body, len(body), **first) as link:
        assert link.recv(1) == b"H"
        assert spooled(served) == 0
        assert b"\\u0001" * 100_000 in take(link, 5_400_000)


@test
def small_bodies_stay_in_memory():
    with begin(served, "/eval", bytes(200_000), 250_000, **first) as link:
        assert served.get("/health").status == 200  # it has been read
        assert spooled(served) == 0
    with begin(served, "/eval", bytes(500_000), 600_000, **first):
        wait_for(lambda: spooled(served) == 1)


@test
def the_disk_is_reckoned_with_what_nginx_lets_in():
    def number(text, name):
        return int(re.search(name + r"\D+(\d+)", text)[1])

    with open(os.path.join(ROOT, "sandbox/broker/volume.c")) as file:
        header = file.read()
    with open(os.path.join(BUILD, "gen", "api.conf")) as file:
        conf = file.read()
    with open(os.path.join(ROOT, "nginx/http.conf")) as file:
        sizes = file.read()
    for zone, name in ("medium", "SPOOL_MEDIUM"), ("huge", "SPOOL_HUGE"):
        counts = set(re.findall(r"limit_conn inline_%s (\d+);" % zone, conf))
        assert counts == {str(number(header, name + r" INT64_C"))}, (
            zone, counts)
        assert conf.count("limit_conn inline_%s " % zone) == len(re.findall(
            r"client_max_body_size 1\d+m;[^}]*limit_conn_status", conf)) == 8
    pattern = re.search(r'"~(\S+  \S+)\$" medium;', sizes)[1]
    most = number(header, "SPOOL_MEDIUM_BYTES INT64_C")
    for length, fits in (most - 1, True), (most, False), (most * 10, False):
        assert bool(re.fullmatch(pattern, "HTTP/1.1  %d" % length)) == fits
    assert "SPOOL_HUGE_BYTES (INT64_C(128) << 20)" in header
    assert max(int(size) for size in re.findall(
        r"client_max_body_size (\d+)m;", conf)) == 128


@test
def what_takes_no_body_keeps_none_in_memory():
    for route in "/eval/", "/v1/files/x", "/v1/else":
        answer = ask(served, route, length=20_000)
        assert answer.status == 413, (route, answer)
        assert ask(served, route, bytes(10_000), 10_000).status != 413


@test
def long_interactions_of_an_address_are_few_at_one_time():
    def post(length, **more):
        return begin(served, "/interactions", b"{", length, **more)

    def holds(links):
        """Those that are not refused: their bodies are waited for."""
        return [link for link in links if not select.select(
            [link], [], [], 0)[0]]

    links = [post(60_000) for _ in range(16)]
    with post(60_000) as one, post(10, chunked=True) as other:
        assert receive(one).status == receive(other).status == 429
    assert len(holds(links)) == 16
    # Those that people send are not concerned.
    assert ask(served, "/interactions", bytes(50_000), 50_000).status == 401
    for link in links:
        link.close()

    wait_for(lambda: ask(served, "/interactions", bytes(60_000),
                         60_000).status == 401)


@test
def bodies_that_nobody_takes_leave_connections_for_the_rest():
    """A route without a body waits for one that is announced all the same."""
    for route in "/health", "/docs", "/eval/", "/v1/else", "/metrics":
        links = [begin(served, route, b"{", 1000, Host="localhost",
                       Authorization="x") for _ in range(64)]
        wait_for(lambda: ask(served, route, b"{", 1000,
                             Authorization="x").status == 503)
        assert served.get("/health").status == 200
        for link in links:
            link.close()
        wait_for(lambda: served.post(route, b"{}").status != 503)


@test
def small_bodies_of_a_token_leave_connections_for_the_rest():
    # More than 512: a machine that is busy may refuse some at their gate.
    links = [begin(served, "/eval", b"{", 1000, **third) for _ in range(560)]
    wait_for(lambda: is_full(served, "/eval", b"{", 1000, **third))
    answer = served.post("/eval", {"input": "print(1)"}, first)
    assert answer.json["stdout"] == "1\n", answer
    for link in links:
        link.close()
    wait_for(lambda: served.post("/eval", {"input": "1"}, third).status == 200)


@test
def bodies_of_who_has_no_token_leave_places_for_who_has():
    """Whatever somebody without one says of it, and from wherever on this
    machine."""
    for word in "x" * 300, "n", "il_0":
        with begin(served, "/eval", b"{", 1000,
                   Authorization="Bearer " + word) as link:
            assert receive(link).status == 401, word
    links = []
    for n in range(520):
        link = socket.create_connection(
            ("127.0.0.1", served.port), 30, ("127.0.0.%d" % (2 + n % 9), 0))
        link.sendall(b"POST /eval HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Length: 1000\r\n\r\n{")
        links.append(link)
    wait_for(lambda: is_full(served, "/eval", b"{", 1000))
    answer = served.post("/eval", {"input": "print(1)"}, first)
    assert answer.json["stdout"] == "1\n", answer
    for link in links:
        link.close()
    wait_for(lambda: served.post("/eval", {"input": "1"}).status == 401)


@test
def who_was_refused_and_sends_on_is_cut_off():
    """nginx's own time for it is half a minute, in which each keeps a
    connection; less would take the answer from who looks for it late."""
    with begin(served, "/eval") as link:
        assert receive(link).status == 401
        ends = time.monotonic() + 25
        try:
            while True:
                assert time.monotonic() < ends, "it may send for ever"
                link.sendall(b"x")
                if select.select([link], [], [], 0.5)[0] and not link.recv(1):
                    break
        except OSError:
            pass


@test
def whoever_holds_connections_is_counted_everywhere():
    """A location with a limit of its own does not inherit the server's."""
    with open(os.path.join(BUILD, "gen", "api.conf")) as file:
        conf = file.read()
    for text in re.findall(r"^location .*?^}", conf, re.S | re.M):
        if "limit_conn_status" in text:
            assert "limit_conn inline_hosts " in text, text


GATE = re.compile(r"(api|files)\.sock\"? max_fails=0 max_conns=(\d+)")


@test
def who_waits_at_the_gate_leaves_connections_for_the_rest():
    """While il-api stands still nobody knows whether a token is one."""
    found = []
    for name in "nginx.conf.in", "inline.conf":
        with open(os.path.join(ROOT, "nginx", name)) as file:
            found.append(GATE.findall(file.read()))
    assert found[0] == found[1] and len(found[0]) == 2, found
    most = sum(int(number or 0) for _, number in found[0])
    made_up = {"Authorization": "Bearer il_" + "0" * 64}
    still = served.pids("il-api")
    still += children(still)
    for pid in still:
        os.kill(pid, signal.SIGSTOP)
    try:
        links = [begin(served, "/eval", b"{}", 2, **made_up)
                 for _ in range(most + 200)]
        poll = select.poll()
        for link in links:
            poll.register(link, select.POLLIN)
        # nginx gives up after 3 s, and those are no more than these.
        until = time.monotonic() + 2
        while len(poll.poll(0)) < 200:
            assert time.monotonic() < until, (most, len(poll.poll(0)))
            time.sleep(0.05)
        refused = [link for link in links if link.fileno() in dict(
            poll.poll(0))]
        for link in refused:
            answer = receive(link)
            assert answer.status == 503, answer
            assert answer.headers["Retry-After"] == "1", answer.headers
        assert ask(served, "/interactions", b"{}", 2).status == 401
    finally:
        for pid in still:
            os.kill(pid, signal.SIGCONT)
        for link in links:
            link.close()
    wait_for(lambda: served.get("/v1/files", **first).status == 200)


@test
def half_interactions_leave_connections_for_the_rest():
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    links = [begin(served, "/interactions", b"{", 5000) for _ in range(1500)]
    with begin(served, "/interactions", b"{", 5000) as one:
        assert receive(one).status == 429
    assert served.get("/health").status == 200
    for link in links:
        link.close()
    wait_for(lambda: ask(served, "/interactions", b"{}", 2).status == 401)


@test
def without_tokens_strangers_are_told_before_the_body_is_read():
    with Served(IL_API_CELLS="1") as open_:
        for route in ROUTES:
            answer = ask(open_, route, Host="else.example")
            small = open_.post(route, {"input": "1"},
                               {"Host": "else.example"})
            assert answer.status == small.status == 403, (route, answer)
            assert answer.body == small.body, (route, answer, small)
        assert spooled(open_) == 0
        body = b'{"input": "print(3)"}' + b" " * 9_000_000
        assert open_.post("/eval", body).json["stdout"] == "3\n"


try:
    run()
finally:
    served.close()
    folder.cleanup()
