#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""il-worker as a process: options, configuration, slot, FIFO, end."""

import contextlib
import os
import signal
import sqlite3
import stat
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__))))

from house import BIN, House, says  # noqa: E402
from slices import EXPECTED, slice_of  # noqa: E402
from tap import run, test  # noqa: E402

house = House(start=False)
PROGRAM = os.path.join(BIN, "il-worker")


def call(*arguments, **settings):
    """Run it to its end; returns (status, standard error)."""
    env = house.environment()
    for key, value in settings.items():
        env.pop(key, None)
        if value is not None:
            env[key] = value
    done = subprocess.run([PROGRAM, *arguments], env=env, timeout=60,
                          stdin=subprocess.DEVNULL, capture_output=True,
                          text=True)
    return done.returncode, done.stderr


@test
def wrong_options_are_64():
    for arguments in ((), ("-s",), ("-s", "x"), ("-s", "-1"), ("-s", "256"),
                      ("-x",), ("-s", "0", "more")):
        assert call(*arguments)[0] == 64, arguments


@test
def a_wrong_configuration_is_78_with_the_key():
    status, text = call("-s", "0", IL_TIMEOUT_SECONDS="soon")
    assert status == 78 and "IL_TIMEOUT_SECONDS" in text, text
    status, text = call("-s", "0", IL_UNKNOWN="1")
    assert status == 78 and "IL_UNKNOWN" in text, text
    status, text = call("-s", "0", DISCORD_APPLICATION_ID=None)
    assert status == 78 and "DISCORD_APPLICATION_ID" in text, text


@test
def a_test_of_the_configuration_ends_at_once():
    assert call("-t")[0] == 0
    assert call("-t", IL_CPUS="many")[0] == 78


@test
def a_database_that_is_newer_is_78():
    path = os.path.join(house.folder, "newer.db")
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    status, text = call("-s", "0", IL_DATABASE=path)
    assert status == 78 and "newer programs" in text, (status, text)


@test
def a_wake_that_is_no_fifo_is_78():
    path = os.path.join(house.state, "wake")
    os.unlink(path)     # the FIFO of the workers before
    open(path, "w").close()
    status, text = call("-s", "0")
    os.unlink(path)
    assert status == 78 and "FIFO" in text, (status, text)


@test
def the_fifo_is_made_for_the_group_whatever_the_umask_is():
    old = os.umask(0o077)
    house.start()
    os.umask(old)
    house.broker.cell = says(b"up\n")
    house.sandbox("alice")
    house.send("py", text="1").wait_final(match="up")
    mode = os.stat(os.path.join(house.state, "wake")).st_mode
    assert stat.S_ISFIFO(mode) and stat.S_IMODE(mode) == 0o660, oct(mode)


@test
def a_worker_that_sleeps_is_woken_by_a_byte():
    sent = house.send("py", text="1")
    sent.wait_final(match="up")
    assert slice_of(house.workers[0].pid) == EXPECTED


@test
def one_byte_wakes_one_and_many_jobs_wake_many():
    house.start(1)
    users = [f"user{number}" for number in range(6)]
    for user in users:
        house.sandbox(user)
    sent = [house.send("py", text="1", user=user) for user in users]
    for one in sent:
        one.wait_final(match="up")
    house.stop(1)


@test
def a_job_without_a_byte_is_found_all_the_same():
    house.job = {"kind": "py", "text": "1", "has_text": 1}
    sent = house.discord.send({"command": "health", "user": "alice"})
    sent.wait_final(match="up")


@test
def sigterm_ends_a_sleeping_worker_at_once():
    assert house.stop(0, signal.SIGTERM, 5) == 0
    house.start()
    house.send("py", text="1").wait_final(match="up")
    assert house.stop(0, signal.SIGINT, 5) == 0


def main():
    """Run them in one house."""
    with house:
        run()


main()
