#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Two hosts on one PostgreSQL: what a person does is done where their sandbox
is, whichever host takes it; one host is killed with jobs in every state, and
comes back."""

import os
import signal
import subprocess
import sys
import tempfile
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "store"))

from cluster import Cluster, skip_unless_installed  # noqa: E402
from service import BUILD, Service, wait_for  # noqa: E402
from client import Standin  # noqa: E402

skip_unless_installed()
count = 0
failed = 0


def ok(good, name, detail=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    if not good:
        print("# " + str(detail).replace("\n", "\n# "), flush=True)


class Node(Service):
    """A host: folders, programs and a broker of its own."""

    def __init__(self, name, standin, address):
        super().__init__(IL_NODE=name, IL_DATABASE=address, IL_WORKERS="2",
                         **standin.environment())
        self.name = name
        self.standin = standin

    def _standin_port(self):
        return self.standin.port

    def send(self, user, code):
        """A command that this host's front takes."""
        self.standin.settings(
            endpoint=f"http://127.0.0.1:{self.port}/interactions")
        return self.standin.send_command("py", user=user, code=code)

    def say(self, user, code, match=None):
        run = self.send(user, code)
        run.wait_final(match=match)
        return run.original.text()

    def number(self):
        return sql(f"SELECT number FROM nodes WHERE name = '{self.name}'")


def sql(text):
    return cluster.sql(text, "inline")


def last_home():
    """The node of the newest job."""
    return sql("SELECT home FROM jobs ORDER BY id DESC LIMIT 1")


def states(number):
    return sql("SELECT string_agg(state, ' ' ORDER BY id) FROM jobs WHERE "
               f"open AND home = {number}")


def counted(node):
    """{state: hosts}, as its /metrics has it."""
    with urllib.request.urlopen(
            f"http://127.0.0.1:{node.port}/metrics", timeout=10) as reply:
        text = reply.read().decode()
    return {state: f'inline_nodes{{state="{state}"}} {number}\n' in text
            for state, number in (("living", 1), ("away", 0), ("lost", 1))}


def over():
    wait_for(lambda: sql("SELECT count(*) FROM jobs WHERE open") == "0")


def test_home(a, b):
    ok(a.number() != b.number() != "", "each has a number")
    a.say("alice", "open('f', 'w').write('kept')")
    ok(last_home() == a.number(), "a sandbox is made where it was asked")
    answer = b.say("alice", "print(open('f').read())", "kept")
    ok("kept" in answer, "another front's command finds its files", answer)
    ok(last_home() == a.number(), "at home")
    b.say("bob", "open('f', 'w').write('theirs')")
    ok(last_home() == b.number(), "somebody else's is at the other one")
    answer = a.say("bob", "print(open('f').read())", "theirs")
    ok("theirs" in answer, "and found from here", answer)
    # a button of theirs, too, while it waits and while it runs
    run = b.send("alice", "import time; print('on', flush=True); "
                 "time.sleep(300)")
    run.wait_edits(1, match="on")
    standin.press(run.original, "Cancel", user="alice")
    run.wait_final(match="ancelled")
    ok("ancelled" in run.original.text(), "and cancelled from there",
       run.original.text())
    over()
    ok(sql("SELECT count(DISTINCT home) FROM sandboxes") == "2",
       "the rows say so")


def test_name(a):
    """Another host that was given the same name."""
    with tempfile.TemporaryDirectory(prefix="inline-node-") as folder:
        with open(os.path.join(folder, "node"), "w") as file:
            file.write("0" * 32)
        done = subprocess.run(
            [os.path.join(BUILD, "bin/il-worker"), "-s", "0"],
            env=dict(a.environment(), IL_STATE_DIR=folder),
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=60)
    ok(done.returncode == 78 and "IL_NODE" in done.stderr,
       "a second host of one name is refused", done)


def fill(a, b):
    """Jobs of the first host in every state, taken by the other's front."""
    runs = {}
    a.standin.fault("status", route="edit", status=503, count=1000)
    runs["finished"] = b.send("fiona", "print('finished before')")
    wait_for(lambda: states(a.number()) == "finished")
    runs["started"] = b.send("steve", "import time; time.sleep(600)")
    wait_for(lambda: states(a.number()) == "finished started")
    for pid in a.pids("il-sandboxd"):
        os.kill(pid, signal.SIGSTOP)
    runs["claimed"] = b.send("clara", "print('claimed before')")
    wait_for(lambda: states(a.number()) == "finished started claimed")
    runs["queued"] = b.send("quinn", "print('queued before')")
    runs["queued too"] = b.send("alice", "print('queued, too')")
    wait_for(lambda: states(a.number()) ==
             "finished started claimed queued queued")
    return runs


def kill_all(node):
    """The plug is pulled."""
    process, node.process = node.process, None
    process.kill()
    process.wait()
    process.stdout.close()


