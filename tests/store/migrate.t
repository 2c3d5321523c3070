#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each service brings the database up to date when it starts, and so does
`ilctl migrate`; all of them at one time: each finds it done or waits until it
is."""
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading

BUILD = os.environ["BUILD"]
MIGRATIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..",
                          "..", "sql", "migrations")
SECRET = "what-nobody-else-may-read"
ROUNDS = 6
AT_ONCE = 8
folder = tempfile.mkdtemp(prefix="migrate-test-")
path = os.path.join(folder, "inline.db")
env = dict(os.environ, IL_STATE_DIR=folder, IL_DATABASE=path)
troubles = []
applied = []


def start():
    return subprocess.Popen([os.path.join(BUILD, "bin/ilctl"), "migrate"],
                            env=env, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def version():
    db = sqlite3.connect(path)
    try:
        return (db.execute("PRAGMA user_version").fetchone()[0],
                db.execute("PRAGMA journal_mode").fetchone()[0])
    finally:
        db.close()


def steps(last):
    """Those up to this one, as the version then made its database."""
    for name in sorted(os.listdir(MIGRATIONS)):
        if int(name[:3]) <= last:
            with open(os.path.join(MIGRATIONS, name)) as file:
                yield "BEGIN;" + file.read() + "COMMIT;"


def report(number, good, name, why):
    print("%sok %d - %s" % ("" if good else "not ", number, name))
    if not good:
        for line in why[:20]:
            print("# " + str(line))
    return good


try:
    newest = None
    for _ in range(ROUNDS):
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        started = [start() for _ in range(AT_ONCE)]
        total = 0
        for process in started:
            text = process.communicate(timeout=60)[0].strip()
            if process.returncode != 0:
                troubles.append("status %d: %s" % (process.returncode, text))
            else:
                total += int(text.split(", ")[1].split()[0])
        newest = version()
        applied.append((total, newest))
    good = report(1, not troubles, "%d at once, on a new file: none fails"
                  % AT_ONCE, troubles)
    good &= report(2, all(a == (newest[0], newest) for a in applied),
                   "each migration is applied once", applied)

    # A program that is at work holds the file's lock for a while.
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    start().communicate()
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA user_version = %d" % newest[0])
    db.execute("BEGIN IMMEDIATE")
    text, status = None, None
    process = start()
    text = process.communicate(timeout=60)[0].strip()
    db.execute("ROLLBACK")
    db.close()
    good &= report(3, process.returncode == 0,
                   "what is up to date waits for nobody", [text])

    def database():
        return sqlite3.connect(path, isolation_level=None)

    def rows(db, table, columns):
        return db.execute("SELECT %s FROM %s ORDER BY id"
                          % (", ".join(columns), table)).fetchall()

    # The rows of version 1: a job in each state and kind, a view, ids that were
    # given out and are gone.
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    db = database()
    for step in steps(1):
        db.executescript(step)
    for number, (state, kind) in enumerate((
            ("queued", "py"), ("queued", "health"), ("claimed", "write-edit"),
            ("started", "pip"), ("finished", "look"), ("lost", "delete"),
            ("delivered", "create"), ("undeliverable", "put"),
            ("delivered", "get"))):
        over = state in ("delivered", "undeliverable")
        db.execute(
            "INSERT INTO jobs (interaction_id, application_id, user_id, kind,"
            " state, answer, token, received_ms, attachment_limit, may_attach,"
            " text, claimed_by, body, view_id, told_ms, share, page)"
            " VALUES (?, 5, ?, ?, ?, 'deferred-update', ?, 7, 8, 1, ?, ?, ?, 9,"
            " 10, 1, 3)",
            (number + 1, number or 1, kind, state,
             "" if over else SECRET, "" if over else SECRET * 1000,
             None if state == "queued" else 4,
             None if state != "finished" else "{}"))
    db.execute("DELETE FROM jobs WHERE kind = 'get'")
    for kind in ("look", "py", "write"):
        db.execute("INSERT INTO views (user_id, kind, path, page, share,"
                   " created_ms) VALUES (1, ?, 'a/b', 2, 1, 77)", (kind,))
    db.execute("DELETE FROM views WHERE kind = 'write'")
    columns = {table: [row[1] for row in db.execute(
        "PRAGMA table_info(%s)" % table)] for table in ("jobs", "views")}
    before = {table: rows(db, table, columns[table]) for table in columns}
    indexes = db.execute("SELECT name FROM sqlite_schema WHERE type = 'index'"
                         " ORDER BY name").fetchall()
    db.execute("PRAGMA secure_delete = OFF")
    db.close()
    process = start()
    text = process.communicate(timeout=60)[0].strip()
    db = database()
    after = {table: rows(db, table, columns[table]) for table in columns}
    good &= report(4, process.returncode == 0 and after == before and
                   len(before["jobs"]) == 8 and len(before["views"]) == 2,
                   "from version 1: every row is kept", [text, before, after])
    good &= report(5, set(indexes) <= set(db.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'index'").fetchall()),
        "and every index", [])
    alone = db.execute("SELECT kind FROM jobs WHERE alone = 0").fetchall()
    good &= report(6, alone == [("health",)], "health may run beside others",
                   alone)
    insert = ("INSERT INTO jobs (interaction_id, application_id, user_id, kind,"
              " answer, token, received_ms, attachment_limit, may_attach)"
              " VALUES (?, 5, ?, 'newer', 'deferred', 't', 7, 8, 1)")
    db.execute(insert, (100, 100))
    db.execute("INSERT INTO views (user_id, kind, created_ms)"
               " VALUES (1, 'newer', 1)")
    ids = db.execute("SELECT (SELECT max(id) FROM jobs),"
                     " (SELECT max(id) FROM views)").fetchone()
    good &= report(7, ids == (10, 4), "a new kind needs no migration, and no id"
                   " is used again", [ids])
    try:
        db.execute(insert, (101, 100))
        twice = True
    except sqlite3.IntegrityError:
        twice = False
    good &= report(8, not twice, "one at a time for each user still", [])
    db.execute("PRAGMA secure_delete = ON")
    db.execute("UPDATE jobs SET token = '', text = ''")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    with open(path, "rb") as file:
        left = file.read().count(SECRET.encode())
    good &= report(9, left == 0, "what people said is not left in free pages",
                   [left])

    # A database that several hosts had: rows of each table that goes or loses
    # a column, with what hangs on them.
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    db = database()
    for step in steps(11):
        db.executescript(step)
    db.execute("INSERT INTO nodes (name, instance, lost_ms)"
               " VALUES ('a', ?, 5)", ("0" * 32,))
    db.execute("INSERT INTO leftovers VALUES (?, 1, 2, 3)", ("9" * 32,))
    for number, state in enumerate(("active", "expiring", "expired")):
        db.execute(
            "INSERT INTO sandboxes (id, user_id, state, cwd, created_at,"
            " used_at, expires_at, pinned, used_bytes, home, moved_from,"
            " moved_host, files_at) VALUES (?, ?, ?, 'a', 1, 2, 3, ?, 7, 1,"
            " ?, 'b', 6)", ("%032d" % number, number + 1, state,
                            state == "active", "9" * 32))
    db.execute("INSERT INTO sessions (sandbox, started_at, kept_at)"
               " VALUES (?, 5, 6)", ("%032d" % 0,))
    db.execute("INSERT INTO names (sandbox_id, kind, python, name)"
               " VALUES (?, 'file', '', 'a.py')", ("%032d" % 0,))
    for number, state in enumerate(("queued", "started", "delivered")):
        db.execute(
            "INSERT INTO jobs (interaction_id, application_id, user_id, kind,"
            " state, answer, token, received_ms, attachment_limit, may_attach,"
            " text, claimed_by, home) VALUES (?, 5, ?, 'py', ?, 'deferred', ?,"
            " 7, 8, 1, ?, ?, 1)", (number + 1, number + 1, state, *(
                ("", "") if state == "delivered" else ("t", "x")),
                                   number or None))
    gone = {"home", "moved_from", "moved_host", "files_at"}

    def kept(db):
        return {table: db.execute("SELECT %s FROM %s ORDER BY 1" % (", ".join(
            row[1] for row in db.execute("PRAGMA table_info(%s)" % table)
            if row[1] not in gone), table)).fetchall()
            for table in ("jobs", "sandboxes", "sessions", "names")}

    before = kept(db)
    schema = db.execute("SELECT name FROM sqlite_schema ORDER BY 1").fetchall()
    db.close()
    process = start()
    text = process.communicate(timeout=60)[0].strip()
    db = database()
    left = {name for name, in schema} - {name for name, in db.execute(
        "SELECT name FROM sqlite_schema")}
    good &= report(10, process.returncode == 0 and kept(db) == before and
                   [len(before[table]) for table in before] == [3, 3, 1, 1],
                   "from version 11: every row is kept", [text, before,
                                                          kept(db)])
    good &= report(11, {name for name in left if "autoindex" not in name} ==
                   {"nodes", "leftovers", "leftovers_home", "leftovers_user"},
                   "what hosts of one database had is gone, and nothing else",
                   [left])
    good &= report(12, not gone & {row[1] for table in before for row in
                                   db.execute("PRAGMA table_info(%s)" % table)}
                   and db.execute("PRAGMA integrity_check").fetchone()[0] ==
                   "ok" and not db.execute(
                       "PRAGMA foreign_key_check").fetchall(),
                   "its columns, too, and the file is sound", [])
    db.close()

    # A service that starts: il-fcgi's children, both at one time, and a worker.
    env.update(DISCORD_PUBLIC_KEY="11" * 32, DISCORD_APPLICATION_ID="5",
               DISCORD_TOKEN="token")
    for number, program, *argv in ((13, "il-fcgi"),
                                  (14, "il-worker", "-s", "1")):
        state = os.path.join(folder, program)
        os.mkdir(state)
        path = os.path.join(state, "inline.db")
        env.update(IL_STATE_DIR=state, IL_DATABASE=path)
        service = subprocess.Popen(
            [os.path.join(BUILD, "bin", program), *argv], env=env, text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        deadline = threading.Timer(60, service.kill)
        deadline.start()
        said, total = [], 0
        for line in service.stderr:
            said.append(line)
            found = re.search(r"(\d+) migrations applied", line)
            total += int(found.group(1)) if found else 0
            if total >= newest[0]:
                service.terminate()
        service.wait()
        deadline.cancel()
        good &= report(number, version() == newest and total == newest[0],
                       program + " brings it to its version", [total, *said])
finally:
    shutil.rmtree(folder)
print("1..14")
sys.exit(not good)
