#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""/v1/sessions over HTTP on real cells; and the pages about it all."""

import contextlib
import json
import os
import re
import subprocess
import threading

from served import JSON, Served, has_process, wait_for
from service import DOCKER, IMAGE
from tap import run, test

served = Served(IL_API_CELLS="2").__enter__()


def create(**fields):
    answer = served.post("/v1/sessions", fields)
    assert answer.status == 201, answer
    assert list(answer.json) == ["session_id", "expires_at"], answer
    return answer.json["session_id"]


def bash(session, cmd, **fields):
    answer = served.post("/v1/sessions/%s/bash" % session,
                         {"cmd": cmd, **fields})
    assert answer.status == 200, answer
    return answer.json


def end(session):
    return served.request("DELETE", "/v1/sessions/" + session)


def not_found(answer, session):
    assert (answer.status, answer.text) == (
        404, '{"detail":"Session \'%s\' not found"}' % session), answer


def full(answer):
    found = re.fullmatch(r'\{"detail":"All sessions are in use; one may be '
                         r'free in (\d+) s"\}', answer.text)
    assert answer.status == 503 and found, answer
    assert answer.headers["Retry-After"] == found.group(1), answer.headers
    assert 1 <= int(found.group(1)) <= 10, answer


def leased():
    return served.get("/health").json["inline"]["cells"]["leased"]


@test
def files_stay_between_commands():
    file_id = served.request(
        "POST", "/v1/files", b'--b\r\nContent-Disposition: form-data; '
        b'name="file"; filename="f"\r\n\r\nhello\r\n--b--\r\n',
        {"Content-Type": "multipart/form-data; boundary=b"}).json["file_id"]
    session = create(files=[{"path": "in/f", "file_id": file_id}])
    assert re.fullmatch("code-session-[0-9a-f]{32}", session), session
    answer = bash(session, "cat in/f; pwd; echo x > y; echo e >&2; exit 3")
    assert list(answer) == ["stdout", "stderr", "exit_code", "timed_out",
                            "duration_ms"], answer
    assert answer["stdout"] == "hello/workspace\n", answer
    assert answer["stderr"] == "e\n" and answer["exit_code"] == 3, answer
    assert bash(session, "cat y")["stdout"] == "x\n"
    answer = end(session)
    assert (answer.status, answer.body) == (204, b""), answer
    not_found(end(session), session)
    not_found(served.post("/v1/sessions/%s/bash" % session, {"cmd": "true"}),
              session)
    wait_for(lambda: not leased())


@test
def a_timeout_kills_what_the_command_started():
    session = create()
    answer = bash(session, "(sleep 3; echo late > late) & sleep 50",
                  timeout_ms=300)
    assert answer["timed_out"] and answer["exit_code"] is None, answer
    answer = bash(session, "sleep 3; ls")
    assert answer["stdout"] == "", answer
    assert end(session).status == 204


@test
def a_server_in_the_background_lives_as_long_as_the_session():
    session = create()
    answer = bash(session, "nohup python3 -u -m http.server -b 127.0.0.1 8123 "
                           ">log 2>&1 & while ! grep -q Serving log; do "
                           "sleep .1; done; sleep 4711 & echo up")
    assert (answer["stdout"], answer["exit_code"]) == ("up\n", 0), answer
    answer = bash(session, "python3 -c 'import urllib.request as u; print("
                           "u.urlopen(\"http://127.0.0.1:8123/log\").status)'")
    assert answer["stdout"] == "200\n", answer
    assert has_process("4711")
    assert end(session).status == 204
    wait_for(lambda: not has_process("4711"))


@test
def commands_of_one_session_take_turns():
    session = create()
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(
        bash(session, "[ ! -e busy ] && touch busy && sleep .3 && rm busy")))
               for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [a["exit_code"] for a in answers] == [0, 0], answers
    assert end(session).status == 204


@test
def who_finds_too_many_waiting_for_a_session_is_told_to_come_again():
    with Served(IL_API_CELLS="20") as large:
        session = large.post("/v1/sessions", {}).json["session_id"]
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(
            large.post("/v1/sessions/%s/bash" % session,
                       {"cmd": "[ -e f ] || sleep 3; touch f"})))
                   for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # One has the session for three seconds, one may wait for it.
        statuses = sorted(a.status for a in answers)
        assert statuses[:2] == [200, 200] and statuses[-1] == 503, statuses
        for answer in answers:
            if answer.status == 503:
                assert answer.headers["Retry-After"] == "1", answer.headers


@test
def a_session_ends_at_its_time():
    session = create(ttl_seconds=1)
    wait_for(lambda: not leased())
    not_found(end(session), session)


@test
def sessions_survive_il_api_and_runs_do_not():
    idle, busy = create(), create()
    bash(idle, "echo x >f; nohup sleep 4712 >/dev/null 2>&1 &")
    link = served.connect()
    link.request("POST", "/v1/sessions/%s/bash" % busy, json.dumps(
        {"cmd": "sleep 4713", "timeout_ms": 60000}), JSON)
    wait_for(lambda: has_process("4713"))
    served.kill("il-api")
    wait_for(lambda: served.get("/health").status == 200)
    wait_for(lambda: not has_process("4713"))
    not_found(end(busy), busy)
    wait_for(lambda: leased() == 1)
    assert has_process("4712")
    assert bash(idle, "cat f")["stdout"] == "x\n"
    assert end(idle).status == 204
    wait_for(lambda: not has_process("4712"))
    link.close()


