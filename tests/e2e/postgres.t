#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The whole service on PostgreSQL: signed commands are answered, rows are where
they belong, and what breaks between the programs and the server is told, is
lost by nobody and runs once."""

import json
import os
import signal
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "store"))

from cluster import Cluster, skip_unless_installed  # noqa: E402
from relay import Relay  # noqa: E402
from service import Service, wait_for  # noqa: E402

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


def test_commands(service, cluster):
    run = service.discord.send_command("py", code="print(6 * 7)")
    answer = run.wait_final(match="42")
    ok("42" in str(answer), "a signed command is answered", answer)
    run = service.discord.send_command(
        "py", code="open('f.txt', 'w').write('kept')")
    run.wait_final()
    run = service.discord.send_command("py", code="print(open('f.txt').read())")
    ok("kept" in str(run.wait_final(match="kept")), "the sandbox is kept")
    # told first, noted then
    wait_for(lambda: cluster.sql("SELECT count(*) FROM jobs WHERE open",
                                 "inline") == "0")
    states = cluster.sql("SELECT state, count(*) FROM jobs GROUP BY state",
                         "inline")
    ok(states == "delivered|3", "its jobs are rows of PostgreSQL", states)
    left = cluster.sql("SELECT count(*) FROM jobs WHERE token <> '' OR "
                       "text <> '' OR body IS NOT NULL", "inline")
    ok(left == "0", "that keep nothing of what was said", left)
    held = cluster.sql("SELECT count(*) FROM pg_locks WHERE locktype = "
                       "'advisory' AND classid = 1768713070 AND granted",
                       "inline")
    ok(held == cluster.sql("SELECT count(*) FROM holders", "inline"),
       "each worker's session holds its number", held)


def test_ilctl(service):
    code, out, err = service.ilctl("doctor")
    lines = [line for line in out.splitlines() if "database:" in line]
    ok(len(lines) == 1 and "postgresql://" in lines[0] and "0 queued" in
       lines[0], "doctor reads it", out + err)
    ok("inline@" not in out + err, "and shows no user of the address", out)
    code, out, err = service.ilctl("jobs")
    ok(code == 0 and out.count("delivered") == 3, "jobs lists them", out + err)
    code, out, err = service.ilctl("sandboxes")
    ok(code == 0 and "active" in out, "sandboxes, too", out + err)


def test_operator(service, cluster):
    """What an operator sees and says: a run is seen, its user blocked."""
    run = service.discord.send_command(
        "py", user="mallory", code="import time; print('begun', flush=True); "
        "time.sleep(60)")
    run.wait_answered()
    wait_for(lambda: "begun" in run.refresh().original.text())
    user = cluster.sql("SELECT user_id FROM jobs WHERE state = 'started'",
                       "inline")
    code, out, err = service.ilctl("top", "--json")
    jobs = json.loads(out)["jobs"] if code == 0 else []
    ok([(job["user"], job["state"], job["worker"] in (0, 1)) for job in jobs]
       == [(user, "started", True)], "top shows it, and by which worker",
       out + err)
    code, out, err = service.ilctl("user", user, "block", "-c", "mines")
    ok(code == 0 and "cancelled job" in out, "block ends it", out + err)
    answer = str(run.wait_final(match="cancelled"))
    ok("cancelled" in answer, "its user is told", answer)
    answer = service.run("1", user="mallory")
    ok("does not let you" in answer and "mines" in answer, "and refused",
       answer)
    code, out, err = service.ilctl("user", user, "show")
    ok(code == 0 and "yes: mines" in out and "active" in out,
       "show says so, and what they have", out + err)
    code, out, err = service.ilctl("user", user, "unblock")
    ok(code == 0 and "served" in service.run("print('ser' + 'ved')",
                                             user="mallory"),
       "unblocked, they are served", out + err)
    code, out, err = service.ilctl("user", user, "limits", "timeout=0.5")
    answer = service.run("import time\ntime.sleep(30)", user="mallory")
    ok(code == 0 and "0.5" in answer, "a limit holds", [out, err, answer])
    wait_for(lambda: cluster.sql("SELECT count(*) FROM jobs WHERE open",
                                 "inline") == "0")
    code, out, err = service.ilctl("abuse", "-u", user, "-n", "1")
    ok(code == 0 and out.rstrip().endswith("time limit"), "abuse lists it",
       out + err)
    code, out, err = service.ilctl("service", "banner", "new disks")
    ok(code == 0 and "new disks" in service.run("1"), "a banner is shown",
       out + err)
    ok(service.ilctl("service", "banner")[0] == 0 and
       service.ilctl("expire")[0] == 0, "and taken away; expire, too")
    with urllib.request.urlopen(
            f"http://127.0.0.1:{service.port}/metrics", timeout=10) as reply:
        text = reply.read().decode()
    size = [line for line in text.splitlines()
            if line.startswith("inline_database_bytes")]
    ok(len(size) == 1 and float(size[0].split()[1]) > 1 << 20,
       "the database's size is measured", text[-2000:])


def cut(cluster, program):
    """End the sessions of a program, as a broken network does."""
    return int(cluster.sql(
        "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity "
        f"WHERE application_name = '{program}'", "inline"))


def test_cut(service, cluster):
    """Each program's connection goes; the next command is answered."""
    for program in ("il-fcgi", "il-worker"):
        ok(cut(cluster, program) > 0, f"{program}: its sessions are ended")
        run = service.discord.send_command("py", code="print('again')")
        ok("again" in str(run.wait_final(match="again")),
           f"{program}: the next command is answered")


