#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the HTTP APIs ask of a cell: staged files, environment, limits, ways to
start Python, what comes back."""

import os
import subprocess

from apidriver import EVAL_ENV, EXECUTE_ENV, ApiCell
from driver import DOCKER, IMAGE, N
from tap import run, test

cell = ApiCell()


def out(told):
    return told.output.decode("utf-8", "backslashreplace")


# ---- python ARGS ----

# Each is run here and by a real interpreter, in the same image and the same
# environment; both must print and end alike.
FORMS = {
    "code": ["-c", "print(1)"],
    "code and arguments": ["-c", "import sys; print(sys.argv, sys.orig_argv[1:]"
                           " if sys.version_info > (3, 10) else 0)", "a", "-b", ""],
    "names": ["-c", "print(sorted(k for k in globals() if k != '__annotations__'),"
              " __name__, __spec__, __doc__, __package__, __loader__)"],
    "path": ["-c", "import sys; print(sys.path)"],
    "an error": ["-c", "def f():\n    1/0\nf()"],
    "an error in the first line": ["-c", "1/0"],
    "a syntax error": ["-c", "x = = 1"],
    "an error in several lines": ["-c", "x = 1\nraise ValueError('a\\nb') from "
                                  "KeyError(x)"],
    "a warning": ["-c", "import warnings; warnings.warn('x')"],
    "an exit": ["-c", "raise SystemExit(7)"],
    "an exit with words": ["-c", "import sys; sys.exit('bye')"],
    "a signal": ["-c", "import os; os.abort()"],
    "an interrupt": ["-c", "raise KeyboardInterrupt"],
    "nothing left": ["-c", "x = 5; print(x)"],
    "last words": ["-c", "class A:\n def __del__(self): print('gone')\na = A()"],
    "later": ["-c", "import atexit; atexit.register(print, 'later')"],
    "last words for a stream of one's own": [
        "-c", "import sys\nclass S:\n kept = []\n write = kept.append\n def "
        "flush(s):\n  sys.__stdout__.write(''.join(s.kept)); s.kept.clear()\n"
        "sys.stdout = S(); print('kept')"],
    "output that was kept": ["-c", "import sys\nsys.stdout.reconfigure("
                             "write_through=False)\nprint('kept', end='')\n"
                             "sys.stdout = sys.stderr"],
    "no standard output": ["-c", "import sys; print(1); del sys.stdout"],
    "no modules": ["-c", "import sys; sys.modules = None; print(1)"],
    "other modules": ["-c", "import sys, threading\nthreading._register_atexit("
                      "print, 'later')\nsys.modules = {}"],
    "later, alone": ["-c", "import atexit\nclass A:\n def __eq__(*_): return "
                     "True\natexit.unregister(A())\n"
                     "atexit.register(print, 'later')"],
    "later, an exit": ["-c", "import atexit, sys; atexit.register(sys.exit, 5)"],
    "standard output closed": ["-c", "print(1); __import__('sys').stdout.close()"],
    "a thread": ["-c", "import threading\ndef f(): print(2); 1/0\n"
                 "t = threading.Thread(target=f, name='t'); t.start(); t.join()"],
    "no code": ["-c", ""],
    "a cookie": ["-c", "# coding: latin-1\nprint('\u00e4')"],
    "the main module": ["-c", "import __main__, pickle\nclass A: pass\n"
                        "print(pickle.loads(pickle.dumps(A())).__class__,"
                        " hasattr(__main__, '__file__'))"],
    "streams": ["-c", "import sys\nfor f in sys.stdin, sys.stdout, sys.stderr: "
                "print(f.encoding, f.errors, f.name, f.mode)"],
    "a lone surrogate": ["-c", "print(chr(0xdc80))"],
    "standard input": ["-c", "import sys; print(sys.stdin.read())"],
    "flags": ["-c", "import sys; print(sys.flags.optimize, sys.flags.isolated)"],
    "options": ["-O", "-c", "import sys; print(sys.flags.optimize)"],
    "a module": ["-m", "this"],
    "a module that is not there": ["-m", "no_such_module"],
    "a version": ["-V"],
    "an unknown option": ["--none"],
    "nothing": [],
    "a script": ["s.py", "a", "b"],
    "a script in a folder": ["d/t.py"],
    "a script by a detour": ["./d/../s.py"],
    "a script with an error": ["e.py"],
    "a script with a syntax error": ["x.py"],
    "a script that is not there": ["none.py"],
    "a folder with a main": ["d"],
    "a folder without": ["n"],
    "standard input as the script": ["-"],
    "an archive": ["z.zip"],
    "an absolute script": ["/home/s.py"],
}
SCRIPT = b"""import sys, __main__
print(__name__, __file__, sys.argv, sys.path[0], __spec__, __loader__.__class__)
print(sorted(k for k in globals() if k != '__annotations__'))
print(open(__file__).read() == __loader__.get_source('__main__'))
"""
FILES = {
    "s.py": SCRIPT, "d/t.py": b"import m\nprint(m)\n" + SCRIPT,
    "d/m.py": b"x = 1\n", "d/__main__.py": b"print('main')\n",
    "e.py": b"def f(x):\n    return x[0]\nf([])\n", "x.py": b"if:\n",
    "n/a": b"",
}


def zipped():
    import io
    import zipfile
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("__main__.py", "print('zipped')")
    return data.getvalue()


FILES["z.zip"] = zipped()


def real(args, stdin):
    """The same with a container of its own and no cell."""
    code = ("import os, sys, subprocess\n"
            "for path, data in %r.items():\n"
            "    os.makedirs(os.path.dirname('/home/' + path), exist_ok=True)\n"
            "    open('/home/' + path, 'wb').write(data)\n"
            "done = subprocess.run([sys.executable] + %r, cwd='/home', env=%r,\n"
            "    input=%r, stdout=1, stderr=subprocess.STDOUT)\n"
            "print('STATUS', done.returncode)\n"
            % (FILES, args, dict(e.split("=", 1) for e in EVAL_ENV), stdin))
    done = subprocess.run(
        [DOCKER, "run", "--rm", "-i", "--network", "none", "--log-driver",
         "none", "--user", "65532", "--tmpfs", "/home:uid=65532", "--label",
         "inline.test=cell", "--entrypoint", "python3", IMAGE, "-"],
        input=code.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output, _, status = done.stdout.rpartition(b"STATUS ")
    return output, int(status)


@test
def every_way_to_start_python_looks_like_it():
    stdin = b"print('from stdin')\n"
    wrong = []
    for name, args in FORMS.items():
        want, status = real(args, stdin)
        # without files, code has the process that was got ready for it
        for files in [FILES] + [{}] * (args[:1] == ["-c"]):
            told = cell.eval(args, inputs=list(files.items()), stdin=stdin)
            got = told.status if told.reason == N.REASON_EXIT else -(
                told.signal or 0)
            if (told.output, got) != (want, status):
                wrong.append("%s, %d files: %r %r, really %r %r" % (
                    name, len(files), told.output, got, want, status))
    assert not wrong, "\n".join(wrong)


@test
def long_arguments_run():
    for size in (131071, 131072, 1 << 20):
        code = "#" * (size - 8) + "\nprint(1)"
        assert cell.eval(["-c", code]).output == b"1\n", size
    told = cell.eval(["-c", "import sys; print(len(sys.argv[1]))", "x" * 200000])
    assert told.output == b"200000\n", told
    told = cell.eval(["-O", "-c", "x" * 200000])
    assert (told.reason, told.code) == (
        N.REASON_ERROR, N.ERROR_TOO_LARGE), told


@test
def the_environment_is_the_requests():
    told = cell.eval(["-c", "import os; print(sorted(os.environb.items()))"],
                     env=["A=1", b"B=\xff=2", "C="])
    assert out(told) == ("[(b'A', b'1'), (b'B', b'\\xff=2'), (b'C', b'')]\n")
    told = cell.eval(["-m", "os"], env=["A=1"])
    assert told.status == 0, told
    told = cell.run("import os\nsorted(os.environ)")
    assert out(told) == repr(sorted(e.split("=")[0] for e in EXECUTE_ENV)) + "\n"
    for bad in ("A", "=1", "A=\0"):
        assert cell.eval(["-c", ""], env=[bad]).code == N.ERROR_REQUEST, bad


@test
def a_setting_that_a_fork_cannot_have_starts_python():
    told = cell.eval(["-c", "import sys; print(sys.flags.optimize)"],
                     env=EVAL_ENV + ["PYTHONOPTIMIZE=2"])
    assert told.output == b"2\n", told


# ---- limits ----

@test
def limits_are_those_of_the_request():
    told = cell.eval(["-c", """
