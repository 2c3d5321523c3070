#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Several nodes (IL_NODES), each an nginx and an il-fcgi with a database of its
own: an interaction gets to the node of its person by whichever it comes, and
where that is away the person is told so in time."""

import contextlib
import json
import os
import secrets
import signal
import socket
import tempfile
import threading
import time

import front as f
from slots import slot_of, slot_of_row

tap = f.Tap()
folder = tempfile.TemporaryDirectory(prefix="inline-fcgi-nodes-")
ports = {name: f.free_port() for name in "abc"}
SLOTS = {"a": range(0, 400), "b": range(400, 800), "c": range(800, 1024)}
TOLD_MS = 2900
SILENT_MS = 2000    # where a node takes it and says nothing
AWAY = "does not answer just now"
DIFFER = "do not agree yet"


def put(name, text):
    path = os.path.join(folder.name, name)
    with open(path + ".new", "w") as file:
        file.write(text)
    os.replace(path + ".new", path)
    return path


def table(**slots):
    """A table of the three nodes, some of whose slots are another's."""
    return "".join("node %s 127.0.0.1:%d\n" % node for node in ports.items()) \
        + "".join("slots %d-%d %s\n" % (of[0], of[-1], slots.get(name, name))
                  for name, of in SLOTS.items())


KEY = put("key", secrets.token_hex(32) + "\n")
TABLE = put("table", table())


def node(name, nodes=TABLE, key=KEY, **settings):
    return f.Front(IL_NODE=name, IL_NODES=nodes, IL_NODES_KEY_FILE=key,
                   **settings)


def person(name, start=100000000000000000):
    """Somebody whose node that is, and nobody who was there before."""
    while True:
        start += 1
        if slot_of(start) in SLOTS[name] and start not in person.known:
            person.known.add(start)
            return start


person.known = set()


def timed(front, body, **more):
    began = time.monotonic()
    answer = front.send(body, **more)
    return answer, (time.monotonic() - began) * 1000


def is_told(front, name, text=AWAY, body=None, **more):
    """A command of somebody of node c's ends in words, in time."""
    body = body or f.command("py", code="1", user=person("c"))
    answer, ms = timed(front, body, **more)
    tap.ok(answer.status == 200 and text in answer.text and answer.private and
           ms < TOLD_MS, name, answer, "%.0f ms" % ms)
    return ms


class Fake:
    """Node c, which does what it is told to."""

    def __init__(self, answer):
        self.answer = answer
        self.heads = []
        self.listener = socket.create_server(("127.0.0.1", ports["c"]))
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                with self.listener.accept()[0] as peer:
                    with contextlib.suppress(OSError):
                        self.take(peer)

    def take(self, peer):
        data = b""
        while b"\r\n\r\n" not in data:
            data += peer.recv(65536)
        self.heads.append(data)
        self.answer(peer)


def saying(text, then=None):
    def answer(peer):
        peer.sendall(text.encode())
        if then is not None:
            peer.settimeout(10)
            then(peer)
    return answer


def silent(peer):
    """Until the other side gives up."""
    peer.recv(1 << 20)
    peer.recv(1 << 20)


def within(json_text):
    return "HTTP/1.1 200 x\r\nInline-Answer: %s\r\n\r\n" % json_text


# ---- what arrives ----

def check_each(fronts):
    for at, front in fronts.items():
        for name, home in fronts.items():
            user = person(name)
            home.add_sandbox(user)
            got = front.send(f.command("py", code="print(1)", user=user))
            job = home.job(user)
            tap.equal((got.json, job.get("text"), slot_of_row(job.get("id", 0))),
                      ({"type": 5, "data": {"flags": 64}}, "print(1)",
                       slot_of(user)),
                      "of a person of %s, by %s" % (name, at))
            others = [o for o in fronts.values() if o is not home]
            tap.equal(sum(len(o.jobs(user)) for o in others), 0,
                      "and nowhere else")


