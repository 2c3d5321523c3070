#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Nothing is begun for who has given up: what waited too long in front of
il-fcgi is dropped, counted, and makes no job."""
import contextlib
import os
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import front as f  # noqa: E402

USERS = 4
WITHIN = 2.8  # seconds, of Discord's three
tap = f.Tap()


def counted(metrics, outcome):
    """How many interactions came to that."""
    return sum(number for key, number in metrics.numbers().items()
               if key.startswith("inline_interactions_total{")
               and 'outcome="%s"' % outcome in key)


def direct(front, body, age, took=0.0):
    """Past nginx, which says that it passed the request on `age` seconds ago,
    `took` seconds after its first byte."""
    body = f.encode(body)
    headers = front.headers(body)
    data = front.records("POST", "/interactions", body, headers)
    plain = front.records("POST", "/interactions", body, headers)
    params = b""
    for name, value in (("INLINE_SENT", "%.3f" % (time.time() - age)),
                        ("INLINE_TOOK", "%.3f" % took)):
        params += bytes([len(name), len(value)]) + (name + value).encode()
    end = f.record(f.PARAMS, b"")
    data = plain.replace(end, f.record(f.PARAMS, params) + end, 1)
    with front.connect() as sock:
        sock.sendall(data)
        return f.read_answer(sock)


def check_gone(front):
    """nginx has answered 504; then il-fcgi gets to it."""
    front.signal(signal.SIGSTOP)
    answers = []
    threads = [threading.Thread(
        target=lambda n=n: answers.append(
            front.send(f.command("create", user=n))))
        for n in range(1, USERS + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tap.equal([a.status for a in answers], [504] * USERS,
              "nobody answers: nginx says 504")
    front.signal(signal.SIGCONT)
    # They were first in the queue: each process has been past it.
    for child in front.children():
        with front.only(child):
            tap.equal(front.send(f.interaction(1, None)).status, 200,
                      "then a PING is answered")
    tap.equal(front.jobs(), [], "and no job was made of them")
    tap.ok("outcome=late" in front.log(), "and logged", front.log())
    tap.equal(front.send(f.command("create", user=1)).type, 5,
              "one who asks again is served")
    with f.Metrics(front.folder) as metrics:
        f.until(lambda: counted(metrics, "deferred"))
        tap.equal(counted(metrics, "late"), USERS, "they are counted")
        tap.equal(counted(metrics, "pong"), 2, "and so is what is answered")


def check_age(front):
    for age, took, status in ((0, 0, 200), (1.5, 0, 200), (4, 0, 504),
                              (0, 4, 504), (2, 2, 504), (-60, 0, 200)):
        front.finish_jobs()
        answer = direct(front, f.command("create", user=7), age, took)
        tap.equal(answer and answer.status, status,
                  "passed on %g s ago, %g s after its first byte"
                  % (age, took))
    tap.equal(direct(front, f.interaction(1, None), 4).status, 504,
              "a PING is no exception")


def check_lock(front):
    """The wait for the database counts: it is let go when it is too late."""
    front.finish_jobs()
    before = len(front.jobs())
    database = sqlite3.connect(front.database, isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    answers = []
    late = time.time() + 0.4
    thread = threading.Thread(target=lambda: answers.append(
        direct(front, f.command("create", user=8), WITHIN - 0.3)))
    thread.start()
    while time.time() < late:
        select.select([], [], [], late - time.time())
    database.execute("ROLLBACK")
    thread.join()
    database.close()
    tap.equal(answers[0].status, 504,
              "the database is locked until it is too late")
    tap.equal(len(front.jobs()), before, "no job")


def children(front):
    with open("/proc/%d/task/%d/children" % (front.process.pid,
                                             front.process.pid)) as file:
        return [int(word) for word in file.read().split()]


def uploads(front):
    """How many requests for the files have been dealt with."""
    text = front.request("GET", "/metrics").body.decode()
    return sum(int(line.split()[-1]) for line in text.split("\n")
               if line.startswith("inline_api_requests_total")
               and 'route="/v1/files"' in line)


@contextlib.contextmanager
def broker(front):
    """il-sandboxd beside it, which grants what is uploaded its room."""
    environment = dict(front.environment, IL_BASE_DIR=front.path("sandboxes"),
                       IL_TUNE_API_WARM="0", IL_TUNE_DERIVE="0",
                       SANDBOX_PULL_ON_STARTUP="0",
                       IL_TUNE_LIB_DIR=os.path.join(f.BUILD, "lib"))
    with open(front.log_path, "ab") as log:
        process = subprocess.Popen([os.path.join(f.BUILD, "bin", "il-sandboxd")],
                                   env=environment, stderr=log,
                                   stdin=subprocess.DEVNULL)
    try:
        f.wait_for_socket(front.path("broker/api/lease.sock"), process,
                          kind=socket.SOCK_SEQPACKET)
        yield
    finally:
        process.terminate()
        process.wait(60)


def check_upload(front):
    """A program that hangs up before its turn has uploaded nothing."""
    body = (b"--x\r\nContent-Disposition: form-data; name=file; "
            b"filename=a.txt\r\n\r\nlate\r\n--x--\r\n")
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    data = front.records("POST", "/v1/files", body)
    end = f.record(f.PARAMS, b"")
    name, value = b"CONTENT_TYPE", headers["Content-Type"].encode()
    params = bytes([len(name), len(value)]) + name + value
    data = data.replace(end, f.record(f.PARAMS, params) + end, 1)
    pids = children(front)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    with socket.socket(socket.AF_UNIX) as sock:  # as nginx does it
        sock.connect(front.path("files.sock"))
        sock.sendall(data)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    deadline = time.monotonic() + 60
    while uploads(front) == 0 and time.monotonic() < deadline:
        select.select([], [], [], 0.02)
    tap.ok(b"a.txt" not in front.request("GET", "/v1/files").body,
           "what was uploaded by who has hung up is not kept")
    tap.equal(front.request("POST", "/v1/files", body, headers).status, 201,
              "another upload is")


with f.Front() as front:
    check_gone(front)
    check_age(front)
    check_lock(front)
with f.Front(program="il-api", others=False) as front, broker(front):
    check_upload(front)
tap.done()
