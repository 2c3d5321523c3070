#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A program that looks as if it imports what IL_PRELOAD names runs where it is
imported, and others run elsewhere."""

from served import Served, wait_for
from tap import run, test

served = Served(IL_API_CELLS="3", IL_TUNE_API_WARM="1",
                IL_PRELOAD="colorsys").__enter__()
IS_THERE = "import sys\nprint('color' + 'sys' in sys.modules)"


def eval_output(code):
    return served.eval(input=code)["stdout"]


def execute_output(code):
    return served.execute(code)["stdout"]


def look(output):
    wait_for(lambda: output(IS_THERE + "  # import colorsys") == "True\n")
    assert output(IS_THERE) == "False\n"


@test
def eval_goes_where_its_imports_are():
    look(eval_output)


@test
def so_does_execute():
    look(execute_output)


try:
    run()
finally:
    served.close()
