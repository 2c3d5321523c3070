#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A run is a Python process like any other: each program runs in the cell and
under the same interpreter started afresh inside it; both must say the same."""

import re
import time

from driver import N, Cell
from tap import run, test

# Compared: standard output, standard error, exit status or signal.
PROGRAMS = {
    "nothing": "",
    "text": "print('a', 1, sep='-')\nimport sys\nprint('b', file=sys.stderr)",
    "unicode": "print('h\\u00e9 \\u4e16 \\U0001f600')",
    "surrogate escape": "print('\\udc80')",
    "lone surrogate": "print('\\ud800')",
    "exception": "def f():\n    return 1 / 0\nf()",
    "chained": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n"
               "    raise KeyError('k') from e",
    "in the context of": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    [][1]",
    "exception with notes": "e = ValueError(1)\n"
                            "getattr(e, 'add_note', print)('note')\nraise e",
    "group": "try: ExceptionGroup\nexcept NameError: raise\n"
             "raise ExceptionGroup('g', [ValueError(1), KeyError(2)])",
    "syntax error": "x = 1\ny = = 2\n",
    "indentation": "if 1:\nx",
    "other encoding": "# -*- coding: latin-1 -*-\nprint(len('\u00e9'))",
    "deep brackets": "(" * 100000,
    "deep operators": "x = " + "-" * 3000 + "1",
    "exit none": "exit()",
    "exit 3": "import sys\nsys.exit(3)",
    "exit 256": "import sys\nsys.exit(256)",
    "exit -1": "import sys\nsys.exit(-1)",
    "exit huge": "import sys\nsys.exit(1 << 70)",
    "exit true": "import sys\nsys.exit(True)",
    "exit text": "import sys\nsys.exit('so it goes')",
    "exit tuple": "raise SystemExit(1, 2)",
    "raise system exit": "raise SystemExit",
    "interrupted": "raise KeyboardInterrupt",
    "sigint": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
              "import time; time.sleep(9)",
    "sigterm": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
    "abort": "import os\nprint('x')\nos.abort()",
    "os._exit": "import os\nprint('kept')\nos._exit(255)",
    "segfault": "import ctypes\nctypes.string_at(0)",
    "atexit": "import atexit\natexit.register(print, 'one')\n"
              "atexit.register(print, 'two')\nprint('end')",
    "atexit fails": "import atexit\n@atexit.register\ndef f(): 1 / 0\n"
                    "atexit.register(print, 'first')",
    "atexit exits": "import atexit\n@atexit.register\n"
                    "def f(): raise SystemExit(7)",
    "hook": "import sys\nsys.excepthook = lambda *a: print('hook', a[0],"
            " a[2].tb_lineno)\n1 / 0",
    "hook fails": "import sys\ndef hook(*a): raise KeyError(1)\n"
                  "sys.excepthook = hook\n1 / 0",
    "hook exits": "import sys\ndef hook(*a): sys.exit(9)\n"
                  "sys.excepthook = hook\n1 / 0",
    "del at the end": "class A:\n  def __del__(self): print('gone', name)\n"
                      "name = 'x'\na = A()\nb = [a]\nb.append(b)\n1 / 0",
    "del after atexit": "class A:\n  def __del__(self): print('gone')\na = A()\n"
                        "import atexit\natexit.register(lambda: print(a and 1))",
    "weakref finalizer": "import weakref\nclass A: pass\na = A()\n"
                         "weakref.finalize(a, print, 'final')",
    "closed stdout": "import sys\nsys.stdout.close()",
    "thread": "import threading, time\ndef f():\n  time.sleep(.2)\n"
              "  print('thread')\nthreading.Thread(target=f).start()\nprint('main')",
    "daemon": "import threading, time\ndef f():\n  while True: time.sleep(.01)\n"
              "threading.Thread(target=f, daemon=True).start()\nprint('main')",
    "daemon and failure": "import threading, time\ndef f(): time.sleep(9)\n"
                          "threading.Thread(target=f, daemon=True).start()\n"
                          "class A: pass\n1 / 0",
    "thread fails": "import threading\ndef f():\n  1 / 0\n"
                    "t = threading.Thread(target=f, name='T'); t.start(); t.join()",
    "thread exits": "import threading, sys\n"
                    "t = threading.Thread(target=sys.exit, args=(5,))\n"
                    "t.start(); t.join(); print(threading.main_thread()"
                    " is threading.current_thread())",
    "unraisable": "class A:\n  def __del__(self): 1 / 0\nA()\nprint('on')",
    "warning": "import warnings\nwarnings.warn('careful')\n"
               "def old(): warnings.warn('old', DeprecationWarning, 2)\nold()",
    "compiler's warning": "x = 1\nif x is 1: print('one')",
    "generator left open": "def g():\n  try:\n    yield\n  finally: print('f')\n"
                           "i = g(); next(i)",
    "recursion": "def f(): f()\ntry: f()\nexcept RecursionError: print('deep')",
    "memory error": "x = bytearray(1 << 60)",
    "input": "print(input())",
    "imports": "import asyncio, ctypes, json, select, socket, resource, ast\n"
               "import threading, gc, atexit, subprocess, sqlite3, random\n"
               "print(sqlite3.connect(':memory:').execute('select 1')"
               ".fetchall())",
    "async": "import asyncio\nasync def f(): await asyncio.sleep(0); return 5\n"
             "print(asyncio.run(f()))",
    "subprocess": "import subprocess, sys\nprint(subprocess.run([sys.executable,"
                  " '-c', 'print(6*7)'], stdout=-1).stdout)",
    "fork": "import os\nif os.fork() == 0:\n  print('child'); raise SystemExit(4)\n"
            "print(os.wait()[1])",
    "fork fails": "import os\nif os.fork() == 0:\n  1 / 0\nprint(os.wait()[1])",
    "pool": "import multiprocessing\ndef square(x): return x * x\n"
            "if __name__ == '__main__':\n"
            "  with multiprocessing.get_context('fork').Pool(2) as pool:\n"
            "    print(pool.map(square, range(5)))",
    "pool of fresh ones": "import multiprocessing\ndef square(x): return x * x\n"
            "if __name__ == '__main__':\n"
            "  with multiprocessing.get_context('spawn').Pool(2) as pool:\n"
            "    print(pool.map(square, range(5)))",
    "pickle": "import pickle, dataclasses\n@dataclasses.dataclass\nclass P:\n"
              "  x: int = 1\nprint(pickle.loads(pickle.dumps(P(2))))",
    "names": "print(sorted(globals()), __name__, __doc__, __package__, __spec__)",
    "docstring": "'doc'\nprint(__doc__)",
    "annotations": "x: int = 1\nprint(__annotations__)",
    "site": "print(exit, quit, help is not None, copyright is not None)",
    "argv": "import sys\nprint(sys.argv, sys.path[0] == '/workspace', __file__)",
    "flags": "import sys\nprint(sys.flags, sys.warnoptions, sys._xoptions)",
    "streams": "import sys\nfor s in sys.stdin, sys.stdout, sys.stderr:\n"
               "  print(s, s.encoding, s.errors, s.newlines, s.line_buffering,"
               " s.write_through, s.isatty(), s.buffer.__class__, s.mode,"
               " s.name, s.seekable(), s.fileno())\n"
               "print(sys.__stdout__ is sys.stdout)",
    "signals": "import signal\nprint([(n, signal.getsignal(n)) for n in"
               " range(1, 32)], signal.pthread_sigmask(0, []))",
    "modules": "import sys\nprint(sorted(set(sys.modules) - {'sitecustomize',"
               " 'apport_python_hook'}))",
    "descriptors": "import os\nprint(os.listdir('/proc/self/fd'))",
    "gc": "import gc\nprint(gc.isenabled(), gc.get_threshold(), gc.callbacks)",
    "limits": "import resource as r\nprint([r.getrlimit(n) for n in"
              " (r.RLIMIT_NOFILE, r.RLIMIT_CORE, r.RLIMIT_STACK)])",
    "module's own source": "import inspect\ndef f():\n  return 1\n"
                           "print(inspect.getsource(f))\n"
                           "class C:\n  x = 1\nprint(inspect.getsource(C))",
    "future": "from __future__ import annotations\ndef f(x: nope): pass\n"
              "print(f.__annotations__)",
    "not the cell's future": "def f(x: int): pass\nprint(f.__annotations__)",
    "traceback by hand": "import traceback\ntry: 1 / 0\n"
                         "except Exception: traceback.print_exc()",
    "random differs not": "import random\nrandom.seed(1)\nprint(random.random())",
    "raw output": "import sys, os\nsys.stdout.buffer.write(b'\\xff\\n')\n"
                  "os.write(1, b'raw\\n')\nprint('x', end='')",
    "long lines": "print('x' * 300000)",
}

FRESH = """
import os, subprocess, sys
done = subprocess.run([sys.executable, '/workspace/main.py'], input=b'',
                      stdout=-1, stderr=-1)
