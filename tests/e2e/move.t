#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""People move to another host: with all that is theirs, once, whatever is
killed on the way, full or wrong; and one comes out of a backup."""

import contextlib
import fcntl
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "fcgi")]

from service import BUILD, own_mounts, wait_for  # noqa: E402
from client import Standin  # noqa: E402
from moving import Node, clean, key_file, put_table, table  # noqa: E402
from slots import slot_of  # noqa: E402
from tap import run, test  # noqa: E402

own_mounts()    # of the small disk
standin = Standin(rate_limit=1000).start()
a = Node("a", standin, IL_TUNE_WARM_SECONDS="1")
b = Node("b", standin, IL_TUNE_WARM_SECONDS="1")
USERS = {}      # {name: id}
MOVES = "is just moving to another host"
AWAY = "does not answer just now"


def table_of(slots="", **more):
    put_table("# ours\n" + a.line() + b.line("joining") + "".join(
        f"node {name} {address} joining\n" for name, address in more.items())
        + slots)


def user(name):
    """The id of a person, who has a sandbox on the first host."""
    if name not in USERS:
        a.ask(name, "print(1)")
        USERS[name] = str(a.sql("SELECT user_id FROM sandboxes ORDER BY "
                                "rowid DESC LIMIT 1")[0][0])
    return USERS[name]


def start_move(name, *more, to="b", node=a):
    """`ilctl nodes move` of one person's slot, which goes on beside us."""
    return subprocess.Popen(
        [os.path.join(BUILD, "bin", "ilctl"), "nodes", "move",
         str(slot_of(user(name))), "--to", to, *more],
        env=node.environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def move(name, *more, to="b", node=a):
    """The same to its end: (exit status, what it said)."""
    moving = start_move(name, *more, to=to, node=node)
    said = moving.communicate(timeout=120)[0]
    return moving.returncode, said


def back(name):
    """Bring a person back to the first host."""
    clean(a, b)
    # a host reads the table once in a second
    wait_for(lambda: move(name, to="a", node=b)[0] == 0)
    table_of()
    assert not a.moves(), "nothing is remembered of those who are here"
    clean(a, b)


@contextlib.contextmanager
def writing(node):
    """Nobody else writes to a node's database meanwhile."""
    link = sqlite3.connect(node.database, timeout=60, isolation_level=None)
    try:
        link.execute("BEGIN IMMEDIATE")
        yield
        link.execute("ROLLBACK")
    finally:
        link.close()


def large(name):
    """So much that a move takes a while, which nobody could guess."""
    a.ask(name, "import os; open('big', 'wb').write(os.urandom(150 << 20))")
    return a.ask(name, "import hashlib; "
                 "print(hashlib.md5(open('big', 'rb').read()).hexdigest())",
                 match="[0-9a-f]{32}")


def is_whole(name, before):
    """The same is asked at the other host."""
    after = b.ask(name, "import hashlib; "
                  "print(hashlib.md5(open('big', 'rb').read()).hexdigest())",
                  match="[0-9a-f]{32}")
    found = [re.search("[0-9a-f]{32}", text)[0] for text in (before, after)]
    return found[0] == found[1]


def add_package(name):
    """A module in the volume of packages, as pip would leave one."""
    folder = os.path.join(a.settings["IL_BASE_DIR"], a.sql(
        "SELECT id FROM sandboxes WHERE user_id = ? AND state = 'active'",
        int(user(name)))[0][0])
    volume, = (os.path.join(folder, file) for file in os.listdir(folder)
               if file.startswith("packages-"))
    with open(volume, "rb+") as file, tempfile.NamedTemporaryFile("w") as py:
        fcntl.flock(file, fcntl.LOCK_EX)    # as soon as its cell has ended
        py.write("answer = 6 * 7\n")
        py.flush()
        os.chmod(py.name, 0o644)
        subprocess.run(["debugfs", "-w", "-R", f"write {py.name} packed.py",
                        volume], check=True, capture_output=True)


@test
def all_of_a_person_is_there_afterwards():
    who = user("alice")
    a.take()
    sent = a.send("alice", "open('kept', 'w').write('yes'); print('old' + "
                  "'answer')", share=False)
    sent.wait_final(match="oldanswer")
    a.ask("alice", "import os; os.makedirs('deep/er')")
    standin.send_command("look", user="alice", path="deep").wait_final()
    add_package("alice")
    a.ask("alice", "x = 5", keep=True)
    a.sql("UPDATE sandboxes SET pinned = 1 WHERE user_id = ?", int(who))
    assert a.ilctl("user", who, "limits", "rate=77")[0] == 0
    wait_for(lambda: a.sql("SELECT 1 FROM names"))
    of = "SELECT id, cwd, created_at, used_at, expires_at, pinned FROM " \
        "sandboxes WHERE user_id = ? AND state = 'active'"
    before = a.sql(of, int(who))
    of_views = "SELECT id, text, output FROM views WHERE user_id = ? " \
        "ORDER BY id"
    views = a.sql(of_views, int(who))
    names = a.sql("SELECT * FROM names")
    assert before and views and names
    code, said = move("alice")
    assert code == 0 and "1 people are b's now" in said, said
    assert b.come() == [slot_of(who)] and a.moves() == {0: "gone"}
    assert b.sql(of, int(who)) == before
    assert b.sql(of_views, int(who)) == views
    assert b.sql("SELECT * FROM names") == names
    assert b.sql("SELECT id, rate FROM rules") == [(int(who), 77)]
    assert not a.rows(who, "views") and not a.sql("SELECT 1 FROM rules")
    assert f"slots {slot_of(who)} b" in open(table).read()
    assert open(table).read().startswith("# ours\nnode a 127.0.0.1:")
    clean(a, b)
    # whichever host is asked
    for node in a, b:
        assert "yes 42" in node.ask(
            "alice", "import packed; print(open('/workspace/kept').read(), "
            "packed.answer)", match="yes")
    assert "/workspace/deep" in b.ask("alice", "import os; os.getcwd()")
    again = standin.press(sent.original, "Re-run", user="alice")
    again.wait_final(match="oldanswer")
    assert b.sql("SELECT count(*) FROM jobs WHERE kind = 'py'")[0][0] >= 4


@test
def who_has_gone_is_handed_on_whatever_the_tables_say():
    """The row says it, until the table does."""
    who = user("alice")
    table_of()      # of before: all nodes take the first for theirs
    for node in a, b:
        assert a.sql("INSERT OR REPLACE INTO moves VALUES (?, 0, 'b', 'gone')",
                     slot_of(who)) == []
        assert "yes" in node.ask("alice",
                                 "print(open('/workspace/kept').read())",
                                 match="yes|agree")
    a.wait_logged("user=%s outcome=handed-on" % who)
    # no host that was given somebody gives them away in the same breath
    b.sql("INSERT OR REPLACE INTO moves VALUES (?, 0, 'a', 'gone')",
          slot_of(who))
    assert "do not agree yet" in a.ask("alice", "print(1)")
    b.sql("DELETE FROM moves")
    put_table(open(table).read() + f"slots {slot_of(who)} b\n")
    assert "yes" in a.ask("alice", "print(open('/workspace/kept').read())")
    time.sleep(2.1)     # all have read it
    assert "yes" in a.ask("alice", "print(open('/workspace/kept').read())")
    assert a.moves() == {0: "gone"}, "for hosts with the old table"


@test
def an_old_host_that_comes_back_refuses_whom_it_gave_away():
    """Its disk is from before: the sandbox's row is there, and no move."""
    who = user("alice")
    row = b.sql("SELECT id FROM sandboxes WHERE user_id = ?", int(who))[0][0]
    clean(a)
    a.sql("DELETE FROM moves")
    a.sql("INSERT INTO sandboxes (id, user_id, created_at, used_at, "
          "expires_at) VALUES (?, ?, 1, 1, 9999999999)", row, int(who))
    assert "yes" in a.ask("alice", "print(open('/workspace/kept').read())")
    a.sql("DELETE FROM sandboxes WHERE id = ?", row)
    back("alice")
    assert "yes" in a.ask("alice", "print(open('/workspace/kept').read())")


@test
def who_is_on_the_way_is_told_and_what_they_run_comes_first():
    who = user("alice")
    running = a.send("alice", "import time; time.sleep(4); "
                     "open('/workspace/last', 'w').write('done')")
    wait_for(lambda: a.sql("SELECT 1 FROM jobs WHERE state = 'started'"))
    moving = start_move("alice")
    wait_for(lambda: a.moves().get(int(who)) == "leaving")
    said = a.ask("alice", "print(1)")
    assert MOVES in said, said
    assert standin.autocomplete("look", "path", user="alice", path="k") == []
    assert "1" in a.ask("bob", "print(1)"), "nobody else is"
    table_of(c="127.0.0.1:1")   # by the operator, meanwhile
    running.wait_final()
    assert moving.communicate(timeout=60)[0] and moving.returncode == 0
    assert "node c 127.0.0.1:1 joining\nslots" in open(table).read()
    assert "done" in b.ask("alice", "print(open('/workspace/last').read())")
    back("alice")


@test
def what_takes_too_long_keeps_its_owner_here():
    running = a.send("alice", "import time; time.sleep(8); print('over')")
    wait_for(lambda: a.sql("SELECT 1 FROM jobs WHERE state = 'started'"))
    code, said = move("alice", "-w", "1")
    assert code == 1 and "a command of theirs is not over" in said, said
    assert "stays here" in said and not a.moves(), said
    running.wait_final(match="over")
    assert a.here(user("alice")) and not b.rows(user("alice"))


@test
def who_deletes_the_sandbox_meanwhile_has_none_anywhere():
    who = user("carol")
    asked = standin.send_command("delete", user="carol").wait_final()
    pressed = standin.press(asked.original, "Delete everything", user="carol")
    code, said = move("carol")
    assert code == 0, said
    assert "deleted" in pressed.wait_final().original.text()
    assert not a.here(who) and not b.here(who)
    clean(a, b)
    back("carol")


@test
def a_sender_that_is_killed_is_asked_to_go_on():
    """Before it has sent anything, in the middle, and when all is there."""
    who = user("alice")
    before = large("alice")
    running = a.send("alice", "import time; time.sleep(5)")
    wait_for(lambda: a.sql("SELECT 1 FROM jobs WHERE state = 'started'"))
    moving = start_move("alice")
    wait_for(lambda: a.moves().get(int(who)) == "leaving")
    moving.kill()
    moving.communicate()
    running.wait_final()
    assert MOVES in a.ask("alice", "print(1)"), "until it goes on"
    moving = start_move("alice")
    wait_for(b.drafts)
    moving.kill()
    moving.communicate()
    wait_for(lambda: not b.drafts())
    assert a.moves().get(int(who)) == "leaving" and not b.rows(who)
    moving = start_move("alice")
    wait_for(b.drafts)
    with writing(a):
        wait_for(lambda: b.here(who))
        moving.kill()
        moving.communicate()
    assert a.here(who) and a.moves().get(int(who)) == "leaving"
    code, said = move("alice")
    assert code == 0, said
    clean(a, b)
    assert not a.here(who) and is_whole("alice", before)
    back("alice")


@test
def who_is_there_does_not_stay_here_when_nothing_can_be_noted():
    who = user("carol")
    a.ask("carol", "print(1)")
    a.sql("CREATE TRIGGER full BEFORE UPDATE ON moves BEGIN "
          "SELECT RAISE(ABORT, 'no room'); END")
    code, said = move("carol")
    assert code == 1 and "no room" in said and "is told to wait" in said, said
    assert b.here(who) and a.moves().get(int(who)) == "leaving", a.moves()
    a.sql("DROP TRIGGER full")
    code, said = move("carol")
    assert code == 0 and not a.here(who), said
    back("carol")


def killed(program, node, draft_of=b):
    """A move in whose middle a program is killed: what the sender says."""
    moving = start_move("alice")
    wait_for(draft_of.drafts)
    pids = children_of(node, program)
    if program == "nginx":
        pids = node.pids(program) + pids    # its first process makes new ones
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    said = moving.communicate(timeout=60)[0]
    return moving.returncode, said


def children_of(node, program):
    parents = node.pids(program)
    found = subprocess.run(["pgrep", "-P", ",".join(map(str, parents))],
                           capture_output=True, text=True).stdout
    return [int(pid) for pid in found.split()]


@test
def a_receiver_that_is_killed_leaves_nothing_and_nobody():
    who = user("alice")
    before = large("alice")
    for program, node in ("il-node", b), ("nginx", b), ("nginx", a):
        code, said = killed(program, node)
        assert code == 1, said
        wait_for(lambda: not b.drafts())
        assert a.here(who) and not b.rows(who), said
        assert a.moves().get(int(who)) in (None, "leaving"), a.moves()
        wait_for(lambda: "away" not in a.ilctl("nodes")[1] and
                 a.ilctl("nodes")[0] == 0)
    code, said = move("alice")
    assert code == 0, said
    clean(a, b)
    assert not a.here(who) and is_whole("alice", before)
    back("alice")


@test
def those_who_wait_may_stay_after_all():
    who = user("alice")
    a.sql("INSERT INTO moves VALUES (?, ?, 'b', 'leaving')", slot_of(who),
          int(who))
    assert MOVES in a.ask("alice", "print(1)")
    code, said = move("alice", to="c")
    assert code == 78 and "has no line" in said, said
    code, said = move("alice", to="a")
    assert code == 0 and not a.moves(), said
    assert "1" in a.ask("alice", "print(1)")


@test
def a_copy_from_before_is_no_reason_to_lose_what_came_after():
    who = user("alice")
    moving = start_move("alice")
    wait_for(lambda: a.moves().get(int(who)) == "leaving" or b.rows(who))
    moving.communicate(timeout=60)
    assert moving.returncode == 0
    row = b.sql("SELECT id, used_at FROM sandboxes WHERE user_id = ?",
                int(who))[0]
    back("alice")
    # as if no answer had come, and the person went on here
    b.sql("INSERT INTO sandboxes (id, user_id, created_at, used_at, "
          "expires_at) VALUES (?, ?, 1, ?, 9999999999)", row[0], int(who),
          row[1])
    time.sleep(1.1)
    a.ask("alice", "open('/workspace/later', 'w').write('later')")
    code, said = move("alice")
    assert code == 1 and "an older copy" in said, said
    assert "later" in a.ask("alice", "print(open('/workspace/later').read())")
    b.sql("DELETE FROM sandboxes WHERE id = ?", row[0])


@test
def wrong_hosts_take_nobody_in():
    """Another key; another name at the address; one that is not there."""
    who = user("alice")
    other = key_file + ".other"
    with open(other, "w") as file:
        file.write("ab" * 32)
    os.chmod(other, 0o644)
    stranger = Node("c", standin, IL_NODES_KEY_FILE=other)
    put_table(a.line() + b.line("joining") + stranger.line("joining"))
    with stranger:
        code, said = move("alice", to="c")
        assert code == 1 and "403" in said, said
    table_of(c=f"127.0.0.1:{b.nodes_port}")
    code, said = move("alice", to="c")
    assert code == 1 and "this host is b, not c" in said, said
    table_of(c="127.0.0.1:1")
    code, said = move("alice", to="c")
    assert code == 1 and "502" in said, said
    put_table(a.line() + a.line() + b.line("joining"))
    code, said = move("alice")
    assert code == 78 and "twice" in said, said
    table_of()
    assert a.here(who) and not a.moves() and not b.rows(who)
    assert "1" in a.ask("alice", "print(1)")


@test
def a_disk_without_room_takes_nobody_in():
    small = Node("c", standin)
    small.settings["IL_BASE_DIR"] = small.mount_memory("disk", "200m")
    put_table(a.line() + b.line("joining") + small.line("joining"))
    with small:
        code, said = move("alice", to="c")
        assert code == 1 and "507" in said and "no room" in said, said
        assert not small.rows(user("alice")) and not small.drafts()
        assert not small.come(), "a slot that did not come is not there"
    assert a.here(user("alice")) and not a.moves()
    table_of()


@test
def one_person_comes_out_of_a_backup():
    who = user("alice")
    a.ask("alice", "open('/workspace/saved', 'w').write('saved')")
    with tempfile.TemporaryDirectory() as folder:
        code, said, errors = a.ilctl("backup", folder)
        assert code == 0, (said, errors)
        code, said, errors = a.ilctl("restore", "--user", who, folder)
        assert code == 1 and "is there" in errors, (said, errors)
        a.sql("UPDATE sandboxes SET expires_at = 1, pinned = 0 WHERE "
              "user_id = ?", int(who))
        assert a.ilctl("expire")[0] == 0
        clean(a, b)
        code, said, errors = a.ilctl("restore", "--user", who, folder)
        assert code == 0 and "restored" in said, (said, errors)
        text = a.ask("alice", "print(open('/workspace/saved').read())")
        assert "saved" in text, text
        code, said, errors = a.ilctl("restore", "--user", who, "--to", "b",
                                     folder)
        assert code == 0 and b.here(who), (said, errors)
        code, said, errors = a.ilctl("restore", "--user", "5", folder)
        assert code == 1 and "not in this backup" in errors, errors
    left = [name for name in os.listdir(a.settings["IL_STATE_DIR"])
            if name.startswith("restore-")]
    assert not left, left


table_of()
try:
    with a, b:
        for name in "alice", "bob", "carol":
            user(name)
        run()
finally:
    standin.stop()