import resource as r
print([r.getrlimit(x) for x in (r.RLIMIT_AS, r.RLIMIT_NOFILE, r.RLIMIT_CPU,
                                r.RLIMIT_CORE)])
"""])
    assert out(told) == "[(%d, %d), (32, 32), (600, 600), (0, 0)]\n" % (
        (700 << 20,) * 2), told
    told = cell.eval(["-c", "while True: pass"], limit_cpu=1)
    assert (told.reason, told.signal) == (N.REASON_SIGNAL, 9), told
    told = cell.eval(["-c", "x = bytearray(800 << 20)"])
    assert b"MemoryError" in told.output and told.status == 1, told
    told = cell.eval(["-c", "import resource; print(resource.getrlimit("
                      "resource.RLIMIT_NOFILE))"], limit_files=0)
    assert out(told) == "(1024, 1024)\n", told


@test
def output_ends_a_run_or_is_dropped():
    told = cell.eval(["-c", "while True: print('x' * 99)"], output_max=1000)
    assert told.reason == N.REASON_OUTPUT and len(told.output) == 1000, told
    told = cell.run("import sys\nfor i in range(99999):\n"
                    "  print('out' * 9); print('err', file=sys.stderr)\n"
                    "open('end', 'w').write('x')", output_max=1000)
    assert told.reason == N.REASON_EXIT and told.status == 0, told
    assert (len(told.stdout), len(told.stderr)) == (1000, 1000), told
    assert told.stdout == (b"out" * 9 + b"\n") * 35 + b"out" * 6 + b"ou", told
    assert told.files == {b"end": b"x"}, told
    assert told.idle == {}, told.idle


@test
def streams_are_apart_or_together():
    code = "import sys\nprint(1)\nprint(2, file=sys.stderr)\nprint(3)"
    told = cell.run(code)
    assert (told.stdout, told.stderr) == (b"1\n3\n", b"2\n"), told
    assert cell.run(code, merge=1).stdout == b"1\n2\n3\n"


# ---- /v1/execute ----

@test
def the_last_expression_is_echoed():
    told = cell.run("tree = ast = 5\n'hi'")
    assert told.stdout == b"'hi'\n", told
    assert cell.run("5", echo=0).stdout == b""
    told = cell.run("print(__name__, __file__, __import__('sys').argv)")
    assert out(told) == ("__main__ /workspace/__main__.py "
                         "['/workspace/__main__.py']\n"), told


@test
def a_traceback_names_what_the_request_names():
    told = cell.run("x = 1\n1/0")
    assert b'File "/workspace/__main__.py", line 2, in <module>\n    1/0' \
        in told.stderr, told
    told = cell.run("x = 1\n1/0", name="<stdin>")
    assert b'File "<stdin>", line 2, in <module>\n' in told.stderr, told
    assert told.status == 1 and b"cell" not in told.stderr, told


@test
def standard_input_is_the_requests_or_empty():
    assert cell.run("input()", stdin=b"a\nb").stdout == b"'a'\n"
    assert b"EOFError" in cell.run("input()").stderr


# ---- staged files ----

@test
def standard_input_may_be_longer_than_a_pipe():
    told = cell.eval(["-c", "import sys; print(len(sys.stdin.read()))"],
                     stdin=b"x" * 3000000)
    assert told.stdout == b"3000000\n", told


@test
def staged_files_are_as_the_request_has_them():
    told = cell.eval(["-c", """
