#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A run is what Python alone is: programs.py as `docker run IMAGE python3 …`
runs them, and in cells, in every way there is to run code. Both streams and the
status are compared, byte by byte."""

import json
import re
import subprocess
import sys

from apidriver import EVAL_ENV, EXECUTE_ENV, ApiCell
from driver import DOCKER, IMAGE, Cell, N
from programs import PROGRAMS
from tap import run, test

INPUT = b"typed\n"
USER_ENV = ["HOME=/workspace", "PATH=/usr/local/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE=1", "LANG=C.UTF-8",
            "PYTHONNOUSERSITE=1", "PYTHONUNBUFFERED=1"]
# How Python alone is called, where, with which environment.
# No image has the locale of /eval, and a cell has started with C.UTF-8.
EVAL_ENV = ["LANG=C.UTF-8"] + [word for word in EVAL_ENV
                               if not word.startswith("LANG=")]
WAYS = {"person": (["/code/main.py"], "/workspace", USER_ENV),
        "program": (["/workspace/__main__.py"], "/workspace", EXECUTE_ENV),
        "script": (["main.py"], "/home", EVAL_ENV),
        "command": (["-c", None], "/home", EVAL_ENV)}
ALONE = """
import json, subprocess, sys, os
ways, programs, data = json.load(sys.stdin)
told = {}
for way, (words, cwd, env) in ways.items():
    env = dict(word.split("=", 1) for word in env)
    for name, source in programs.items():
        for word in words:
            if word is not None and word[0] != "-":
                open(os.path.join(cwd, word), "w").write(source)
        done = subprocess.run([sys.executable] + [source if w is None else w
                                             for w in words],
                              cwd=cwd, env=env, input=data.encode(),
                              capture_output=True)
        told[way + " " + name] = [done.returncode, done.stdout.decode(
            "latin-1"), done.stderr.decode("latin-1")]
json.dump(told, sys.stdout)
"""
# What differs from one process to the next; and what sandbox/cell/DECISIONS.md
# says is not the same: PID 1 is started with -s; from 3.14 on a crash shows C's
# stack; the folder of a person's inline source is not for imports, and what
# their last expression shows may be a picture.
STEADY = ((r"0x[0-9a-f]{6,}", "ADDRESS"), (r"\bin \d\.\d{3}s", "in TIME"),
          (r"no_user_site=\d", "no_user_site"),
          (r"(?s)\nCurrent thread's C stack trace.*", ""),
          (r"\['/code', ", "['', "), (r"<display.Finder object at ADDRESS>, ", ""),
          (r"<(built-in )?function displayhook( at ADDRESS)?>", "displayhook"))
# Python flushes a program's own sys.stdout after a file, not after -c.
DIFFERENT = {"command a stream of its own"}


def steady(told):
    for pattern, instead in STEADY:
        told = [re.sub(pattern, instead, str(one)) for one in told]
    return told


def alone(image):
    done = subprocess.run(
        [DOCKER, "run", "-i", "--rm", "--network", "none", "--ulimit",
         "core=0", *(word for folder in ("/code", "/workspace", "/home")
                     for word in ("--tmpfs", folder + ":uid=65532")),
         "--user", "65532:65532", "--entrypoint", "python3", image, "-c",
         ALONE], input=json.dumps([WAYS, PROGRAMS, INPUT.decode()]).encode(),
        capture_output=True)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def status_of(told):
    return -told.signal if told.reason == N.REASON_SIGNAL else told.status


def in_cells(image):
    """{way: function of a source}: what came back."""
    personal, api = Cell(image=image), ApiCell(image=image)

    def person(source):
        with personal.lease() as lease:
            told = lease.run(source, stdin=INPUT, name="main.py")
        assert personal.idle()
        return told

    def program(source):
        return api.run(source, echo=0, stdin=INPUT)

    def script(source):
        return api.eval(["main.py"], merge=0, stdin=INPUT,
                        inputs=[("main.py", source.encode())])

    def command(source):
        return api.eval(["-c", source], merge=0, stdin=INPUT)

    return {"person": person, "program": program, "script": script,
            "command": command}, (personal, api)


def compare(image):
    want = alone(image)
    ways, cells = in_cells(image)
    wrong = []
    try:
        for way, ask in ways.items():
            for name, source in PROGRAMS.items():
                told = ask(source)
                got = [status_of(told), told.stdout.decode("latin-1"),
                       told.stderr.decode("latin-1")]
                one = way + " " + name
                if one not in DIFFERENT and steady(got) != steady(want[one]):
                    wrong.append(one)
                    print("#", image, one, file=sys.stderr)
                    print("# alone", *want[one], sep="\n# ", file=sys.stderr)
                    print("# here ", *got, sep="\n# ", file=sys.stderr)
    finally:
        for cell in cells:
            cell.close()
    assert not wrong, (len(wrong), wrong)


@test
def each_program_is_the_same_on_every_version():
    compare(IMAGE)
    for version in "3.11", "3.13", "3.14":
        image = re.sub(r":3\.\d+", ":" + version, IMAGE)
        if image == IMAGE:
            continue
        if subprocess.run([DOCKER, "image", "inspect", image],
                          capture_output=True).returncode:
            print("# no image %s" % image, file=sys.stderr)
        else:
            compare(image)


run()
