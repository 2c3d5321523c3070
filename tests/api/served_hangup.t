#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A client that hangs up: its place in every queue is given back, its run ends
at once.
"""

import json
import os
import re
import stat
import tempfile

from served import JSON, Served, wait_for
from service import DOCKER
from tap import run, test

# A docker that can be told to keep everybody waiting who starts a container.
folder = tempfile.TemporaryDirectory(prefix="inline-api-")
fifo = os.path.join(folder.name, "go")
hold = os.path.join(folder.name, "hold")
slow_docker = os.path.join(folder.name, "docker")
os.mkfifo(fifo)
with open(slow_docker, "w") as file:
    file.write("#!/bin/sh\n[ \"$1\" = run ] && [ -e '%s' ] && "
               "read go <'%s'\nexec '%s' \"$@\"\n" % (hold, fifo, DOCKER))
os.chmod(slow_docker, stat.S_IRWXU)
# Each run has a container of its own.
served = Served(DOCKER_BINARY=slow_docker, IL_API_CELLS="1",
                IL_TUNE_API_RUNS="1").__enter__()
LOOP = {"code": "while 1: pass", "timeout_ms": 60000}
PROMPT = 10  # seconds: long before anything else would end it


def metric(name):
    found = re.search("^%s (.*)$" % re.escape(name),
                      served.get("/metrics").text, re.M)
    return int(found[1]) if found else 0


def leases():
    return metric('inline_api_leases_total{outcome="granted"}')


def send(path, body):
    link = served.connect()
    link.request("POST", path, json.dumps(body), JSON)
    return link


def wait_metric(name, value):
    wait_for(lambda: metric(name) == value, PROMPT)


def let_go():
    os.unlink(hold)
    # Nobody may be reading: then there is nobody to let go.
    try:
        fd = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return
    os.write(fd, b"go\n" * 8)
    os.close(fd)


@test
def while_it_waits_for_a_cell():
    for path, body in (("/eval", {"input": "1"}), ("/v1/execute", LOOP),
                       ("/v1/execute/stream", LOOP), ("/v1/sessions", {})):
        open(hold, "w").close()
        try:
            link = send(path, body)
            wait_metric("inline_lease_queue", 1)
            link.close()
            wait_metric("inline_lease_queue", 0)
            wait_metric("inline_api_requests", 1)  # the one that asks
        finally:
            let_go()
        assert served.eval(input="print(1)")["stdout"] == "1\n", path


@test
def while_it_waits_for_its_turn():
    first = send("/v1/execute", LOOP)
    wait_metric("inline_api_running", 1)
    before = leases()
    for path in ("/v1/execute", "/v1/execute/stream", "/eval"):
        link = send(path, {**LOOP, "input": "while 1: pass"})
        assert served.get("/health").status == 200  # nginx has both
        link.close()
    last = send("/eval", {"input": "print('last')"})
    first.close()
    assert json.loads(last.getresponse().read())["stdout"] == "last\n"
    last.close()
    assert leases() == before + 1, (before, leases())


def processes(mark):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as file:
                if mark.encode() in file.read().split(b"\0"):
                    found.append(pid)
        except OSError:
            continue
    return found


@test
def while_it_runs():
    for path, name in (("/eval", "input"), ("/v1/execute", "code"),
                       ("/v1/execute/stream", "code")):
        mark = "inline-hangup-%d-%s" % (os.getpid(), path)
        code = ("import os, sys\nos.execv(sys.executable, [sys.executable, "
                "'-c', 'while 1: pass', %r])" % mark)
        link = send(path, {name: code, "timeout_ms": 60000})
        wait_for(lambda: processes(mark))
        link.close()
        wait_for(lambda: not processes(mark), PROMPT)
        assert served.eval(input="print(1)")["stdout"] == "1\n", path


@test
def while_another_command_has_the_session():
    with Served(IL_API_CELLS="2") as two:
        session = "/v1/sessions/%s/bash" % two.post("/v1/sessions", {}).json[
            "session_id"]

        def begin(command):
            link = two.connect()
            link.request("POST", session, json.dumps(
                {"cmd": command, "timeout_ms": 60000}), JSON)
            return link

        def requests(count):
            def is_so():
                text = two.get("/metrics").text
                return "\ninline_api_requests %d\n" % (count + 1) in text
            wait_for(is_so, PROMPT)
        first = begin("while :; do :; done")
        requests(1)
        for _ in range(3):  # more than may wait for a session
            waiting = begin("true")
            requests(2)
            waiting.close()
            requests(1)
        # It freed a process of il-api.
        assert two.eval(input="print(1)")["stdout"] == "1\n"
        # The command that has it goes on to its end; the session's ends it.
        first.close()
        assert two.request("DELETE", session[:-5]).status == 204
        requests(0)


try:
    run()
finally:
    served.close()
    folder.cleanup()