def check_large(front, home):
    for size in (300000, 1 << 20):
        user = person("b")
        body = f.command("py", code="print(1)", user=user)
        body["filler"] = "\u00fc" * 100
        body["filler"] += "x" * (size - len(f.encode(body)))
        data = f.encode(body)
        got = front.send(data)
        tap.equal((len(data), got.type, len(home.jobs(user))), (size, 5, 1),
                  "%d bytes arrive" % size)
    body["filler"] += "x"
    tap.equal(front.send(f.encode(body)).status, 413, "and no more")


def check_rows(fronts):
    """A press goes to the node of its row; what is submitted to the presser's."""
    a, b = fronts["a"], fronts["b"]
    ann, bob = person("a"), person("b")
    made = a.send(f.command("py", user=bob))
    tap.equal(made.type, 9, "an editor of another node")
    view = int(made.data["custom_id"].split(":")[1])
    tap.equal((slot_of_row(view), len(b.query(
        "SELECT 1 FROM views WHERE id = ?", view))), (slot_of(bob), 1),
        "its row says so, and is there")
    got = a.send(f.submit("py:%d" % view, user=bob, code="print(2)"))
    tap.equal((got.type, b.job(bob)["text"]), (5, "print(2)"),
              "what he submits is done there")
    b.finish_jobs()
    body = f.submit("py:%d" % view, user=ann, code="print(2)")
    tap.ok("no longer stored" in a.send(body).text and body["id"] not in b.log(),
           "and by somebody else, on that one's node")
    b.query("UPDATE views SET share = 1, kind = 'py' WHERE id = ?", view)
    got = a.send(f.press("py-try:%d" % view, user=ann))
    tap.equal((got.type, b.job(ann).get("kind"), a.job(ann)),
              (4, "py-try", {}), "whoever tries it does so there")
    got = b.send(f.submit("py-tried:2:3.13", user=ann, code="print(3)"))
    job = a.job(ann)
    tap.equal((got.type, job.get("text"), job.get("version"),
               job.get("timeit"), job.get("view_id")),
              (5, "print(3)", "3.13", 1, 0), "and runs it at home")
    os.makedirs(a.path("cancels"), exist_ok=True)
    got = b.send(f.press("cancel-other:%d" % job["id"], user=ann))
    tap.ok(got.type == 7 and os.listdir(a.path("cancels")) ==
           [str(job["id"])], "a job is cancelled where it is", got)
    a.finish_jobs()
    old = a.add_view("look", user=ann, path="x")
    a.query("UPDATE views SET id = 41 WHERE id = ?", old)
    got = b.send(f.press("look-next:41", user=ann))
    tap.equal((got.type, a.job(ann).get("view_id")), (6, 41),
              "an old id is the presser's")
    a.finish_jobs()


def check_late(a):
    """Since when the other node had it counts."""
    with open(a.path("nginx.conf")) as file:
        key = file.read().split('$inline_node_key {\n\tdefault "')[1][:64]
    port, a.port = a.port, ports["a"]
    try:
        for took, status in (("0.100", 200), ("1.900", 504)):
            user = person("a")
            body = f.encode(f.command("py", code="1", user=user))
            got = a.request("POST", "/interactions", body, {
                **a.headers(body), "Inline-Node-Key": key,
                "Inline-Took": took})
            tap.equal((got.status, len(a.jobs(user))),
                      (status, int(status == 200)),
                      "what the other node had for %s s" % took)
        for headers in ({}, {"Inline-Node-Key": "0" * 64}):
            body = f.encode(f.command("py", code="1", user=person("a")))
            got = a.request("POST", "/interactions", body,
                            {**a.headers(body), **headers})
            tap.equal(got.status, 403, "a stranger is no node")
        body = f.encode(f.command("py", code="1", user=person("a")))
        got = a.request("POST", "/interactions", body,
                        {"Inline-Node-Key": key})
        tap.equal(got.status, 401, "nor is a node Discord")
    finally:
        a.port = port
    user = person("a")
    body = f.encode(f.command("py", code="1", user=user))
    got = a.request("POST", "/interactions", body, {
        **a.headers(body), "Inline-Node-Key": "0" * 64, "Inline-By": "c",
        "Inline-From-Node": "1", "Inline-Node": "127.0.0.1:1",
        "Inline-Node-Away": "1", "Inline-Took": "9.000"})
    tap.equal((got.status, got.type, len(a.jobs(user))), (200, 5, 1),
              "what a client says of nodes is passed over")
    got = a.request("POST", "/interactions", body, {
        **a.headers(body), "Inline-Node-Key": key})
    tap.equal(got.status, 421, "a node is told that this is no port of nodes")


