#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""IL_API_TOKENS_FILE: who may use the HTTP APIs."""

import os
import subprocess
import tempfile
import time

from served import Served, wait_for
from service import BUILD
from tap import run, test

folder = tempfile.TemporaryDirectory(prefix="inline-api-")
path = os.path.join(folder.name, "tokens")


def ilctl(*words):
    return subprocess.run([os.path.join(BUILD, "bin", "ilctl"), "token", "-f",
                           path, *words], check=True, capture_output=True,
                          text=True).stdout


def add(name, *limits):
    return next(word for word in ilctl(*limits, "add", name).split()
                if word.startswith("il_"))


def bearer(secret):
    return {"Authorization": "Bearer " + secret}


token = add("first")
served = Served(IL_API_TOKENS_FILE=path, IL_API_CELLS="3").__enter__()


def evaluate(authorization=None):
    return served.post("/eval", {"input": "print(1)"},
                       {"Authorization": authorization}
                       if authorization else {})


@test
def who_has_one_gets_in():
    answer = evaluate("Bearer " + token)
    assert answer.status == 200 and answer.json["stdout"] == "1\n", answer


@test
def tokens_that_are_made_up_count_for_their_address():
    away = {"Host": "inline.example.org"}
    with Served(IL_API_TOKENS_FILE=path, IL_API_CELLS="1") as house:
        def ask(secret, way=away):
            return house.get("/v1/files", **bearer(secret), **way)
        got = [ask("il_%064x" % number).status for number in range(60)]
        assert got == [401] * 60, got
        # One more comes each second.
        wait_for(lambda: ask("il_" + "1" * 64).status == 429)
        answer = ask("il_" + "0" * 64)
        assert (answer.status, answer.json["detail"]) == (
            429, "Your address has sent too many tokens that are not known")
        assert int(answer.headers["Retry-After"]) >= 1, answer.headers
        # Whose token is known is no stranger, nor is this machine.
        assert ask(token).status == 200
        assert ask("il_" + "0" * 64, {}).status == 401
        # Who sends none has sent none that is not known.
        for path_ in "/v1/files", "/librechat/files/" + "x" * 21:
            assert house.get(path_, **away).status == 401, path_


@test
def who_has_none_does_not():
    for value in (None, "Bearer", "Bearer il_" + "0" * 64, "Basic " + token,
                  token, "Bearer " + token[:-1], "Bearer " + token + "0"):
        answer = evaluate(value)
        assert (answer.status, answer.text) == (
            401, '{"title": "401 Unauthorized"}'), (value, answer)
        assert answer.headers["WWW-Authenticate"] == "Bearer", answer.headers
    for path_ in ("/v1/files", "/versions", "/metrics", "/v1/nothing"):
        answer = served.get(path_)
        assert (answer.status, answer.text) == (
            401, '{"detail":"Not authenticated"}'), (path_, answer)
    answer = served.post("/v1/execute", b"x" * 10_000_000)
    assert answer.status == 401, answer


@test
def health_and_pages_are_open():
    for path_ in ("/health", "/openapi.json", "/docs"):
        assert served.get(path_).status == 200, path_


@test
def the_file_is_read_again_when_it_changes():
    second = add("second")
    assert evaluate("Bearer " + second).status == 200
    ilctl("revoke", "second")
    assert evaluate("Bearer " + second).status == 401
    assert evaluate("Bearer " + token).status == 200


def is_too_many(answer, seconds, text):
    assert answer.status == 429, answer
    assert 1 <= int(answer.headers["Retry-After"]) <= seconds, answer.headers
    assert answer.text in (
        '{"title": "429 Too Many Requests", "description": "%s"}' % text,
        '{"detail":"%s"}' % text), answer


RATE = "This token's requests of a minute are used up"
CELLS = "This token's cells are all in use"


@test
def more_requests_a_minute_than_the_token_has_are_429():
    own = bearer(add("slow", "-r", "3"))
    for _ in range(3):
        assert served.get("/v1/files", **own).status == 200
    answer = served.get("/v1/files", **own)
    is_too_many(answer, 20, RATE)
    assert answer.text.startswith('{"detail"'), answer
    answer = served.post("/eval", {"input": "1"}, own)
    is_too_many(answer, 20, RATE)
    assert answer.text.startswith('{"title"'), answer
    assert served.get("/health", **own).status == 200, "needs no token"
    assert evaluate("Bearer " + token).status == 200, "another's is its own"
    metrics = served.get("/metrics", **bearer(token)).text
    for route in ("/v1/files", "/eval"):
        assert 'route="%s",status="429"} 1' % route in metrics, metrics


