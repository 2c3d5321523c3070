#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""POST /v1/execute over HTTP on real cells: what code sees, and what comes back
of it."""

import hashlib
import re
import threading

from interpreter import Interpreter, compact
from served import Served
from tap import run, test

served = Served(IL_API_CELLS="2").__enter__()
client = Interpreter(served)
MAX = 1_000_000
MARK = "\n...[truncated]"


def printed(code, **fields):
    """What code prints that goes well and leaves nothing else."""
    answer = served.execute(code, **fields)
    assert answer["exit_code"] == 0 and answer["stderr"] == "", answer
    return answer["stdout"]


def failed(code, status=1, **fields):
    """The standard error of code that ends with a status."""
    answer = served.execute(code, **fields)
    assert answer["exit_code"] == status, answer
    assert answer["timed_out"] is False, answer
    return answer["stderr"]


# ---- the answer ----

@test
def the_answer_is_the_contracts_byte_for_byte():
    answer = served.post("/v1/execute", {"code": "print('é\u2028')\n1 + 1"})
    assert answer.status == 200, answer
    assert answer.headers["Content-Type"] == "application/json"
    assert re.fullmatch(
        '{"stdout":"é\u2028\\\\n2\\\\n","stderr":"","exit_code":0,'
        '"timed_out":false,"duration_ms":[0-9]+,"files":\\[\\]}',
        answer.text), answer.text


@test
def a_file_that_was_made_is_told_by_path_kind_and_id():
    answer = served.post("/v1/execute", {
        "code": "_ = open('é', 'w').write('abc')"})
    file_id = answer.json["files"][0]["file_id"]
    assert answer.text.endswith(',"files":[%s]}' % compact(
        {"path": "é", "kind": "file", "file_id": file_id})), answer
    assert client.download(file_id).body == b"abc"


@test
def unknown_fields_are_ignored():
    assert printed("1", other=[1, {"a": None}], language="python") == "1\n"


@test
def null_is_an_empty_standard_input_and_an_empty_one_too():
    for fields in ({}, {"stdin": None}, {"stdin": ""}):
        error = failed("input()", **fields)
        assert error.endswith("EOFError: EOF when reading a line\n"), error


@test
def standard_input_is_what_was_sent():
    assert printed("input()", stdin="x\n") == "'x'\n"
    text = "é\0\u2028😀\r\n" * 100_000
    code = "import sys, hashlib\nhashlib.sha256(sys.stdin.buffer.read())" \
        ".hexdigest()"
    want = hashlib.sha256(text.encode()).hexdigest()
    assert printed(code, stdin=text) == "'%s'\n" % want
    assert printed("1", stdin=text) == "1\n", "not read at all"


# ---- the last line ----

@test
def a_bare_expression_at_the_end_is_shown():
    for code, want in (
            ('"hi"', "'hi'\n"), ("5;", "5\n"), ("x=1; x", "1\n"),
            ("1\n\n# end\n\n", "1\n"), ("(1 +\n 2\n)", "3\n"),
            ("(n := 4)", "4\n"), ("...", "Ellipsis\n"), ("b'a'", "b'a'\n"),
            ("'é\\n'", "'é\\n'\n"), ("print(1)", "1\n"), ("None", ""),
            ("lambda: 1\n7", "7\n"), ("1\n2\n3", "3\n"),
            ("[1,\n2]", "[1, 2]\n"), ("'''a\nb'''", "'a\\nb'\n")):
        assert printed(code) == want, code


@test
def nothing_else_is_shown():
    for code in ("x = 5", "if True: 5", "def f(): 5", "x = 1\ndel x",
                 "for i in [1]: i", "5\nx = 1", "import os", "pass",
                 "class A: 5", "with open('/dev/null'): 5",
                 "try: 5\nfinally: 6", "", "\n\n", "# only this", "x: int",
                 "x = 1; x += 1"):
        assert printed(code) == "", code


@test
def what_was_shown_is_kept_in_the_underscore():
    assert printed("import builtins, atexit\n"
                   "atexit.register(lambda: print(builtins._))\n6 * 7") == \
        "42\n42\n"


@test
def the_displayhook_of_the_user_shows_it():
    assert printed("import sys\n"
                   "sys.displayhook = lambda v: print('<%s>' % v)\n7") == \
        "<7>\n"


@test
def off_is_a_plain_script():
    assert printed("5", last_line_interactive=False) == ""
    error = failed("x = 1\n1/0", last_line_interactive=False)
    assert error.startswith(
        'Traceback (most recent call last):\n  File "/workspace/__main__.py"'
        ", line 2, in <module>\n    1/0\n"), error


@test
def a_run_is_the_main_module_of_workspace():
    code = ("import os, sys\n"
            "print(__name__, __file__, os.getcwd(), sys.argv)")
    want = ("__main__ /workspace/__main__.py /workspace "
            "['/workspace/__main__.py']\n")
    for echo in (True, False):
        assert printed(code, last_line_interactive=echo) == want


@test
def classes_of_the_user_can_be_pickled():
    assert printed("import pickle\nclass A: x = 1\n"
                   "pickle.loads(pickle.dumps(A())).x") == "1\n"


@test
def the_code_stands_in_its_file():
    code = "# é\nprint(open(__file__).read(), end='')"
    for echo in (True, False):
        assert printed(code, last_line_interactive=echo) == code


# ---- failures ----

@test
def a_traceback_names_the_line_of_the_user():
    error = failed("x = 1\n\n1/0")
    assert error.startswith("Traceback (most recent call last):\n"), error
    assert 'File "<stdin>", line 3, in <module>\n' in error, error
    assert error.endswith("\nZeroDivisionError: division by zero\n"), error


@test
def nothing_runs_of_what_does_not_parse():
    for code in ("print(1)\nx = (", "print(1)\nawait x", "print(1)\nreturn",
                 "print(1)\n\0"):
        answer = served.execute(code)
        assert answer["stdout"] == "" and answer["exit_code"] == 1, answer
        assert re.search("^(SyntaxError|ValueError): ", answer["stderr"],
                         re.MULTILINE), answer


@test
def the_exit_status_is_what_python_exits_with():
    for code, status, error in (
            ("import sys; sys.exit(3)", 3, ""), ("raise SystemExit", 0, ""),
            ("import sys; sys.exit('bye')", 1, "bye\n"),
            ("import os; os._exit(9)", 9, ""), ("exit(256 + 7)", 7, ""),
            ("import os, signal; os.kill(os.getpid(), 9)", 137, ""),
            ("import os, signal; os.kill(os.getpid(), 15)", 143, ""),
            ("import os; os.abort()", 134, "")):
        for echo in (True, False):
            assert failed(code, status, last_line_interactive=echo) == \
                error, code
    assert failed("raise KeyboardInterrupt", 130).endswith(
        "\nKeyboardInterrupt\n")


@test
def memory_that_runs_out_is_137():
    for code in ("x = bytearray(1 << 33)", "x = b'x' * (400 << 20)"):
        answer = served.execute(code, timeout_ms=20000)
        assert answer["exit_code"] in (1, 137), answer
        assert answer["exit_code"] == 137 or "MemoryError" in \
            answer["stderr"], answer
    assert printed("1") == "1\n"


# ---- time ----

@test
def time_that_runs_out_keeps_output_and_files():
    answer = served.execute(
        "import sys\nprint('a'); print('b', file=sys.stderr)\n"
        "open('f', 'w').write('1')\nwhile True: pass", timeout_ms=1500)
    assert answer["timed_out"] is True, answer
    assert answer["exit_code"] is None, answer
    assert answer["stdout"] == "a\n" and answer["stderr"] == "b\n", answer
    assert client.made(answer) == {"f": b"1"}, answer
    assert 1500 <= answer["duration_ms"] < 20000, answer


@test
def two_seconds_are_the_default():
    answer = served.execute("import time; time.sleep(60)")
    assert answer["timed_out"] is True, answer
    assert 2000 <= answer["duration_ms"] < 20000, answer


@test
def the_longest_time_is_a_minute():
    assert printed("1", timeout_ms=60000) == "1\n"
    assert served.execute("1", timeout_ms=1)["timed_out"] in (True, False)


@test
def code_that_ignores_signals_ends_in_time():
    answer = served.execute(
        "import signal, os\n"
        "for n in range(1, 32):\n"
        "  try: signal.signal(n, signal.SIG_IGN)\n"
        "  except (OSError, ValueError): pass\n"
        "if os.fork() == 0: os.setsid()\n"
        "while True: pass", timeout_ms=300)
    assert answer["timed_out"] is True, answer


# ---- output ----

@test
def output_up_to_the_bound_is_whole():
    for count in (MAX - 1, MAX):
        out = printed("import sys\n_ = sys.stdout.write('x' * %d)" % count)
        assert out == "x" * count, len(out)


@test
def longer_output_is_cut_and_marked_each_stream_by_itself():
    answer = served.execute(
        "import sys\nsys.stdout.write('x' * %d); "
        "_ = sys.stderr.write('y' * 3_000_000); sys.exit(4)" % (MAX + 1))
    assert answer["stdout"] == "x" * (MAX - 32) + MARK, len(answer["stdout"])
    assert answer["stderr"] == "y" * (MAX - 32) + MARK, len(answer["stderr"])
    assert len(answer["stdout"]) == 999_983
    assert answer["exit_code"] == 4 and not answer["timed_out"], answer


@test
def a_character_that_is_cut_is_replaced():
    # 999,968 is no multiple of 3
    out = served.execute("print('€' * 400_000)")["stdout"]
    assert out == "€" * (999_968 // 3) + "\ufffd" + MARK, out[-30:]


@test
def output_of_any_bytes_is_text():
    data = bytes(range(256)) + b"\xed\xa0\x80\xf4\x90\x80\x80\xe2\x82"
    out = printed("import sys\n_ = sys.stdout.buffer.write(%r)" % data)
    assert out == data.decode("utf-8", "replace"), out


@test
def a_flood_of_both_streams_is_read_to_its_end():
    answer = served.execute(
        "import subprocess\nsubprocess.run(['sh', '-c', "
        "'yes | head -c 20000000; yes e | head -c 20000000 >&2; exit 5'])"
        ".returncode", timeout_ms=20000)
    assert answer["stdout"].endswith(MARK), answer["stdout"][-100:]
    assert answer["stderr"].endswith(MARK), answer["stderr"][-100:]
    assert answer["exit_code"] == 0, answer["exit_code"]


# ---- where it runs ----

@test
def the_environment_is_the_contracts():
    out = printed("import os\n[os.environ.get(k) for k in ("
                  "'PYTHONUNBUFFERED', 'PYTHONDONTWRITEBYTECODE', "
                  "'PYTHONIOENCODING', 'MPLCONFIGDIR')]")
    assert out == "['1', '1', 'utf-8', '/tmp/matplotlib']\n", out
    answer = served.execute(
        "import os\nfor name in ('CACHE', 'CONFIG'):\n"
        "    place = os.environ.get(f'XDG_{name}_HOME') or os.path.expanduser("
        "f'~/.{name.lower()}')\n"
        "    os.makedirs(place + '/some'); open(place + '/some/f', 'x')")
    assert (answer["exit_code"], answer["files"]) == (0, []), answer
    assert printed("import os\nsorted(k for k in os.environ if k.startswith("
                   "('IL_', 'SANDBOX_', 'DISCORD_', 'DOCKER')))") == "[]\n"


@test
def there_is_no_network_and_no_privilege():
    assert "Error" in failed("import urllib.request\n"
                             "urllib.request.urlopen('http://1.1.1.1', "
                             "timeout=1)", timeout_ms=10000)
    assert printed("import os\nos.getuid(), os.getgid()") == "(65532, 65532)\n"
    for call in ("setuid(0)", "chroot('/')", "mknod('/tmp/n', 0o60600, 1)",
                 "nice(-1)", "open('/x', 66)"):
        assert re.search("(Permission|OS)Error",
                         failed("import os; os." + call)), call


@test
def one_run_sees_nothing_of_another():
    left = ("import os, subprocess\n"
            "for p in ('/workspace/x', '/tmp/x', '/dev/shm/x'):\n"
            "  try: open(p, 'w').write('secret')\n"
            "  except OSError: pass\n"
            "_ = subprocess.Popen(['sleep', '50'], start_new_session=True)")
    look = ("import os\n"
            "def there(pid):\n"
            "  try: os.kill(pid, 0)\n"
            "  except ProcessLookupError: return False\n"
            "  except PermissionError: pass\n"
            "  return pid not in (1, os.getpid(), os.getppid())\n"
            "print(sorted(p for d in ('/workspace', '/tmp', '/dev/shm') "
            "for p in os.listdir(d)), [p for p in range(1, 5000) "
            "if there(p)])")
    for _ in range(4):
        served.execute(left)
        assert printed(look) == "['__main__.py'] []\n"


@test
def runs_at_the_same_time_do_not_mix():
    seen = []

    def ask(number):
        out = printed("import time\nopen('n', 'w').write('%d')\n"
                      "time.sleep(.1)\nprint(open('n').read())" % number)
        seen.append((number, out))
    threads = [threading.Thread(target=ask, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [(n, "%d\n" % n) for n in range(12)], seen


# ---- beyond the contract ----

@test
def extras_come_only_when_they_are_asked_for():
    body = {"code": "x = bytearray(30 << 20)\n"
                    "for i in range(3_000_000): pass\n"
                    "import os; os.symlink('a', 'b'); "
                    "os.truncate(os.open('big', 66), 101 << 20)"}
    answer = served.post("/v1/execute", body)
    assert len(answer.json) == 6, answer.json
    for value in ("0", "true", "", "11"):
        answer = served.post("/v1/execute", body, {"Inline-Extras": value})
        assert len(answer.json) == 6, answer.json
    fields = served.post("/v1/execute", body, {"Inline-Extras": "1"}).json
    assert list(fields)[6:] == ["cpu_ms", "max_rss_bytes", "reason",
                                "left_out"], fields
    assert fields["cpu_ms"] > 0 and fields["max_rss_bytes"] > 30 << 20, fields
    assert fields["reason"] == "exit", fields
    assert {"path": "big", "size_bytes": 101 << 20, "why": "too large"} in \
        fields["left_out"], fields


@test
def the_reason_of_an_end_is_one_of_the_extras():
    for code, reason in (("1", "exit"), ("import os; os.abort()", "signal"),
                         ("while True: pass", "time")):
        answer = served.post("/v1/execute", {"code": code, "timeout_ms": 1500},
                             {"Inline-Extras": "1"})
        assert answer.json["reason"] == reason, answer.json


try:
    run()
finally:
    served.close()
