#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Without its database il-fcgi answers PINGs, tells people, and recovers by
itself when the cause is gone."""
import concurrent.futures
import os
import select
import sqlite3
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import front as f  # noqa: E402

MANY = 20
# It is locked until they are told, and Discord waits for 3 s; who comes while
# one waits has to wait twice, and Discord has given up by then.
SOON_SECONDS = 2.8
tap = f.Tap()


def check_down(front, name):
    tap.equal(front.send(f.interaction(1, None)).json, {"type": 1},
              name + ": a PING is answered")
    body = f.command("look")
    answer = front.send(body)
    tap.ok(answer.type == 4 and answer.private and body["id"] in answer.text
           and front.alive(), name + ": people are told, with a reference",
           answer)


def recovers(front, seconds=60):
    """Send commands until one is taken."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if front.send(f.command("look")).type == 5:
            return True
        select.select([], [], [], 0.1)
    return False


with f.Front(database=False) as front:
    front.send(f.interaction(1, None))    # whoever answers has made it
    front.add_sandbox()
    tap.equal(front.send(f.command("look")).type, 5,
              "a file that is missing is made at the start")

with f.Front(database=False, start=False) as front:
    os.mkdir(front.database)
    front.start()
    check_down(front, "no file can be made")
    os.rmdir(front.database)
    f.migrate(front.database)
    front.add_sandbox()
    tap.ok(recovers(front), "it recovers when the file is there")

with f.Front(database=False, start=False) as front:
    with open(front.database, "wb") as file:
        file.write(b"this is no database\n" * 500)
    front.start()
    check_down(front, "not a database")

with f.Front(database=False, start=False) as front:
    sqlite3.connect(front.database).execute("PRAGMA user_version = 99")
    front.start()
    check_down(front, "another version")

with f.Front() as front:
    front.add_sandbox()
    tap.equal(front.send(f.command("look")).type, 5, "all is well")
    front.query("DROP TABLE jobs")
    check_down(front, "broken while it was open")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(front.database + suffix):
            os.unlink(front.database + suffix)
    f.migrate(front.database)
    front.add_sandbox()
    tap.ok(recovers(front), "it recovers when the file is replaced")

with f.Front() as front:
    front.add_sandbox()
    holder = sqlite3.connect(front.database, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    started = time.monotonic()
    answer = front.send(f.command("look"))
    tap.ok(answer.type == 4 and time.monotonic() - started < SOON_SECONDS,
           "locked: people are told while it is", answer)
    with concurrent.futures.ThreadPoolExecutor(MANY) as pool:
        started = time.monotonic()
        answers = list(pool.map(
            lambda user: front.send(f.command("create", user=user)),
            range(1, MANY + 1)))
        tap.ok(all(a.type == 4 or a.status == 504 for a in answers)
               and any(a.type == 4 for a in answers)
               and time.monotonic() - started < 2 * SOON_SECONDS,
               "locked: of many all are told for whom it is not too late",
               answers)
    holder.execute("ROLLBACK")
    holder.close()
    tap.equal(front.send(f.command("look")).type, 5,
              "the next one is taken at once when the lock is gone")
    tap.equal(len(front.jobs()), 1, "and the refused one left no job")
tap.done()