def test_cut_in_run(service, cluster):
    """The worker's connection goes while the code runs."""
    run = service.discord.send_command(
        "py", code="import time; print('once'); time.sleep(2)")
    wait_for(lambda: cluster.sql("SELECT count(*) FROM jobs WHERE state = "
                                 "'started'", "inline") == "1")
    ok(cut(cluster, "il-worker") > 0, "ended while code runs")
    answer = str(run.wait_final(match="once"))
    ok("interrupt" not in answer, "its answer comes", answer)
    wait_for(lambda: cluster.sql("SELECT count(*) FROM jobs WHERE open",
                                 "inline") == "0")
    ok(cluster.sql("SELECT count(*) FROM jobs WHERE started_ms IS NOT NULL "
                   "AND outcome = ''", "inline") == "0", "and is noted")


def test_worker_killed(service, cluster):
    """kill -9 of all workers: told as interrupted, run once, at once."""
    run = service.discord.send_command(
        "py", code="import time; print('before', flush=True); time.sleep(60)")
    wait_for(lambda: cluster.sql("SELECT count(*) FROM jobs WHERE state = "
                                 "'started'", "inline") == "1")
    service.kill("il-worker")
    answer = str(run.wait_final(match="interrupted"))
    ok("interrupted" in answer, "killed during it: told", answer)
    wait_for(lambda: cluster.sql("SELECT count(*) FROM jobs WHERE open",
                                 "inline") == "0")
    run = service.discord.send_command("py", code="print('alive')")
    ok("alive" in str(run.wait_final(match="alive")), "and all goes on")


def test_server_restarts(service, cluster):
    """Away for some seconds: refused in words, then well again by itself."""
    cluster.stop(signal.SIGINT)
    run = service.discord.send_command("py", code="print(1)")
    answer = str(run.wait_final())
    ok("our" in answer.lower() or "fault" in answer.lower(),
       "away: it is told as our fault", answer)
    cluster.start()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        run = service.discord.send_command("py", code="print('back')")
        answer = str(run.wait_final())
        if "back" in answer:
            break
    ok("back" in answer, "back: it is answered", answer)
    code, out, err = service.ilctl("doctor")
    ok("not delivered" in out, "and the doctor finds it well", out + err)


def bound(name):
    """How a statement is named when it is executed, not when it is prepared."""
    return b"\0" + name.encode() + b"\0"


def test_unknown(service, cluster, relay):
    """The wire is cut after a word, before its answer: the server has done it,
    and nobody was told."""
    for word, what in ((b"COMMIT", "the commit of an interaction"),
                       (bound("job_claim"), "a claim"),
                       (bound("job_finish"), "a finish"),
                       (bound("job_delivered"), "a delivery")):
        before = int(cluster.sql("SELECT coalesce(max(id), 0) FROM jobs",
                                 "inline"))
        relay.cut_after(word)
        run = service.discord.send_command(
            "py", code="open('runs', 'a').write('x'); print('ran')")
        answer = str(run.wait_final(match="ran"))
        wait_for(lambda: relay.word is None)
        with open(service.log, errors="replace") as log:
            faults = [line for line in log if "outcome=database" in line]
        ok("ran" in answer and not faults, f"{what}: answered all the same",
           [answer, faults])
        wait_for(lambda: cluster.sql("SELECT count(*) FROM jobs WHERE open",
                                     "inline") == "0")
        rows = cluster.sql(f"SELECT state FROM jobs WHERE id > {before}",
                           "inline")
        ok(rows == "delivered", f"{what}: one job, delivered", rows)
    run = service.discord.send_command("py", code="print(open('runs').read())")
    answer = str(run.wait_final(match="x"))
    ok("xxxx" in answer and "xxxxx" not in answer, "each ran once", answer)
    # what is not known to have started is not run
    relay.cut_after(bound("job_start"))
    run = service.discord.send_command(
        "py", code="open('runs', 'a').write('y'); print('ran')")
    answer = str(run.wait_final(match="interrupted"))
    ok("interrupted" in answer, "a start: told as interrupted", answer)
    run = service.discord.send_command("py", code="print(open('runs').read())")
    answer = str(run.wait_final(match="x"))
    ok("y" not in answer.split("xxxx")[1][:5], "and not run", answer)
    ok(relay.cuts == 5, "the wire was cut each time", relay.cuts)


