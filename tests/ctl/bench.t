#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`make bench` measures every row, takes a wrong answer for an error, and
leaves nothing.  No figure is a pass condition."""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
BENCH = os.path.join(ROOT, "tests", "bench", "bench.py")
LOAD = os.path.join(BUILD, "tests", "bench_load")
WHATS = (
    "POST /eval, p50", "POST /eval, p95", "POST /eval, 1 in flight",
    "POST /eval, 32 in flight", "32 in flight, beside 4",
    "POST /eval, CPU of one answer", "POST /v1/execute, last line, CPU",
    "POST /eval, 1 MB printed, p50", "POST /v1/execute, 1 MB printed, p50",
    "POST /eval, 10 MB in and out, p50", "GET /v1/files/ID, 10 MB, p50",
    "/il py, warm, p50", "/il py, warm, p95", "/il py, no cell there, p50",
    "/il py, no cell there, none spare, p50",
    "signed PING/s, il-fcgi alone on a core", "CPU time of one check",
    "20 commands at once, acknowledged",
    "/il py, two loops beside it, p95", "POST /eval, two loops beside it, p95",
    "4 people, a command a minute each, p95",
    "first /il py after an hour, p50", "idle system, no cells",
    "warm cell (user), beyond the interpreter",
    "POST /eval, loops ended beside it, longest",
    "at rest with two warm cells (api)", "start-up to the first answer",
    "numpy, pandas, a groupby, p50", "Store:")
count = failed = 0


def ok(good, name, note=""):
    global count, failed
    count += 1
    failed += not good
    print("%sok %d - %s" % ("" if good else "not ", count, name))
    if not good:
        print("# " + str(note).replace("\n", "\n# "))
    sys.stdout.flush()


def containers():
    """Of services in our folder: their sockets are mounted from there."""
    ids = subprocess.run(["docker", "ps", "-aq"], capture_output=True,
                         text=True, check=True).stdout.split()
    text = subprocess.run(["docker", "inspect", *ids], capture_output=True,
                          text=True).stdout if ids else ""
    return [one["Name"] for one in json.loads(text or "[]")
            if folder in json.dumps(one["Mounts"])]


def processes():
    """That have our folder in their environment."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % name, "rb") as file:
                ours = b"TMPDIR=" + folder.encode() in file.read()
            with open("/proc/%s/cmdline" % name) as file:
                line = file.read().replace("\0", " ")
        except OSError:
            continue
        if ours:
            found.append("%s: %s" % (name, line))
    return found


def start(**more):
    return subprocess.Popen(
        [sys.executable, BENCH], stdin=subprocess.DEVNULL, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "TMPDIR": folder, "BENCH_QUICK": "1", **more})


def every_row():
    with start() as bench:
        printed = bench.stdout.read()
    ok(bench.returncode == 0 and "FAILED" not in printed,
       "every row is measured without an error", printed)
    missing = [what for what in WHATS if not re.search(
        "^" + re.escape(what) + r" +\S", printed, re.MULTILINE)]
    ok(not missing, "every row of the table is printed", missing)


def wrong_answer():
    texts = {"argv": "/bin/echo\n1\n", "right": "1\n", "wrong": "2\n"}
    for name, text in texts.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    for name, status in (("right", 0), ("wrong", 1)):
        done = subprocess.run(
            [LOAD, "alternate", "2", "1", "0", "spawn:%s/argv:%s/%s" % (
                folder, folder, name)], capture_output=True, text=True)
        ok(done.returncode == status, "a %s answer: status %d" % (
            name, status), done)
    for name in texts:
        os.unlink(os.path.join(folder, name))


def interrupted():
    with start(ROWS="py") as bench:
        for line in bench.stdout:
            if line.startswith("---"):
                break
        # its service is being started now
        select.select([], [], [], 0.5)
        bench.send_signal(signal.SIGINT)
        bench.stdout.read()
    ok(bench.returncode != 0, "Ctrl-C ends it")
    ok(not processes(), "Ctrl-C leaves no process", processes())
    ok(not containers(), "Ctrl-C leaves no container", containers())
    ok(not os.listdir(folder), "Ctrl-C leaves no file", os.listdir(folder))


folder = tempfile.mkdtemp(prefix="inline-benchtest-")
try:
    every_row()
    ok(not processes(), "it leaves no process", processes())
    ok(not containers(), "it leaves no container", containers())
    ok(not os.listdir(folder), "it leaves no file", os.listdir(folder))
    wrong_answer()
    interrupted()
finally:
    shutil.rmtree(folder, ignore_errors=True)
print("1..%d" % count)
sys.exit(failed > 0)
