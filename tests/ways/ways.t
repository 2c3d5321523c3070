#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The files on three ways through the code, as ways.txt lists them: whose
functions run for a warm `/il py`, for `POST /eval`, for `ilctl backup`.

The programs are built with -finstrument-functions.  A file counts if it runs in
each of some rounds, so that what happens by the clock is left out.  sandbox/base
is the vocabulary of all files, and is not counted.  With FILL=1 the list is
written anew; its lines "read" (nginx, the inside of a cell) and "often" (what
may fall between two rounds) are kept by hand.
"""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LIST = os.path.join(HERE, "ways.txt")
ROUNDS = 9
O = os.path.join(ROOT, "build/ways")
traces = O + "/traces"


def build():
    """The programs, with the tracer in each of them."""
    shutil.rmtree(traces, ignore_errors=True)
    os.makedirs(traces)
    os.chmod(traces, 0o1777)    # for the users of the programs
    subprocess.run(["gcc", "-D_GNU_SOURCE", f'-DTRACES="{traces}"', "-fPIE",
                    "-O1", "-c", "-o", O + "/trace.o", HERE + "/trace.c"],
                   check=True)
    subprocess.run(
        ["make", "-s", "-j2", "build", "O=build/ways",
         "CFLAGS=-g -O1 -finstrument-functions",
         f"LDFLAGS={O}/trace.o"], cwd=ROOT, check=True,
        stdout=subprocess.DEVNULL)


build()
os.environ["BUILD"] = O
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from service import Service  # noqa: E402
from tap import run, test  # noqa: E402


def sizes():
    return {name: os.path.getsize(os.path.join(traces, name))
            for name in os.listdir(traces)}


def functions(before):
    """{program: the places that have run since}."""
    found = {}
    for name, size in sizes().items():
        with open(os.path.join(traces, name), "rb") as file:
            file.seek(before.get(name, 0))
            data = file.read((size - before.get(name, 0)) // 8 * 8)
        found.setdefault(name.split(".")[0], set()).update(
            place for place, in struct.iter_unpack("<Q", data))
    return found


def sources(found):
    """The files of these functions; a header counts as its .c file."""
    files = set()
    for program, places in found.items():
        path = os.path.join(O, "bin", program)
        if not places or not os.path.exists(path):
            continue
        said = subprocess.run(
            ["addr2line", "-e", path], check=True, capture_output=True,
            input="".join(f"{place:#x}\n" for place in places), text=True)
        for line in said.stdout.splitlines():
            match = re.search(r"/((?:fcgi|sandbox)/[^:]*)\.[ch]:", line)
            if match and not match[1].startswith("sandbox/base/"):
                files.add(match[1])
    return files


def followed(action):
    """The files that run each time that this is done."""
    rounds = []
    for number in range(ROUNDS):
        # What follows an answer, or comes by the clock, is not in each round.
        time.sleep(0.5 + 0.3 * number)
        before = sizes()
        action()
        rounds.append(sources(functions(before)))
    return set.intersection(*rounds)


def listed():
    """{way: {file: "traced", "read" or "often"}}"""
    ways, way = {}, None
    with open(LIST) as file:
        for line in file:
            if line.startswith("way "):
                way = ways.setdefault(line[4:].strip(), {})
            elif line.strip() and not line.startswith("#"):
                how, path = line.split()
                way[path] = how
    return ways


def compare(name, action):
    found = followed(action)
    way = listed().get(name, {})
    if os.environ.get("FILL"):
        made[name] = found | {p for p, how in way.items() if how != "traced"}
        return
    found -= {path for path, how in way.items() if how == "often"}
    want = {path for path, how in way.items() if how == "traced"}
    assert found == want, (
        f"new on this way: {sorted(found - want)}; "
        f"no longer: {sorted(want - found)}; FILL=1 writes {LIST}")


made = {}
service = Service(IL_TUNE_API_WARM="2", IL_TUNE_SPARE_CELLS="0")


@test
def il_py_in_a_sandbox_that_is_warm():
    assert "1" in service.run("print(1)")
    compare("/il py", lambda: service.run("print(1)"))


def eval_one():
    request = urllib.request.Request(
        f"http://127.0.0.1:{service.port}/eval",
        json.dumps({"input": "print(1)"}).encode(),
        {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert json.load(answer)["stdout"] == "1\n"


@test
def post_eval():
    eval_one()
    compare("POST /eval", eval_one)


@test
def ilctl_backup():
    def backup():
        with tempfile.TemporaryDirectory() as folder:
            code, said, errors = service.ilctl("backup", folder + "/new")
            assert code == 0, (said, errors)

    compare("ilctl backup", backup)


def write_list():
    head = []
    with open(LIST) as file:
        for line in file:
            if line.startswith("way "):
                break
            head.append(line)
    old = listed()
    with open(LIST, "w") as file:
        file.writelines(head)
        for name, files in made.items():
            file.write(f"way {name}\n")
            for path in sorted(files):
                file.write(f"{old.get(name, {}).get(path, 'traced')} {path}\n")


try:
    with service:
        service.create()
        run()
finally:
    if made:
        write_list()
    shutil.rmtree(traces)
