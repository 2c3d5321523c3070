#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A usual request is read and begun in C, any other one by the interpreter
(sandbox/cell/supervisor): both must give the same.  Each request is made twice, the
second time with its words, its file or a person's source in two packets, which
is all that is unusual."""

import re
import subprocess

from apidriver import EVAL_ENV, EXECUTE_ENV, ApiCell
from driver import DOCKER, F, IMAGE, Cell, N, pack
from tap import run, test

cell = ApiCell()
TIMES = ("WALL_US", "CPU_US", "MAX_RSS")
MAIN = "__main__.py"
DEFAULTS = {"plain": 1, "folder": "/home", "wall_ms": 20000,
            "output_max": 1000000, "limit_memory": 700 << 20,
            "limit_files": 32, "limit_processes": 15, "limit_cpu": 600,
            "collect_files": 100, "collect_bytes": 1 << 20,
            "collect_total": 1 << 20}


def ask(args, pieces, stdin=b"", env=EVAL_ENV, **fields):
    """One request; pieces: packets that the words come in."""
    words = b"".join((a.encode("utf-8", "surrogateescape") if isinstance(a, str)
                      else a) + b"\0" for a in args)
    head = {**DEFAULTS, **fields}
    with cell.lease() as lease:
        lease.send("REQUEST", ("OP", N.OP_RUN), *(
            (name.upper(), value) for name, value in head.items()
            if value is not None), *(("ENV", entry) for entry in env))
        at = len(words) if pieces == 1 else 1
        for part in filter(None, (words[:at], words[at:])):
            lease.send_part("ARGS", part)
        lease.send_part("STDIN", stdin)
        lease.send("GO")
        told = lease.finish()
    told.idle = cell.said()
    return told


def ask_file(code, pieces, path="main.py", words=None, stdin=b"",
             env=EXECUTE_ENV, args=(), mode=None, mtime=None, always=None,
             sent_as=None, **fields):
    """A program in a file: `python words...`, or, without words, by its
    path."""
    code = code.encode() if isinstance(code, str) else code
    head = {**DEFAULTS, "folder": "/workspace", **fields}
    if words is None:
        head.update(plain=0, path=path)
    with cell.lease() as lease:
        lease.send("REQUEST", ("OP", N.OP_RUN), *(
            (field.upper(), value) for field, value in head.items()
            if value is not None), *(("ARG", word) for word in args),
            *(("ENV", entry) for entry in env))
        lease.send_part("ARGS", b"".join(
            word.encode() + b"\0" for word in words or ()))
        lease.send_part("STDIN", stdin)
        lease.send("INPUT", ("PATH", sent_as or path), *(
            (field, value) for field, value in (
                ("MODE", mode), ("MTIME", mtime), ("ALWAYS", always))
            if value is not None))
        at = len(code) if pieces == 1 else 1
        for part in filter(None, (code[:at], code[at:])):
            lease.send_part("CONTENT", part)
        lease.send("GO")
        told = lease.finish()
    told.idle = cell.said()
    told.stdout = re.sub(rb"0x[0-9a-f]+", b"(address)", told.stdout)
    return told


def ask_script(code, pieces, **fields):
    return ask_file(code, pieces, **{"words": ["main.py", "a", "-b"],
                                     **fields})


def ask_person(source, pieces, stdin=b"", **fields):
    """The same of a person's cell; the files of the run before stay."""
    source = source.encode() if isinstance(source, str) else source
    head = {"name": "main.py", "echo": 1, "wall_ms": 20000,
            "output_max": 1000000, "collect_files": 10,
            "collect_bytes": 1 << 20, "collect_total": 1 << 20, **fields}
    at = len(source) if pieces == 1 else 1
    with person.lease() as lease:
        lease.send("REQUEST", ("OP", N.OP_RUN), *(
            (name.upper(), value) for name, value in head.items()))
        for part in filter(None, (source[:at], source[at:])):
            lease.send_part("SOURCE", part)
        lease.send_part("STDIN", stdin)
        lease.send("GO")
        told = lease.finish()
    assert person.idle()
    told.idle = None
    told.stdout = re.sub(rb"0x[0-9a-f]+", b"(address)", told.stdout)
    return told