# ---- what is away ----

def check_faults(a):
    say = ('{"type":4,"data":{"content":"there",'
           '"allowed_mentions":{"parse":[]}}}')
    c = person("c")
    with Fake(saying(within(say))) as fake:
        got = a.send(f.encode({**f.command("py", code="1", user=c)}))
        tap.equal(got.json, json.loads(say), "the node's answer is passed on")
        body = f.encode(f.command("py", code="1", user=c))
        a.request("POST", "/interactions", body, {
            **a.headers(body), "Inline-Took": "5", "Inline-By": "x",
            "Inline-Node-Key": "k", "Cookie": "c", "X-Forwarded-For": "1"})
        head = fake.heads[-1].split(b"\r\n\r\n")[0].decode().lower()
        names = sorted(line.split(":")[0] for line in head.split("\r\n")[1:])
        tap.equal(names, ["connection", "content-length", "content-type",
                          "host", "inline-by", "inline-node-key",
                          "inline-took", "x-signature-ed25519",
                          "x-signature-timestamp"], "with these headers alone")
        tap.ok("inline-by: a" in head and "inline-took: 0." in head, "of ours",
               head)
    tap.ok(is_told(a, "nobody listens") < 1000, "at once")
    for status in (200, 202, 204, 206, 299, 301, 399, 400, 401, 403, 404, 413,
                   418, 429, 451, 500, 502, 503, 504, 599):
        with Fake(saying("HTTP/1.1 %d x\r\nContent-Length: 3\r\n\r\nabc"
                         % status)):
            is_told(a, "it answers %d" % status)
    for name, text in (("nothing", ""), ("half a line", "HTTP/1.1 41"),
                       ("half an answer", within(say)[:-20]),
                       ("no answer within", within("")),
                       ("none at all", "HTTP/1.1 200 x\r\n\r\n")):
        with Fake(saying(text)):
            is_told(a, "it says %s and hangs up" % name)
        with Fake(saying(text, silent)):
            ms = is_told(a, "it says %s and then nothing" % name)
            tap.ok(ms < SILENT_MS, "within 2 s", ms)
    with Fake(saying(within(say).replace(" 200 ", " 206 "))):
        is_told(a, "it says a part of an answer")
    with Fake(saying("hello")):
        is_told(a, "it speaks no HTTP")
    with Fake(saying("HTTP/1.1 200 x\r\nX-Accel-Redirect: @person\r\n"
                     "Inline-Node: 127.0.0.1:%d\r\nContent-Length: 0\r\n\r\n"
                     % ports["b"])) as fake:
        is_told(a, "it sends it elsewhere")
        tap.equal(len(fake.heads), 1, "once")
    with Fake(lambda peer: (time.sleep(1.7), peer.sendall(
            within(say).encode()))):
        got, ms = timed(a, f.command("py", code="1", user=c))
        tap.ok(got.json == json.loads(say), "a slow one has its time", got, ms)
    with socket.socket() as full:
        full.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        full.bind(("127.0.0.1", ports["c"]))
        full.listen(0)
        with contextlib.ExitStack() as stack:
            for _ in range(3):
                peer = stack.enter_context(socket.socket())
                peer.setblocking(False)
                peer.connect_ex(("127.0.0.1", ports["c"]))
            tap.ok(is_told(a, "it takes no connection") < 2000, "within 2 s")
    german = f.command("py", code="1", user=person("c"),
                       extra={"locale": "de"})
    is_told(a, "in the person's language", "Host", german)
    got = a.send(f.typing("look", "path", "a", user=person("c")))
    tap.equal(got.json, {"type": 8, "data": {"choices": []}},
              "nothing is suggested meanwhile")
    is_told(a, "a button of a row there", body=f.press("py-again:%d" % (
        1 << 61 | slot_of(c) << 12), user=person("a")))
    for name, body in (
            ("help", f.command("help", user=person("c"))),
            ("health", f.command("", root="health", user=person("c"))),
            ("an unknown command", f.command("nothing", user=person("c"))),
            ("an unknown button", f.press("x:1", user=person("c")))):
        got = a.send(body)
        tap.ok(got.status == 200 and AWAY not in got.text, name + " is answered "
               "by any node", got)
    tap.equal(a.send(f.interaction(1, None)).json, {"type": 1}, "and a PING")
    tap.ok('status="502"' in a.log(), "the log says how it answered",
           a.log()[-2000:])


