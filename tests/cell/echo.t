#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""ECHO shows the last bare expression as the REPL does."""

from driver import Cell
from tap import run, test

CASES = [
    ("2 + 2", b"4\n"),
    ("'text'", b"'text'\n"),
    ("'''one\ntwo'''", b"'one\\ntwo'\n"),
    ("None", b""),
    ("print(1)", b"1\n"),
    ("x = 5", b""),
    ("x = 5\nx", b"5\n"),
    ("1; 2; 3", b"3\n"),
    ("1\n2\nx = 3", b""),
    ("if True:\n    7", b""),
    ("def f(): 'doc'\nf.__doc__", b"'doc'\n"),
    ("'doc'\n__doc__", b"'doc'\n"),
    ("'only'", b"'only'\n"),
    ("__doc__", b""),
    ("ast = tree = compile = exec = last = run = code = 8\n"
     "ast + tree + compile + exec + last + run + code", b"56\n"),
    ("print(sorted(n for n in globals() if n[0] != '_'))\n1", b"[]\n1\n"),
    ("from __future__ import annotations\n"
     "exec('def f(x: nope): print(f.__annotations__)\\nf(1)')",
     b"{'x': 'nope'}\n"),
    ("import sys\nsys.displayhook = lambda v: print('shown', v)\n9",
     b"shown 9\n"),
    ("import builtins\n5\n_ = 1", b""),
    ("import atexit, builtins\n"
     "atexit.register(lambda: print(builtins._))\n6", b"6\n6\n"),
    ("(yes := 3)", b"3\n"),
    ("[i for i in range(3)]  # comment\n\n\n", b"[0, 1, 2]\n"),
    ("\ufeff1 + 1", b"2\n"),
    ("# -*- coding: latin-1 -*-\n1", b"1\n"),
    ("class Q:\n  def __repr__(self): return 'r\\u00e9'\nQ()",
     "r\u00e9\n".encode()),
    ("...", b"Ellipsis\n"),
    ("", b""),
    ("# nothing", b""),
    ("x = 1; x", b"1\n"),
    ("raise SystemExit(0) if 1 else 2\n3", b""),
]


@test
def the_last_expression_is_shown():
    for source, shown in CASES:
        told = lease.run(source, echo=1)
        assert (told.stdout, told.stderr, told.status) == (shown, b"", 0), (
            source, told)


@test
def without_echo_it_is_not():
    assert lease.run("2 + 2").stdout == b""


@test
def a_file_can_be_echoed_too():
    lease.ask("WRITE", path="e.py", content=b"40 + 2")
    assert lease.run(path="e.py", echo=1).stdout == b"42\n"


@test
def what_fails_in_it_shows_its_line():
    told = lease.run("x = 0\n\n1 / x", echo=1)
    assert told.status == 1 and b"line 3, in <module>\n    1 / x" in \
        told.stderr, told
    told = lease.run("class Q:\n  def __repr__(self): 1 / 0\nQ()", echo=1)
    assert b"line 2, in __repr__" in told.stderr, told
    assert b"/run/" not in told.stderr, told
    told = lease.run("x = 1\nx x", echo=1)
    assert b"line 2\n    x x" in told.stderr and b"^" in told.stderr, told
    assert b"Traceback" not in told.stderr, told


@test
def a_warning_of_the_compiler_comes_once():
    told = lease.run("x = 1\nx is 1", echo=1)
    assert told.stderr.count(b"SyntaxWarning") == 1, told
    told = lease.run("x = '\\d'\nx", echo=1)
    assert told.stderr.count(b"Warning") <= 1, told


with Cell() as the_cell:
    with the_cell.lease() as lease:
        run()
