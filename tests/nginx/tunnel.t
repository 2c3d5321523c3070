#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`ilctl run` behind a tunnel that brings every path, under a name of its own:
/interactions is for whom it is meant, the HTTP APIs are not."""

import http.client
import os
import socket
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "api"))
from served import Served  # noqa: E402
from tap import run, test  # noqa: E402

AWAY = {"Host": "some.tunnel.example"}


@test
def interactions_are_answered():
    answer = served.post("/interactions", {}, AWAY)
    assert answer.status == 401, answer


@test
def nothing_runs_for_strangers():
    for path, body in (("/eval", {"input": "1"}), ("/v1/sessions", {}),
                       ("/v1/execute", {"code": "1"}),
                       ("/v1/execute/stream", {"code": "1"})):
        answer = served.post(path, body, AWAY)
        assert answer.status == 403 and "/docs" in answer.text, (path, answer)
        assert served.post(path, body).status in (200, 201), path


@test
def nothing_is_told_to_strangers():
    for path in "/v1/files", "/versions", "/metrics":
        answer = served.get(path, **AWAY)
        assert answer.status == 403 and "/docs" in answer.text, (path, answer)
        assert served.get(path).status == 200, path
    assert served.get("/", **AWAY).status == 421
    answer = served.get("/health", **AWAY)
    assert answer.status == 200 and sorted(answer.json) == [
        "message", "status", "version"], answer
    assert answer.json["status"] == "ok", answer
    assert "free_bytes" in served.get("/health").json["inline"]


@test
def nor_to_those_for_whom_a_proxy_of_another_name_asks():
    for name in ("X-Forwarded-For", "X-Real-IP", "Forwarded", "Via"):
        proxy = {"Host": "localhost", name: "192.0.2.1"}
        answer = served.post("/eval", {"input": "1"}, proxy)
        assert answer.status == 403, (name, answer)
        assert served.get("/", **proxy).status == 421, name
        assert served.post("/interactions", {}, proxy).status == 401, name
    assert served.post("/eval", {"input": "1"},
                       {"Host": "localhost"}).status == 200


@test
def nor_to_those_who_name_this_machine_before_the_header_does():
    for method, path in (("POST", "/eval"), ("POST", "/v1/execute"),
                         ("GET", "/v1/files"), ("GET", "/metrics")):
        for name, status in (("some.tunnel.example", 403),
                             ("LocalHost.:80", None)):
            with socket.create_connection(("127.0.0.1", served.port),
                                          30) as link:
                link.sendall(b"%s http://localhost%s HTTP/1.1\r\nHost: %s\r\n"
                             b"Content-Length: 0\r\n\r\n" % (
                                 method.encode(), path.encode(),
                                 name.encode()))
                reply = http.client.HTTPResponse(link)
                reply.begin()
                assert (reply.status == 403) == (status == 403), (
                    path, name, reply.status)


def status_from(address, method, path, **headers):
    """The status of a request that comes from this address."""
    link = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60,
                                      source_address=(address, 0))
    try:
        link.request(method, path, b'{"input": "1"}', {
            "Content-Type": "application/json", **headers})
        return link.getresponse().status
    finally:
        link.close()


@test
def a_network_that_is_trusted_asks_by_any_name():
    for address, status in ("127.0.0.7", 200), ("127.0.0.8", 403):
        assert status_from(address, "POST", "/eval", **AWAY) == status
        assert status_from(address, "GET", "/metrics", **AWAY) == status
    assert status_from("127.0.0.7", "POST", "/eval", **AWAY,
                       **{"X-Forwarded-For": "192.0.2.1"}) == 403
    assert status_from("127.0.0.7", "POST", "/eval", **AWAY,
                       Origin="http://evil.example") == 403


with Served(IL_HTTP_TRUST="127.0.0.6/31") as served:
    run()