def check_real_faults(a):
    """A real node c that is stopped, has another key, a clock that is off."""
    with node("c") as c:
        user = person("c")
        tap.equal((a.send(f.command("py", code="1", user=user)).type,
                   len(c.jobs(user))), (5, 1), "node c is there")
        user = person("c")
        got, ms = timed(a, f.command("write", name="a.txt", user=user))
        tap.ok(got.type == 4 and AWAY not in got.text and 1600 < ms < SILENT_MS,
               "an editor is waited for by both", got, ms)
        got, ms = timed(c, f.command("write", name="a.txt", user=person("c")))
        tap.ok(got.type == 4 and 2200 < ms < TOLD_MS, "longer at home", got, ms)
        c.signal(signal.SIGSTOP)
        ms = is_told(a, "its il-fcgi is stopped")
        tap.ok(ms < SILENT_MS, "within 2 s", ms)
        c.signal(signal.SIGCONT)
        c.process.kill()
        c.process.wait()
        is_told(a, "its il-fcgi is killed")
        c.nginx.send_signal(signal.SIGTERM)
        c.nginx.wait()
        is_told(a, "its nginx is gone")
    with node("c", key=put("other", secrets.token_hex(32) + "\n")) as c:
        user = person("c")
        is_told(a, "it has another key", body=f.command(
            "py", code="1", user=user))
        tap.equal(len(c.jobs(user)), 0, "and does nothing")
    with node("c", IL_TUNE_MAX_SKEW_SECONDS="5") as c:
        is_told(a, "its clock is off",
                timestamp=str(int(time.time()) - 60))
        tap.ok("outcome=stale" in f.until(lambda: c.log()), "so it refused",
               c.log())


def check_tables(a):
    """Two nodes with different tables never send it round."""
    other = put("other-table", table(c="a"))
    with node("c", nodes=other) as c:
        user = person("c")
        is_told(a, "two tables that differ", DIFFER,
                f.command("py", code="1", user=user))
        tap.ok("node a has handed on" in c.log() and "on node a" in c.log(),
               "the log names both nodes", c.log())
        got = a.send(f.typing("look", "path", "a", user=person("c")))
        tap.equal(got.json, {"type": 8, "data": {"choices": []}},
                  "nothing is suggested")
        put("other-table", table())
        f.until(lambda: a.send(f.command(
            "py", code="1", user=person("c"))).type == 5)
        tap.ok(True, "until they agree")
        put("table", table().replace("node c 127.0.0.1:%d" % ports["c"],
                                     "node c 127.0.0.1:%d" % a.port))

        def is_led_astray():
            a.send(f.command("py", code="1", user=person("c")))
            return 'status="421"' in a.log()

        f.until(is_led_astray)
        handed = a.log().count("outcome=handed-on")
        is_told(a, "a node whose address is the port of clients")
        tap.equal(a.log().count("outcome=handed-on"), handed + 1,
                  "nothing goes round")
        put("table", table(c="a"))

        def is_here():
            user = person("c")
            a.send(f.command("py", code="1", user=user))
            return a.jobs(user)

        f.until(is_here)
        tap.ok(True, "a table that changes is read again")
        put("table", "node a\nslots 1-2 nobody\n")
        f.until(lambda: is_here() and "the table of before stays" in a.log())
        tap.ok(is_here(), "one that is wrong is not")
        put("table", table())
        f.until(lambda: not is_here())


