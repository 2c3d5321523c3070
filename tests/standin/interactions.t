#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Interactions are worded, signed and answered as by Discord."""

import json
import os
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from client import File, StandinError  # noqa: E402
from fakeapp import NO_PING  # noqa: E402
from harness import (  # noqa: E402
    NAMED, DEFER, answer, app, button, command, discord, kinds, rejected, row,
    token, main)
from sender import GROUP_ORDER  # noqa: E402
from tap import test  # noqa: E402


@test
def a_command_is_signed_and_worded_as_discord_does():
    sent = command(code="print('hé')", share=True)
    headers, body = app.seen[-1]
    value = json.loads(body)
    assert body == json.dumps(value, sort_keys=True, ensure_ascii=False,
                              separators=(",", ":")).encode()
    assert "é".encode() in body
    assert headers["User-Agent"].startswith("Discord-Interactions/1.0")
    assert value["member"]["user"]["username"] == "alice"
    assert value["data"]["options"][0]["options"] == [
        {"name": "code", "type": 3, "value": "print('hé')"},
        {"name": "share", "type": 5, "value": True}]
    for field in ("app_permissions", "attachment_size_limit", "channel",
                  "authorizing_integration_owners", "context", "guild_id",
                  "entitlements", "locale", "token", "version"):
        assert field in value, field
    assert value["id"] == sent.id and sent.answer_type == 5


@test
def direct_messages_have_a_user_and_no_member():
    command(place="dm")
    value = json.loads(app.seen[-1][1])
    assert "member" not in value and value["user"]["username"] == "alice"
    assert value["context"] == 1 and "guild_id" not in value
    command(place="group")
    value = json.loads(app.seen[-1][1])
    assert list(value["authorizing_integration_owners"]) == ["1"]


@test
def broken_signatures_and_stale_times_are_sent_on_order():
    for mode in ("wrong", "short", "long", "odd", "not_hex", "empty",
                 "missing", "malleated", "other_body"):
        sent = command(order={"signature": mode})
        assert sent.state == "refused", (mode, sent)
        assert sent.http_status == 401
    sent = command(order={"signature": "malleated"})
    bad = sent.view["sent"]["headers"]["X-Signature-Ed25519"]
    assert int.from_bytes(bytes.fromhex(bad[64:]), "little") >= GROUP_ORDER
    sent = command(order={"skew": -1000})
    stamp = sent.view["sent"]["headers"]["X-Signature-Timestamp"]
    assert int(stamp) < time.time() - 900
    discord.assert_no_violations()


@test
def an_interaction_can_be_repeated_to_the_byte():
    first = command()
    again = discord.send({"repeat": first.id}).wait_answered()
    assert (again.view["sent"]["body"] == first.view["sent"]["body"])
    assert again.id != first.id
    raw = discord.send({"raw": '{"type":99}'}).wait_answered()
    assert raw.view["sent"]["body"] == '{"type":99}'


@test
def three_seconds_without_an_answer_fail_the_interaction():
    discord.settings(deadline=0.3)
    try:
        sent = command(lambda _: time.sleep(0.6) or DEFER)
        assert sent.state == "failed", sent
        time.sleep(0.4)
        rejected(404, 10015, app.edit(token(sent), {"content": "x"}))
        sent = command(lambda _: (202, b""))
        assert sent.state == "failed", sent
        got = app.call("POST", f"/interactions/{sent.id}/{token(sent)}"
                       "/callback", DEFER)
        rejected(404, 10062, got)
    finally:
        discord.settings(deadline=60)


@test
def an_answer_that_trickles_in_is_late_too():
    listener = socket.create_server(("127.0.0.1", 0))

    def trickle():
        link, _ = listener.accept()
        with link:
            link.recv(65536)
            link.sendall(b"HTTP/1.1 200 OK\r\n")
            time.sleep(0.25)
            link.sendall(b"Content-Type: application/json\r\n")
            time.sleep(0.25)
            link.sendall(b"Content-Length: 10\r\n\r\n{\"type\":5}")

    thread = threading.Thread(target=trickle)
    thread.start()
    port = listener.getsockname()[1]
    discord.settings(deadline=0.4, endpoint=f"http://127.0.0.1:{port}/")
    try:
        sent = command()
        assert sent.state == "failed" and "after" in sent.error, sent
    finally:
        discord.settings(deadline=60, endpoint=app.url)
        thread.join()
        listener.close()


