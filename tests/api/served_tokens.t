#!/usr/bin/python3
"""IL_API_TOKENS_FILE: who may use the HTTP APIs."""

import os
import subprocess
import tempfile

from served import Served
from service import BUILD
from tap import run, test

folder = tempfile.TemporaryDirectory(prefix="inline-api-")
path = os.path.join(folder.name, "tokens")


def ilctl(*words):
    return subprocess.run([os.path.join(BUILD, "bin", "ilctl"), "token", "-f",
                           path, *words], check=True, capture_output=True,
                          text=True).stdout


def add(name):
    return next(word for word in ilctl("add", name).split()
                if word.startswith("il_"))


token = add("first")
served = Served(IL_API_TOKENS_FILE=path).__enter__()


def evaluate(authorization=None):
    return served.post("/eval", {"input": "print(1)"},
                       {"Authorization": authorization}
                       if authorization else {})


@test
def who_has_one_gets_in():
    answer = evaluate("Bearer " + token)
    assert answer.status == 200 and answer.json["stdout"] == "1\n", answer


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
    for path_ in ("/health", "/openapi.json", "/docs", "/redoc"):
        assert served.get(path_).status == 200, path_


@test
def the_file_is_read_again_when_it_changes():
    second = add("second")
    assert evaluate("Bearer " + second).status == 200
    ilctl("revoke", "second")
    assert evaluate("Bearer " + second).status == 401
    assert evaluate("Bearer " + token).status == 200


try:
    run()
finally:
    served.close()
    folder.cleanup()
