#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""POST /eval: what the contract says about runs: arguments, environment, return
codes, output, limits."""

import base64
import json
import time

from served import Served
from service import IMAGE, docker
from tap import run, test

# Where there is the image of a newer Python, that one is served, too.
NEWER = "inline-python:3.13"
is_newer = bool(docker("images", "-q", NEWER).strip())
served = Served(IL_API_CELLS="2", IL_TUNE_API_WARM="2", SANDBOX_IMAGES="3.11="
                + IMAGE + (",3.13=" + NEWER) * is_newer).__enter__()

KEYS = ["stdout", "returncode", "files"]


def file(path, text):
    return {"path": path, "content": base64.b64encode(text.encode()).decode()}


def ends(code, returncode, stdout=None, **fields):
    answer = served.eval(input=code, **fields)
    assert answer["returncode"] == returncode, (code, answer)
    assert stdout is None or answer["stdout"] == stdout, (code, answer)
    return answer


def printed(code, **fields):
    return ends(code, 0, **fields)["stdout"]


# ---- arguments ----

@test
def input_alone_runs_after_c():
    assert printed("import sys; print(sys.argv)") == "['-c']\n"


@test
def input_comes_last_after_args():
    answer = served.eval(args=["-c", "import sys; print(sys.argv)", "a"],
                         input="b")
    assert answer["stdout"] == "['-c', 'a', 'b']\n", answer
    answer = served.eval(args=["-c"], input="print(1)")
    assert answer["stdout"] == "1\n", answer
    answer = served.eval(args=["-m", "timeit", "-n", "1", "-r", "1"],
                         input="print('x')")
    assert answer["stdout"].startswith("x\n1 loop"), answer


@test
def no_arguments_read_the_end_of_input():
    assert served.eval(args=[]) == {"stdout": "", "returncode": 0,
                                    "files": []}


@test
def input_after_empty_args_is_a_files_name():
    for args in ([], [""], ["", ""]):
        answer = served.eval(args=args, input="print(1)")
        assert answer["returncode"] == 2, answer
        assert "can't open file" in answer["stdout"], answer
    answer = served.eval(args=[], input="m.py",
                         files=[file("m.py", "print(5)")])
    assert answer["stdout"] == "5\n", answer


@test
def leading_empty_args_are_dropped_and_later_ones_kept():
    code = "import sys; print(sys.argv)"
    answer = served.eval(args=["", "", "-c", code, "", "a", ""])
    assert answer["stdout"] == "['-c', '', 'a', '']\n", answer


@test
def empty_input_is_a_program():
    assert served.eval(input="")["returncode"] == 0
    assert served.eval(input="", args=["-c"])["returncode"] == 0


@test
def options_of_the_interpreter_are_taken():
    assert served.eval(args=["-V"])["stdout"].startswith("Python 3.11.")
    answer = served.eval(args=["-I", "-c", "import sys; "
                               "print(sys.flags.isolated)"])
    assert answer["stdout"] == "1\n", answer
    answer = served.eval(args=["-W", "error", "-O", "-c", "assert 0"])
    assert answer["returncode"] == 0, answer
    answer = served.eval(args=["--nonsense"])
    assert answer["returncode"] == 2, answer


@test
def a_file_runs_under_its_name_in_home():
    answer = served.eval(args=["main.py"], files=[file("main.py", "1/0")])
    assert 'File "/home/main.py", line 1' in answer["stdout"], answer
    assert answer["returncode"] == 1, answer


@test
def arguments_reach_it_byte_for_byte():
    words = ["é€\U0001f600", " ", "\n", "\t\"'\\$(x)", "-", "--", "\x7f\x01"]
    answer = served.eval(args=["-c", "import sys, json; "
                               "print(json.dumps(sys.argv[1:]))", *words])
    assert json.loads(answer["stdout"]) == words, answer


# ---- what a run finds ----

@test
def the_environment_is_the_contracts():
    text = printed("import os, json; print(json.dumps(dict(os.environ)))")
    found = json.loads(text)
    found.pop("LC_CTYPE", None)
    assert found == {
        "LANG": "en_US.UTF-8", "HOME": "/home",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "PYTHONIOENCODING": "utf-8:strict", "PYTHONUNBUFFERED": "true",
        "PYTHONDONTWRITEBYTECODE": "true",
        "PYTHONUSERBASE": "/snekbox/user_base", "PYTHON_COLORS": "1",
        "OMP_NUM_THREADS": "15", "OPENBLAS_NUM_THREADS": "15",
        "MKL_NUM_THREADS": "15", "VECLIB_MAXIMUM_THREADS": "15",
        "NUMEXPR_NUM_THREADS": "15"}, found


@test
def home_is_the_working_directory_and_empty():
    assert printed("import os; print(os.getcwd(), os.path.expanduser('~'), "
                   "os.listdir())") == "/home /home []\n"


@test
def standard_input_is_at_its_end():
    assert printed("import sys; print(repr(sys.stdin.read()))") == "''\n"
    ends("input()", 1)


@test
def limits_are_the_contracts():
    text = printed("import resource as r\nprint(*[r.getrlimit(n)[0] for n in "
                   "(r.RLIMIT_AS, r.RLIMIT_NOFILE, r.RLIMIT_CORE, "
                   "r.RLIMIT_CPU, r.RLIMIT_STACK)])")
    assert text == "%d 32 0 600 %d\n" % (700 << 20, 8 << 20), text


@test
def home_has_48_mib():
    assert printed("import os; s = os.statvfs('/home'); "
                   "print(s.f_blocks * s.f_frsize)") == "%d\n" % (48 << 20)
    answer = ends("with open('a', 'wb') as file:\n"
                  "    file.write(bytes((48 << 20) + 1))", 1)
    assert "No space left on device" in answer["stdout"], answer


@test
def fifteen_processes_are_the_most():
    assert printed("import os, time\nn = 1\nwhile True:\n    try:\n"
                   "        if os.fork() == 0: time.sleep(100)\n"
                   "        n += 1\n    except OSError: break\n"
                   "print(n)") == "15\n"


@test
def there_is_no_network():
    text = ends("import socket\nsocket.create_connection(('1.1.1.1', 53), 2)",
                1)["stdout"]
    assert "[Errno 101]" in text, text      # ENETUNREACH in any C library's words
    ends("import socket\nsocket.getaddrinfo('example.com', 80)", 1)


@test
def nothing_but_its_folders_can_be_written():
    text = printed("""
