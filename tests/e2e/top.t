#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""ilctl top: the cells and jobs of this moment, what they take, and whose they
are."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from service import BUILD, Service, wait_for  # noqa: E402
from tap import run, test  # noqa: E402

service = Service(IL_TIMEOUT_SECONDS="60", IL_TUNE_SPARE_CELLS="0")
BUSY = ("import time\nx = bytearray(40 << 20)\nprint('begun', flush=True)\n"
        "while True:\n    pass")


def now():
    code, out, errors = service.ilctl("top", "--json")
    assert code == 0, (code, out, errors)
    return json.loads(out)


def cell_of(user):
    return [cell for cell in now()["cells"] if cell["user"] == user]


@test
def a_run_is_seen_with_what_it_takes():
    sent = service.discord.send_command("py", user="alice", code=BUSY)
    sent.wait_answered()
    wait_for(lambda: "begun" in sent.refresh().original.text())
    user, job_id = map(str, service.sql(
        "SELECT user_id, id FROM jobs WHERE interaction_id = ?",
        int(sent.id))[0])
    [job] = now()["jobs"]
    assert (job["user"], job["kind"], job["state"]) == (user, "py", "started")
    assert job["worker"] in range(4) and job["age_ms"] >= job["run_ms"], job
    [cell] = cell_of(user)
    assert (cell["class"], cell["state"]) == ("user", "leased"), cell
    assert cell["name"] in service.containers(), cell
    assert cell["memory"] > 40 << 20, cell
    wait_for(lambda: cell_of(user)[0]["cpu_ms"] > max(500, cell["cpu_ms"]))
    code, out, errors = service.ilctl("top")
    row = [line for line in out.splitlines() if cell["name"] in line][0]
    assert code == 0 and row.endswith(f"{cell['sandbox']} of {user}"), out
    assert job_id in out.splitlines()[-1], out
    code, out, errors = service.ilctl("user", user, "cancel")
    sent.wait_final(match="cancelled")


@test
def on_a_terminal_it_is_shown_anew_until_it_is_interrupted():
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [os.path.join(BUILD, "bin", "ilctl"), "top"], stdin=theirs,
        stdout=theirs, stderr=theirs, env=service.environment())
    os.close(theirs)
    text = b""
    deadline = time.monotonic() + 60
    try:
        while text.count(b"\033[2J") < 2:
            assert time.monotonic() < deadline, text
            if select.select([ours], [], [], 1)[0]:
                text += os.read(ours, 65536)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert text.count(b"CELL") >= 1 and b"WORKER" in text, text


@test
def without_a_broker_it_says_so_and_tells_the_jobs():
    for words in ([], ["--json"]):
        code, out, errors = service.ilctl(
            "top", *words, IL_STATE_DIR="/nonexistent",
            IL_DATABASE=service.database)
        assert code == 1 and "il-sandboxd" in errors, (code, out, errors)
        assert "-1" in out if words else "jobs  0 queued" in out, out


with service:
    service.create()
    run()
