#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""await at top level, %time, %timeit, %pip and !command in a person's run: only
where the source is no Python without them, and with the lines of the source."""

import re

from apidriver import ApiCell
from driver import Cell
from tap import run, test

CLOCK = (rb"CPU times: user [\d.e+]+ \w+, sys: [\d.e+]+ \w+,"
         rb" total: [\d.e+]+ \w+\nWall time: [\d.e+]+ \w+\n")
LOOPS = rb"\d+ loops?, best of \d: [\d.e+]+ [nmu]?sec per loop\n"


def show(source, **fields):
    return lease.run(source, echo=1, name="main.py", wall_ms=60000, **fields)


def says(source, pattern, status=0):
    told = show(source, merge=1)
    assert re.fullmatch(pattern, told.output, re.S), (source, told)
    assert told.status == status, (source, told)


def refuses(source, *parts):
    """A syntax error, shown as Python shows it."""
    told = show(source)
    assert told.status == 1 and b"Traceback" not in told.stderr, told
    for part in parts:
        assert part.encode() in told.stderr, (part, told)
    assert told.stderr.count(b"SyntaxError: ") == 1, told


@test
def await_at_top_level():
    says("import asyncio\nx = await asyncio.sleep(0, 5)\nx + 1", rb"6\n")
    says("import asyncio\nawait asyncio.sleep(0, 7)", rb"7\n")
    says("import asyncio\n"
         "async def f(x):\n  await asyncio.sleep(0)\n  return x\n"
         "task = asyncio.create_task(f(1))\n"
         "print(await task, [await f(i) for i in range(3)])\n"
         "async def g():\n  yield 4\n"
         "async for x in g(): print(x)\n"
         "print(__name__, sorted(n for n in globals() if n[0] != '_'))",
         rb"1 \[0, 1, 2\]\n4\n__main__ \['asyncio', 'f', 'g', 'task', 'x'\]\n")
    says("import sys, asyncio\nawait asyncio.sleep(0)\nsys.exit(3)", rb"", 3)


@test
def a_file_may_await_too():
    lease.ask("WRITE", path="a.py", content=(
        b"import asyncio\nprint(await asyncio.sleep(0, 8))"))
    assert lease.run(path="a.py").stdout == b"8\n"
    lease.ask("REMOVE", path="a.py")


@test
def a_traceback_begins_in_the_source():
    told = show("async def f():\n    1 / 0\n\nawait f()")
    assert told.status == 1 and told.stderr.startswith(
        b"Traceback (most recent call last):\n"
        b'  File "/code/main.py", line 4, in <module>\n    await f()\n'), told
    assert b'  File "/code/main.py", line 2, in f\n    1 / 0\n' in \
        told.stderr, told
    assert told.stderr.count(b"File") == 2, told
    told = show("x = 0\n\n%time 1 / x")
    assert b'line 3, in <module>\n    %time 1 / x\n' in told.stderr, told
    assert told.stderr.count(b"File") == 1, told
    told = show("x = 0\n\n%timeit 1 / x")
    assert b'line 3, in <module>\n    %timeit 1 / x\n' in told.stderr, told
    assert b"/run/" not in told.stderr, told
    told = show("%%time\nx = 0\n1 / x")
    assert b'line 3, in <module>\n    1 / x\n' in told.stderr, told


@test
def time():
    says("%time 2 + 2", rb"4\n" + CLOCK)
    says("%time\t2 + 2", rb"4\n" + CLOCK)
    says("%time x = 5\nx", CLOCK + rb"5\n")
    says("for i in range(2):\n  %time i + 1; i\nprint(i)",
         CLOCK + CLOCK + rb"1\n")
    says("def f():\n  x = 3\n  %time y = x + 1\n  return y\nf()",
         CLOCK + rb"4\n")
    says("\n%%time\nx = 3\nx * 2", rb"6\n" + CLOCK)
    says("import asyncio\n%time await asyncio.sleep(0, 2)", rb"2\n" + CLOCK)


@test
def timeit():
    says("x = 1\n%timeit x + 1", LOOPS)
    says("%timeit -n 3 -r2 pass", rb"3 loops, best of 2: [\d.]+ [nu]sec per "
         rb"loop\n")
    says("def f(x):\n  %timeit -n1 -r1 x + 1\nf(1)",
         rb"1 loop, best of 1: [\d.e+]+ [nmu]?sec per loop\n")
    says("%%timeit -n2 -r1 x = 4\ny = x\n\ny += 1",
         rb"2 loops, best of 1: [\d.e+]+ [nmu]?sec per loop\n")


@test
def packages_are_installed_by_a_command():
    sentence = (rb"Packages are installed by a command of the chat: "
                rb"/il pip packages:%s\n")
    for source, names in (
            ("%pip install requests", rb"requests"),
            ("!pip install -q 'requests>=2' numpy  # please",
             rb"requests>=2 numpy"),
            ("!pip3 install \\\n   a \\\n   b\n", rb"a b"),
            ("!python -m pip install -U a && echo b", rb"a"),
            ("!{sys.executable} -m pip install a", rb"a"),
            ("%pip install -r requirements.txt", rb"NAME")):
        says(source + "\n1", sentence % names + rb"1\n")
    lease.ask("WRITE", path=".site-packages/there-1.5.dist-info/METADATA",
              content=b"Metadata-Version: 2.1\nName: there\nVersion: 1.5\n")
    says("!pip install there", rb"Installed already: there 1\.5\n")
    says("!pip install there>=2", sentence % rb"there>=2")
    lease.ask("REMOVE", path=".site-packages", recursive=1)


@test
def commands():
    says("print(1)\n!echo two; exit 3\n!pwd\nif 1:\n  !echo \\\n   four\nelse:\n"
         "  !echo five\n6", rb"1\ntwo\n/workspace\nfour\n6\n")


@test
def what_is_so_already_is_passed_over():
    says("%matplotlib inline\n%load_ext autoreload\n%autoreload 2\n1", rb"1\n")


@test
def what_is_python_stays_python():
    says("a, time = 7, 4\na %time", rb"3\n")
    says("a, time = 7, 4\n(a\n%time)", rb"3\n")
    says("'''\n%time 1\n!ls\n'''", rb"'\\n%time 1\\n!ls\\n'\n")
    says("x = '''\n%time 1\n'''\n%time x", rb"'\\n%time 1\\n'\n" + CLOCK)
    says("a = 4\nb = (a\n%3)\n!echo one\nb", rb"one\n1\n")
    says("def f(x):\n    return x\nf(1)\n# %time\n", rb"1\n")


@test
def what_is_neither_fails_as_ever():
    for source, line, error in (
            ("x = = 2", "x = = 2", "invalid syntax"),
            ("return 5", "return 5", "'return' outside function"),
            ("x = [\n%time 3\n]", "%time 3", ""),
            ("x = 1\n%time 3 +", "3 +", ""),
            ("!echo 1\nx = = 2", "x = = 2", "line 2"),
            ("%time", "%time", "a statement is missing"),
            ("%nothing 3", "%nothing 3", "of the magics, only"),
            ("%%bash\nls", "%%bash", "only %%time and %%timeit"),
            ("%%time", "%%time", "nothing follows"),
            ("%timeit -n x", "%timeit -n x", "followed by a number"),
            ("%timeit await f()", "await", "'await' outside function"),
            ("%%timeit\nx = 1\n!ls\n", "!ls", "line 3"),
            ("!true\nfoo(\n!ls\n)", "!ls", "line 3"),
            ("x = '''\n!ls", "x = '''", "")):
        refuses(source, line, error)
    for source, line in ("x\n  y", 2), ("!true\nif 1:\n!ls", 3):
        told = show(source)
        assert told.status == 1 and b"IndentationError" in told.stderr, told
        assert b"line %d\n" % line in told.stderr, told


@test
def many_of_them_are_bounded():
    refuses("%foo\n" * 1000, "SyntaxError")
    says("!true\n" * 100 + "1", rb"1\n")
    refuses("!true\n" * 1000, "line 101", "more than 100 lines")
    says("%matplotlib inline\n" * 90 + "1", rb"1\n")


@test
def names_are_the_programs_own():
    says("display = time = timeit = 1\n%time print(display)\n"
         "sorted(n for n in globals() if n[0] != '_')",
         rb"1\n" + CLOCK + rb"\['display', 'time', 'timeit'\]\n")


@test
def a_module_of_the_workspace_is_none_of_ours():
    lease.ask("WRITE", path="resource.py", content=b"print(0)")
    says("%time 1", rb"1\n" + CLOCK)
    lease.ask("REMOVE", path="resource.py")


@test
def other_encodings():
    says(b"# -*- coding: latin-1 -*-\nx = '\xe9'\n%time print(len(x))",
         rb"1\n" + CLOCK)
    says(b"\xef\xbb\xbf%time 3", rb"3\n" + CLOCK)
    says("x = 1\r\n%time x\r\nx\r\n", CLOCK + rb"1\n")


@test
def an_apis_run_has_none_of_it():
    with ApiCell() as api:
        for source in "await f()", "%time 1", "!ls":
            told = api.eval(["-c", source])
            assert b"SyntaxError" in told.output, (source, told)


with Cell() as cell:
    with cell.lease() as lease:
        run()