@test
def a_callback_may_come_in_place_of_the_http_answer():
    modal = {"type": 9, "data": {
        "custom_id": "write:1", "title": "write", "components": [
            {"type": 18, "label": "Content", "component": {
                "type": 4, "custom_id": "content", "style": 2,
                "value": "old"}}]}}
    taken = threading.Event()
    sent = command(lambda _: taken.set() or (202, b""), wait=False)
    assert taken.wait(60)
    path = f"/interactions/{sent.id}/{token(sent)}/callback"
    status, value, _ = app.call("POST", path + "?with_response=true", modal)
    assert status == 200 and value["interaction"]["id"] == sent.id, value
    sent.wait_answered()
    assert sent.modal["custom_id"] == "write:1"
    assert sent.modal_values() == {"content": "old"}
    rejected(400, 40060, app.call("POST", path, DEFER))
    answer["next"] = DEFER
    done = discord.submit_modal(sent, {"content": "new\ntext"})
    done.wait_answered()
    data = json.loads(app.seen[-1][1])["data"]
    assert data["components"][0]["component"]["value"] == "new\ntext"
    assert data["custom_id"] == "write:1"


@test
def a_button_edits_its_own_message():
    sent = command({"type": 4, "data": {
        "content": "page 1", "flags": 64, "allowed_mentions": NO_PING,
        "components": [row(button("next:7", label="Next"),
                           button("off", disabled=True))]}})
    sent.wait_final()
    answer["next"] = {"type": 6}
    pressed = discord.press(sent.original, "Next").wait_answered()
    value = json.loads(app.seen[-1][1])
    assert value["type"] == 3 and value["message"]["id"] == sent.original.id
    assert value["data"] == {"component_type": 2, "custom_id": "next:7",
                             "id": 2}
    app.edit(token(pressed), {"content": "page 2"})
    pressed.wait_final(match="page 2")
    assert sent.refresh().content == "page 2"
    answer["next"] = {"type": 7, "data": {"content": "page 3",
                                          "allowed_mentions": NO_PING}}
    discord.press(sent.original, "next").wait_final(match="page 3")
    for wrong in (dict(user="bob"), dict()):
        try:
            discord.press(sent.original, "Next" if wrong else "off", **wrong)
        except StandinError:
            continue
        raise AssertionError(wrong)
    answer["next"] = {"type": 4, "data": {"content": "no", "flags": 64,
                                          "allowed_mentions": NO_PING}}
    other = discord.press(sent.original, "Next", user="bob",
                          order={"force": True}).wait_final()
    assert other.original.owner != sent.original.owner
    discord.assert_no_violations()


@test
def answers_must_fit_the_interaction():
    for reply in ({"type": 6}, {"type": 7, "data": {"content": "x"}},
                  {"type": 8, "data": {"choices": []}}, {"type": 99}, [],
                  (200, b"hello"), (500, b"oops")):
        sent = command(reply)
        assert sent.state == "failed", (reply, sent)
        assert kinds() == ["endpoint"], reply
    command({"type": 5, "data": {"flags": 64 | 4}})
    assert kinds() == ["deferral"]


@test
def autocomplete_brings_choices():
    answer["next"] = {"type": 8, "data": {"choices": [
        {"name": "data/", "value": "data"}]}}
    assert discord.autocomplete("look", focused="path", path="da") == [
        {"name": "data/", "value": "data"}]
    value = json.loads(app.seen[-1][1])
    assert value["type"] == 4
    assert value["data"]["options"][0]["options"][0]["focused"] is True


@test
def autocomplete_knows_what_else_was_typed():
    answer["next"] = {"type": 8, "data": {"choices": []}}
    discord.send({"command": "il", "sub": "look", "focused": "path",
                  "options": {"path": "a", "page": 2}}).wait_answered()
    value = json.loads(app.seen[-1][1])
    assert value["data"]["options"][0]["options"] == [
        {"name": "path", "type": 3, "value": "a", "focused": True},
        {"name": "page", "type": 4, "value": 2}]
    try:
        discord.autocomplete("look", focused="path", page=2)
    except StandinError:
        return
    raise AssertionError("nothing had the focus")


@test
def choices_have_limits():
    def choices(count=1, **more):
        return {"type": 8, "data": {"choices": [
            dict({"name": f"n{n}", "value": f"v{n}"}, **more)
            for n in range(count)]}}
    for good in (choices(25), choices(name="n" * 100, value="v" * 100)):
        answer["next"] = good
        assert discord.autocomplete("look", focused="path", path="x")
    discord.assert_no_violations()
    for bad in (choices(26), choices(name=""), choices(name="n" * 101),
                choices(value=""), choices(value="v" * 101),
                choices(value=5), choices(value=None),
                {"type": 8, "data": {}}, {"type": 8}, DEFER,
                {"type": 4, "data": {"content": "x"}}):
        answer["next"] = bad
        sent = discord.send({"command": "il", "sub": "look", "options": {
            "path": "x"}, "focused": "path"}).wait_answered()
        assert sent.state == "failed", bad
        assert "endpoint" in kinds(), bad


