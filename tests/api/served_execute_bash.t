#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""/v1/sessions and their commands over HTTP, and /health as the interpreter's
clients read it: each sentence of the contract."""

import os
import re
import subprocess
import time

from interpreter import Interpreter, refused
from served import Served, wait_for
from tap import run, test

served = Served(IL_API_CELLS="1").__enter__()
client = Interpreter(served)
MAX = 1_000_000
MARK = "\n...[truncated]"


class Session:
    """A session that ends with its block."""

    def __init__(self, **fields):
        self.fields = fields

    def __enter__(self):
        self.answer = served.post("/v1/sessions", self.fields)
        assert self.answer.status == 201, self.answer
        self.id = self.answer.json["session_id"]
        return self

    def __exit__(self, *_):
        served.request("DELETE", "/v1/sessions/" + self.id)

    def post(self, cmd, **fields):
        return served.post("/v1/sessions/%s/bash" % self.id,
                           {"cmd": cmd, **fields})

    def bash(self, cmd, **fields):
        """The answer's JSON."""
        answer = self.post(cmd, **fields)
        assert answer.status == 200, answer
        return answer.json

    def prints(self, cmd, **fields):
        """What a command prints that goes well."""
        answer = self.bash(cmd, **fields)
        assert answer["exit_code"] == 0 and answer["stderr"] == "", answer
        return answer["stdout"]


# ---- sessions ----

@test
def a_session_is_answered_with_its_id_and_its_end():
    for fields, seconds in (({}, 900), ({"ttl_seconds": 1}, 1),
                            ({"ttl_seconds": 86400, "x": 1}, 86400)):
        before = time.time()
        with Session(**fields) as session:
            after = time.time()
            assert re.fullmatch(
                r'\{"session_id":"code-session-[0-9a-f]{32}",'
                r'"expires_at":[0-9]+\.[0-9]+\}', session.answer.text)
            assert session.answer.headers["Content-Type"] == \
                "application/json"
            ends = session.answer.json["expires_at"]
            assert before + seconds - .01 < ends < after + seconds + .01, (
                before, ends, after)


@test
def a_session_that_was_deleted_is_gone():
    with Session() as session:
        pass
    want = "Session '%s' not found" % session.id
    refused(session.post("true"), 404, want)
    refused(served.request("DELETE", "/v1/sessions/" + session.id), 404, want)


@test
def a_session_ends_at_its_time_even_in_a_command():
    with Session(ttl_seconds=2) as session:
        mark = "sleep %d.125" % (100000 + os.getpid())
        answer = session.post(mark, timeout_ms=60000)
        assert answer.status != 200 or answer.json["exit_code"] != 0, answer
        wait_for(lambda: subprocess.run(
            ["pgrep", "-f", mark], capture_output=True).returncode == 1)
        refused(session.post("true"), 404,
                "Session '%s' not found" % session.id)


@test
def files_are_staged_as_in_a_run():
    files = [{"path": path, "file_id": client.put("x", data)}
             for path, data in (("./a//b", b"1"), (".env", b"2"),
                                ("__main__.py", b"3"), ("a/c", b"4"),
                                ("a/c", b"5"))]
    with Session(files=files) as session:
        assert session.prints(
            "cat a/b .env __main__.py a/c; stat -c ' %a %U %G' a a/b") == \
            "1235 755 sandbox sandbox\n 644 sandbox sandbox\n"


@test
def sessions_see_nothing_of_each_other():
    with Session() as one, Session() as two:
        one.prints("echo secret > f; echo secret > /tmp/f")
        assert two.prints("ls -A . /tmp") == ".:\n\n/tmp:\n"
        assert one.prints("cat f") == "secret\n"


# ---- commands ----

@test
def a_command_is_answered_with_the_contracts_fields():
    with Session() as session:
        answer = session.post("echo é; echo e >&2; exit 3")
        assert answer.headers["Content-Type"] == "application/json"
        assert re.fullmatch(
            '{"stdout":"é\\\\n","stderr":"e\\\\n","exit_code":3,'
            '"timed_out":false,"duration_ms":[0-9]+}', answer.text), answer


