#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Modules that are imported before the runs of an api cell."""

from apidriver import ApiCell
from driver import N
from tap import run, test

LIST = "import sys; print(*sorted(sys.modules))"


def preloaded(names):
    return ApiCell(options=["--env", "IL_CELL_PRELOAD=" + names])


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
def they_leave_half_of_the_memory():
    with ApiCell(options=["--env", "IL_CELL_PRELOAD=no_such_module,json,csv",
                          "--env", "IL_CELL_PRELOAD_MEMORY=%d" % 2 ** 30]
                 ) as cell:
        assert cell.ready[1]["IMPORTS"] == 6, cell.ready
    with ApiCell(options=["--env", "IL_CELL_PRELOAD=json,csv", "--env",
                          "IL_CELL_PRELOAD_MEMORY=4096"]) as cell:
        assert cell.ready[1]["IMPORTS"] == 0, cell.ready
        assert cell.ready[1]["TEXT"] == "json: no memory, csv: no memory"


@test
def what_is_not_there_is_told_and_does_no_harm():
    with preloaded("no_such_module,json") as cell:
        assert cell.ready[1]["ISOLATION"] == N.ISOLATION_RUN, cell.ready
        assert cell.ready[1]["TEXT"] == "no_such_module: ModuleNotFoundError"
        told = cell.eval(["-c", "import sys; print('json' in sys.modules)"])
        assert told.output == b"True\n", told


run()