import os
for top, folders, names in sorted(os.walk('.')):
    for name in sorted(names + folders):
        s = os.stat(os.path.join(top, name))
        print(top, repr(name), oct(s.st_mode), s.st_size,
              int(s.st_mtime) if s.st_mtime < 1e9 else 'now')
"""], inputs=[("a/b", b"xy", {"MODE": 0o777, "MTIME": 0}),
              ("./a//c", b"", {"MTIME": 7}), ("d", b"old"), ("d", b"newer"),
              (b"n\n\xff", b"x" * 100000), ("a/../d", b"")])
    assert told.code == N.ERROR_NOT_INSIDE, told
    told = cell.eval(["-c", """
import os
for top, folders, names in sorted(os.walk('.')):
    for name in sorted(names):
        s = os.stat(os.path.join(top, name))
        print(top, ascii(name), oct(s.st_mode), s.st_size,
              int(s.st_mtime) if s.st_mtime < 1e9 else 'now')
"""], inputs=[("a/b", b"xy", {"MODE": 0o777, "MTIME": 0}),
              ("./a//c", b"", {"MTIME": 7}), ("d", b"old"), ("d", b"newer"),
              (b"n\n\xff", b"x" * 100000)])
    assert out(told) == (". 'd' 0o100644 5 now\n"
                         ". 'n\\n\\udcff' 0o100644 100000 now\n"
                         "./a 'b' 0o100777 2 0\n./a 'c' 0o100644 0 7\n"), told
    assert told.files == {}, told


@test
def a_file_that_cannot_be_made_is_named():
    for inputs, code, path in (
            ([("a", b""), ("a/b", b"")], N.ERROR_NOT_DIRECTORY, b"a/b"),
            ([("a/b", b""), ("a", b"")], N.ERROR_IS_DIRECTORY, b"a"),
            ([("../x", b"")], N.ERROR_NOT_INSIDE, b"../x"),
            ([("/x", b"")], N.ERROR_NOT_INSIDE, b"/x"),
            ([("", b"")], N.ERROR_IS_DIRECTORY, b""),
            ([("n" * 256, b"")], N.ERROR_NOT_INSIDE, b"n" * 256),
            ([("ok", b""), ("big", bytes(49 << 20))], N.ERROR_NO_SPACE, b"big")):
        told = cell.eval(["-c", "print(1)"], inputs=inputs)
        assert told.reason == N.REASON_ERROR, told
        assert (told.code, told.path) == (code, path), told
        assert told.output == b"", told
        assert told.idle == {}, told.idle


# ---- files back ----

@test
def changed_bytes_come_back_from_execute():
    told = cell.run("""
