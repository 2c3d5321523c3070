#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The operator's queries in sql/admin, typed at the sqlite3 shell as
sql/README.md says, while another connection writes."""

import os
import sqlite3
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ADMIN = os.path.join(TOP, "sql", "admin")
USER = 123456789012345678  # as long as Discord's ids are
count = 0
failed = 0


def ok(good, name, detail=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}")
    if not good and detail:
        print("# " + str(detail).replace("\n", "\n# "))


def shell(database, query, **parameters):
    """Run one query as an operator does; its text, errors included."""
    argv = ["sqlite3"]
    for name, value in parameters.items():
        argv += ["-cmd", f".param set :{name} {value}"]
    with open(os.path.join(ADMIN, query + ".sql")) as text:
        done = subprocess.run(argv + [database], stdin=text,
                              capture_output=True, text=True, timeout=30)
    return done.stdout + done.stderr


def fill(db):
    """Four sandboxes and some jobs."""
    now = int(time.time())
    rows = [
        ("a" * 32, USER, "active", now + 86400, 0, 5 << 20),
        ("b" * 32, 2, "active", now + 30 * 86400, 0, 1 << 20),
        ("c" * 32, 3, "active", now + 86400, 1, 9 << 20),
        ("d" * 32, 4, "expired", now - 86400, 0, 0),
    ]
    db.executemany(
        "INSERT INTO sandboxes (id, user_id, state, expires_at, pinned,"
        " used_bytes, created_at, used_at) VALUES (?, ?, ?, ?, ?, ?, 1, 1)",
        rows)
    for i in range(20):
        ms = now * 1000 - 1000
        db.execute(
            "INSERT INTO jobs (interaction_id, application_id, user_id, kind,"
            " state, answer, token, received_ms, attachment_limit, may_attach,"
            " outcome, finished_ms, told_ms) VALUES (?, 1, ?, 'py',"
            " 'delivered', 'deferred', '', ?, 0, 1, 'exit 0', ?, ?)",
            (i + 1, USER, ms, ms + 50, ms + 100 + i))
    db.commit()


def column(text, row, name):
    """The value under a heading in the shell's column mode."""
    lines = text.splitlines()
    start = lines[0].index(name)
    width = len(lines[1][start:].split()[0])
    return lines[row + 1][start:start + width].strip()


def main():
    with tempfile.TemporaryDirectory(prefix="inline-test-") as folder:
        path = os.path.join(folder, "t.db")
        db = sqlite3.connect(path)
        db.execute("PRAGMA journal_mode = WAL")
        for name in sorted(os.listdir(os.path.join(TOP, "sql/migrations"))):
            with open(os.path.join(TOP, "sql/migrations", name)) as text:
                db.executescript(text.read())
        fill(db)
        run(path, db)
        db.close()
    print(f"1..{count}")
    sys.exit(failed != 0)


def run(path, db):
    def one(sql):
        return db.execute(sql).fetchone()[0]

    now = int(time.time())
    text = shell(path, "expiring")
    ok("aaaa" in text and "bbbb" not in text and "cccc" not in text
       and "dddd" not in text, "expiring: within three days, unpinned", text)
    ok(str(USER) in text, "with the user's whole id", text)
    text = shell(path, "expiring", days=60)
    ok("aaaa" in text and "bbbb" in text, "expiring: within :days", text)
    ok(text.index("aaaa") < text.index("bbbb"), "the next one first", text)

    text = shell(path, "expired")
    ok("dddd" in text and "aaaa" not in text, "expired", text)

    text = shell(path, "extend", user=USER)
    ok(one(f"SELECT expires_at FROM sandboxes WHERE user_id = {USER}")
       in range(now + 8 * 86400 - 5, now + 8 * 86400 + 5),
       "extend: seven days more", text)
    ok("aaaa" in text, "it says which", text)
    shell(path, "extend", user=USER, days=30)
    ok(one(f"SELECT expires_at FROM sandboxes WHERE user_id = {USER}")
       >= now + 38 * 86400 - 5, "extend: :days more")
    text = shell(path, "extend")
    ok(text == "", "extend: nobody without :user", text)

    shell(path, "pin", user=2)
    ok(one("SELECT pinned FROM sandboxes WHERE user_id = 2") == 1, "pin")
    shell(path, "pin", user=2, pinned=0)
    ok(one("SELECT pinned FROM sandboxes WHERE user_id = 2") == 0, "unpin")

    text = shell(path, "expire-now", user=3)
    ok(one("SELECT expires_at <= unixepoch() AND pinned = 0 FROM sandboxes"
           " WHERE user_id = 3") == 1, "expire-now, a pinned one too", text)
    ok(one("SELECT count(*) FROM sandboxes WHERE expires_at > unixepoch()")
       == 2, "and no other")
    ok("cccc" in shell(path, "expired"), "then expired shows it")

    db.execute("UPDATE jobs SET received_ms = received_ms - 7200000")
    db.commit()
    text = shell(path, "job", id=17)
    values = dict(line.strip().split(" =", 1) for line in text.splitlines())
    ok([values[name].strip() for name in ("id", "user_id", "state", "outcome")] ==
       ["17", str(USER), "delivered", "exit 0"], "job: what became of it", text)
    ok(values["told_after_ms"].strip() == "7200116", "and when", text)
    text = shell(path, "job", id=99)
    ok(text == "", "job: nothing of one that is not there", text)

    db.execute("UPDATE jobs SET cpu_ms = 1500, guild_id = id % 2,"
               " outcome = 'time limit' WHERE id <= 2")
    db.execute("INSERT INTO rules (subject, id, blocked, changed_at)"
               f" VALUES ('user', {USER}, 1, 1)")
    db.commit()
    text = shell(path, "abuse")
    ok([column(text, 1, name) for name in ("commands", "timeouts", "memory",
                                           "cpu_s", "servers", "blocked")] ==
       ["20", "2", "0", "3.0", "1", "yes"], "abuse: by user", text)
    ok(shell(path, "abuse", days=0) == "", "abuse: of the last :days only")

    # On a running system a writer may be at it: the shell waits for it.
    db.execute("BEGIN IMMEDIATE")
    with open(os.path.join(ADMIN, "pin.sql")) as text:
        waiting = subprocess.Popen(
            ["sqlite3", "-cmd", ".param set :user 2", path], stdin=text,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            waiting.wait(0.3)
        except subprocess.TimeoutExpired:
            pass
        db.commit()
        output = waiting.communicate(timeout=30)[0]
    ok("bbbb" in output and "locked" not in output,
       "a change waits for another writer", output)
    covered = {"expiring", "expired", "extend", "pin", "expire-now", "job",
               "abuse"}
    found = {name[:-4] for name in os.listdir(ADMIN) if name.endswith(".sql")}
    ok(found == covered, "every query is tested here", found ^ covered)


main()
