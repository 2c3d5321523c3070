#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a worker has in time is the first response; whatever has none then gets
what it would have got at once.  The test is the worker."""
import json
import os
import signal
import socket
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import front as f  # noqa: E402

LONG = "2500"  # ms: nothing is due while a test does its part
MANY = 1000
WAIT = 20
DEFERRED = {"type": 5, "data": {"flags": 64}}
HELLO = {"type": 4, "data": {"content": "hello", "flags": 68,
                             "allowed_mentions": {"parse": []}}}
tap = f.Tap()


class Sent:
    """An interaction that is on its way, or all that became of it."""

    def __init__(self, front, body):
        self.answer = None
        self.thread = threading.Thread(target=self._send, args=(front, body))
        self.thread.start()

    def _send(self, front, body):
        self.answer = front.send(body)

    def wait(self):
        """Return the answer."""
        self.thread.join(WAIT)
        return self.answer


def begin(front, body):
    """Send it; returns it and its job, which is held."""
    count = len(front.jobs())
    sent = Sent(front, body)
    job = f.until(lambda: front.jobs()[count:])[0]
    return sent, job


def connect(front, holder):
    f.wait_for_socket(front.path("answers/%d" % holder), front.process,
                      kind=socket.SOCK_SEQPACKET)
    link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    link.settimeout(WAIT)
    link.connect(front.path("answers/%d" % holder))
    return link


def give(front, job, response, job_id=None):
    """Be the worker; returns what the front says to it."""
    with connect(front, job["held_by"]) as link:
        link.send((job["id"] if job_id is None else job_id).to_bytes(8, "little")
                  + json.dumps(response).encode())
        return link.recv(10)


def check_given(front):
    sent, job = begin(front, f.command("py", code="1"))
    tap.ok(job["held_by"] in (0, 1), "the job says who holds it", job)
    tap.equal(give(front, job, HELLO, job["id"] - 1), b"U",
              "another job's answer is not taken")
    tap.ok(sent.answer is None, "and it is still held")
    tap.equal(give(front, job, HELLO), b"S", "its own is")
    tap.equal(sent.wait().json, HELLO, "and is the first response")
    tap.equal(give(front, job, HELLO), b"L", "once")
    f.until(lambda: "outcome=answered job=%d " % job["id"] in front.log())
    tap.ok(True, "which the log says")
    front.finish_jobs()


def check_editor(front):
    view = len(front.query("SELECT 1 FROM views"))
    sent, job = begin(front, f.command("write", name="a.txt"))
    tap.equal((job["kind"], job["path"], job["answer"]),
              ("write-edit", "a.txt", "callback"), "an editor is asked for")
    front.finish_jobs()
    answer = sent.wait()
    button = answer.data["components"][0]["components"][0]
    tap.ok(answer.type == 4 and answer.private and
           button["custom_id"].startswith("write-open:"),
           "which comes too late: there is a button", answer)
    tap.equal(len(front.query("SELECT 1 FROM views")), view + 1, "of one view")
    again, job = begin(front, f.press(button["custom_id"]))
    tap.equal((job["kind"], job["path"], job["answer"], job["view_id"]),
              ("write-edit", "a.txt", "callback", 0), "it asks again")
    modal = {"type": 9, "data": {"custom_id": "write:1", "title": "Edit",
                                 "components": [{
                                     "type": 18, "label": "a", "component": {
                                         "type": 4, "custom_id": "content",
                                         "style": 2}}]}}
    tap.equal(give(front, job, modal), b"S", "and in time")
    tap.equal(again.wait().json, modal, "it opens")
    front.finish_jobs()
    other = f.press(button["custom_id"], user=99)
    tap.ok("belongs to somebody else" in front.send(other).text,
           "for nobody else")


def check_bad(front):
    """What a worker never sends."""
    sent, job = begin(front, f.command("py", code="1"))
    silent = [connect(front, job["held_by"]) for _ in range(50)]
    for packet in (b"x", b"1234567", b""):
        with connect(front, job["held_by"]) as link:
            link.send(packet)
            tap.equal(link.recv(10), b"", "%d bytes are none" % len(packet))
    with connect(front, job["held_by"]) as link:
        link.send(job["id"].to_bytes(8, "little") + b"x" * 70000)
        tap.equal(link.recv(10), b"", "nor is what is too long")
    tap.equal(give(front, job, HELLO), b"S", "the right one is still taken")
    tap.equal(sent.wait().json, HELLO, "as it is")
    for link in silent:
        link.close()
    front.finish_jobs()


def check_gone(front):
    """nginx hangs up: whoever has the answer edits it in, if that is to be."""
    body = f.encode(f.command("py", code="1"))
    count = len(front.jobs())
    with front.connect() as sock:
        sock.sendall(front.records("POST", "/interactions", body,
                                   front.headers(body)))
        job = f.until(lambda: front.jobs()[count:])[0]
    tap.equal(give(front, job, HELLO), b"U", "a client that is gone has none")
    f.until(lambda: "outcome=hung-up job=%d " % job["id"] in front.log())
    front.finish_jobs()


def check_kept(front):
    """Who asks that the connection be kept does not keep our descriptor."""
    body = f.encode(f.command("py", code="1"))
    data = bytearray(front.records("POST", "/interactions", body,
                                   front.headers(body)))
    data[8 + 2] = 1     # FCGI_KEEP_CONN
    count = len(front.jobs())
    with front.connect() as sock:
        sock.sendall(data)
        job = f.until(lambda: front.jobs()[count:])[0]
        give(front, job, HELLO)
        tap.equal(f.read_answer(sock).json, HELLO, "a client that would stay")
        sock.settimeout(WAIT)
        try:
            end = sock.recv(1)
        except TimeoutError:
            end = None
        tap.equal(end, b"", "is hung up on")
    front.finish_jobs()


def check_many(front):
    """So many at one time, by two processes, which serve others meanwhile."""
    links = []
    for user in range(1, MANY + 1):
        body = f.encode(f.command("create", user=user))
        link = front.connect()
        link.sendall(front.records("POST", "/interactions", body,
                                   front.headers(body)))
        links.append(link)
    f.until(lambda: len(front.jobs()) >= MANY)
    tap.equal(front.send(f.interaction(1, None)).json, {"type": 1},
              "a PING is answered while %d are held" % MANY)
    held = [job for job in front.jobs() if job["held_by"] >= 0]
    tap.equal({job["held_by"] for job in held}, {0, 1}, "both hold some")
    given = give(front, held[-1], HELLO)
    answers = [f.read_answer(link).json for link in links]
    for link in links:
        link.close()
    tap.equal(answers.count(HELLO), 1 if given == b"S" else 0,
              "one that was given is answered by it")
    tap.equal(answers.count(DEFERRED), MANY - answers.count(HELLO),
              "all others are deferred")
    front.finish_jobs()


def check_end(front):
    """At the end nobody waits in vain."""
    sent, job = begin(front, f.command("py", code="1"))
    front.process.terminate()
    tap.equal(sent.wait().json, DEFERRED, "SIGTERM: it is deferred")
    tap.equal(front.process.wait(60), 0, "and the front ends")
    front.start()
    tap.equal(give(front, job, HELLO), b"U", "the next one does not know it")
    front.finish_jobs()


def check_killed(front):
    sent, job = begin(front, f.command("py", code="1"))
    holders = front.children()
    for pid in holders:
        os.kill(pid, signal.SIGKILL)
    tap.ok(sent.wait().status in (502, 504), "killed: nobody answers it")
    for pid in holders:
        front.children(gone=pid)
    tap.equal(give(front, job, HELLO), b"U", "nor does the next one")
    front.finish_jobs()
    sent, job = begin(front, f.command("py", code="1"))
    tap.equal(give(front, job, HELLO), b"S", "which goes on holding others")
    tap.equal(sent.wait().json, HELLO, "as before")
    front.finish_jobs()


with f.Front(IL_TUNE_INSTANT_MS=LONG) as front:
    front.add_sandbox()
    check_given(front)
    check_editor(front)
    check_bad(front)
    check_gone(front)
    check_kept(front)
    check_many(front)
    check_end(front)
    check_killed(front)

with f.Front(IL_TUNE_INSTANT_MS="200") as front:
    front.add_sandbox()
    sent, job = begin(front, f.command("py", code="1"))
    tap.equal(sent.wait().json, DEFERRED, "what takes longer is deferred")
    tap.equal(give(front, job, HELLO), b"L", "and answered later")
    front.finish_jobs()
    sent, job = begin(front, f.command("py", code="1", share=True))
    with connect(front, job["held_by"]) as link:
        link.send(job["id"].to_bytes(8, "little"))
        tap.equal(link.recv(10), b"L", "what has files can have it deferred")
    tap.equal(sent.wait().json, {"type": 5}, "for all, where it is shared")
    front.finish_jobs()
    press = f.press("look-next:%d" % front.add_view("look"))
    sent, job = begin(front, press)
    tap.equal(sent.wait().json, {"type": 6}, "a button's message stays")
    tap.equal(front.complaints, [], "all of it is what Discord takes")
tap.done()
