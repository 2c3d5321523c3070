#!/usr/bin/python3
"""Each service brings the database up to date before it starts, all of them at
one time: each finds it done or waits until it is."""
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

BUILD = os.environ["BUILD"]
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
finally:
    shutil.rmtree(folder)
print("1..3")
sys.exit(not good)