import os
for root, names, _ in os.walk('/'):
    if root == '/':
        names[:] = [n for n in names if n not in ('proc', 'sys')]
    try:
        open(root + '/probe-4711', 'w').close()
        os.remove(root + '/probe-4711')
        print(root)
    except OSError:
        pass
""")
    assert sorted(text.split()) == ["/dev/shm", "/home"], text


@test
def it_has_no_privileges():
    assert printed("import os; print(os.getuid() and os.getgid() and 1, "
                   "os.getuid() == os.geteuid())") == "1 True\n"
    ends("import os; os.setuid(0)", 1)
    ends("import os; os.chroot('.')", 1)


# ---- return codes ----

@test
def an_exit_status_is_the_return_code():
    for status, want in ((0, 0), (1, 1), (7, 7), (127, 127), (137, 137),
                         (143, 143), (254, 254), (255, 255), (256, 0),
                         (-1, 255)):
        ends("raise SystemExit(%d)" % status, want, "")
    ends("raise SystemExit('bye')", 1, "bye\n")


@test
def an_exception_is_1_and_its_traceback():
    answer = ends("1/0", 1)
    assert answer["stdout"].startswith("Traceback (most recent call last):\n"
                                       "  File \"<string>\", line 1"), answer
    assert answer["stdout"].endswith("ZeroDivisionError: division by zero\n")
    answer = ends("a b", 1)
    assert "SyntaxError: invalid syntax" in answer["stdout"], answer


@test
def a_signal_is_128_and_its_number():
    for number in (1, 2, 3, 6, 7, 8, 10, 11, 14, 15):
        ends("import os, signal\nsignal.signal(%d, signal.SIG_DFL)\n"
             "os.kill(os.getpid(), %d)\nsignal.pause()" % (number, number),
             128 + number, "")
    ends("import ctypes; ctypes.string_at(0)", 139)
    ends("import os; os.abort()", 134)


@test
def a_kill_is_137_with_output_and_files():
    answer = ends("import os\nprint('out')\nopen('f', 'w').write('1')\n"
                  "os.kill(os.getpid(), 9)", 137, "out\n")
    assert answer["files"] == [file("f", "1") | {"size": 1}], answer


@test
def six_seconds_are_137_with_output_and_files():
    started = time.monotonic()
    answer = ends("print('out')\nopen('f', 'w').write('1')\nwhile True: pass",
                  137, "out\n")
    assert 5.9 < time.monotonic() - started < 30
    assert answer["files"] == [file("f", "1") | {"size": 1}], answer


@test
def memory_is_137_with_output_and_files():
    answer = ends("print('out')\nopen('f', 'w').write('1')\nx = []\n"
                  "while True: x.append(bytearray(1 << 20))", 137, "out\n")
    assert answer["files"] == [file("f", "1") | {"size": 1}], answer


@test
def more_address_space_than_700_mib_is_a_memory_error():
    answer = ends("x = bytearray(720 << 20)", 1)
    assert "MemoryError" in answer["stdout"], answer


@test
def too_much_recursion_is_an_exception():
    answer = ends("def f(): f()\nf()", 1)
    assert "RecursionError" in answer["stdout"], answer


@test
def what_a_run_leaves_behind_does_not_hold_up_its_answer():
    started = time.monotonic()
    ends("import os, time\nif os.fork() == 0:\n    os.setsid()\n"
         "    time.sleep(1000)\nprint('x')", 0, "x\n", timeout_ms=30000)
    assert time.monotonic() - started < 25


# ---- output ----

@test
def an_answer_has_its_keys_in_their_order():
    answer = served.post("/eval", {"input": "open('a', 'w').write('b')\n"
                                   "print('é\\0\"')"})
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.body.decode() == (
        '{"stdout": "é\\u0000\\"\\n", "returncode": 0, "files": '
        '[{"path": "a", "size": 1, "content": "Yg=="}]}'), answer.body
    assert list(answer.json) == KEYS


@test
def both_streams_are_one_in_their_order():
    want = "".join("o%d\ne%d\n" % (i, i) for i in range(50))
    assert printed("import sys\nfor i in range(50):\n    print('o%d' % i)\n"
                   "    print('e%d' % i, file=sys.stderr)") == want


@test
def newlines_are_universal():
    assert printed("print('a\\r\\nb\\rc\\n\\rd\\r\\r\\ne', end='\\r')") == \
        "a\nb\nc\n\nd\n\ne\n"
    assert printed("import os, time\nos.write(1, b'a\\r'); time.sleep(.1)\n"
                   "os.write(1, b'\\nb')") == "a\nb"


@test
def output_is_cut_at_the_end_of_a_character():
    for piece, count, code, got in (
            ("a", 999_999, 0, 999_999), ("a", 1_000_000, 143, 1_000_000),
            ("a", 1_000_001, 143, 1_000_000), ("é", 499_999, 0, 499_999),
            ("\u20ac", 333_333, 0, 333_333), ("\u20ac", 333_334, 143, 333_333),
            ("\U0001f600", 300_000, 143, 250_000)):
        answer = served.eval(input="import sys; sys.stdout.write(%r * %d)"
                             % (piece, count))
        assert (answer["returncode"], len(answer["stdout"])) == (code, got), (
            piece, count, answer["returncode"], len(answer["stdout"]))
        assert set(answer["stdout"]) == {piece}


@test
def what_is_no_utf8_is_null():
    null = {"stdout": "UnicodeDecodeError: invalid Unicode in output pipe",
            "returncode": None, "files": []}
    for data in (b"\xff", b"ok\n\xe2\x82", b"\xed\xa0\x80"):
        answer = served.eval(input="open('f', 'w')\nimport os\n"
                             "os.write(1, %r)" % data)
        assert answer == null, answer


@test
def the_printing_of_a_lone_surrogate_fails_in_the_run():
    answer = ends("print('\\ud800')", 1)
    assert "UnicodeEncodeError" in answer["stdout"], answer


@test
def tracebacks_of_3_13_are_in_colours():
    assert "\x1b" not in ends("1/0", 1)["stdout"]
    if not is_newer:
        return
    answer = ends("1/0", 1, executable_path="/snekbin/python/3.13/bin/python")
    assert "\x1b[1;35mZeroDivisionError\x1b[0m" in answer["stdout"], answer


try:
    run()
finally:
    served.close()
