#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What each route says to a method that it does not have, to a path that is
nearly one, and to one that is none.
"""

import re

from served import NOT_FOUND, Served
from tap import run, test

served = Served(IL_API_CELLS="1").__enter__()
ID = "01234567-89ab-4cde-8f01-23456789abcd"

ALLOWED = {
    "/health": "GET",
    "/versions": "GET",
    "/metrics": "GET",
    "/v1/execute": "POST",
    "/v1/execute/stream": "POST",
    "/v1/files": "POST, GET",
    "/v1/files/" + ID: "GET, DELETE",
    "/v1/sessions": "POST",
    "/v1/sessions/x": "DELETE",
    "/v1/sessions/x/bash": "POST",
    "/openapi.json": "GET, HEAD",
    "/docs": "GET, HEAD",
}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS",
           "PROPFIND", "get")


@test
def another_method_is_405_and_the_routes_own_are_allowed():
    for path, allowed in ALLOWED.items():
        for method in METHODS:
            if method in allowed.split(", "):
                continue
            answer = served.request(method, path)
            what = (method, path, answer, dict(answer.headers))
            if method == "get":  # no method at all, says nginx
                assert answer.status in (400, 405), what
                continue
            assert answer.status == 405, what
            assert answer.headers["Allow"] == allowed, what
            assert answer.headers["Content-Type"] == "application/json", what
            want = "" if method == "HEAD" else \
                '{"detail":"Method Not Allowed"}'
            assert answer.text == want, what


@test
def eval_has_manners_of_its_own():
    for method in METHODS[:-1]:
        if method == "POST":
            continue
        answer = served.request(method, "/eval")
        what = (method, answer, dict(answer.headers))
        if method == "OPTIONS":
            assert (answer.status, answer.text) == (200, ""), what
            assert answer.headers["Allow"] == "POST", what
            continue
        assert answer.status == 405, what
        assert answer.headers["Allow"] == "POST, OPTIONS", what
        assert answer.text == ("" if method == "HEAD" else
                               '{"title": "405 Method Not Allowed"}'), what
    for path in ("/eval/", "/eval/x", "/eval//"):
        answer = served.request("POST", path, b"{}")
        assert (answer.status, answer.text) == (
            404, '{"title": "404 Not Found", "description": "%s"}' %
            NOT_FOUND), (path, answer)


@test
def head_of_the_pages_is_their_get_without_the_body():
    for path in ("/openapi.json", "/docs"):
        whole = served.get(path)
        head = served.request("HEAD", path)
        assert (head.status, head.body) == (200, b""), head
        for name in ("Content-Type", "Content-Length",
                     "Content-Security-Policy"):
            assert head.headers[name] == whole.headers[name], name


@test
def slashes_at_the_end_of_a_known_path_are_redirected():
    here = "http://127.0.0.1:%d" % served.port
    for path in ALLOWED:
        for method in ("GET", "POST", "DELETE", "PUT"):
            for end in ("/", "//", "/?a=%20b&c"):
                answer = served.request(method, path + end)
                what = (method, path + end, answer, dict(answer.headers))
                assert (answer.status, answer.body) == (307, b""), what
                assert answer.headers["Location"] == here + path + (
                    "?a=%20b&c" if "?" in end else ""), what
    answer = served.request("POST", "/v1/execute/", b'{"code": "6 * 7"}',
                            {"Content-Type": "application/json"})
    assert answer.status == 307, answer
    answer = served.post(re.sub("^" + here, "", answer.headers["Location"]),
                         {"code": "6 * 7"})
    assert answer.json["stdout"] == "42\n", answer


@test
def the_location_holds_no_byte_of_the_path_as_it_is():
    answer = served.get("/v1/files/a%0d%0aX-Bad:%201%22%C3%A4%25/")
    assert answer.status == 307, answer
    assert answer.headers["Location"].endswith(
        "/v1/files/a%0D%0AX-Bad:%201%22%C3%A4%"), answer.headers["Location"]
    assert "X-Bad" not in answer.headers


@test
def an_id_may_be_as_long_as_nginx_takes_it():
    for name in ("x" * 300, "%c3%a4" * 1300):
        shown = name.replace("%c3%a4", "ä")
        for method, path, text in (
                ("GET", "/v1/files/%s", "File with ID '%s' not found"),
                ("DELETE", "/v1/sessions/%s", "Session '%s' not found")):
            answer = served.request(method, path % name)
            assert (answer.status, answer.text) == (
                404, '{"detail":"%s"}' % text % shown), answer


@test
def other_paths_are_404():
    for path in ("/v1", "/v1/", "/v1/nothing", "/v1/nothing/",
                 "/v1/execute/streams", "/v1/files/a/b", "/v1/files/a/b/",
                 "/v1/sessions/x/bash/y"):
        for method in ("GET", "POST", "DELETE"):
            answer = served.request(method, path)
            assert (answer.status, answer.text) == (
                404, '{"detail":"%s"}' % NOT_FOUND), (method, path, answer)


@test
def what_belongs_to_a_contract_that_is_off_is_not_found():
    with Served(IL_API_CELLS="1", IL_API_CONTRACTS="snekbox") as one:
        assert one.request("GET", "/eval").status == 405
        assert one.request("GET", "/versions").status == 200
        for path, allowed in ALLOWED.items():
            if path.startswith("/v1"):
                for method in allowed.split(", "):
                    answer = one.request(method, path)
                    assert answer.status == 404, (method, path, answer)


try:
    run()
finally:
    served.close()