import os
open('new', 'w').write('1'); open('.env', 'w').write('2')
os.makedirs('d/__main__.py'); open('d/__main__.py/x', 'w').write('3')
open('d/_u', 'w').write('4')
open('same', 'w').write('same'); os.utime('kept', (9, 9))
open('other', 'w').write('OTHER')
open('__main__.py', 'a').write('#')
os.symlink('new', 'link'); os.mkfifo('fifo'); os.mkdir('empty')
open('dark', 'w').write('5'); os.chmod('dark', 0)
os.mkdir('locked'); open('locked/in', 'w').write('6'); os.chmod('locked', 0)
os.remove('gone')
""", inputs=[(name, name.encode()) for name in
             ("same", "kept", "other", "gone")])
    assert told.files == {b"new": b"1", b".env": b"2", b"d/__main__.py/x": b"3",
                          b"d/_u": b"4", b"other": b"OTHER", b"dark": b"5",
                          b"locked/in": b"6"}, told
    assert told.total == 7 and told.cut is None, told
    assert told.left_out == dict.fromkeys((b"link", b"fifo"),
                                          N.LEFT_OUT_KIND), told


@test
def changed_times_come_back_from_eval():
    told = cell.eval(["-c", """
import os
os.makedirs('_d/.h/e'); open('_d/x', 'w'); open('_d/.h/e/x', 'w')
open('_u', 'w'); open('.h', 'w'); open('new', 'w').write('1')
os.symlink('new', 'link'); os.symlink('none', 'dangling'); os.mkfifo('fifo')
os.utime('touched', (9, 9)); open('read').read()
"""], inputs=[("touched", b"t"), ("read", b"r"), ("a", b"a", {"ALWAYS": 1})])
    assert told.files == {b"_d/x": b"", b"new": b"1", b"link": b"1",
                          b"touched": b"t", b"a": b"a"}, told
    assert told.left_out == dict.fromkeys((b"dangling", b"fifo"),
                                          N.LEFT_OUT_KIND), told


@test
def what_does_not_come_back_is_named():
    told = cell.run("""