def test_lost(a, b):
    users = ("fiona", "steve", "clara", "quinn")
    for user in users:
        a.say(user, "open('f', 'w').write('old')")
    over()
    number = a.number()
    before = sql("SELECT count(*) FROM sandboxes WHERE home = " + number)
    runs = fill(a, b)
    ok(True, "jobs in every state")
    kill_all(a)
    a.standin.clear_faults()
    wait_for(lambda: sql("SELECT left_ms <> 0 FROM nodes WHERE number = " +
                         number) == "t")
    ok(states(number) == "finished started claimed queued queued",
       "nothing is taken from one who may come back", states(number))
    code, out, err = b.ilctl("nodes")
    ok(code == 0 and "away" in out and "alive" in out, "the operator sees it",
       out + err)
    code, out, err = b.ilctl("doctor")
    ok(f"no worker of {a.name} is there" in out, "and the doctor", out)
    code, out, err = b.ilctl("nodes", "lost", b.name)
    ok(code == 78 and b.name in err, "one that lives is not taken for lost",
       out + err)
    code, out, err = b.ilctl("nodes", "lost", a.name)
    ok(code == 0, "one that is away is, at the operator's word", out + err)
    lost = {name: run.wait_final(match=match).original.text()
            for name, run, match in (
        ("finished", runs["finished"], "finished before"),
        ("started", runs["started"], "interrupted"),
        ("claimed", runs["claimed"], "claimed before"),
        ("queued", runs["queued"], "queued before"),
        ("queued too", runs["queued too"], "queued, too"))}
    over()
    ok("finished before" in lost["finished"], "finished: told", lost)
    ok("interrupted" in lost["started"], "started: told as interrupted", lost)
    for name in ("claimed", "queued", "queued too"):
        ok("before" in lost[name] or "too" in lost[name],
           f"{name}: run elsewhere", lost)
        ok(f"host {a.name} was lost" in lost[name] and
           "empty" in lost[name], f"{name}: its user is told", lost)
    ok(sql("SELECT count(*) FROM jobs WHERE outcome = 'interrupted'") == "1",
       "one was interrupted, and not run again")
    for name, run in runs.items():
        # what runs so long after it was sent shows first that it does
        most = 1 if name in ("finished", "started") else 2
        ok(run.refresh().edits <= most and
           run.original.text().count("before") <= 1, f"{name}: one report",
           [run.edits, run.original.text()])
    ok(sql("SELECT count(*) FROM sandboxes WHERE home = " + number) == "0",
       "no sandbox is at home there")
    ok(sql("SELECT count(*) FROM leftovers WHERE home = " + number) == before,
       "what it still has is noted")
    answer = b.say("alice", "import os; print('files', os.listdir('.'))",
                   "files")
    ok("was lost" not in answer and "'f'" not in answer, "told once", answer)
    answer = b.say("fiona", "print('hello')", "hello")
    ok("was lost" in answer, "who had no answer yet is told with the next",
       answer)
    answer = b.say("bob", "print(open('f').read())", "theirs")
    ok("was lost" not in answer, "others noticed nothing", answer)
    wait_for(lambda: all(counted(b).values()))
    ok(True, "/metrics counts one that is lost, and one that lives")


def folders(node):
    return sorted(name for name in os.listdir(node.settings["IL_BASE_DIR"])
                  if len(name) == 32)


def test_back(a, b):
    number = a.number()
    before = folders(a)
    b.say("alice", "open('new', 'w').write('newer work')")
    a.start()
    ok(a.number() == number, "it comes back, as who it was")
    answer = a.say("alice", "print(open('new').read())", "newer work")
    ok("newer work" in answer, "nothing of newer work is overwritten", answer)
    ok(last_home() == b.number(), "its users have moved")
    a.wait_logged("folders of sandboxes that are elsewhere")
    ok(folders(a) == before and before, "what it had is kept", before)
    code, out, err = a.ilctl("doctor")
    ok(f"{len(before)} folders of sandboxes that are elsewhere" in out,
       "the doctor tells of it", out)
    sql("UPDATE leftovers SET left_at = left_at - 31536000")
    a.kill("il-worker")
    wait_for(lambda: not folders(a))
    ok(True, "until its retention is over")
    a.say("nora", "print('at home')", "at home")
    ok(last_home() == number, "it serves who comes now")
    wait_for(lambda: not counted(b)["lost"] and not counted(b)["living"])
    ok(counted(b)["away"], "and /metrics has none that is lost")


with Cluster() as cluster, Standin(rate_limit=1000) as standin:
    address = cluster.database("inline")
    with Node("ash", standin, address) as a, \
            Node("birch", standin, address) as b:
        test_home(a, b)
        test_name(a)
        test_lost(a, b)
        test_back(a, b)
        for node in (a, b):
            node.stop()
            ok(not node.left_over(), f"{node.name}: nothing is left",
               node.left_over())
print(f"1..{count}")
sys.exit(failed != 0)
