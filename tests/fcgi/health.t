#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""GET /health of il-api: always 200, and truthful.  (With a broker that runs:
the end-to-end tests.)"""
import os
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import front as f  # noqa: E402
sys.path.insert(0, os.path.join(f.ROOT, "tests", "broker"))
import brokerlib  # noqa: E402

tap = f.Tap()


def health(front):
    answer = front.request("GET", "/health")
    tap.equal(answer.status, 200, "always 200")
    return answer.json


def check_routes(front):
    answer = front.request("HEAD", "/health")
    tap.ok(answer.status == 405 and answer.headers["Allow"] == "GET",
           "HEAD is 405 with Allow", answer)
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        tap.equal(front.request(method, "/health").status, 405,
                  method + " is 405")
        answer = front.direct(method, "/health")
        tap.ok(answer.status == 405 and answer.headers["Allow"] == "GET" and
               answer.json == {"detail": "Method Not Allowed"},
               method + " is 405 past nginx too", answer)
    answer = front.direct("GET", "/health/more")
    tap.ok(answer.status == 404 and "Not Found" in answer.json["detail"],
           "another path is 404", answer)


def check_silent_broker(front):
    """A broker that accepts and never answers."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    os.makedirs(front.path("broker/api"))
    listener.bind(front.path("broker/api/lease.sock"))
    listener.listen(5)
    kept = []
    thread = threading.Thread(
        target=lambda: kept.append(listener.accept()), daemon=True)
    thread.start()
    started = time.monotonic()
    answer = health(front)
    seconds = time.monotonic() - started
    tap.ok(seconds < 20 and answer["status"] == "error",
           "a broker that hangs costs a second", seconds, answer)
    listener.close()


def check_engine_away(front):
    """The broker answers, and says since when it knows what of Docker."""
    for fields, words in (
            ((("ENGINE", 0), ("ENGINE_AGE", 12345)),
             ("Docker engine does not answer", "12 s")),
            ((("ENGINE", 0),), ()),     # it has not yet looked
            ((("ENGINE", 1), ("IMAGE", 0), ("ENGINE_AGE", 3000)),
             ("image is missing", "3 s"))):
        if os.path.exists(front.path("broker/api/lease.sock")):
            os.unlink(front.path("broker/api/lease.sock"))
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(front.path("broker/api/lease.sock"))
            listener.listen(5)

            def answer_one():
                sock, _ = listener.accept()
                sock.recv(4096)
                sock.send(brokerlib.pack("STATUS_IS", *fields))
                sock.close()

            thread = threading.Thread(target=answer_one, daemon=True)
            thread.start()
            answer = health(front)
            thread.join()
        tap.ok(answer["status"] == ("error" if words else "ok") and
               all(word in answer["message"] for word in words),
               "says what is away, and since when", answer)


KEYS = ("written_ms", "database", "queued", "running", "untold", "oldest_ms")


def tell(front, text=None, age_ms=0, **more):
    """In il-fcgi's place: how the jobs are."""
    values = dict.fromkeys(KEYS, 0)
    values.update(database=1, written_ms=int(time.time() * 1000) - age_ms)
    values.update(more)
    os.makedirs(front.path("front"), exist_ok=True)
    with open(front.path("front/jobs.new"), "w") as file:
        file.write(text if text is not None else
                   "".join("%s %d\n" % (key, values[key]) for key in KEYS))
    os.rename(front.path("front/jobs.new"), front.path("front/jobs"))


def check_told(front):
    """What il-fcgi tells is passed on with its age, and not believed for ever
    or whatever it is."""
    answer = health(front)
    jobs = answer["inline"]["jobs"]
    tap.ok(answer["status"] == "error" and "il-fcgi" in answer["message"] and
           jobs["age_ms"] is None and answer["inline"]["database"] is False,
           "il-fcgi has told nothing: says so", answer)
    tell(front, age_ms=4000, queued=3, running=2, untold=1, oldest_ms=700)
    answer = health(front)
    jobs = answer["inline"]["jobs"]
    tap.ok(answer["inline"]["database"] is True and
           4000 <= jobs.pop("age_ms") < 60000 and
           jobs == {"queued": 3, "running": 2, "untold": 1, "oldest_ms": 700},
           "passed on, with its age", answer)
    tell(front, age_ms=61000, queued=3)
    answer = health(front)
    tap.ok("il-fcgi" in answer["message"] and
           answer["inline"]["jobs"]["age_ms"] >= 61000 and
           answer["inline"]["database"] is False, "old news is none", answer)
    tell(front, age_ms=-100000)
    tap.ok(health(front)["inline"]["jobs"]["age_ms"] is None,
           "nor what is not yet")
    for text in ("", "x" * 5000, "written_ms 1", "written_ms -1\n" * 6,
                 "".join("%s 99999999999999999999\n" % key for key in KEYS)):
        tell(front, text)
        tap.ok("il-fcgi" in health(front)["message"],
               "nor what makes no sense: %r" % text[:20])
    tell(front, database=0)
    tap.ok("the database does not answer" == health(front)["message"],
           "no database: says so")


def told(front, key, wanted):
    """Wait until il-fcgi tells so."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with open(front.path("front/jobs"), encoding="ascii") as file:
            values = dict(line.split() for line in file)
        if values[key] == wanted:
            return True
        time.sleep(0.1)
    return False


with f.Front(program="il-api") as front:
    check_routes(front)
    check_told(front)
    tell(front)
    answer = health(front)
    tap.ok(answer["status"] == "error" and "il-sandboxd" in answer["message"]
           and answer["version"] == "0.4.4", "no broker: says so", answer)
    tap.ok(answer["inline"]["database"] is True and
           answer["inline"]["docker"] is False, "in detail", answer)
    check_silent_broker(front)
    check_engine_away(front)
    front.process.terminate()
    tap.equal(front.process.wait(60), 0, "SIGTERM ends it with 0")
    tap.ok(not os.path.exists(front.socket_path), "its socket is gone")

with f.Front() as front:
    tap.ok(told(front, "database", "1"), "il-fcgi tells of the database")
    front.query("INSERT INTO jobs (interaction_id, application_id, user_id,"
                " kind, answer, token, received_ms, attachment_limit,"
                " may_attach) VALUES (1, 1, 1, 'py', 'deferred', 't', 1, 1, 1)")
    tap.ok(told(front, "queued", "1"), "the queue is counted")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(front.database + suffix):
            os.unlink(front.database + suffix)
    tap.ok(told(front, "database", "0"), "and notices that it is gone")
tap.done()