@test
def bash_runs_it_in_workspace_with_nothing_to_read():
    with Session() as session:
        out = session.prints("pwd; cat; read x || echo none; "
                             "command -v bash >/dev/null && echo is there; "
                             "echo ${0##*/}")
        assert out in ("/workspace\nnone\nis there\nbash\n",
                       "/workspace\nnone\nsh\n"), out
        if "bash" in out:   # an image need not have it
            assert session.prints("[[ a == a ]] && arr=(1 2) && "
                                  "echo ${#arr[@]} $((6 * 7)) {1..3}") == \
                "2 42 1 2 3\n"
        assert session.prints("id -un; id -gn; echo $PYTHONIOENCODING") == \
            "sandbox\nsandbox\nutf-8\n"
        assert session.prints("python3 -c 'print(6 * 7)'") == "42\n"


@test
def our_images_have_the_tools_that_commands_are_written_for():
    with Session() as session:
        if not os.environ["SANDBOX_IMAGE"].startswith("inline-python:"):
            print("# an image that is not ours: not asked")
            return
        assert session.prints("printf 'ab1\\nab\\n' | grep -oP 'b(?=\\d)'; "
                              "echo ${BASH_VERSINFO[0]}") == "b\n5\n"
        assert session.prints("mkdir d; echo 12 > d/f; "
                              "find d -type f -printf '%P %s\\n'") == "f 3\n"


@test
def exit_codes_are_the_shells():
    with Session() as session:
        for cmd, code in (("true", 0), ("false", 1), ("exit 255", 255),
                          ("nosuchcommand", 127), ("/etc/passwd", 126),
                          ("kill -9 $$", 137), ("kill -TERM $$", 143),
                          ("if", 2), ("", 0), ("# nothing", 0)):
            assert session.bash(cmd)["exit_code"] == code, cmd


@test
def files_stay_and_variables_do_not():
    with Session() as session:
        session.prints("x=1; export y=2; cd /tmp; echo 1 > /workspace/f")
        assert session.prints("echo \"[$x$y]\"; pwd; cat f") == \
            "[]\n/workspace\n1\n"


@test
def a_command_that_runs_out_of_time_is_ended_with_all_it_started():
    mark = "sleep %d.375" % (100000 + os.getpid())
    with Session() as session:
        answer = session.bash("echo a; (setsid %s &) ; %s" % (mark, mark),
                              timeout_ms=1500)
        assert answer["timed_out"] is True, answer
        assert answer["exit_code"] is None, answer
        assert answer["stdout"] == "a\n", answer
        assert 1500 <= answer["duration_ms"] < 20000, answer
        assert subprocess.run(["pgrep", "-f", mark],
                              capture_output=True).returncode == 1
        assert session.prints("echo on") == "on\n"


@test
def output_is_cut_with_a_mark_each_stream_by_itself():
    with Session() as session:
        answer = session.bash("head -c %d /dev/zero | tr '\\0' x; "
                              "yes | head -c 3000000 >&2" % MAX)
        assert answer["stdout"] == "x" * MAX, len(answer["stdout"])
        assert answer["stderr"] == ("y\n" * MAX)[:MAX - 32] + MARK
        answer = session.bash("head -c %d /dev/zero | tr '\\0' x" % (MAX + 1))
        assert answer["stdout"] == "x" * (MAX - 32) + MARK


@test
def a_command_may_not_hold_a_nul():
    with Session() as session:
        refused(session.post("echo a\0b"), 422,
                "cmd must not contain a NUL character.")


# ---- health ----

@test
def health_is_what_clients_look_for():
    answer = served.get("/health")
    assert answer.status == 200, answer
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.text.startswith(
        '{"status":"ok","message":null,"version":"0.4.4"'), answer


@test
def health_is_200_when_nothing_is_well():
    with Served(IL_API_CELLS="1") as other:
        other.settings["DOCKER_BINARY"] = "/bin/false"
        other.stop()
        other.start()
        answer = wait_for(lambda: (
            lambda a: a.json["status"] == "error" and a)(other.get("/health")))
        assert answer.status == 200, answer
        assert isinstance(answer.json["message"], str), answer
        assert answer.json["version"] == "0.4.4", answer


try:
    run()
finally:
    served.close()
