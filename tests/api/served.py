# SPDX-License-Identifier: MIT
"""The HTTP APIs as clients reach them: `ilctl run` in a folder of its own, real
cells, and requests over HTTP.

    with Served(IL_API_CELLS="2") as served:
        answer = served.post("/eval", {"input": "print(1)"})
        answer.status, answer.headers["Content-Type"], answer.json
"""

import contextlib
import http.client
import json
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "e2e"),
                os.path.join(os.path.dirname(HERE), "standin")]

from service import Service, wait_for  # noqa: E402  (needs the path above)

JSON = {"Content-Type": "application/json"}
# What a refusal says is to be done.
NOT_FOUND = "Not Found; /docs lists what there is"
OTHER_SITE = "Forbidden to a page of another site; /docs says who may ask"
NO_TOKENS = ("Closed to others while IL_API_TOKENS_FILE is not set. On this "
             "machine ask localhost or 127.0.0.1; /docs says more")


class Answer:
    """Status, headers, body; its JSON where it is that."""

    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def text(self):
        return self.body.decode()

    def __repr__(self):
        return "%d %r" % (self.status, self.body[:500])


class Served(Service):
    """The service, and a client."""

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port,
                                          timeout=timeout)

    def request(self, method, path, body=None, headers=None, timeout=60,
                **more):
        link = self.connect(timeout)
        try:
            link.request(method, path, body, headers or {}, **more)
            return Answer(link.getresponse())
        finally:
            link.close()

    def get(self, path, **headers):
        return self.request("GET", path, headers=headers)

    def post(self, path, body, headers=None, **more):
        """A body that is no bytes is sent as JSON."""
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        return self.request("POST", path, body, {**JSON, **(headers or {})},
                            **more)

    def eval(self, **fields):
        """POST /eval; the answer's JSON."""
        answer = self.post("/eval", fields)
        assert answer.status == 200, answer
        return answer.json

    def execute(self, code, **fields):
        """POST /v1/execute; the answer's JSON."""
        answer = self.post("/v1/execute", {"code": code, **fields})
        assert answer.status == 200, answer
        return answer.json


def has_process(mark):
    """Does a process of the machine, also one in a cell, have such a word?"""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if b"\0%s\0" % mark.encode() in file.read():
                    return True
    return False


def open_below(folder, pids):
    """How many files of a folder these processes have in hand: of nginx's
    there is no name any more.
    """
    found = 0
    for pid in pids:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found += os.readlink(f"/proc/{pid}/fd/{fd}").startswith(folder)
    return found


__all__ = ["Answer", "JSON", "Served", "has_process", "open_below", "wait_for"]
