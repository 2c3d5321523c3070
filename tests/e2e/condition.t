#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Can a command be answered now?  All who are asked say the same: /health,
`ilctl status`, `ilctl doctor`; whatever has been stopped, killed, or hangs."""

import contextlib
import fcntl
import json
import os
import signal
import sys
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "broker"))
from fake import Fake  # noqa: E402
from service import Service, wait_for  # noqa: E402
from tap import run, test  # noqa: E402

fake = Fake(run="real")
service = Service(IL_WORKERS="2", IL_START_SECONDS="8", **fake.settings)


def health():
    """What programs are told: the message, or None."""
    with urllib.request.urlopen(
            f"http://127.0.0.1:{service.port}/health", timeout=30) as page:
        told = json.load(page)
    assert (told["status"] == "ok") == (told["message"] is None), told
    return told["message"]


def status():
    """The first line of `ilctl status`, with its exit status."""
    code, out, _ = service.ilctl("status")
    line = out.splitlines()[0]
    assert (code == 0) == (line == "healthy"), (code, out)
    return line


def is_well():
    wait_for(lambda: health() is None and status() == "healthy", pause=0.2)
    code, out, errors = service.ilctl("doctor")
    assert code == 0 and "Nothing is wrong." in out, (out, errors)


def all_say(text, command):
    """All of them say so within a minute, with what mends it."""
    wait_for(lambda: text in (health() or ""), seconds=60, pause=0.2)
    line = status()
    assert line.startswith("DEGRADED: ") and text in line, line
    assert command in line.split(" → ")[1], line
    code, out, _ = service.ilctl("doctor")
    assert code == 1 and "Nothing is wrong." not in out, out
    assert f"mend: {line.split(' → ')[1]}" in out, out


@contextlib.contextmanager
def stopped(*programs):
    """SIGSTOP; whatever happens they go on afterwards."""
    pids = [pid for name in programs for pid in service.pids(name)]
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield pids
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def no_worker():
    """All are killed, and none that comes gets its slot."""
    locks = []
    pids = service.kill("il-worker")
    folder = os.path.join(service.settings["IL_STATE_DIR"], "worker")
    for slot in range(len(pids)):
        locks.append(open(os.path.join(folder, f"{slot}.lock"), "r+"))

        def locked(lock=locks[-1]):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:     # a new one was quicker
                service.kill("il-worker")
                return False
            return True
        wait_for(locked)
    try:
        yield
    finally:
        for lock in locks:
            lock.close()


@test
def it_is_healthy():
    is_well()


@test
def a_worker_that_is_stopped_is_no_harm():
    pid = service.pids("il-worker")[0]
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_for(lambda: "1 of them move" in service.ilctl("status")[1],
                 pause=0.2)
        assert health() is None
    finally:
        os.kill(pid, signal.SIGCONT)


@test
def all_workers_are_stopped():
    with stopped("il-worker") as pids:
        all_say("none of the 2 workers moves", "kill -KILL")
        assert sorted(map(int, status().split("-KILL ")[1].split())) == \
            sorted(pids)
    is_well()


@test
def what_is_said_to_mend_it_does():
    with stopped("il-worker"):
        all_say("none of the 2 workers moves", "kill -KILL")
        command = status().split(" → ")[1].split()
        assert command[:2] == ["kill", "-KILL"], command
        for pid in map(int, command[2:]):
            os.kill(pid, signal.SIGKILL)
        is_well()


@test
def all_workers_are_killed():
    with no_worker():
        all_say("no worker runs", "make run")
    is_well()


@test
def the_broker_hangs():
    with stopped("il-sandboxd"):
        all_say("il-sandboxd does not answer", "make run")
    is_well()


@test
def the_engine_answers_and_starts_nothing():
    fake.set(run="hang")
    sent = service.discord.send_command("py", code="print(1)", user="new")
    all_say("the Docker engine answers, and ", "systemctl restart docker")
    sent.wait_final()
    all_say("IL_START_SECONDS", "systemctl restart docker")
    fake.set(run="real")
    wait_for(lambda: "served" in service.run("print('ser' + 'ved')"))
    is_well()


try:
    with service:
        run()
finally:
    fake.close()
