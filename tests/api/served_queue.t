#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Who waits: in order, and no more of them than IL_TUNE_API_QUEUE."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile

from served import JSON, Served, wait_for
from service import BUILD, IMAGE, ROOT, children
from tap import run, test

QUEUE = 5
served = Served(IL_API_CELLS="1", IL_TUNE_API_QUEUE=str(QUEUE)).__enter__()
WHEN = "import time; print(time.time_ns(), flush=True)\n"
BUSY = ("/v1/execute", {"code": "while 1: pass", "timeout_ms": 60000})


def running():
    text = served.get("/metrics").text
    return int(text.split("\ninline_api_running ")[1].split()[0])


def send(path, body):
    """Send a request; returns when nginx has handed it on: its one process
    takes up what came later after it.
    """
    link = served.connect()
    link.request("POST", path, json.dumps(body), JSON)
    assert served.get("/health").status == 200
    return link


def receive(link):
    response = link.getresponse()
    answer = response.status, response.headers, response.read().decode()
    link.close()
    return answer


def occupy():
    link = send(*BUSY)
    wait_for(lambda: running() == 1)
    return link


@test
def turns_come_in_order_and_endless_loops_cost_no_more_than_their_own():
    loop = "while 1: pass"
    first = occupy()
    links = [send("/eval", {"input": WHEN + code, "timeout_ms": 1500})
             for code in (loop, "", loop)]
    links += [send("/v1/execute", {"code": WHEN + code, "timeout_ms": 1500})
              for code in ("", loop)]
    first.close()
    answers = [receive(link) for link in links]
    assert [status for status, _, _ in answers] == [200] * 5, answers
    times = [int(json.loads(text)["stdout"]) for _, _, text in answers]
    assert times == sorted(times), times
    codes = [json.loads(text).get("returncode") for _, _, text in answers]
    assert codes == [137, 0, 137, None, None], codes
    # Each began when the one before it had ended, whoever sent that.
    for number, least in ((1, 1000), (2, 0), (3, 1000)):
        assert times[number] - times[number - 1] >= least * 1000000, times


@test
def as_many_wait_as_may_and_the_next_one_is_503():
    first = occupy()
    waiting = [send("/eval", {"input": "print(%d)" % number})
               for number in range(QUEUE)]
    for path, body, text in (
            ("/eval", {"input": "1"},
             '{"title": "503 Service Unavailable"}'),
            ("/v1/execute", {"code": "1"},
             '{"detail":"Too many requests are waiting, or Inline is '
             'starting"}')):
        answer = served.post(path, body)
        assert (answer.status, answer.text) == (503, text), (path, answer)
        assert answer.headers["Retry-After"] == "1", answer.headers
    for path in ("/v1/files", "/versions", "/metrics", "/health"):
        assert served.get(path).status == 200, path
    first.close()
    answers = [receive(link) for link in waiting]
    assert [status for status, _, _ in answers] == [200] * QUEUE, answers
    assert [json.loads(text)["stdout"] for _, _, text in answers] == [
        "%d\n" % number for number in range(QUEUE)], answers
    assert served.eval(input="print(1)")["stdout"] == "1\n"


@test
def a_killed_process_loses_its_own_request_only():
    first = occupy()
    waiting = [send("/eval", {"input": "print(%d)" % number})
               for number in range(QUEUE)]
    parent, = served.pids("il-api")
    # The one that has the run is the one that serves its socket.
    pid, = served.serving("run.sock")
    os.kill(pid, signal.SIGKILL)
    status, _, text = receive(first)
    assert (status, text) == (502, '{"detail":"The process that served this '
                              'request has ended; its code may have run"}'), (
                                  status, text)
    answers = [receive(link) for link in waiting]
    assert [status for status, _, _ in answers] == [200] * QUEUE, answers


def connect_until_full(path):
    """How many may wait there."""
    links = []
    try:
        while len(links) < 200:
            link = socket.socket(socket.AF_UNIX)
            link.setblocking(False)
            links.append(link)
            try:
                link.connect(path)
            except BlockingIOError:
                return len(links) - 1
    finally:
        for link in links:
            link.close()
    return None


START = """
import os, sys
os.environ.update(LISTEN_FDS="6", LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[1], sys.argv[1:])
"""


@test
def sockets_that_were_handed_over_have_the_same_queue():
    with tempfile.TemporaryDirectory(prefix="inline-api-") as folder:
        sockets = [socket.socket(socket.AF_UNIX) for _ in range(6)]
        paths = [os.path.join(folder, name + ".sock")
                 for name in ("api", "run", "files", "session", "connect",
                              "mcp")]
        for sock, path in zip(sockets, paths):
            sock.bind(path)
            sock.listen(64)

        def hand_over():
            high = [os.dup2(sock.fileno(), 100 + i)
                    for i, sock in enumerate(sockets)]
            for i, fd in enumerate(high):
                os.dup2(fd, 3 + i)
        environment = {"PATH": os.environ["PATH"], "IL_STATE_DIR": folder,
                       "IL_TUNE_API_QUEUE": "7", "IL_API_CELLS": "1",
                       "IL_API_SESSIONS": "3",
                       "SANDBOX_IMAGE": IMAGE}
        program = subprocess.Popen(
            [sys.executable, "-c", START, os.path.join(BUILD, "bin", "il-api")],
            cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True,
            preexec_fn=hand_over, pass_fds=range(3, 9))
        try:
            lines = []
            while not lines or "ready" not in lines[-1]:
                assert select.select([program.stderr], [], [], 20)[0], lines
                lines.append(program.stderr.readline())
                assert lines[-1], lines
            # Two for what is answered at once, one that runs, 18 for files,
            # one for each session, one for WebSockets; for /mcp as many as
            # run and hold sessions, and 12.
            wait_for(lambda: len(children([program.pid])) == 25 + 16)
            # Nobody takes anybody now.
            for pid in [program.pid, *children([program.pid])]:
                os.kill(pid, signal.SIGSTOP)
            for path in (paths[1], paths[3]):
                waiting = connect_until_full(path)
                assert waiting == 7, (path, waiting)
            for pid in [*children([program.pid]), program.pid]:
                os.kill(pid, signal.SIGCONT)
        finally:
            program.terminate()
            program.send_signal(signal.SIGCONT)
            code = program.wait(60)
            assert code == 0, (code, program.stderr.read())
            program.stderr.close()
            for sock in sockets:
                sock.close()


try:
    run()
finally:
    served.close()