@test
def a_first_answer_is_a_message_that_is_edited_and_followed():
    sent = command({"type": 4, "data": {
        "content": "at once", "allowed_mentions": NO_PING,
        "components": [row(button("a"))]}}).wait_final(match="at once")
    assert not sent.original.loading and not sent.original.ephemeral
    _, value, _ = app.edit(token(sent), {"content": "later"})
    assert value["edited_timestamp"]
    app.follow_up(token(sent), {"content": "too"})
    assert len(sent.refresh().messages) == 2
    discord.assert_no_violations()


@test
def first_answers_are_checked_by_the_openapi_description():
    if not discord.settings()["openapi"]:
        print("# skipped: no copy of Discord's OpenAPI description")
        return
    command({"type": 4, "data": {"content": "x", "tts": "no", "embeds": [
        {"type": 7}], "allowed_mentions": NO_PING}})
    assert "schema" in kinds()
    command({"type": []})
    assert kinds() == ["endpoint"]


@test
def a_message_that_breaks_limits_is_no_answer():
    def select(count, **more):
        return row(dict({"type": 3, "custom_id": "s", "options": [
            {"label": f"l{n}", "value": f"v{n}"} for n in range(count)]},
            **more))
    bad = (
        {"content": "x" * 2001},
        {"content": "x", "components": [select(26)]},
        {"content": "x", "components": [select(0)]},
        {"content": "x", "components": [select(2, max_values=3)]},
        {"content": "x", "components": [select(2, custom_id="")]},
        {"content": "x", "components": [row(button("a")), row(button("a"))]},
        {"content": "x", "components": [row(button("a" * 101))]},
        {},
    )
    for data in bad:
        sent = command({"type": 4, "data": dict(data, flags=64)})
        assert sent.state == "failed", data
        assert "endpoint" in kinds(), data
    good = command({"type": 4, "data": {
        "content": "x" * 2000, "components": [select(25)], "flags": 64,
        "allowed_mentions": NO_PING}})
    for values in ([], ["v1", "v2"], ["v1", "v1"], ["v26"]):
        try:
            discord.select(good.original, "s", values)
        except StandinError:
            continue
        raise AssertionError(values)
    answer["next"] = {"type": 6}
    discord.select(good.original, "s", ["v3"]).wait_answered()
    data = json.loads(app.seen[-1][1])["data"]
    assert data["component_type"] == 3 and data["values"] == ["v3"]
    discord.assert_no_violations()


@test
def a_message_command_brings_the_whole_message():
    file = json.loads(discord.http(
        "POST", "/control/attachment?filename=a.py", b"print(1)")[1])
    said = discord.call("POST", "/control/message", {
        "content": "", "attachments": [file["id"]], "user": "bob"})
    answer["next"] = {"type": 4, "data": {
        "content": "ran", "flags": 64, "allowed_mentions": NO_PING}}
    sent = discord.send({"message_command": "Run Python",
                         "target": said["id"]}).wait_answered()
    data = json.loads(app.seen[-1][1])["data"]
    assert data["type"] == 3 and data["target_id"] == said["id"]
    found = data["resolved"]["messages"][said["id"]]
    assert found["content"] == "" and found["embeds"] == []
    assert found["author"]["username"] == "bob"
    assert found["attachments"][0]["filename"] == "a.py"
    assert found["attachments"][0]["size"] == 8
    assert "ephemeral" not in found["attachments"][0]
    view = sent.refresh().original.view
    assert view["type"] == 23
    assert view["interaction_metadata"]["target_message_id"] == said["id"]
    for order in ({"user": "bob", "target": sent.original.id},
                  {"target": "1"}):
        try:
            discord.send(dict(order, message_command="Run Python"))
        except StandinError:
            continue
        raise AssertionError(order)


@test
def values_are_of_their_options_types():
    path = f"/applications/{app.application_id}/commands"
    bot = {"Authorization": "Bot " + app.bot_token}
    app.call("PUT", path, [{"name": "il", "description": "d", "options": [
        {"type": 1, "name": "py", "description": "d", "options": [
            {"type": 3, "name": "code", "description": "d"},
            {"type": 5, "name": "share", "description": "d"}]}]}],
             headers=bot)
    for wrong in ({"share": "yes"}, {"share": 1}, {"code": True}):
        try:
            command(**wrong)
        except StandinError:
            continue
        raise AssertionError(wrong)
    command(share="yes", order={"force": True})
    [option] = json.loads(app.seen[-1][1])["data"]["options"][0]["options"]
    assert option == {"name": "share", "type": 5, "value": "yes"}
    app.call("PUT", path, [], headers=bot)


