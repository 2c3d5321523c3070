#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Can a command be answered now?  All who are asked say the same: /health,
`ilctl status`, `ilctl doctor`, /health in chat; whatever has been stopped,
killed, or hangs.  Who sends a command then is told within three seconds."""

import contextlib
import fcntl
import json
import os
import signal
import struct
import sys
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "broker"))
from fake import Fake  # noqa: E402
from service import Service, children, wait_for  # noqa: E402
from tap import run, test  # noqa: E402

fake = Fake(run="real")
service = Service(IL_WORKERS="2", IL_TUNE_START_SECONDS="8", **fake.settings)


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


def told_in_time(command, user, **options):
    """Somebody sends a command: a sentence within three seconds."""
    began = time.monotonic()
    sent = service.discord.send_command(command, user=user, **options)
    sent.wait_answered()
    assert time.monotonic() - began < 3, time.monotonic() - began
    assert sent.answer_type == 4, (sent.answer_type, sent)
    assert "Something on our side" in sent.original.text(), sent
    assert sent.original.ephemeral, sent
    return sent


def refused_as_fault(user):
    """The next command of somebody whose first one waits: the fault is named,
    with the reference of the first.  Return the text."""
    sent = service.discord.send_command("py", user=user, code="print(2)")
    sent.wait_answered()
    text = sent.original.text()
    assert "Something on our side" in text and "still running" in text, text
    return text


def all_say(text, command, chat):
    """All of them say so within a minute, with what mends it."""
    wait_for(lambda: text in (health() or ""), seconds=60, pause=0.2)
    wait_for(lambda: chat in service.say("health"), seconds=60, pause=0.2)
    told = service.say("health")
    assert told.startswith("Not all is well.") and chat in told, told
    assert "**Problem** · " in told, told
    line = status()
    assert line.startswith("DEGRADED: ") and text in line, line
    assert command in line.split(" → ")[1], line
    code, out, _ = service.ilctl("doctor")
    assert code == 1 and "Nothing is wrong." not in out, out
    assert f"mend: {line.split(' → ')[1]}" in out, out


def pids_of(*programs):
    """The processes of these programs."""
    return [pid for name in programs for pid in service.pids(name)]


@contextlib.contextmanager
def stopped(pids):
    """SIGSTOP; whatever happens they go on afterwards."""
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
    with stopped(pids_of("il-worker")) as pids:
        first = told_in_time("py", "erin", code="print('first')")
        again = refused_as_fault("erin")
        reference = first.original.text().split("`")[1]
        assert f"`{reference}`" in again, (reference, again)
        all_say("none of the 2 workers moves", "kill -KILL",
                "**Problem** · Workers: 2, of which 0 respond")
        later = told_in_time("py", "frank", code="print('later')")
        assert refused_as_fault("erin") == again
        assert sorted(map(int, status().split("-KILL ")[1].split())) == \
            sorted(pids)
    # what was said then is replaced by the answers
    first.wait_final(match="first")
    later.wait_final(match="later")
    is_well()


def promises():
    """Within how many milliseconds each worker that is busy has promised to
    move again; from when it said so."""
    folder = os.path.join(service.settings["IL_STATE_DIR"], "worker")
    name, = [one for one in os.listdir(folder) if one.startswith("pulse-")]
    with open(os.path.join(folder, name), "rb") as file:
        slots = struct.iter_unpack("=4q", file.read())
    return [due - beat for writer, beat, due, rests in slots
            if writer and not rests]


@test
def all_workers_are_stopped_and_one_has_a_job():
    sent = service.discord.send_command(
        "py", user="jane", code="print('begun', flush=True)\n"
        "import time; time.sleep(600)")
    sent.wait_edits(1, match="begun")
    # it comes every three seconds, where a command of its own has a minute
    wait_for(lambda: [one for one in promises() if one <= 6000])
    with stopped(pids_of("il-worker")):
        all_say("none of the 2 workers moves", "kill -KILL", "respond")
    sent.wait_final(match="begun")
    is_well()


@test
def what_is_said_to_mend_it_does():
    with stopped(pids_of("il-worker")):
        all_say("none of the 2 workers moves", "kill -KILL", "respond")
        command = status().split(" → ")[1].split()
        assert command[:2] == ["kill", "-KILL"], command
        for pid in map(int, command[2:]):
            os.kill(pid, signal.SIGKILL)
        is_well()


@test
def all_workers_are_killed():
    with no_worker():
        all_say("no worker runs", "make run", "**Problem** · Workers: 0")
        sent = told_in_time("py", "gina", code="print('later')")
    sent.wait_final(match="later")
    is_well()


@test
def the_broker_hangs():
    with stopped(pids_of("il-sandboxd")):
        all_say("il-sandboxd does not answer", "make run",
                "Docker: unknown, il-sandboxd does not answer in time")
        sent = told_in_time("py", "hugo", code="print('later')")
    sent.wait_final(match="later")
    is_well()


@test
def all_that_answer_discord_are_stopped():
    with stopped(children(service.pids("il-fcgi"))):
        assert "il-fcgi does not answer" in status()
        wait_for(lambda: "il-fcgi does not answer" in (health() or ""),
                 seconds=60, pause=0.2)
        code, out, _ = service.ilctl("doctor")
        assert code == 1 and "FAIL  il-fcgi: " in out, out
    is_well()


@test
def all_that_answer_programs_are_stopped():
    with stopped([*service.pids("il-api"),
                  *children(service.pids("il-api"))]):
        assert "il-api does not answer" in status()
        code, out, _ = service.ilctl("doctor")
        assert code == 1 and "FAIL  il-api: " in out, out
    is_well()


@test
def the_engine_answers_and_starts_nothing():
    fake.set(run="hang")
    sent = service.discord.send_command("py", code="print(1)", user="new")
    all_say("the Docker engine answers, and ", "systemctl restart docker",
            "**Problem** · No sandbox can be started")
    sent.wait_final()
    all_say("IL_TUNE_START_SECONDS", "systemctl restart docker",
            "**Problem** · No sandbox can be started")
    told_in_time("py", "ivan", code="print(1)").wait_final(match="reference")
    fake.set(run="real")
    wait_for(lambda: "served" in service.run("print('ser' + 'ved')"))
    is_well()


try:
    with service:
        run()
finally:
    fake.close()