def essence(told):
    return {"out": told.stdout, "err": told.stderr, "idle": told.idle,
            "files": told.files, "left out": told.left_out,
            **{name: value for name, value in told.fields.items()
               if name not in TIMES}}


def differ(cases, ask=ask):
    """cases: {name: (args, fields)}.  What is not the same in both ways."""
    wrong = []
    for name, (args, fields) in cases.items():
        fast, other = (essence(ask(args, pieces, **fields))
                        for pieces in (1, 2))
        wrong += ["%s, %s: %r, by the interpreter %r" % (
            name, key, fast.get(key), other.get(key))
            for key in sorted({*fast, *other})
            if fast.get(key) != other.get(key)]
    assert not wrong, "\n".join(wrong)


STATE = r"""
import atexit, builtins, gc, os, resource as r, signal, sys, warnings
for s in sys.stdin, sys.stdout, sys.stderr:
    print(s, s.encoding, s.errors, s.newlines, s.line_buffering, s.seekable(),
          s.write_through, s.isatty(), s.buffer.__class__, s.mode, s.name,
          s.closed, s.fileno(), s.buffer.seekable())
print(sys.__stdin__ is sys.stdin, sys.__stdout__ is sys.stdout)
print([(n, r.getrlimit(getattr(r, n))) for n in dir(r) if n[:7] == 'RLIMIT_'])
print([signal.getsignal(n) for n in range(1, 32)], signal.pthread_sigmask(0, []))
print(os.getcwd(), os.getuid(), os.getgid(), os.getgroups(), os.umask(0),
      os.nice(0), os.getsid(0) == os.getpid() == os.getpgid(0))
print(sys.argv, sys.orig_argv[1:] if sys.version_info > (3, 10) else 0,
      sys.path, sys.flags, sys.warnoptions, sorted(sys.modules))
print(list(globals()), sorted(vars(builtins)), __name__, __loader__)
print(__spec__, globals().get('__file__'), globals().get('__cached__'))
print(os.environb, list(os.environ), warnings.filters)
print(sys.path_hooks, sorted(sys.path_importer_cache), sys.meta_path)
print(gc.isenabled(), gc.get_threshold(), gc.callbacks, sys.gettrace(),
      sys.getprofile(), sys.excepthook, sys.displayhook, sys.getrecursionlimit(),
      sys.getswitchinterval(), hasattr(sys, 'last_value'), sys.flags.hash_randomization)
def is_open(fd):
    try: return os.fstat(fd) is not None
    except OSError: return False
print([fd for fd in range(64) if is_open(fd)], os.get_blocking(0), os.get_blocking(1))
"""

PROGRAMS = {
    "everything that can be seen": STATE,
    "nothing": "",
    "text": "print('a', 1, sep='-')\nimport sys\nprint('b', file=sys.stderr)",
    "an error": "def f():\n    return 1 / 0\nf()",
    "a syntax error": "x = 1\ny = = 2\n",
    "another encoding": "# -*- coding: latin-1 -*-\nprint(len('\u00e9'))",
    "exit 3": "import sys\nsys.exit(3)",
    "exit text": "import sys\nsys.exit('so it goes')",
    "interrupted": "raise KeyboardInterrupt",
    "sigint": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)",
    "killed": "import os\nprint('x')\nos.kill(os.getpid(), 9)",
    "sigpipe": "import os, signal\nsignal.signal(13, signal.SIG_DFL)\n"
               "os.kill(os.getpid(), 13)",
    "os._exit": "import os\nos._exit(255)",
    "a survivor": "import os, time\nif os.fork() == 0: time.sleep(99)\nprint(1)",
    "a daemon": "import threading, time\nthreading.Thread(target=time.sleep,"
                " args=(99,), daemon=True).start()\nprint(1)",
    "a pipe's worth": "print('x' * 70000)",
    "much": "import os\nfor i in range(40): os.write(1, b'x' * 10000)",
    "standard input": "import sys\nd = sys.stdin.buffer.read()\n"
                      "print(len(d), sum(d))",
    "files": "import os\nos.makedirs('d')\nopen('d/x', 'w').write('1')\n"
             "open('y', 'w').write('2')",
    "a file that is too long": "open('y', 'wb').write(bytes(2 << 20))",
    "a folder only": "import os\nos.mkdir('empty')",
    "files in the other folder": "open('/workspace/x', 'w').write('1')",
    "exec": "exec('1/0')",
    "last words": "class A:\n    def __del__(self): print('gone')\na = A()",
    "later": "import atexit\natexit.register(print, 'later')",
    "a file that is open": "f = open('y', 'w')\nprint(f.write('1'))",
    "output that is kept": "import sys\nsys.stdout.reconfigure("
                           "write_through=False)\nprint(1)",
    "modules": "import json, socket, subprocess, random\nprint(1)",
    "an environment that changes": "import os, subprocess\n"
        "os.environ['NEW'] = '1'; os.environ['PATH'] += ':/x'\n"
        "del os.environ['LANG']; print(os.environb, subprocess.getoutput("
        "'env'))\nos.environ.clear(); os.environ['PATH'] = '/bin:/usr/bin'\n"
        "print(os.environb, os.getenvb(b'HOME'), subprocess.getoutput('env'))",
    "a child": "import subprocess, sys\nprint(subprocess.run([sys.executable,"
               " '-c', 'print(6*7)'], stdout=-1).stdout)",
}