os.write(1, done.stdout)
os.write(2, done.stderr)
if done.returncode < 0:
    import signal
    signal.signal(-done.returncode, signal.SIG_DFL)
    os.kill(os.getpid(), -done.returncode)
os._exit(done.returncode)
"""


def plain(text):
    """Without what differs from process to process."""
    return re.sub(rb"0x[0-9a-f]+", b"0x", text)


def outcome(result):
    return (plain(result.stdout), plain(result.stderr), result.reason,
            result.status, result.signal)


def compare(source, inline):
    source = source.encode(
        "latin-1" if "latin-1" in source else "utf-8", "surrogatepass")
    lease.ask("WRITE", path="main.py", content=source)
    fresh = outcome(lease.run(FRESH))
    if inline:
        lease.run("import os; os.system; os.unlink('/workspace/main.py')")
        here = outcome(lease.run(source))
        fresh = tuple(part.replace(b"/workspace/main.py", b"/code/main.py")
                      if isinstance(part, bytes) else part for part in fresh)
    else:
        here = outcome(lease.run(path="main.py"))
    assert here == fresh, "\n%r\n%r" % (here, fresh)
    if inline:
        here = outcome(ahead.run_ahead(source))
        assert here == fresh, "ahead:\n%r\n%r" % (here, fresh)


def add(name, source):
    def as_a_file():
        compare(source, False)

    def inline():
        compare(source, True)

    as_a_file.__name__ = "as a file: " + name
    test(as_a_file)
    if name not in ("argv", "pool of fresh ones"):
        inline.__name__ = "inline: " + name
        test(inline)


for pair in PROGRAMS.items():
    add(*pair)


@test
def inline_source_starts_in_the_current_directory():
    lease.ask("WRITE", path="d/mod.py", content=b"x = 'found'")
    told = lease.run("import mod, os, sys; print(mod.x, os.getcwd(),"
                     "sys.path[0] == '', sys.argv)", cwd="d", args=["-x", "y"],
                     name="name.py")
    assert told.stdout == (b"found /workspace/d True ['/code/name.py', '-x', "
                           b"'y']\n"), told


@test
def a_file_starts_where_it_is_told_and_imports_from_its_folder():
    lease.ask("WRITE", path="d/main.py", content=b"import mod, os, sys\n"
              b"print(mod.x, os.getcwd(), sys.argv)")
    told = lease.run(path="d/main.py", args=["a b", b"\xff"])
    assert told.stdout == (b"found /workspace ['/workspace/d/main.py', 'a b',"
                           b" '\\udcff']\n"), told


@test
def the_name_of_the_source_cannot_lead_elsewhere():
    for name, shown in ((b"../../etc/x", b"x"), (b"..", b"main.py"),
                        (b"", b"main.py"), (b"a b.py", b"a b.py"),
                        (b"x" * 300, b"main.py")):
        told = lease.run("1 / 0", name=name)
        assert b'File "/code/%s", line 1' % shown in told.stderr, told
        assert b"    1 / 0\n" in told.stderr


@test
def standard_input_comes_whole():
    for size in (0, 1, 65536, 65537, 3000000):
        told = lease.run("import sys; print(len(sys.stdin.buffer.read()))",
                         stdin=b"x" * size)
        assert told.stdout == b"%d\n" % size, told
    told = lease.run("print(input()); print(input())", stdin="a\nb")
    assert told.stdout == b"a\nb\n", told
    assert lease.run("print(1)", stdin=b"x" * 1000000).status == 0


@test
def megabytes_of_source():
    source = ("x = 1  " + "#" * 100 + "\n") * 10000 + "print(x)"
    assert lease.run(source, echo=1).stdout == b"1\n"
    assert lease.run(b"#" * (17 << 20)).code == N.ERROR_TOO_LARGE
    assert lease.run("print(1)").stdout == b"1\n"


@test
def source_that_is_no_text():
    for source in (b"print(1)\n\0", b"\0", b"# coding: nonsense\nprint(1)"):
        told = lease.run(source)
        assert told.status == 1 and b"Error" in told.stderr, told
        assert told.stdout == b"" and b"/run/" not in told.stderr, told


@test
def source_that_is_not_utf_8():
    told = lease.run(b"print('\xff')")
    assert told.status == 1 and b"SyntaxError" in told.stderr, told
    told = lease.run("print('\udcff\ud800')".encode("utf-8", "surrogatepass"))
    assert told.status == 1 and b"SyntaxError" in told.stderr, told


@test
def files_that_are_left_open_are_whole():
    for source in ("", "def f(): return a", "class A:\n  def __del__(self):"
                   " print(end='')\na = A()\ndef f(): return a",
                   "import atexit\natexit.register(lambda: f1)\n"):
        told = lease.run(source + "\nf1 = open('/tmp/open', 'w')\n"
                         "f1.write('kept')\nf2 = open('/tmp/raw', 'wb')\n"
                         "f2.write(b'too')")
        assert told.status == 0 and told.stderr == b"", told
        told = lease.run("import os\nfor n in 'open', 'raw':\n"
                         "  print(open('/tmp/' + n).read())\n"
                         "  os.unlink('/tmp/' + n)")
        assert told.stdout == b"kept\ntoo\n", (source, told)


@test
def the_streams_are_in_their_true_order():
    told = lease.run("import sys, os\nfor i in range(300):\n"
                     "  print('o', end='')\n  print('e', end='',"
                     " file=sys.stderr)\n  os.write(1, b'r')\n"
                     "  os.system('') if 0 else None", merge=1)
    assert told.output == b"oer" * 300, told


@test
def output_comes_while_the_run_goes_on():
    lease.start_run("import sys, time\nprint('now', end='')\n"
                    "time.sleep(4)", wall_ms=60000)
    began = time.monotonic()
    while lease.frame()[0] != "OUTPUT":
        pass
    assert time.monotonic() - began < 3.5
    assert lease.finish().status == 0


@test
def packages_come_before_those_of_the_image_and_after_the_library():
    with Cell() as cell, cell.lease() as lease:
        for name in ("json.py", "pip/__init__.py", "mine.py"):
            lease.ask("WRITE", path=".site-packages/" + name,
                      content=b"x = 'mine'")
        lease.ask("WRITE", path=".site-packages/a.pth",
                  content=b"/workspace/more\nimport sys; sys.seen = 1\n")
        lease.ask("WRITE", path="more/other.py", content=b"x = 2")
        told = lease.run("""
