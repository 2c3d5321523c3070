#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`ilctl nodes plan`: which slots would move; what `move` refuses before it
begins; whose a database is; a volume and paths that cannot be used.  No engine
and no other host is needed."""

import contextlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "standin"))
from tap import run, test  # noqa: E402

BUILD = os.environ.get("BUILD", "build")
SLOTS = 1024
folder = tempfile.TemporaryDirectory(prefix="inline-plan-")
table = os.path.join(folder.name, "table")
THREE = "# ours\nnode a\nnode b 10.0.0.2\nnode c 10.0.0.3:81\n"


def ilctl(*words, text=None, **settings):
    if text is not None:
        with open(table, "w") as file:
            file.write(text)
    done = subprocess.run(
        [os.path.join(BUILD, "bin", "ilctl"), *words], env={
            "PATH": os.environ["PATH"], "IL_STATE_DIR": folder.name,
            "IL_BASE_DIR": folder.name, "IL_NODE": "a", "IL_NODES": table,
            "IL_NODES_KEY_FILE": table, **settings},
        capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def slots(text):
    """The numbers of "17,200-210"."""
    found = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def plan(*words, text):
    """{(from, to): slots}, and how many it says there are."""
    code, said = ilctl("nodes", "plan", *words, text=text)
    assert code == 0, said
    moves = {(m[1], m[4]): slots(m[3]) for m in re.finditer(
        r"of (\w+) become \w+'s(, with \d+ people)?; on \w+:\n"
        r"\tilctl nodes move (\S+) --to (\w+)\n", said)}
    return moves, int(re.search(r"(\d+) of 1024 slots would", said)[1])


def owners(text):
    """Whose each slot is, by what leaves nothing to each."""
    found = {}
    for name in "abcd":
        if f"node {name}" not in text:
            continue
        moves, _ = plan("--remove", name, text=text)
        for moved in moves.values():
            found.update(dict.fromkeys(moved, name))
    return found


@test
def a_fourth_node_is_given_a_quarter_and_nobody_else_changes():
    before = owners(THREE)
    assert sorted(before) == list(range(SLOTS))
    moves, count = plan("--add", "d", text=THREE + "node d joining\n")
    assert {to for _, to in moves} == {"d"} and len(moves) == 3, moves
    moved = set().union(*moves.values())
    assert len(moved) == count and 200 < count < 312, count
    for (name, _), some in moves.items():
        assert all(before[slot] == name for slot in some)
    # what the plan says is what hashing says once it has joined
    after = owners(THREE + "node d\n")
    assert {slot for slot in after if after[slot] == "d"} == moved
    assert all(after[slot] == before[slot] for slot in before
               if slot not in moved)


@test
def who_goes_leaves_to_the_others_and_lines_stay_as_they_are():
    moves, count = plan("--remove", "c", text=THREE + "slots 0-9 c\n")
    assert {name for name, _ in moves} == {"c"}, moves
    assert set().union(*moves.values()) >= set(range(10))
    given = "slots 0-9,700 b\n"
    moves, count = plan("--add", "d", text=THREE + "node d joining\n" + given)
    assert not set().union(*moves.values()) & {*range(10), 700}
    assert open(table).read().endswith(given), "nothing is changed"


@test
def what_makes_no_sense_is_refused_in_words():
    four = THREE + "node d joining\n"
    with open(table, "w") as file:
        file.write(four)
    for words, code, what in (
            (("plan",), 64, "usage"), (("plan", "--add"), 64, "usage"),
            (("plan", "--add", "x"), 78, "has no line"),
            (("move",), 64, "usage"), (("move", "1"), 64, "usage"),
            (("move", "1024", "--to", "d"), 64, "usage"),
            (("move", "9-1", "--to", "d"), 64, "usage"),
            (("move", "1", "--to", "x"), 78, "has no line"),
            (("move", "0-1023", "--to", "d"), 1, "not this host's (a)"),
            (("other",), 64, "usage")):
        assert (got := ilctl("nodes", *words))[0] == code and \
            what in got[1], (words, got)
    assert ilctl("nodes", "plan", "--remove", "a", text="node a\n")[0] == 78
    code, said = ilctl("nodes", "plan", "--add", "a", IL_NODES="")
    assert code == 78 and "one host" in said, said
    code, said = ilctl("nodes", "plan", "--add", "d",
                       text=four + "slots 1 a\nslots 1 b\n")
    assert code == 78 and "line 7" in said, said


SERVICES = {"il-node": (), "il-fcgi": (), "il-worker": ("-s", "0"),
            "ilctl": ("run",)}


def start(program, *before, words=None, **settings):
    """One of those that work with the database, for 30 s at most."""
    return subprocess.Popen(
        ["timeout", "30", *before, os.path.join(BUILD, "bin", program),
         *(words or SERVICES[program])],
        env={
            "PATH": os.environ["PATH"], "IL_STATE_DIR": folder.name,
            "IL_BASE_DIR": folder.name + "/sandboxes", "IL_NODE": "a",
            "IL_NODES": table, "IL_NODES_KEY_FILE": table,
            "DISCORD_APPLICATION_ID": "1", "DISCORD_PUBLIC_KEY": 64 * "a",
            **settings}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True)


def names():
    """Whose the database is."""
    with contextlib.closing(sqlite3.connect(
            os.path.join(folder.name, "inline.db"))) as db:
        return [name for name, in db.execute("SELECT name FROM node")]


@test
def a_database_of_another_node_is_refused_by_all():
    ilctl("migrate", text=THREE)
    assert not names()
    for name, known in ("", []), ("a", ["a"]), ("a", ["a"]):
        service = start("il-node" if name else "il-fcgi",
                        **{} if name else {"IL_NODES": ""})
        assert "ready" in service.stdout.readline()
        service.terminate()
        service.communicate(timeout=60)
        assert names() == known, "the first node that starts gives its name"
    for program in SERVICES:
        with start(program, IL_NODE="b") as service:
            said = service.communicate(timeout=60)[0]
        assert service.returncode == 78 and names() == ["a"], said
        path = os.path.join(folder.name, "inline.db")
        assert f"{path} is the database of node a, not of b" in said, said
        assert "UPDATE node SET name = 'b'" in said, said


@test
def a_volume_that_cannot_be_written_is_named():
    frozen = ("unshare", "-m", "sh", "-c", 'mount --bind "$0" "$0" && '
              'mount -o remount,ro,bind "$0" && exec "$@"', folder.name)
    for program in SERVICES:
        with start(program, *frozen) as service:
            said = service.communicate(timeout=60)[0]
        assert service.returncode in (1, 78), said
        assert f"{folder.name}/" in said and "Read-only" in said, said
    with start("ilctl", *frozen, words=["doctor"]) as service:
        said = service.communicate(timeout=60)[0]
    assert f"the file system of {folder.name} is read-only" in said, said
    assert said.count("mount it for writing") == 3, said
    assert "run this as root" not in said and "ilctl migrate" not in said, said


@test
def a_path_that_nginx_cannot_take_is_refused():
    key = os.path.join(folder.name, "key")
    with open(key, "w") as file:
        file.write("0123456789abcdef" * 4)
    os.chmod(key, 0o600)
    code, said = ilctl("nginx", text=THREE, IL_NODES_KEY_FILE=key)
    assert code == 0 and f'unix:{folder.name}/' in said, said
    for name in "a*b", "a?b", "a[b":
        lib = os.path.join(folder.name, name)
        shutil.copytree(os.path.join(BUILD, "lib", "nginx"), lib + "/nginx")
        code, said = ilctl("nginx", IL_NODES_KEY_FILE=key, IL_TUNE_LIB_DIR=lib)
        assert code == 78 and "IL_TUNE_LIB_DIR: nginx cannot take" in said, said


assert ilctl("migrate", text=THREE)[0] == 0
run()