# The cell's own object of the run, which no frame leads to: the collector knows
# it.  One that the interpreter has met was made there, with its folder.
RUN = ("import gc; gc.unfreeze()\n"
       "run, = [o for o in gc.get_objects() if len(type(o).__mro__) > 1 and "
       "type(o).__mro__[-2].__name__ == 'Run']\nprint(run.cwd is None)")


@test
def one_of_two_ways_is_the_usual_one():
    kind = RUN + "\nprint(type(run).__name__)"
    told = [ask(["-c", kind], pieces, stdin=b"x").stdout for pieces in (1, 2)]
    assert told == [b"True\nReady\n", b"False\nCommand\n"], told
    told = [ask_file(kind, pieces, stdin=b"x", path=path).stdout
            for path in (MAIN, "main.py") for pieces in (1, 2)]
    assert told == [b"True\nReady\n", b"False\nRun\n", b"True\nRun\n",
                    b"False\nRun\n"], told
    told = [ask_person(RUN, pieces, stdin=b"x").stdout for pieces in (1, 2)]
    assert told == [b"True\n", b"False\n"], told


@test
def a_persons_program_does_the_same():
    fresh = "import os, shutil\nfor n in os.listdir('.'):\n" \
            "    shutil.rmtree(n) if os.path.isdir(n) else os.unlink(n)\n"
    cases = {name: (fresh + code, {}) for name, code in PROGRAMS.items()
             if "/workspace" not in code}
    cases.update({
        "an echo": ("1 + 1", {}), "no echo": ("1 + 1", {"echo": 0}),
        "one stream": ("import sys\nprint(1)\nprint(2, file=sys.stderr)",
                       {"merge": 1}),
        "input": ("print(len(input()), input())",
                  {"stdin": b"x" * 20000 + b"\n2"}),
        "no files": ("open('z', 'w').write('1')", {"collect_files": 0}),
        "a name": ("1 / 0", {"name": "other.py"}),
        "a name that leads out": ("1 / 0", {"name": "../other.py"}),
        "too much": ("while True: print('x')", {"output_max": 3000}),
        "too long": ("while True: pass", {"wall_ms": 300}),
        "itself": ("print(open(__file__).read(), __import__('os').listdir("
                   "'/code'))", {}),
    })
    differ(cases, ask_person)


@test
def a_persons_locked_folder_and_what_lies_about_is_no_matter():
    for pieces in (1, 2):
        ask_person("import os; os.makedirs('/code/main.py/x');"
                   "os.chmod('/workspace', 0)", pieces)
        told = ask_person("print(open(__file__).read()); open('k', 'w')",
                          pieces)
        assert told.status == 0 and b"__file__" in told.stdout, told


@test
def every_program_does_the_same():
    differ({name: (["-c", code], {}) for name, code in PROGRAMS.items()})


