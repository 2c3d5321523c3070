#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Modules that are imported before the runs of an api cell."""

import os
import subprocess
import tempfile

from apidriver import ApiCell
from driver import DOCKER, IMAGE, N
from tap import Skip, run, test

LIST = "import sys; print(*sorted(sys.modules))"
SCIENTIFIC = IMAGE + "-scientific"
# What a program finds before its first figure, wherever pyplot comes from.
STATE = """
import gc, os, threading, warnings
import matplotlib, matplotlib.pyplot as plt
def is_open(fd):
    try:
        return os.fstat(fd)
    except OSError:
        return False
settings = dict(dict.items(matplotlib.rcParams))
print(type(settings.pop("backend")), sorted(map(str, settings.items())))
print(plt.get_fignums(), plt.isinteractive(), threading.active_count())
print(*filter(is_open, range(3, 64)), *sorted(os.environ))
print(warnings.filters, gc.isenabled(), gc.get_threshold())
"""
# With a word on it: a font is read.
SAVE = """
import io, zlib, matplotlib.pyplot as plt
plt.plot([1, 3, 2]); plt.title("Quick brown fox")
file = io.BytesIO(); plt.savefig(file, format="png")
print(zlib.crc32(file.getvalue()), plt.get_fignums())
"""
SPOIL = """
import matplotlib, matplotlib.pyplot as plt
from matplotlib.figure import Figure
plt.rcParams["lines.linewidth"] = 20; plt.plot([1, 2]); plt.xkcd()
print(plt.get_fignums()); Figure.savefig = print
matplotlib.use("svg"); plt.figure()
"""


def preloaded(names, **more):
    return ApiCell(options=["--env", "IL_CELL_PRELOAD=" + names], **more)


def need_matplotlib():
    if subprocess.run([DOCKER, "image", "inspect", SCIENTIFIC],
                      capture_output=True).returncode:
        raise Skip("no image %s" % SCIENTIFIC)


@test
def runs_find_them_and_what_they_import_and_nothing_else():
    with ApiCell() as cell:
        bare = cell.eval(["-c", LIST]).output
        wanted = cell.eval(["-c", "import decimal, json.tool\n" + LIST]).output
    with preloaded("decimal,json.tool") as cell:
        assert "TEXT" not in cell.ready[1], cell.ready
        for _ in range(2):
            found = cell.eval(["-c", LIST]).output
            assert found == wanted != bare, (
                set(found.split()) ^ set(wanted.split()))


@test
def what_one_run_does_to_them_no_other_sees():
    with preloaded("json") as cell:
        told = cell.eval(["-c", "import json; json.leak = 1; json.loads = 2"])
        assert told.status == 0, told
        told = cell.eval(["-c", "import json\n"
                          "print(hasattr(json, 'leak'), json.loads('[1]'))"])
        assert told.output == b"False [1]\n", told


@test
def they_share_classes_with_what_a_run_imports():
    with preloaded("multiprocessing.sharedctypes") as cell:
        told = cell.eval(["-c", "import ctypes\n"
                          "from multiprocessing.sharedctypes import RawValue\n"
                          "print(type(RawValue('i')) is ctypes.c_int)"])
        assert told.output == b"True\n", told


@test
def the_environment_of_their_import_is_gone():
    with preloaded("json") as cell:
        told = cell.run("import os; print('OMP_NUM_THREADS' in os.environ)",
                        env=[])
        assert told.stdout == b"False\n", told


@test
def random_numbers_are_those_of_one_run_alone():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        with open(os.path.join(folder, "keeps_one.py"), "w") as file:
            file.write("import random\nrng = random.Random()\n")
        with ApiCell(options=["--volume", folder + ":/modules:ro", "--env",
                              "PYTHONPATH=/modules", "--env",
                              "IL_CELL_PRELOAD=keeps_one"]) as cell:
            assert cell.ready[1]["IMPORTS"] == 1, cell.ready
            told = {cell.eval(["-c", "import keeps_one as k, random\n"
                               "print(k.rng.random(), random.random())"]
                              ).output for _ in range(3)}
            numbers = {number for line in told for number in line.split()}
            assert len(numbers) == 6, told


@test
def they_leave_half_of_the_memory():
    with ApiCell(options=["--env", "IL_CELL_PRELOAD=no_such_module,json,csv",
                          "--env", "IL_CELL_PRELOAD_MEMORY=%d" % 2 ** 30]
                 ) as cell:
        assert cell.ready[1]["IMPORTS"] == 6, cell.ready
    with ApiCell(options=["--env", "IL_CELL_PRELOAD=json,csv", "--env",
                          "IL_CELL_PRELOAD_MEMORY=4096"]) as cell:
        assert cell.ready[1]["IMPORTS"] == 0, cell.ready
        assert cell.ready[1]["TROUBLE"] == "json: no memory, csv: no memory"


@test
def what_is_not_there_is_told_and_does_no_harm():
    with preloaded("no_such_module,json") as cell:
        assert cell.ready[1]["ISOLATION"] == N.ISOLATION_RUN, cell.ready
        assert cell.ready[1]["TROUBLE"] == "no_such_module: ModuleNotFoundError"
        told = cell.eval(["-c", "import sys; print('json' in sys.modules)"])
        assert told.output == b"True\n", told


@test
def of_the_picture_that_is_drawn_ahead_a_run_sees_the_modules_alone():
    need_matplotlib()
    with ApiCell(image=SCIENTIFIC) as cell:
        bare = cell.eval(["-c", STATE])
        picture = cell.eval(["-c", SAVE])
    assert bare.status == picture.status == 0, (bare, picture)
    with preloaded("matplotlib.pyplot", image=SCIENTIFIC) as cell:
        assert "TEXT" not in cell.ready[1], cell.ready
        assert "matplotlib.backends.backend_agg" in cell.eval(
            ["-c", LIST]).output.decode().split()
        assert cell.eval(["-c", STATE]).output == bare.output, bare
        assert cell.eval(["-c", SAVE]).output == picture.output, picture


@test
def figures_and_settings_of_one_run_no_other_sees():
    need_matplotlib()
    with preloaded("matplotlib.pyplot", image=SCIENTIFIC) as cell:
        before = [cell.eval(["-c", code]).output for code in (STATE, SAVE)]
        told = cell.eval(["-c", SPOIL])
        assert told.output == b"[1]\n", told
        after = [cell.eval(["-c", code]).output for code in (STATE, SAVE)]
        assert before == after, (before, after)


run()
