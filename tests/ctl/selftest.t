#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`ilctl selftest`: tells a right endpoint from wrong ones."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from house import House  # noqa: E402
from client import Standin  # noqa: E402
from fakeapp import FakeApp  # noqa: E402
from tap import run, test  # noqa: E402


class Endpoint(FakeApp):
    """Answers (status, text, type) by whether the signature is right."""

    def __init__(self, good, bad):
        super().__init__(None)
        self.answer = {True: good, False: bad}
        self.bodies = []

    def take(self, handler, body):
        right = self.verifies(handler.headers, body)
        self.bodies.append((right, body))
        status, text, kind = self.answer[right]
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text.encode())


PONG = (200, '{"type":1}', "application/json")
NO = (401, "", "text/plain")


def selftest(good, bad, with_key=True):
    """Returns (exit code, output, requests) of a test of such an endpoint."""
    with House() as house:
        key = os.path.join(house.folder, "key")
        with Standin(key_file=key) as discord:
            endpoint = Endpoint(good, bad)
            endpoint.use(discord)
            line = ["selftest", endpoint.url]
            if with_key:
                line[1:1] = ["--key-file", key]
            code, out, _ = house.ilctl(*line)
            endpoint.close()
            return code, out, endpoint.bodies


@test
def a_right_endpoint_passes():
    code, out, bodies = selftest(PONG, NO)
    assert code == 0 and "FAIL" not in out, out
    assert sorted(right for right, _ in bodies) == [False, True], bodies
    assert all(b'"type":1' in body for _, body in bodies), bodies


@test
def one_that_takes_every_signature_fails():
    code, out, _ = selftest(PONG, PONG)
    assert code == 1 and "wrongly signed" in out and "200 instead" in out, out


@test
def one_that_takes_none_fails():
    code, out, _ = selftest(NO, NO)
    assert code == 1 and "401 instead of 200" in out, out


@test
def a_wrong_pong_fails():
    code, out, _ = selftest((200, '{"type":4}', "application/json"), NO)
    assert code == 1 and "the body is something else" in out, out
    code, out, _ = selftest((200, '{"type":1}', "text/html"), NO)
    assert code == 1 and "Content-Type" in out, out


@test
def a_wrong_address_is_guessed():
    code, out, _ = selftest((404, "", "text/html"), (404, "", "text/html"))
    assert code == 1 and "/interactions" in out, out


@test
def without_a_key_the_half_that_can_be_is_tested():
    code, out, bodies = selftest(PONG, NO, with_key=False)
    assert code == 0 and "no --key-file" in out, out
    assert [right for right, _ in bodies] == [False], bodies


@test
def nobody_there_fails():
    with House() as house:
        code, out, _ = house.ilctl("selftest", "http://127.0.0.1:1/")
        assert code == 1 and "FAIL" in out, out


@test
def a_bad_key_file_is_78():
    with House() as house:
        path = os.path.join(house.folder, "key")
        for text in ("", "{}", '{"seed":"00"}'):
            with open(path, "w") as file:
                file.write(text)
            code, _, errors = house.ilctl("selftest", "--key-file", path,
                                          "http://127.0.0.1:1/")
            assert code == 78 and path in errors, errors


run()