@test
def every_program_does_the_same_with_one_stream_and_input():
    differ({name: (["-c", code], {"merge": 1, "stdin": b"ab\n" * 9000,
                                  "folder": "/workspace"})
            for name, code in PROGRAMS.items()})


@test
def programs_in_files_do_the_same():
    for way in (ask_file, ask_script):
        told = [way(RUN, pieces).stdout for pieces in (1, 2)]
        assert told == [b"True\n", b"False\n"], (way, told)
    cases = {name: (code or "#", {}) for name, code in PROGRAMS.items()}
    cases["input"] = ("print(len(input()), input())",
                      {"stdin": b"x" * 20000 + b"\n2"})
    cases["one stream"] = (PROGRAMS["text"], {"merge": 1})
    differ(cases, ask_script)
    differ(cases, ask_file)
    differ({name: (code, {"echo": 1, "path": "a b.py", "args": ("x", "")})
            for name, (code, _) in cases.items()}, ask_file)
    # for this one a process is ready
    differ({name: (code, {"path": MAIN, **fields})
            for name, (code, fields) in cases.items()}, ask_file)
    differ({name: (code, {"path": MAIN, "echo": 1, "name": "<stdin>"})
            for name, (code, _) in cases.items()}, ask_file)


NOTEBOOKS = {
    "pictures": "class P:\n    def _repr_png_(self): return b'png'\n"
                "display(P(), 5)\nP()",
    "no picture": "display('x', None)\n1 + 1",
    "an await": "import asyncio\nawait asyncio.sleep(0)\nprint(1)",
    "a command": "!echo 1\n%pip install a",
    "no Python": "x = = 1",
    "a folder of its own": "import os; print(os.environ['MPLCONFIGDIR'])",
}


@test
def programs_that_show_pictures_do_the_same():
    kind = RUN + "\nprint(type(run).__name__, run.display is None)"
    told = [ask_file(kind, pieces, path=path, display=1).stdout
            for path in (MAIN, "main.py") for pieces in (1, 2)]
    assert told == [b"True\nReady False\n", b"False\nRun False\n",
                    b"True\nRun False\n", b"False\nRun False\n"], told
    cases = {**{name: code or "#" for name, code in PROGRAMS.items()},
             **NOTEBOOKS}
    bare = ["PATH=/usr/local/bin:/usr/bin:/bin"]
    for fields in ({"path": MAIN}, {"path": MAIN, "echo": 1}, {},
                   {"folder": "/home"}, {"env": bare}):
        differ({name: (code, {"display": 1, **fields})
                for name, code in cases.items()}, ask_file)
    for display in 0, -1, 2, -1 << 63:
        differ({str(display): (NOTEBOOKS["pictures"], {
            "display": display, "echo": 1, "path": MAIN})}, ask_file)
    # `python ...` never does
    code = "print('display' in dir(__builtins__))"
    told = [ask(["-c", code], pieces, display=1).stdout for pieces in (1, 2)]
    told += [ask_script(code, pieces, display=1).stdout for pieces in (1, 2)]
    assert told == [b"False\n"] * 4, told


ITSELF = {
    "left": "print(__file__, open(__file__).read())",
    "seen": "import os\ns = os.stat(__file__)\nprint(oct(s.st_mode), s.st_size,"
            " s.st_nlink, s.st_uid, s.st_gid, s.st_mtime < 1e9 and s.st_mtime)",
    "longer": "open(__file__, 'a').write('#')",
    "the same again": "t = open(__file__).read()\nopen(__file__, 'w').write(t)",
    "gone": "import os\nos.unlink(__file__)",
    "gone, and another": "import os\nos.unlink(__file__)\nopen('new', 'w')",
    "another in its place": "import os\nopen('new', 'w').write('x')\n"
                            "os.rename('new', __file__)",
    "elsewhere": "import os\nos.rename(__file__, 'other.py')",
    "twice": "import os\nos.link(__file__, 'other.py')",
    "a link to it": "import os\nos.symlink(__file__, 'other.py')",
    "locked": "import os\nos.chmod(__file__, 0)",
    "in a locked folder": "import os\nopen('x', 'w')\nos.chmod('.', 0)",
    "alone in a locked folder": "import os\nos.chmod('.', 0)",
    "of another time": "import os\nos.utime(__file__, (5, 5))",
    "beside others": "open('new', 'w').write('1')\nopen('.dot', 'w')",
    "beside a folder": "import os\nos.mkdir('d')",
}


