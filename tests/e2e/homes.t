#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Two hosts on one PostgreSQL: what a person does is done where their sandbox
is, whichever host takes it; one host is killed with jobs in every state, its
sandboxes go on elsewhere from their snapshots, and it comes back."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "store"))

from cluster import Cluster, skip_unless_installed  # noqa: E402
from service import BUILD, Service, wait_for  # noqa: E402
from client import Standin  # noqa: E402

skip_unless_installed()
if not os.path.exists(os.path.join(BUILD, "bin/il-snapshot")):
    print("1..0 # SKIP il-snapshot is built where libzstd is")
    sys.exit()
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
                         IL_SNAPSHOTS=snapshots, IL_WARM_SECONDS="1",
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


def edit(node, user, command="write", **options):
    """What asks for an editor, and was answered."""
    standin.settings(endpoint=f"http://127.0.0.1:{node.port}/interactions")
    return standin.send_command(command, user=user, **options).wait_answered()


def test_editor(a, b):
    """Alice is at home at the first one."""
    words = "kept \U0001f40d\n" * 500
    standin.submit_modal(edit(b, "alice", name="deep.txt"),
                         {"content": words}).wait_final()
    over()
    sent = edit(b, "alice", name="deep.txt")
    ok(sent.answer_type == 9 and words.rstrip() ==
       sent.modal_values()["content"].rstrip(),
       "another front opens an editor with what the file holds", sent.answer)
    over()
    sent = edit(a, "alice", name="deep.txt")
    ok(sent.answer_type == 9, "as the front at home", sent.answer)
    b.say("alice", "print('to be edited')", "to be edited")
    run = b.send("alice", "print('once more')")
    run.wait_final(match="once more")
    over()
    sent = standin.press(run.original, "Edit", user="alice").wait_answered()
    ok(sent.answer_type == 9 and "once more" in str(sent.modal_values()),
       "so does the button of a run", sent.answer)
    b.say("alice", "open('b', 'wb').write(bytes(range(256)))")
    over()
    sent = edit(b, "alice", name="b")
    sent.wait_final(match="cannot be edited|not.*text|editor")
    ok(sent.answer_type == 5, "what is none is said instead",
       [sent.answer, sent.original.text()])
    over()
    names = b.standin.autocomplete("look", "path", user="alice", path="de")
    ok("deep.txt" in str(names), "names are suggested from there",
       names)
    for pid in a.pids("il-worker"):
        os.kill(pid, signal.SIGSTOP)
    sent = edit(b, "alice", name="deep.txt")
    for pid in a.pids("il-worker"):
        os.kill(pid, signal.SIGCONT)
    ok(sent.answer_type == 4 and "Open editor" in str(sent.answer),
       "where it takes too long there is a button", sent.answer)
    over()
    sent = standin.press(sent.original, "Open editor",
                         user="alice").wait_answered()
    ok(sent.answer_type == 9, "which opens it", sent.answer)
    over()


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


def last_sandbox():
    """That of who was there last."""
    return sql("SELECT s.id FROM sandboxes AS s JOIN jobs AS j ON j.user_id = "
               "s.user_id ORDER BY j.id DESC LIMIT 1")


def manifest(sandbox):
    return os.path.join(snapshots, sandbox, "manifest")