import json, pip, mine, other, sys, subprocess
print(hasattr(json, 'x'), pip.x, mine.x, other.x, sys.seen)
print(subprocess.check_output([sys.executable, '-c', 'import mine; print(mine.x)']))
""")
        assert told.stdout == b"False mine mine 2 1\nb'mine\\n'\n", told


@test
def no_end_touches_memory_that_was_freed():
    ends = (("raise KeyboardInterrupt", None, 2), ("x =", 1, None),
            ("1 / 0", 1, None), ("exit(3)", 3, None),
            (PROGRAMS["daemon"], 0, None),
            (PROGRAMS["daemon and failure"], 1, None),
            (PROGRAMS["del after atexit"], 0, None))
    with Cell(options=["--env", "PYTHONMALLOC=debug"]) as cell:
        for source, status, number in ends:
            told = cell.run_ahead(source, wall_ms=60000)
            assert (told.status, told.signal) == (status, number), (
                source, told)
        with cell.lease() as lease:
            for source, status, number in ends:
                told = lease.run(source, wall_ms=60000)
                assert (told.status, told.signal) == (status, number), (
                    source, told)


@test
def what_is_left_of_the_cell_in_a_run():
    source = """
import gc, sys, os, inspect
print(len(inspect.stack()))
cells = [m for m in gc.get_objects() if type(m) is type(sys)
         and '/run/cell' in str(getattr(m, '__file__', ''))]
print(cells, [p for p in sys.path_importer_cache if 'run' in p])
print([m for m in sys.modules.values() if '/run/' in str(getattr(m, '__file__', ''))])
"""
    for told in (lease.run(source), ahead.run_ahead(source)):
        assert told.stdout == b"1\n[] []\n[]\n", told


with Cell(workspace_size="32m", pids=64) as the_cell, Cell() as ahead:
    with the_cell.lease() as lease:
        run()