@test
def what_becomes_of_the_file_is_the_same():
    hows = (0, N.COLLECT_MTIME | N.COLLECT_NO_DOT, N.COLLECT_BYTES)
    for way in (ask_file, ask_script):
        for how in hows:
            differ({"%s, %s" % (name, how): (
                code, {"collect_how": how, "mtime": 0})
                for name, code in ITSELF.items()}, way)


@test
def what_a_request_says_of_its_file_is_the_same():
    seen, error = ITSELF["seen"], "def f(): 1 / 0\nf()"
    cases = {
        "mode": (seen, {"mode": 0o755}), "odd mode": (seen, {"mode": 0o7777}),
        "no mode": (seen, {"mode": 0}), "time": (seen, {"mtime": 1 << 30}),
        "far time": (seen, {"mtime": 1 << 60}),
        "before all time": (seen, {"mtime": -5}),
        "always": (seen, {"always": 1}),
        "a name for tracebacks": (error, {"name": "<stdin>"}),
        "an empty one": (error, {"name": ""}),
        "a long one": (error, {"name": "x" * 20000}),
        "a long name": (error, {"path": "x" * 255}),
        "a longer one": (error, {"path": "x" * 256}),
        "a name of bytes": (error, {"path": b"\xff.py"}),
        "hidden": (error, {"path": ".main.py"}),
        "elsewhere": (error, {"sent_as": "other.py"}),
        "below": (error, {"path": "d/main.py"}),
        "outside": (error, {"path": "../main.py"}),
        "much": ("#" * 32000 + "\n1 / 0", {}),
        "empty": ("", {}), "as long as may be": ("#" * 65500, {}),
        "another encoding": ("# coding: latin-1\nprint('\u00e9')", {}),
        "no text": (b"print('\xff')", {}), "a NUL": ("1\0", {}),
        "an archive": (b"#PK\5\6" + bytes(18), {}),
        "a cell's environment": (seen, {"env": ()}),
        "another folder": (ITSELF["left"], {"folder": "/home"}),
        "nothing wanted": ("open('x', 'w')", {"collect_files": 0}),
        "words": ("import sys; print(sys.argv, sys.path[0])",
                  {"args": ("\u00e4", "", "-c")}),
    }
    differ(cases, ask_file)
    differ({name: (code, {"path": MAIN, **fields})
            for name, (code, fields) in cases.items()}, ask_file)
    differ({name: (code, fields) for name, (code, fields) in cases.items()
            if not {"path", "args"} & {*fields}}, ask_script)
    for words in (["./main.py"], ["main.py"] * 9000, ["-", "main.py"],
                  ["-O", "main.py"], ["main.py", ""], ["other.py"], [""]):
        differ({repr(words)[:40]: (seen, {"words": words})}, ask_file)


@test
def words_are_the_same():
    code = "import sys; print(sys.argv, sys.orig_argv[1:] if " \
           "sys.version_info > (3, 10) else 0)"
    differ({repr(args)[:40]: (args, {}) for args in (
        ["-c", code, "a", "", "-c", "--", "\u00e4 \U0001f600"],
        ["-c", code, b"\xff\xfe"], ["-c", b"print('\xff')"], ["-c"],
        ["-c", ""], ["-c", "", ""], ["-c", "\n\n  print(1)"],
        ["-cprint(5)"], ["-C", "print(1)"], ["", ""], ["-O", "-c", code],
        ["-c", "#" * 32000 + "\nprint(1)"],
        ["-c", code, *["x"] * 12000])})