def test_replica(service, cluster):
    """A replica that is not there: the commit waits longer than the front can."""
    cluster.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    cluster.sql("SELECT pg_reload_conf()")
    wait_for(lambda: cluster.sql("SHOW synchronous_standby_names") == "nobody")
    run = service.discord.send_command(
        "py", user="rita", code="print('done ' + 'after all')")
    answer = str(run.wait_answered().answer)
    ok("may still be done" in answer,
       "a commit that still waits: nobody says that it failed", answer)
    cluster.sql("ALTER SYSTEM RESET synchronous_standby_names")
    cluster.sql("SELECT pg_reload_conf()")
    answer = run.wait_final(match="done after all").original.text()
    ok("done after all" in answer and "may still" not in answer,
       "and the answer comes in that message's place", answer)


def test_slow(service, cluster, relay):
    """Each answer of the server takes five seconds: a front waits for two, a
    worker for six."""
    run = service.discord.send_command(
        "py", user="alice", code="import time; open('held', 'a').write('h'); "
        "time.sleep(1); print('held')")
    wait_for(lambda: cluster.sql("SELECT count(*) FROM jobs WHERE state = "
                                 "'started'", "inline") == "1")
    relay.slow(5)
    late = service.discord.send_command(
        "py", user="bob", code="open('late', 'a').write('l'); print('late')")
    answer = str(run.wait_final(match="held"))
    ok("held" in answer, "slow: what runs is told meanwhile", answer)
    late.wait_answered()
    ok(late.state == "answered" and "our" in str(late.answer).lower(),
       "slow: a front refuses in time, in words", late)
    mine = f"FROM jobs WHERE interaction_id = {run.id}"
    wait_for(lambda: cluster.sql("SELECT state " + mine, "inline") !=
             "started")
    relay.slow(0)
    wait_for(lambda: cluster.sql("SELECT count(*) FROM jobs WHERE open",
                                 "inline") == "0")
    rows = cluster.sql("SELECT state, outcome " + mine, "inline")
    ok(rows == "delivered|exit 0", "slow: its end is noted later", rows)
    again = service.discord.send_command(
        "py", user="alice", code="print(open('held').read() + 'eld')")
    answer = str(again.wait_final(match="eld"))
    ok("heldh" not in answer and "held" in answer and "hheld" not in answer,
       "slow: it ran once", answer)
    again = service.discord.send_command(
        "py", user="bob", code="import os; print('files', os.listdir('.'))")
    answer = str(again.wait_final(match="files"))
    ok("'late'" not in answer, "slow: what was refused has not run", answer)
    ok(run.refresh().original.text().count("held") == 1 and
       late.refresh().edits == 0, "slow: one report each",
       [run.original.text(), late])


with Cluster() as cluster, \
        tempfile.TemporaryDirectory(prefix="inline-pg-") as wire:
    cluster.database("inline")
    os.chmod(wire, 0o755)
    relay = Relay(wire, cluster.folder)
    address = f"postgresql://inline@/inline?host={wire}"
    with open(os.path.join(wire, "address"), "w") as file:
        file.write(address + "\n")
    # Not all programs may read it, and not all need it.
    with Service(IL_DATABASE_FILE=file.name, IL_WORKERS="2") as service:
        test_commands(service, cluster)
        test_ilctl(service)
        test_operator(service, cluster)
        test_cut(service, cluster)
        test_cut_in_run(service, cluster)
        test_unknown(service, cluster, relay)
        test_replica(service, cluster)
        test_slow(service, cluster, relay)
        test_worker_killed(service, cluster)
        test_server_restarts(service, cluster)
        ok(not os.path.exists(os.path.join(
            service.settings["IL_STATE_DIR"], "inline.db")),
           "no file of SQLite is made")
        service.stop()
        ok(not service.left_over(), "nothing is left", service.left_over())
    relay.close()
print(f"1..{count}")
sys.exit(failed != 0)
