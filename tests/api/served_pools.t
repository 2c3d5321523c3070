#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Quick routes, runs, files and sessions have processes of their own: what
takes long in one pool holds up nobody in another."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile

from served import JSON, Served, wait_for
from service import BUILD
from tap import run, test

folder = tempfile.TemporaryDirectory(prefix="inline-api-")
path = os.path.join(folder.name, "tokens")


def add(name, *limits):
    text = subprocess.run([os.path.join(BUILD, "bin", "ilctl"), "token", "-f",
                           path, *limits, "add", name], check=True,
                          capture_output=True, text=True).stdout
    secret = next(word for word in text.split() if word.startswith("il_"))
    return {"Authorization": "Bearer " + secret}


one = add("one", "-c", "2")
other = add("other")
served = Served(IL_API_TOKENS_FILE=path, IL_API_CELLS="2",
                IL_API_SESSIONS="3").__enter__()


def create(headers):
    answer = served.post("/v1/sessions", {}, headers)
    assert answer.status == 201, answer
    return "/v1/sessions/" + answer.json["session_id"]


def running():
    text = served.get("/metrics", **other).text
    return int(text.split("\ninline_api_running ")[1].split()[0])


def send(path_, body, headers):
    """Send a request; returns when it runs."""
    before = running()
    link = served.connect()
    link.request("POST", path_, json.dumps(body), {**JSON, **headers})
    wait_for(lambda: running() == before + 1)
    return link


def say(session, headers, text="echo 1"):
    return served.post(session + "/bash", {"cmd": text}, headers, timeout=60)


def end(*sessions, headers):
    for session in sessions:
        served.request("DELETE", session, headers=headers)


@test
def commands_in_sessions_are_counted_and_leave_others_their_runs():
    sessions = [create(one), create(one)]
    links = [send(session + "/bash", {"cmd": "sleep 50"}, one)
             for session in sessions]
    for session in sessions:
        answer = say(session, one)
        assert (answer.status, answer.json["detail"]) == (
            429, "This token's commands at one time are all in use"), answer
        assert answer.headers["Retry-After"] == "1"
    for _ in range(4):
        answer = served.post("/eval", {"input": "print(1)"}, other,
                             timeout=60)
        assert answer.json["stdout"] == "1\n", answer
    mine = create(other)
    assert say(mine, other).json["stdout"] == "1\n"
    end(*sessions, headers=one)
    end(mine, headers=other)
    for link in links:
        link.close()
    wait_for(lambda: running() == 0)


@test
def runs_that_take_all_their_processes_leave_others_their_sessions():
    session = create(other)
    links = [send("/v1/execute", {"code": "while 1: pass",
                                  "timeout_ms": 60000}, one)
             for _ in range(2)]
    assert say(session, other).json["stdout"] == "1\n"
    assert served.get("/v1/files", **other).status == 200
    for link in links:
        link.close()
    wait_for(lambda: running() == 0)
    end(session, headers=other)


@contextlib.contextmanager
def standing_still(name):
    pids = served.serving(name)
    assert pids, name
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@test
def each_pool_answers_while_any_other_stands_still():
    session = create(other)
    routes = {
        "api.sock": lambda: served.get("/health", **other).status == 200,
        "run.sock": lambda: served.post(
            "/eval", {"input": "1"}, other, timeout=60).status == 200,
        "files.sock": lambda: served.get("/v1/files", **other).status == 200,
        "session.sock": lambda: say(session, other).status == 200,
        "mcp.sock": lambda: served.post(
            "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"},
            other).status == 200,
    }
    for still in routes:
        with standing_still(still):
            for name, works in routes.items():
                assert name == still or works(), (still, name)
    end(session, headers=other)


try:
    run()
finally:
    served.close()
    folder.cleanup()