def check_moved(a, b):
    """Who has gone from a to b is found by all, also where c's table is old."""
    with node("c", nodes=put("third", table(c="a"))) as c:
        for owner, table_name in (b, "new"), (a, "old"):
            put("table", table(c="b" if owner is b else "a"))
            for front in a, b:
                f.until(lambda front=front: has_job(front, person("c"), owner))
            user = person("c")
            put_move(a, user, "gone")
            for front in a, b, c:
                tap.ok(has_job(front, user, b), "who has gone, where a's table "
                       "is " + table_name)
            tap.equal(a.jobs(user), [], "has nothing left there")
            put_move(a, user, "leaving")
            is_told(c, "who leaves is told so", "just moving",
                    f.command("py", code="1", user=user))
            if owner is b:
                is_told(c, "who has not been on a", DIFFER,
                        f.command("look", user=person("c")))
                a.query("DELETE FROM moves")
        check_come(a, b, c)
    put("table", table())


def check_come(a, b, c):
    """c's table is new: it hands people of c to b, whose table still has them on
    a, from where their slot has come."""
    put("third", table(c="b"))
    user = person("c")
    f.until(lambda: DIFFER in c.send(f.command("look", user=user)).text)
    a.query("DELETE FROM jobs")
    version = "%d.%09d" % divmod(os.stat(TABLE).st_mtime_ns, 10 ** 9)
    for seen, comes in (version, True), ("5.000000000", False):
        b.query("INSERT OR REPLACE INTO moves VALUES (?, 0, ?, 'come')",
                slot_of(user), seen)
        if comes:
            tap.ok(has_job(c, user, b), "a slot that has come is here")
        else:
            is_told(c, "it came, and the table is a newer one", DIFFER,
                    f.command("look", user=user))
    tap.equal(a.jobs(user), [], "nobody else has anything of it")
    b.query("DELETE FROM moves")


def put_move(front, user, state):
    front.query("INSERT OR REPLACE INTO moves VALUES (?, ?, 'b', ?)",
                slot_of(user), user, state)


def has_job(front, user, owner):
    """A command that is sent to one node is done by the other, and said so."""
    got = front.send(f.command("py", code="print(1)", user=user))
    found = owner.jobs(user)
    owner.query("DELETE FROM jobs")
    return bool(found) and got.type == 5


def check_no_database():
    """Who hands on asks no row."""
    with node("a", nodes=put("third", table())) as a, Fake(
            saying(within('{"type":5}'))):
        a.signal(signal.SIGSTOP)
        os.rename(a.database, a.database + ".away")
        os.mkdir(a.database)
        a.signal(signal.SIGCONT)
        for child in a.children():
            os.kill(child, signal.SIGKILL)
            a.children(gone=child)
        got = a.send(f.command("py", code="1", user=person("c")))
        tap.equal(got.json, {"type": 5}, "without a database it hands on")
        got = a.send(f.command("py", code="1", user=person("a")))
        tap.ok("on our side" in got.text, "and does nothing itself", got)


with node("a") as a, node("b") as b:
    check_each({"a": a, "b": b})
    check_large(a, b)
    check_rows({"a": a, "b": b})
    check_late(a)
    check_faults(a)
    check_real_faults(a)
    check_tables(a)
    check_moved(a, b)
    tap.equal(a.complaints + b.complaints, [], "answers are as Discord's")
check_no_database()
tap.done()