@test
def a_limit_that_is_changed_counts_from_the_next_request_on():
    own = bearer(add("changed", "-r", "1"))
    assert served.get("/v1/files", **own).status == 200
    assert served.get("/v1/files", **own).status == 429
    ilctl("-r", "1000", "set", "changed")
    assert served.get("/v1/files", **own).status == 200
    ilctl("-r", "1", "set", "changed")
    assert served.get("/v1/files", **own).status == 429


def running():
    text = served.get("/metrics", **bearer(token)).text
    return int(text.split("\ninline_api_running ")[1].split()[0])


class Loop:
    """A run that ends when its client goes."""

    def __init__(self, headers):
        before = running()
        self.link = served.connect()
        self.link.request("POST", "/v1/execute", b'{"code": "while 1: pass", '
                          b'"timeout_ms": 60000}',
                          {"Content-Type": "application/json", **headers})
        wait_for(lambda: running() == before + 1)

    def end(self):
        before = running()
        self.link.close()
        wait_for(lambda: running() == before - 1)


@test
def more_cells_at_once_than_the_token_has_are_429():
    own = bearer(add("one", "-c", "1"))
    loop = Loop(own)
    for path_, body in (("/eval", {"input": "1"}),
                        ("/v1/execute", {"code": "1"}),
                        ("/v1/execute/stream", {"code": "1"}),
                        ("/v1/sessions", {})):
        is_too_many(served.post(path_, body, own), 1, CELLS)
    assert evaluate("Bearer " + token).status == 200
    assert served.get("/v1/files", **own).status == 200, "takes no cell"
    loop.end()
    wait_for(lambda: served.post("/eval", {"input": "1"}, own).status == 200)


@test
def a_session_is_one_of_the_tokens_cells():
    own = bearer(add("sitting", "-c", "1"))
    session = "/v1/sessions/" + served.post("/v1/sessions", {}, own).json[
        "session_id"]
    is_too_many(served.post("/eval", {"input": "1"}, own), 1, CELLS)
    served.kill("il-api")
    wait_for(lambda: served.get("/health").status == 200)
    is_too_many(served.post("/eval", {"input": "1"}, own), 1, CELLS)
    answer = served.post(session + "/bash", {"cmd": "echo 1"}, own)
    assert answer.json["stdout"] == "1\n", answer
    assert served.request("DELETE", session, headers=own).status == 204
    wait_for(lambda: served.post("/eval", {"input": "1"}, own).status == 200)


@test
def a_process_that_is_killed_keeps_no_cell_of_the_token():
    own = bearer(add("killed", "-c", "1"))
    loop = Loop(own)
    served.kill("il-api")
    wait_for(lambda: served.post("/eval", {"input": "1"}, own).status == 200)
    loop.link.close()


@test
def a_session_gives_way_to_its_owner_alone():
    alice, bob = bearer(add("alice")), bearer(add("bob"))
    with Served(IL_API_TOKENS_FILE=path, IL_API_SESSIONS="1",
                IL_API_CELLS="1") as small:
        first = small.post("/v1/sessions", {"ttl_seconds": 15}, alice)
        assert first.status == 201, first

        def created(who):
            answer = small.post("/v1/sessions", {}, who)
            assert answer.status in (201, 503), answer
            return answer.status == 201 and answer.json["session_id"]

        # Bob gets one when alice's has come to its own end.
        second = wait_for(lambda: created(bob))
        assert time.time() >= first.json["expires_at"] - 1
        third = wait_for(lambda: created(bob))
        assert small.post("/v1/sessions/%s/bash" % second, {"cmd": "true"},
                          bob).status == 404
        assert small.post("/v1/sessions/%s/bash" % third, {"cmd": "true"},
                          bob).status == 200


@test
def of_a_tokens_cells_a_session_at_rest_gives_one_back():
    own = bearer(add("frugal", "-c", "1"))
    first = served.post("/v1/sessions", {}, own).json["session_id"]
    answers = []

    def created():
        answers.append(served.post("/v1/sessions", {}, own))
        return answers[-1].status == 201

    wait_for(created)
    for answer in answers[:-1]:
        is_too_many(answer, 1, CELLS)
    assert len(answers) > 1
    # A run takes none away.
    is_too_many(served.post("/eval", {"input": "1"}, own), 1, CELLS)
    for session, status in ((first, 404),
                            (answers[-1].json["session_id"], 204)):
        assert served.request("DELETE", "/v1/sessions/" + session,
                              headers=own).status == status


try:
    run()
finally:
    served.close()
    folder.cleanup()