@test
def broken_rules_are_written_where_one_wishes():
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                           "standin.py")
    reader, writer = os.pipe()
    with subprocess.Popen(
            [sys.executable, "-B", program, "--verbose", "--endpoint",
             app.url, "--ready-fd", str(writer)], pass_fds=(writer,),
            stderr=subprocess.PIPE, text=True) as process:
        os.close(writer)
        with open(reader) as ready:
            other = type(discord).attach(int(ready.readline()))
        other.send_command("py").wait_answered()
        process.terminate()
        text = process.stderr.read()
    assert "standin: endpoint: the endpoint answered 401" in text, text


@test
def attachments_of_commands_and_modals_are_resolved():
    command(name="put", file=File("é x.py", "print(1)"))
    value = json.loads(app.seen[-1][1])["data"]
    option = value["options"][0]["options"][0]
    file = value["resolved"]["attachments"][option["value"]]
    assert option["type"] == 11 and file["size"] == 8
    assert file["filename"] == "e_x.py" and file["ephemeral"]
    assert file["url"].startswith(discord.origin + "/attachments/")
    assert discord.fetch(file["url"][len(discord.origin):]) == b"print(1)"
    opener = command({"type": 9, "data": {
        "custom_id": "m", "title": "t", "components": [
            {"type": 18, "label": "F", "component": {
                "type": 19, "custom_id": "files"}}]}})
    answer["next"] = DEFER
    discord.submit_modal(opener, {"files": [File("a.txt", "A")]}
                         ).wait_answered()
    for files in ([], [File("a", "A"), File("b", "B")]):
        try:
            discord.submit_modal(opener, {"files": files})
        except StandinError:
            continue
        raise AssertionError(files)
    data = json.loads(app.seen[-1][1])["data"]
    [name] = data["components"][0]["component"]["values"]
    assert data["resolved"]["attachments"][name]["filename"] == "a.txt"


@test
def bad_modals_are_refused():
    def field(**more):
        return {"type": 18, "label": "L", "component": dict({
            "type": 4, "custom_id": "c", "style": 2}, **more)}
    bad = (
        {"custom_id": "m", "title": "t" * 46, "components": [field()]},
        {"custom_id": "m", "title": "t", "components": []},
        {"custom_id": "", "title": "t", "components": [field()]},
        {"custom_id": "m", "title": "t", "components": [field(), field()]},
        {"custom_id": "m", "title": "t", "components": [
            field(value="x" * 4001)]},
        {"custom_id": "m", "title": "t", "components": [
            field(value="xx", max_length=1)]},
        {"custom_id": "m", "title": "t", "components": [
            field(placeholder="x" * 101)]},
        {"custom_id": "m", "title": "t", "components": [
            dict(field(), label="l" * 46)]},
    )
    for data in bad:
        sent = command({"type": 9, "data": data})
        assert sent.state == "failed" and "50035" in sent.error, data
    kinds()


@test
def the_endpoint_is_verified_with_a_good_and_a_bad_signature():
    bot = {"Authorization": "Bot " + app.bot_token}
    status, value, _ = app.call("GET", "/applications/@me", headers=bot)
    assert value["verify_key"] == discord.environment()["DISCORD_PUBLIC_KEY"]
    for url in (NAMED, app.url):
        status, value, _ = app.call("PATCH", "/applications/@me", {
            "interactions_endpoint_url": url}, headers=bot)
        assert status == 200 and value["interactions_endpoint_url"] == url
    rejected(400, 50035, app.call("PATCH", "/applications/@me", {
        "interactions_endpoint_url": discord.origin + "/"}, headers=bot))


@test
def a_thousand_interactions_at_once_are_answered():
    def defer_and_edit(interaction):
        return {"type": 4, "data": {"content": interaction["id"],
                                    "flags": 64,
                                    "allowed_mentions": NO_PING}}
    answer["next"] = defer_and_edit
    sent = discord.send_many([
        discord.command_order("py", user=f"u{n}") for n in range(1000)])
    good = discord.wait_many(sent)
    assert len(good) == 1000
    assert all(one.view["messages"][0]["content"] == one.id for one in sent)
    discord.assert_no_violations()


if __name__ == "__main__":
    main()