@test
def sessions_end_with_the_broker():
    session = create()
    bash(session, "nohup sleep 4714 >/dev/null 2>&1 &")
    served.kill("il-sandboxd")
    wait_for(lambda: not has_process("4714"))
    wait_for(lambda: served.post("/v1/sessions", {}).status == 201)
    not_found(served.post("/v1/sessions/%s/bash" % session, {"cmd": "1"}),
              session)
    not_found(end(session), session)


@test
def when_all_sessions_are_taken_the_next_is_503_at_once():
    with Served(IL_API_SESSIONS="1", IL_API_CELLS="1") as small:
        first = small.post("/v1/sessions", {})
        assert first.status == 201, first
        # Less than it takes to wait for a cell in vain.
        answer = small.request("POST", "/v1/sessions", b"{}", JSON, timeout=60)
        full(answer)
        assert small.eval(input="print(1)")["stdout"] == "1\n"
        assert small.request("DELETE", "/v1/sessions/" +
                             first.json["session_id"]).status == 204
        assert small.post("/v1/sessions", {}).status == 201


@test
def a_session_at_rest_gives_way_to_a_new_one():
    """The one that was used least recently, and no other."""
    with Served(IL_API_SESSIONS="3", IL_API_CELLS="1") as small:
        def ask(number, cmd):
            return small.post("/v1/sessions/%s/bash" % ids[number],
                              {"cmd": cmd})

        ids = [small.post("/v1/sessions", {}).json["session_id"]
               for _ in range(3)]
        assert ask(0, "echo first >f").status == 200
        busy = threading.Thread(target=ask, args=(2, "sleep 40"))
        busy.start()
        answers = []

        def created():
            answers.append(small.post("/v1/sessions", {}))
            return answers[-1].status == 201

        wait_for(created, 60)
        for answer in answers[:-1]:
            full(answer)
        assert len(answers) > 1     # the first one came at once
        not_found(ask(1, "true"), ids[1])
        assert ask(0, "cat f").json["stdout"] == "first\n"
        small.request("DELETE", "/v1/sessions/" + ids[2])
        busy.join()


@contextlib.contextmanager
def image_without_bash():
    """The image of these tests, and no bash."""
    name = "inline-test-%d" % os.getpid()
    tag = "inline-test:no-bash-%d" % os.getpid()

    def docker(*words):
        return subprocess.run([DOCKER, *words], check=True,
                              stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE)

    docker("run", "--name", name, "--network", "none", "--entrypoint", "sh",
           IMAGE, "-c", "rm -f /bin/bash /usr/bin/bash")
    try:
        docker("commit", name, tag)
    finally:
        docker("rm", "-f", name)
    try:
        yield tag
    finally:
        docker("rmi", "-f", tag)


@test
def where_there_is_no_bash_it_is_said():
    with image_without_bash() as image:
        with Served(IL_API_CELLS="1", SANDBOX_IMAGE=image) as bare:
            answer = bare.post("/v1/sessions", {})
            assert answer.status == 201, answer
            assert answer.headers["Inline-Shell"] == "sh", answer.headers
            assert list(answer.json) == ["session_id", "expires_at"], answer
            answer = bare.post("/v1/sessions/%s/bash" %
                               answer.json["session_id"],
                               {"cmd": "echo \"$BASH_VERSION\" ok"})
            assert answer.json["stdout"] == " ok\n", answer


@test
def where_there_is_bash_nothing_is_said():
    if not IMAGE.endswith("-alpine") and not IMAGE.endswith("-musl"):
        answer = served.post("/v1/sessions", {})
        assert answer.headers["Inline-Shell"] is None, answer.headers
        session = answer.json["session_id"]
        assert "5." in bash(session, "echo $BASH_VERSION")["stdout"]
        end(session)


@test
def unknown_ones():
    for session in ("x", "code-session-", "code-session-" + "0" * 32,
                    "code-session-..%2f..%2fapi.sock"):
        answer = end(session)
        assert answer.status == 404, (session, answer)
    not_found(served.post("/v1/sessions/abc/bash", {"cmd": "1"}), "abc")


@test
def refusals():
    for body, want in (
            ({"ttl_seconds": 0}, ["body", "ttl_seconds"]),
            ({"ttl_seconds": 86401}, ["body", "ttl_seconds"]),
            (b"", ["body"])):
        answer = served.post("/v1/sessions", body)
        assert answer.status == 422, answer
        assert answer.json["detail"][0]["loc"] == want, answer


@test
def pages():
    answer = served.get("/openapi.json")
    assert answer.json["info"]["title"] == "Code Interpreter API", answer
    for path in ("/docs",):
        answer = served.get(path)
        assert answer.status == 200 and b"/v1/execute" in answer.body, answer
        assert "default-src 'none'" in answer.headers[
            "Content-Security-Policy"], answer.headers
    end(create())
    answer = served.get("/metrics")
    assert re.search(r'route="/v1/sessions",status="201"} [1-9]',
                     answer.text), \
        answer.text[:2000]


try:
    run()
finally:
    served.close()
