#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""ilctl user, guild, service and abuse: what the operator says stands in the
database, and what it knows of a person is shown."""

import fcntl
import json
import os
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from house import House  # noqa: E402
from tap import run, test  # noqa: E402

USER, GUILD, OTHER = 123, 300, 124
SECRET = "what-nobody-may-read"
house = House()
db = None


def says(*words):
    code, out, errors = house.ilctl(*words)
    assert code == 0, (words, code, out, errors)
    return out


def rules():
    return db.execute("SELECT subject, id, blocked, reason, banner, rate, jobs,"
                      " timeout_ms, quota FROM rules ORDER BY id").fetchall()


def add_job(user, guild=0, state="queued", ago=0, outcome="", **columns):
    now = int((time.time() - ago) * 1000)
    over = state == "delivered"
    row = {"interaction_id": db.execute("SELECT count(*) FROM jobs").fetchone(
        )[0] + 1, "application_id": 5, "user_id": user, "guild_id": guild,
        "kind": "py", "state": state, "answer": "deferred", "outcome": outcome,
        "token": "" if over else SECRET, "text": "" if over else SECRET,
        "received_ms": now, "attachment_limit": 8, "may_attach": 1,
        "started_ms": now + 10 if over else None,
        "finished_ms": now + 2510 if over else None, **columns}
    db.execute("INSERT INTO jobs (%s) VALUES (%s)" % (
        ", ".join(row), ", ".join("?" * len(row))), tuple(row.values()))
    db.commit()


@test
def a_person_has_a_slot_and_its_node():
    table = os.path.join(house.folder, "table")
    with open(table, "w") as file:
        file.write("node a\nnode b\nslots 377 b\nslots 262 a\n")
    assert "slot       377\n" in says("user", "1")
    for user, slot, node, line in (
            ("1", 377, "b", "slot       377, on node b: ask there\n"),
            ("2", 262, "a", "slot       262, on node a, this one\n")):
        nodes = {"IL_NODES": table, "IL_NODE": "a",
                 "IL_NODES_KEY_FILE": table}
        code, out, errors = house.ilctl("user", user, **nodes)
        assert code == 0 and line in out, (out, errors)
        told = json.loads(house.ilctl("user", user, "--json", **nodes)[1])
        assert (told["slot"], told["node"]) == (slot, node), told
        told = json.loads(says("user", user, "--json"))
        assert (told["slot"], told["node"]) == (slot, None), told
    out = house.ilctl("user", "1", **{**nodes, "IL_NODE": "c"})[1]
    assert "slot       377; on which node is not known: IL_NODES: this " in out
    assert "slot" not in says("guild", "1")
    assert "slot" not in json.loads(says("service", "--json"))


@test
def a_person_is_blocked_and_unblocked():
    says("user", str(USER), "block", "mines", "coins")
    assert rules() == [("user", USER, 1, "mines coins", "", None, None, None,
                        None)], rules()
    assert "yes: mines coins" in says("user", str(USER), "show")
    says("user", str(USER), "unblock")
    assert rules() == [], rules()
    assert "blocked    no" in says("user", str(USER))


@test
def limits_are_set_and_taken_back():
    says("guild", str(GUILD), "limits", "rate=5", "jobs=2")
    says("service", "limits", "rate=100", "timeout=2.5", "quota=8m")
    says("guild", str(GUILD), "block")
    assert rules() == [
        ("service", 0, 0, "", "", 100, None, 2500, 8 << 20),
        ("guild", GUILD, 1, "", "", 5, 2, None, None)], rules()
    says("guild", str(GUILD), "unblock")
    out = says("guild", str(GUILD), "limits", "rate=")
    assert "2 at one time" in out and "no limit" in out, out
    says("guild", str(GUILD), "limits", "jobs=")
    says("service", "limits", "rate=", "timeout=", "quota=")
    assert rules() == [], rules()


@test
def all_are_paused_and_told():
    says("service", "pause", "back at six")
    says("service", "banner", "new", "disks")
    assert rules() == [("service", 0, 1, "back at six", "new disks", None, None,
                        None, None)], rules()
    out = says("service")
    assert "yes: back at six" in out and "new disks" in out, out
    out = house.ilctl("doctor")[1]
    assert "note  paused: " in out and "note  banner: " in out, out
    says("service", "resume")
    says("service", "banner")
    assert rules() == [], rules()
    out = house.ilctl("doctor")[1]
    assert "paused: " not in out and "banner: " not in out, out


def waits_for(file, pid):
    """Until that process waits for the lock of a file that is open."""
    wanted = "-> FLOCK  ADVISORY  WRITE %d " % pid
    inode = ":%d " % os.fstat(file.fileno()).st_ino
    deadline = time.monotonic() + 60
    while True:
        with open("/proc/locks") as locks:
            if any(wanted in line and inode in line for line in locks):
                return
        assert time.monotonic() < deadline, "it does not wait"
        time.sleep(0.01)


@test
def what_two_operators_say_at_one_time_both_holds():
    with open(os.path.join(house.state, "inline.db-turn"), "a") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        second = subprocess.Popen(
            [os.path.join(house.folder, "bin", "ilctl"), "user", str(USER),
             "limits", "rate=5"], env=house.environment,
            stdout=subprocess.DEVNULL)
        waits_for(turn, second.pid)
        db.execute("INSERT INTO rules (subject, id, blocked, changed_at)"
                   " VALUES ('user', ?, 1, 1)", (USER,))
        db.commit()
    assert second.wait() == 0
    assert rules() == [("user", USER, 1, "", "", 5, None, None, None)], rules()
    changed = db.execute("SELECT changed_at FROM rules").fetchall()
    db.execute("UPDATE rules SET changed_at = 1")
    db.commit()
    says("user", str(USER), "limits")
    assert db.execute("SELECT changed_at FROM rules").fetchall() == [(1,)] != \
        changed, "who only looks has said nothing"
    says("user", str(USER), "limits", "rate=")
    says("user", str(USER), "unblock")


@test
def what_makes_no_sense_changes_nothing():
    for words in (["user"], ["user", "0"], ["user", "x"], ["user", "1", "fly"],
                  ["user", "1", "pause"], ["user", "1", "unblock", "x"],
                  ["service", "block"], ["guild", "1", "banner", "x"],
                  ["abuse", "-s", "1y"], ["abuse", "-u", "0"], ["abuse", "x"]):
        assert house.ilctl(*words)[0] == 64, words
    for words in (["rate=0"], ["rate"], ["speed=1"], ["timeout=0.01"],
                  ["timeout=601"], ["quota=1k"], ["jobs=-1"],
                  ["rate=5", "jobs=x"]):
        code, out, errors = house.ilctl("user", "1", "limits", *words)
        assert code == 1 and "are limits" in errors, (words, code, errors)
    for text in ("x" * 301, "two\nlines", "\033[31m", b"\xff"):
        code, out, errors = house.ilctl("service", "banner", text)
        assert code == 1 and "one line" in errors, (text, code, errors)
    assert rules() == [], rules()


@test
def what_is_not_over_is_cancelled():
    add_job(USER)
    add_job(OTHER, GUILD)
    out = says("user", str(USER), "block", "-c", "stop")
    assert "cancelled job 1 (py)" in out and "job 2" not in out, out
    folder = os.path.join(house.state, "cancels")
    assert os.listdir(folder) == ["1"], os.listdir(folder)
    says("guild", str(GUILD), "cancel")
    assert sorted(os.listdir(folder)) == ["1", "2"], os.listdir(folder)
    assert rules()[0][2:4] == (1, "stop"), rules()


@test
def a_person_is_shown():
    db.execute("INSERT INTO sandboxes (id, user_id, created_at, used_at,"
               " expires_at, used_bytes, used_files) VALUES (?, ?, 1, 3600,"
               " 7200, 1536, 3)", ("a" * 32, USER))
    db.commit()
    add_job(USER, state="delivered", outcome="time limit", cpu_ms=1500)
    folder = os.path.join(house.environment["IL_BASE_DIR"], "a" * 32)
    os.makedirs(folder)
    with open(os.path.join(folder, "workspace.ext4"), "wb") as image:
        image.write(b"x" * 8192)
    out = says("user", str(USER), "show")
    for part in ("a" * 32 + " active, used 1970-01-01 01:00 UTC, expires "
                 "1970-01-01 02:00 UTC", "1.5 KiB in 3 files; 8 KiB of",
                 "queued 1, delivered 1, 1.5 s of processor time",
                 "yes: stop", "IL_USER_RATE", "last use"):
        assert part in out, (part, out)


@test
def who_did_what_is_told_without_code():
    add_job(OTHER, GUILD, "delivered", 7200, "exit 0", cpu_ms=20)
    out = says("abuse")
    assert SECRET not in out and len(out.splitlines()) == 5, out
    row = [line for line in out.splitlines() if "time limit" in line][0]
    assert row.split()[3:] == [str(USER), "0", "py", "2.5", "1.5",
                               "delivered", "time", "limit"], row
    assert len(says("abuse", "-s", "1h").splitlines()) == 4
    assert len(says("abuse", "-u", str(USER)).splitlines()) == 3
    assert len(says("abuse", "-g", str(GUILD), "-n", "1").splitlines()) == 2


with house:
    assert house.ilctl("migrate")[0] == 0
    db = sqlite3.connect(os.path.join(house.state, "inline.db"), timeout=10)
    os.makedirs(os.path.join(house.state, "cancels"))
    run()