import os
for n in 'abcef': open(n, 'w').write('x' * 100)
open('big', 'w').write('x' * 2000)
os.makedirs('/'.join('d' * 70)); open('/'.join('d' * 70) + '/x', 'w')
""", collect_files=3, collect_bytes=1000, collect_total=250)
    assert list(told.files) == [b"a", b"b"], told
    left = dict(told.left_out)
    assert left.pop(b"/".join([b"d"] * 65)) == N.LEFT_OUT_PATH, told
    assert left == {b"big": N.LEFT_OUT_SIZE, b"c": N.LEFT_OUT_TOTAL,
                    b"e": N.LEFT_OUT_TOTAL, b"f": N.LEFT_OUT_TOTAL}, told
    told = cell.run("for i in range(300): open('%03d' % i, 'w')",
                    collect_files=10)
    assert len(told.files) == 10 and len(told.left_out) == 100, told
    assert told.total == 300 and told.cut == 1, told


@test
def looking_for_files_has_an_end():
    told = cell.run("""
n = 0
try:
    while True: open('%d' % n, 'w').write('x' * 3000); n += 1
except OSError: pass
""", collect_ms=30, collect_files=100000)
    assert told.cut == 1 or N.LEFT_OUT_TIME in told.left_out.values(), told
    assert told.reason == N.REASON_EXIT


@test
def large_files_come_back_whole():
    told = cell.eval(["-c", "open('x', 'wb').write(bytes(range(256)) * (40 << 12))"])
    assert told.files == {b"x": bytes(range(256)) * (40 << 12)}, told.fields


@test
def names_of_any_bytes_come_back():
    names = [b"a\nb", b"\xff\xfe", "\u202e\U0001f600".encode(), b"n" * 255]
    told = cell.run("for n in %r: open(n, 'wb').write(n)" % names)
    assert told.files == {name: name for name in names}, told


@test
def files_come_back_whatever_the_end():
    for code, reason in (("while True: pass", N.REASON_TIME),
                         ("import os; os.kill(os.getpid(), 9)",
                          N.REASON_SIGNAL),
                         ("x = []\nwhile True: x.append(bytearray(1 << 20))",
                          N.REASON_MEMORY)):
        told = cell.run("open('half', 'w').write('x')\n" + code,
                        wall_ms=3000 if reason == N.REASON_TIME else 60000)
        assert (told.reason, told.files) == (reason, {b"half": b"x"}), told


@test
def nonsense_is_refused_and_does_no_harm():
    for fields in ({"op": "LIST", "path": ""}, {"op": "PIP"}, {"op": "STAGE"},
                   {"op": "BASH", "source": b"true"}):
        told = cell.once(fields)
        assert told.reason == N.REASON_ERROR, (fields, told)
    lease = cell.lease()
    try:
        # It may be gone before GO is sent.
        lease.begin("RUN", folder="/etc", wall_ms=9, output_max=9)
        told = lease.finish()
        assert False, told
    except (EOFError, OSError):
        lease.sock.close()
    cell.said()
    assert cell.eval(["-c", "print(1)"]).output == b"1\n"


try:
    run()
finally:
    cell.close()