@test
def limits_are_the_same():
    show = "import resource as r\nprint([r.getrlimit(getattr(r, n)) for n in " \
           "dir(r) if n[:7] == 'RLIMIT_'])"
    cases = {}
    for name in ("limit_memory", "limit_files", "limit_cpu",
                 "limit_processes"):
        for value in (None, 0, -1, 1 << 40, (1 << 63) - 1, -1 << 63):
            cases["%s %s" % (name, value)] = (["-c", show], {name: value})
    cases["few files"] = (["-c", show], {"limit_files": 4})
    for name in ("wall_ms", "output_max"):
        for value in (None, 0, -1, 86400000, 86400001, (1 << 63) - 1):
            cases["%s %s" % (name, value)] = (["-c", "print(1)"],
                                              {name: value})
    for name in ("collect_files", "collect_bytes", "collect_total",
                 "collect_how", "collect_ms"):
        for value in (None, 0, 1, -1, (1 << 63) - 1):
            cases["%s %s" % (name, value)] = (
                ["-c", "open('a', 'w').write('x')"], {name: value})
    del cases["collect_ms 1"]       # who is quick enough?
    differ(cases)


@test
def ends_by_a_limit_are_the_same():
    differ({
        "time": (["-c", "print(1)\nwhile True: pass"], {"wall_ms": 1500}),
        "memory": (["-c", "x = bytearray(800 << 20)"], {}),
        "the cell's memory": (["-c", "x = []\nwhile True: x.append(bytearray("
                               "1 << 20))"], {"limit_memory": 0}),
        "output": (["-c", "while True: print('x' * 99)"],
                   {"output_max": 1000}),
        "output to the byte": (["-c", "print('x' * 999)"],
                               {"output_max": 1000}),
        "output, dropped": (["-c", "import sys\nfor i in range(9999): print("
                             "'x' * 99); print('y', file=sys.stderr)"],
                            {"output_max": 1000,
                             "output_mode": N.OUTPUT_DRAIN}),
        "no such mode": (["-c", "print('x' * 2000)"],
                         {"output_max": 1000, "output_mode": 7}),
        "cpu": (["-c", "while True: pass"], {"limit_cpu": 1}),
        "files": (["-c", "f = [open('/dev/null') for i in range(40)]"], {}),
        "processes": (["-c", "import os\ntry:\n  for i in range(40):\n"
                       "    if os.fork() == 0: __import__('time').sleep(9)\n"
                       "except OSError as e: print(i, e)"], {}),
        "room": (["-c", "open('x', 'wb').write(bytes(99 << 20))"], {}),
    })


@test
def environments_are_the_same():
    show = "import os, sys\nprint(os.environb, list(os.environ), sys.flags)\n" \
           "for s in sys.stdin, sys.stdout, sys.stderr: print(s.errors, " \
           "s.encoding)\nprint(os.popen('env').read())"
    path = "PATH=/usr/bin:/bin"
    differ({repr(env)[:60]: (["-c", show], {"env": env}) for env in (
        [path], [], ["A"], ["=1"], ["A=\0"], [path, b"B=\xff=2", "C="],
        [path, "A=1", "A=2"], [path, "PYTHONOPTIMIZE=2"],
        [path, "PYTHONIOENCODING=latin-1"], [path, "PYTHONIOENCODING="],
        [path, "PYTHONIOENCODING=utf8"], [path, "PYTHONPATH=/x"],
        [path, "LANG=C.UTF-8"], EXECUTE_ENV,
        [path, *("N%d=v" % n for n in range(3000))],
        ["LONG=" + "x" * 60000, path])})
    differ({repr(env)[-60:]: (show, {"env": env, "path": MAIN}) for env in (
        EXECUTE_ENV, EXECUTE_ENV[:-1], EXECUTE_ENV[::-1], EVAL_ENV,
        [*EXECUTE_ENV, "A=1"], [*EXECUTE_ENV[:-1], "OPENBLAS_NUM_THREADS=5"])},
        ask_file)


@test
def what_else_a_head_may_say_is_the_same():
    code = ["-c", "import os; print(os.getcwd())"]
    differ({repr(fields): (code, fields) for fields in (
        {"folder": None}, {"cwd": ""}, {"cwd": "none"}, {"cwd": ".."},
        {"name": "x"}, {"echo": 1}, {"plain": -1}, {"merge": -1},
        {"path": "x"}, {"index_url": "x"})})