def is_saved(node, sandbox):
    """There is a snapshot of it as it is, and nobody has it."""
    volume = os.path.join(node.settings["IL_BASE_DIR"], sandbox,
                          "workspace.ext4")
    for name in os.listdir("/sys/block"):
        try:
            with open(f"/sys/block/{name}/loop/backing_file") as file:
                if file.read().strip() == volume:
                    return False
        except OSError:
            continue
    return os.path.exists(manifest(sandbox)) and \
        os.stat(manifest(sandbox)).st_mtime_ns > os.stat(volume).st_mtime_ns


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
    runs["queued too"] = b.send("alice", "print('queued, too', open('f').read())")
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
    ids = {}
    began = time.time()
    for user in ("fiona", "steve", "clara", "quinn", "alice", "gus"):
        a.say(user, f"open('f', 'w').write('old work of {user}')")
        ids[user] = last_sandbox()
    over()
    wait_for(lambda: all(is_saved(a, one) for one in ids.values()))
    code, out, err = a.ilctl("doctor")
    ok(re.search(r"snapshots: \d+ sandboxes are saved", out),
       "the doctor says that all is saved", out)
    with urllib.request.urlopen(f"http://127.0.0.1:{a.port}/metrics") as told:
        out = told.read().decode()
    ok("\ninline_snapshot_up 1\n" in out and
       "\ninline_snapshot_waiting 0\n" in out, "and so do the metrics", out)
    number = a.number()
    before = sql("SELECT count(*) FROM sandboxes WHERE home = " + number)
    runs = fill(a, b)
    ok(True, "jobs in every state")
    kill_all(a)
    ended = time.time()
    shutil.rmtree(os.path.dirname(manifest(ids["clara"])))
    with open(manifest(ids["quinn"]), "r+") as file:
        file.truncate(os.stat(file.name).st_size // 2)
    a.standin.clear_faults()
    wait_for(lambda: sql("SELECT left_ms <> 0 FROM nodes WHERE number = " +
                         number) == "t")
    ok(states(number) == "finished started claimed queued queued",
       "nothing is taken from one who may come back", states(number))
    sent = edit(b, "gus", name="f")
    ok(sent.answer_type == 4 and "does not answer" in sent.original.text(),
       "who asks for an editor is told", sent.answer)
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
        ok(f"host {a.name} was lost" in lost[name],
           f"{name}: its user is told", lost)
    ok("there was no copy. It is empty" in lost["claimed"],
       "that there was no snapshot", lost["claimed"])
    ok("copy could not be read. It is empty" in lost["queued"],
       "that one was damaged", lost["queued"])
    as_of = re.search(r"Its files are as of <t:(\d+):f>", lost["queued too"])
    ok(as_of and began - 1 <= int(as_of[1]) <= ended,
       "as of when the files are", [lost["queued too"], began, ended])
    ok("queued, too old work of alice" in lost["queued too"],
       "and there they are", lost["queued too"])
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
    answer = b.say("alice", "print('mine:', open('f').read())", "mine")
    ok("was lost" not in answer and "work of alice" in answer, "told once",
       answer)
    answer = b.say("fiona", "print('hello', open('f').read())", "hello")
    ok("was lost" in answer and "as of" in answer and
       "work of fiona" in answer,
       "who had no answer yet is told with the next", answer)
    wait_for(lambda: not os.path.exists(manifest(ids["alice"])) and
             not os.path.exists(manifest(ids["fiona"])))
    ok(True, "what theirs were made of is removed when they were used")
    answer = b.say("bob", "print(open('f').read())", "theirs")
    ok("was lost" not in answer, "others noticed nothing", answer)
    wait_for(lambda: all(counted(b).values()))
    ok(True, "/metrics counts one that is lost, and one that lives")
    return ids


def folders(node):
    return sorted(name for name in os.listdir(node.settings["IL_BASE_DIR"])
                  if len(name) == 32)


def test_back(a, b, away):
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
    wait_for(lambda: folders(a) == [away])
    ok(os.path.exists(manifest(away)), "until its retention is over, but for "
       "what is still to be brought from its snapshot")
    answer = b.say("steve", "print('mine:', open('f').read())", "mine")
    ok("work of steve" in answer and "as of" in answer, "as it is, late",
       answer)
    a.kill("il-worker")
    wait_for(lambda: not folders(a))
    ok(True, "and then that goes, too")
    a.say("nora", "print('at home')", "at home")
    ok(last_home() == number, "it serves who comes now")
    wait_for(lambda: not counted(b)["lost"] and not counted(b)["living"])
    ok(counted(b)["away"], "and /metrics has none that is lost")
    wait_for(lambda: not set(before) & set(os.listdir(snapshots)))
    ok(True, "no snapshot of what it had is left")


def test_paused(a, b):
    """Between a claim and the first look into the sandbox this host was lost."""
    a.say("mia", "open('f', 'w').write('work of mia')")
    sandbox = last_sandbox()
    wait_for(lambda: is_saved(a, sandbox))
    with subprocess.Popen(
            [cluster.bin + "/psql", "-XAtq", "-h", cluster.folder, "-U",
             "postgres", "inline"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True) as psql:
        psql.stdin.write("BEGIN; LOCK TABLE command_ids; SELECT 1;\n")
        psql.stdin.flush()
        psql.stdout.readline()
        run = a.send("mia", "print('here:', open('f').read())")
        wait_for(lambda: states(a.number()) == "claimed")
        sql("UPDATE sandboxes SET id = reverse(id), moved_from = id, "
            f"moved_host = 'ash', home = {b.number()} WHERE id = '{sandbox}'")
        psql.communicate("ROLLBACK;\n")
    run.wait_final(match="here")
    ok("work of mia" in run.original.text() and last_home() == b.number(),
       "a job whose sandbox has moved goes there", run.original.text())
    over()
    ok(sandbox[::-1] not in folders(a), "and nothing is made here",
       folders(a))


def test_delete(a, b):
    b.say("alice", "open('f', 'w').write('to be deleted')")
    sandbox = last_sandbox()
    wait_for(lambda: is_saved(b, sandbox))
    a.standin.settings(endpoint=f"http://127.0.0.1:{a.port}/interactions")
    asked = a.standin.send_command("delete", user="alice")
    asked.wait_answered()
    a.standin.press(asked.original, "delete-yes", user="alice").wait_final()
    wait_for(lambda: sandbox not in os.listdir(snapshots))
    ok(sandbox not in folders(b), "what is deleted leaves no snapshot")


def test_away(b, before):
    """Who has not been there since their host was lost, until it expires."""
    ok(os.path.exists(manifest(before)), "whom nobody asks for is kept")
    sql(f"UPDATE sandboxes SET expires_at = 1 WHERE moved_from = '{before}'")
    b.kill("il-worker")
    wait_for(lambda: before not in os.listdir(snapshots))
    ok(True, "and goes with its sandbox")


with Cluster() as cluster, Standin(rate_limit=1000) as standin, \
        tempfile.TemporaryDirectory(prefix="inline-snapshots-") as snapshots:
    address = cluster.database("inline")
    with Node("ash", standin, address) as a, \
            Node("birch", standin, address) as b:
        test_home(a, b)
        test_editor(a, b)
        test_name(a)
        ids = test_lost(a, b)
        test_away(b, ids["gus"])
        test_back(a, b, ids["steve"])
        test_delete(a, b)
        test_paused(a, b)
        for node in (a, b):
            node.stop()
            ok(not node.left_over(), f"{node.name}: nothing is left",
               node.left_over())
print(f"1..{count}")
sys.exit(failed != 0)
