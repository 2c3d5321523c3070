#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The stand-in fails on order, tells what it saw, and ends."""

import http.client
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from client import Standin  # noqa: E402
from fakeapp import NO_PING  # noqa: E402
from harness import (  # noqa: E402
    app, command, discord, kinds, token, main)
from tap import test  # noqa: E402


@test
def rate_limits_are_told_and_held():
    discord.settings(rate_limit=3, rate_window=600)
    try:
        sent = command()
        for left in (2, 1, 0):
            status, _, headers = app.edit(token(sent), {"content": "x"})
            assert status == 200
            assert headers["X-RateLimit-Remaining"] == str(left)
        discord.assert_no_violations()
        status, value, headers = app.edit(token(sent), {"content": "x"})
        assert status == 429 and 0 < value["retry_after"] <= 600
        assert "Retry-After" in headers and value["global"] is False
        assert kinds() == ["ratelimit"]
        app.edit(token(sent), {"content": "x"})
        assert "hammered" in kinds()
        other = command()
        assert app.edit(token(other), {"content": "x"})[0] == 200
        # a limit that ends, as soon as two requests come in time for it
        discord.settings(rate_limit=1, rate_window=0.5)
        sent, status = command(), 200
        while status == 200:
            status, value, _ = app.edit(token(sent), {"content": "x"})
        assert status == 429 and 0 < value["retry_after"] <= 0.5
        assert kinds() == ["ratelimit"]
        time.sleep(value["retry_after"])
        assert app.edit(token(sent), {"content": "x"})[0] == 200
    finally:
        discord.settings(rate_limit=1000, rate_window=2.0)


@test
def faults_strike_as_often_as_told():
    sent = command()
    discord.fault("not_found", "edit", count=2)
    for wanted in (404, 404, 200):
        assert app.edit(token(sent), {"content": "x"})[0] == wanted
    discord.fault("status", "edit", status=503, skip=1)
    for wanted in (200, 503, 200):
        assert app.edit(token(sent), {"content": "x"})[0] == wanted
    discord.fault("not_found", "edit", within=600)
    sent = command()
    assert app.edit(token(sent), {"content": "x"})[0] == 404
    discord.clear_faults()
    discord.fault("not_found", "edit", within=0.1)
    time.sleep(0.1)
    assert app.edit(token(sent), {"content": "x"})[0] == 200
    discord.clear_faults()
    discord.fault("rate_limit", "edit", retry_after=60, scope="shared")
    status, value, headers = app.edit(token(sent), {"content": "x"})
    assert status == 429 and value["retry_after"] == 60
    assert headers["X-RateLimit-Scope"] == "shared"
    app.edit(token(sent), {"content": "x"})
    assert kinds() == ["hammered"]
    discord.fault("cloudflare", "edit", retry_after=3)
    status, value, headers = app.edit(token(sent), {"content": "x"})
    assert status == 429 and isinstance(value, bytes)
    assert headers["Retry-After"] == "3"
    discord.fault("garbage")
    status, value, _ = app.edit(token(sent), {"content": "x"})
    assert status == 200 and isinstance(value, bytes)
    assert [one["hits"] for one in discord.faults()] == [1, 1, 1]
    discord.clear_faults()
    kinds()


@test
def connections_break_on_order():
    sent = command()
    for kind in ("reset", "hang", "truncated"):
        discord.fault(kind, "edit", seconds=0.1, count=1)
        try:
            app.edit(token(sent), {"content": kind})
        except Exception as error:
            if kind == "reset":
                assert type(error) is ConnectionResetError, repr(error)
            continue
        raise AssertionError(kind)
    assert sent.refresh().original.loading
    discord.fault("reset", "edit", applied=True)
    try:
        app.edit(token(sent), {"content": "done"})
    except Exception:
        pass
    assert sent.refresh().content == "done"
    discord.fault("slow", "edit", seconds=0.3)
    before = time.monotonic()
    assert app.edit(token(sent), {"content": "late"})[0] == 200
    assert time.monotonic() - before >= 0.3
    discord.clear_faults()


@test
def bodies_are_checked_against_the_openapi_description():
    if not discord.settings()["openapi"]:
        print("# skipped: no copy of Discord's OpenAPI description")
        return
    sent = command()
    app.edit(token(sent), {"content": 5})
    assert "schema" in kinds()


@test
def the_request_log_tells_what_came():
    sent = command()
    app.edit(token(sent), {"content": "x", "attachments": [
        {"id": "0", "filename": "a"}]}, [("a", b"123")])
    [entry] = discord.requests(interaction=sent.id)
    assert entry["route"] == "edit" and entry["status"] == 200
    assert entry["payload"]["content"] == "x"
    assert entry["files"][0]["size"] == 3
    assert "authorization" not in entry["headers"]


@test
def other_sites_cannot_use_the_control_interface():
    json_type = {"Content-Type": "application/json"}
    for headers in (dict(json_type, Origin="https://evil.example"),
                    dict(json_type, Host="evil.example"),
                    {"Content-Type": "text/plain"}):
        status, _ = discord.http("POST", "/control/reset", b"{}", headers)
        assert status in (400, 403), headers


@test
def the_feed_shows_each_user_their_own():
    links = {}
    for user in ("alice", "bob"):
        link = http.client.HTTPConnection("127.0.0.1", discord.port,
                                          timeout=60)
        link.request("GET", "/control/feed?user=" + user)
        links[user] = (link, link.getresponse())
        while links[user][1].readline() != b"event: state\n":
            pass
    sent = command(user="alice")
    app.edit(token(sent), {"content": "only alice"})
    command({"type": 4, "data": {"content": "for all",
                                 "allowed_mentions": NO_PING}}, user="alice")
    seen = {}
    for user, (link, stream) in links.items():
        text = b""
        while b"for all" not in text:
            text += stream.readline()
        seen[user] = text
        link.close()
    assert b"only alice" in seen["alice"]
    assert b"only alice" not in seen["bob"]


@test
def it_ends_quickly_while_someone_waits():
    other = Standin()
    other.start()
    feed = http.client.HTTPConnection("127.0.0.1", other.port, timeout=60)
    feed.request("GET", "/control/feed?user=alice")
    assert feed.getresponse().status == 200
    before = time.monotonic()
    assert other.stop() == 0
    assert time.monotonic() - before < 20
    feed.close()


if __name__ == "__main__":
    main()