@test
def standard_input_of_any_length_is_the_same():
    code = ["-c", "import sys, hashlib\n"
            "print(hashlib.md5(sys.stdin.buffer.read()).hexdigest())"]
    differ({str(size): (code, {"stdin": bytes(range(256)) * (size >> 8) +
                               b"\n" * (size & 255)})
            for size in (1, 4096, 32768, 32769, 65536, 65537, 1000000)})
    differ({"unread": (["-c", "print(1)"], {"stdin": b"x" * 300000})})


# ---- nothing of the cell's is in the way ----

@test
def no_descriptor_of_the_users_is_closed_at_the_end():
    told = ask(["-c", """
import threading, time, warnings
warnings.simplefilter('always')
files = [open('f%d' % i, 'w') for i in range(20)]
for file in files: file.write(file.name)
threading.Thread(target=time.sleep, args=(99,), daemon=True).start()
"""], 1)
    assert told.files == {b"f%d" % i: b"f%d" % i for i in range(20)}, told.files
    assert b"socket" not in told.stderr, told.stderr


@test
def streams_are_what_a_fresh_interpreter_has():
    code = "import sys\nfor s in sys.stdin, sys.stdout, sys.stderr:\n" \
           "    print(s.encoding, s.errors, s.seekable(), s.buffer.seekable())"
    for env in (EVAL_ENV, ["LANG=C.UTF-8", "PYTHONUNBUFFERED=1"]):
        done = subprocess.run(
            [DOCKER, "run", "--rm", "-i", "--network", "none", "--log-driver",
             "none", "--label", "inline.test=cell", "--entrypoint", "env",
             IMAGE, "-i", *env, "PATH=/usr/local/bin:/usr/bin:/bin", "sh", "-c",
             'true | python3 -c "$0" 2>&1 | cat', code],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
        for pieces in (1, 2):
            told = ask(["-c", code], pieces, env=env)
            assert told.stdout == done.stdout, (env, pieces, told.stdout,
                                                done.stdout)


@test
def a_traceback_shows_nothing_of_a_rehearsal():
    with cell.lease() as lease:
        told = lease.request(op="RUN", args=["s.py"], env=EVAL_ENV, **DEFAULTS,
                             inputs=[("s.py", b"exec('1/0')")])
    cell.said()
    assert b"ZeroDivisionError" in told.stderr, told
    assert b"print" not in told.stderr, told.stderr


@test
def no_signal_is_caught_by_the_init_of_a_jail():
    def status(pid, name):
        with open("/proc/%d/status" % pid) as file:
            return next(line.split()[1:] for line in file
                        if line.startswith(name + ":"))

    ask(["-c", ""], 1)
    depths = {pid: status(pid, "NSpid") for pid in cell.processes()}
    deepest = max(map(len, depths.values()))
    inits = [pid for pid, numbers in depths.items()
             if len(numbers) == deepest and numbers[-1] == "1"]
    assert len(inits) == 1, depths
    # It shares the memory of the supervisor.
    assert int(status(inits[0], "SigCgt")[0], 16) == 0
    told = ask(["-c", "import os, signal\nfor n in range(1, 65):\n"
                "    if n not in (32, 33): os.kill(1, n)\nprint(1)"], 1)
    assert (told.stdout, told.status) == (b"1\n", 0), told


@test
def a_packet_that_is_too_long_ends_the_lease():
    # The first 65536 bytes would be a whole head.
    with cell.lease() as lease:
        head = pack("REQUEST", ("OP", N.OP_RUN), *(
            (name.upper(), value) for name, value in DEFAULTS.items()),
            *(("ENV", entry) for entry in EVAL_ENV))
        head += pack("REQUEST", ("ENV", "X=" + "x" * (
            F["FRAME_MAX"] - len(head) - 7)))[1:]
        assert len(head) == F["FRAME_MAX"]
        try:
            lease.sock.send(head + pack("REQUEST", ("ENV", "B=2"))[1:])
            lease.send_part("ARGS", b"-c\0print(1)\0")
            lease.send("GO")
            told = lease.finish()
            assert False, told
        except (EOFError, OSError):
            pass
    cell.said()


person = Cell()
try:
    run()
finally:
    cell.close()
    person.close()
