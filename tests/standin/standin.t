#!/usr/bin/python3 -B
"""The stand-in for Discord does what Discord does, and what it is told."""

import http.client
import json
import os
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from client import File, Standin, StandinError  # noqa: E402
from fakeapp import FakeApp, NO_PING  # noqa: E402
from sender import GROUP_ORDER  # noqa: E402
from tap import run, test  # noqa: E402

DEFER = {"type": 5, "data": {"flags": 64}}
answer = {"next": DEFER}
app = FakeApp(lambda interaction: answer["next"](interaction)
              if callable(answer["next"]) else answer["next"])
discord = Standin(app.url, rate_limit=1000)


def command(reply=DEFER, *, name="py", wait=True, **options):
    """Send a command that is answered with `reply`."""
    answer["next"] = reply
    sent = discord.send_command(name, **options)
    if wait:
        sent.wait_answered()
    return sent


def token(interaction):
    """Return the token of an interaction."""
    return interaction.refresh().view["token"]


def kinds():
    """Return the kinds of the violations, and forget them."""
    return [one["kind"] for one in discord.clear_violations()]


def rejected(status, code, got):
    """Assert that a call was rejected so, and forget the violation."""
    assert (got[0], got[1]["code"]) == (status, code), got[:2]
    discord.clear_violations()
    return got[1]


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
def a_deferral_is_thinking_until_it_is_edited():
    sent = command()
    assert sent.original.loading and sent.original.ephemeral
    status, value, _ = app.edit(token(sent), {"content": "4"})
    assert status == 200 and value["content"] == "4"
    sent.wait_final(match="^4$", timeout=2)
    assert not sent.original.loading and sent.original.ephemeral
    assert value["edited_timestamp"] is None
    _, value, _ = app.edit(token(sent), {"content": "5"})
    assert value["edited_timestamp"]
    assert [one["content"] for one in sent.refresh().original.history] == [
        "4", "5"]
    discord.assert_no_violations()


@test
def an_edit_before_the_deferral_is_an_unknown_webhook():
    early = []

    def edit_first(interaction):
        early.append(app.edit(interaction["token"], {"content": "x"}))
        return DEFER
    command(edit_first)
    assert early[0][0] == 404 and early[0][1]["code"] == 10015
    assert "early" in kinds()
    got = app.edit("nonsense", {"content": "x"})
    rejected(404, 10015, got)


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
        discord.settings(deadline=3.0)


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
        discord.settings(deadline=3.0, endpoint=app.url)
        thread.join()
        listener.close()


@test
def a_callback_may_come_in_place_of_the_http_answer():
    modal = {"type": 9, "data": {
        "custom_id": "write:1", "title": "write", "components": [
            {"type": 18, "label": "Content", "component": {
                "type": 4, "custom_id": "content", "style": 2,
                "value": "old"}}]}}
    sent = command((202, b""), wait=False)
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
def a_token_lives_fifteen_minutes():
    sent = command()
    app.edit(token(sent), {"content": "a"})
    discord.advance_clock(880)
    assert app.edit(token(sent), {"content": "b"})[0] == 200
    discord.advance_clock(30)
    rejected(401, 50027, app.edit(token(sent), {"content": "c"}))
    rejected(401, 50027, app.follow_up(token(sent), {"content": "c"}))


@test
def the_user_agent_must_name_a_bot():
    sent = command()
    path = app.hook(token(sent), "/messages/@original")
    for agent in ("Mozilla/5.0", None, "curl/8"):
        rejected(403, 40333, app.call("PATCH", path, {"content": "x"},
                                      headers={"User-Agent": agent}))


@test
def content_is_counted_in_code_points():
    sent = command()
    assert app.edit(token(sent), {"content": "\U0001f40d" * 2000})[0] == 200
    body = rejected(400, 50035, app.edit(token(sent),
                                         {"content": "x" * 2001}))
    assert body["errors"]["content"]["_errors"][0]["code"] == (
        "BASE_TYPE_MAX_LENGTH")
    assert sent.refresh().content[0] == "\U0001f40d"


@test
def empty_messages_are_refused():
    sent = command()
    rejected(400, 50006, app.edit(token(sent), {"content": ""}))
    sent = command({"type": 4, "data": {"content": ""}})
    assert sent.state == "failed" and "50006" in sent.error
    kinds()


@test
def allowed_mentions_must_forbid_all():
    sent = command()
    app.edit(token(sent), {"content": "@everyone", "allowed_mentions": None})
    assert kinds() == ["allowed_mentions"]
    app.edit(token(sent), {"content": "x",
                           "allowed_mentions": {"parse": ["users"]}})
    assert "allowed_mentions" in kinds()
    app.edit(token(sent), {"content": "x"})
    discord.assert_no_violations()


def row(*buttons):
    """Return an action row."""
    return {"type": 1, "components": list(buttons)}


def button(custom_id, **more):
    """Return a button."""
    return dict({"type": 2, "style": 1, "label": custom_id,
                 "custom_id": custom_id}, **more)


@test
def components_are_counted_and_their_ids_unique():
    sent = command()
    bad = (
        [row(button("a"), button("a"))],
        [row(*(button(str(n)) for n in range(6)))],
        [row(button(str(n))) for n in range(6)],
        [row(button("x" * 101))],
        [row(button("a", label="y" * 81))],
        [row({"type": 2, "style": 5, "label": "l", "custom_id": "x"})],
        [row({"type": 3, "custom_id": "s", "options": []})],
        [{"type": 10, "content": "only in V2"}],
        [row(button("a"), {"type": 3, "custom_id": "s", "options": [
            {"label": "a", "value": "a"}]})],
    )
    for components in bad:
        rejected(400, 50035, app.edit(token(sent), {
            "content": "x", "components": components}))
    good = [row(*(button(f"{n}{m}") for m in range(5))) for n in range(5)]
    status, value, _ = app.edit(token(sent), {"content": "x",
                                              "components": good})
    assert status == 200 and value["components"][0]["components"][0]["id"]


@test
def version_two_components_have_limits_of_their_own():
    sent = command()
    text = {"type": 10, "content": "hello"}
    rejected(400, 50035, app.edit(token(sent), {
        "content": "x", "flags": 32768, "components": [text]}))
    rejected(400, 50035, app.edit(token(sent), {
        "flags": 32768, "components": [dict(text) for _ in range(41)]}))
    rejected(400, 50035, app.edit(token(sent), {
        "flags": 32768, "components": [{"type": 10, "content": "x" * 4001}]}))
    rejected(500, 0, app.edit(token(sent), {
        "flags": 32768, "components": [{"type": 10,
                                        "content": "\u20ac" * 3500}]}))
    rejected(400, 50035, app.edit(token(sent), {
        "flags": 32768, "components": [{"type": 13, "file": {
            "url": "attachment://none.txt"}}]}))
    status, _, _ = app.edit(token(sent), {
        "flags": 32768, "components": [{"type": 17, "components": [text, {
            "type": 13, "file": {"url": "attachment://a.txt"}}]}],
        "attachments": [{"id": "0", "filename": "a.txt"}]},
        [("a.txt", b"A")])
    assert status == 200
    assert sent.refresh().original.text() == "hello"


@test
def files_come_by_multipart_and_are_served_again():
    sent = command()
    data = bytes(range(256)) * 10
    status, value, _ = app.edit(token(sent), {
        "content": "x", "attachments": [
            {"id": "0", "filename": "a b é.bin", "description": "d"}]},
        [("whatever", data)])
    assert status == 200, value
    file = sent.refresh().original.attachments[0]
    assert file.filename == "a_b_e.bin" and file.size == len(data)
    assert file.read() == data
    parts = file.view["url"].split("?")[0].replace(discord.origin, "")
    assert discord.http("GET", parts)[0] == 404
    signed = file.view["url"].replace(discord.origin, "")
    forged = signed[:-1] + ("0" if signed[-1] != "0" else "1")
    assert discord.http("GET", signed)[0] == 200
    assert discord.http("GET", forged)[0] == 404
    rejected(400, 50035, app.edit(token(sent), {
        "content": "x", "attachments": [{"id": 0}]}, [("a", b"1")]))
    rejected(400, 50035, app.edit(token(sent), {
        "content": "x", "attachments": [{"id": "1"}]}, [("a", b"1")]))
    status, value, _ = app.edit(token(sent), {
        "content": "y", "attachments": [
            {"id": "0", "filename": "new.txt"}, {"id": file.id}]},
        [("n", b"new")])
    assert [one["filename"] for one in value["attachments"]] == [
        "new.txt", "a_b_e.bin"]
    app.edit(token(sent), {"content": "z", "attachments": []})
    assert sent.refresh().original.attachments == []
    discord.assert_no_violations()


@test
def file_names_are_cleaned():
    sent = command()
    for given, wanted in (("../../etc/passwd", "etc_passwd"),
                          ("__init__.py", "init__.py"), (".env", "env"),
                          ("\u043f\u0440.\u0442", "unknown"),
                          ("a\tb.txt", "a_b.txt")):
        _, value, _ = app.edit(token(sent), {"attachments": [
            {"id": "0", "filename": given}]}, [("x", b"1")])
        assert value["attachments"][0]["filename"] == wanted, value


@test
def links_to_files_expire():
    sent = command(name="put", file=File("a.txt", "A"))
    [file] = json.loads(app.seen[-1][1])["data"]["resolved"][
        "attachments"].values()
    path = file["url"].replace(discord.origin, "")
    assert discord.http("GET", path)[0] == 200
    discord.advance_clock(25 * 3600)
    assert discord.http("GET", path)[0] == 404
    assert sent.state == "answered"


@test
def files_have_a_size_limit():
    sent = command(order={"attachment_size_limit": 1000})
    assert json.loads(app.seen[-1][1])["attachment_size_limit"] == 1000
    listed = {"content": "x", "attachments": [{"id": "0", "filename": "a"}]}
    rejected(413, 40005, app.edit(token(sent), listed, [("a", b"x" * 1001)]))
    assert app.edit(token(sent), listed, [("a", b"x" * 1000)])[0] == 200
    many = [(f"f{n}", b"x") for n in range(10)]
    listed = [{"id": str(n), "filename": f"f{n}"} for n in range(10)]
    assert app.edit(token(sent), {"attachments": listed}, many)[0] == 200
    old = [{"id": one.id} for one in sent.refresh().original.attachments]
    rejected(400, 50035, app.edit(token(sent), {
        "attachments": old + [{"id": "0", "filename": "g"}]}, [("g", b"x")]))


@test
def images_have_a_size_in_points():
    sent = command()
    png = (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (3).to_bytes(4, "big")
           + (2).to_bytes(4, "big"))
    _, value, _ = app.edit(token(sent), {"attachments": [
        {"id": "0", "filename": "p.png"}]}, [("p.png", png)])
    one = value["attachments"][0]
    assert (one["width"], one["height"]) == (3, 2)
    assert one["content_type"] == "image/png"


@test
def follow_ups_come_after_the_first_answer():
    sent = command()
    app.follow_up(token(sent), {"content": "early"})
    assert kinds() == ["followup-before-edit"]
    assert sent.refresh().content == "early"
    status, value, _ = app.follow_up(token(sent), {"content": "second"})
    assert status == 200 and len(sent.refresh().messages) == 2
    assert not sent.messages[1].ephemeral
    assert app.edit(token(sent), {"content": "2"},
                    message=value["id"])[0] == 200
    path = app.hook(token(sent), f"/messages/{value['id']}")
    assert app.call("GET", path)[1]["content"] == "2"
    assert app.call("DELETE", path)[0] == 204
    rejected(404, 10008, app.edit(token(sent), {"content": "3"},
                                  message=value["id"]))
    sent = command(place="group")
    app.edit(token(sent), {"content": "x"})
    for _ in range(5):
        assert app.follow_up(token(sent), {"content": "x"})[0] == 200
    rejected(400, 40094, app.follow_up(token(sent), {"content": "x"}))


@test
def a_message_that_the_user_deletes_is_unknown():
    sent = command()
    discord.delete_message(sent.original)
    rejected(404, 10008, app.edit(token(sent), {"content": "x"}))
    sent.wait_deleted(timeout=1)


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
    pressed.wait_final(match="page 2", timeout=2)
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
def rate_limits_are_told_and_held():
    discord.settings(rate_limit=3, rate_window=0.5)
    try:
        sent = command()
        for left in (2, 1, 0):
            status, _, headers = app.edit(token(sent), {"content": "x"})
            assert status == 200
            assert headers["X-RateLimit-Remaining"] == str(left)
        discord.assert_no_violations()
        status, value, headers = app.edit(token(sent), {"content": "x"})
        assert status == 429 and 0 < value["retry_after"] <= 0.5
        assert "Retry-After" in headers and value["global"] is False
        assert kinds() == ["ratelimit"]
        app.edit(token(sent), {"content": "x"})
        assert "hammered" in kinds()
        other = command()
        assert app.edit(token(other), {"content": "x"})[0] == 200
        time.sleep(0.5)
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
    discord.fault("not_found", "edit", within=0.3)
    sent = command()
    assert app.edit(token(sent), {"content": "x"})[0] == 404
    time.sleep(0.35)
    assert app.edit(token(sent), {"content": "x"})[0] == 200
    discord.clear_faults()
    discord.fault("rate_limit", "edit", retry_after=0.2, scope="shared")
    status, value, headers = app.edit(token(sent), {"content": "x"})
    assert status == 429 and value["retry_after"] == 0.2
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
def commands_are_registered_with_the_bots_token():
    path = f"/applications/{app.application_id}/commands"
    tree = [{"name": "il", "description": "Python", "options": [
        {"type": 1, "name": "py", "description": "run", "options": [
            {"type": 3, "name": "code", "description": "the code"}]}]},
        {"name": "Run Python", "type": 3}]
    bot = {"Authorization": "Bot " + app.bot_token}
    assert app.call("PUT", path, tree)[0] == 401
    status, value, _ = app.call("PUT", path, tree, headers=bot)
    assert status == 200 and value[0]["id"]
    _, again, _ = app.call("PUT", path, tree, headers=bot)
    assert again[0]["id"] == value[0]["id"]
    assert [one["name"] for one in discord.commands()] == ["il",
                                                           "Run Python"]
    for wrong in (
            [{"name": "Il", "description": "x"}],
            [{"name": "il", "description": ""}],
            [{"name": "il", "description": "x" * 101}],
            [{"name": "a b", "description": "x"}],
            [{"name": "Run", "type": 3, "description": "no"}],
            [tree[0], tree[0]],
            [{"name": "il", "description": "x", "options": [
                {"type": 3, "name": "a", "description": "d"},
                {"type": 3, "name": "b", "description": "d",
                 "required": True}]}]):
        rejected(400, 50035, app.call("PUT", path, wrong, headers=bot))
    guild = (f"/applications/{app.application_id}/guilds/"
             "300000000000000001/commands")
    assert app.call("PUT", guild, tree[:1], headers=bot)[0] == 200
    assert app.call("GET", guild, headers=bot)[1][0]["name"] == "il"
    written = discord.write("```py\nprint(1)\n```")
    discord.send({"message_command": "Run Python", "target": written.id}
                 ).wait_answered()
    data = json.loads(app.seen[-1][1])["data"]
    assert data["type"] == 3 and data["target_id"] == written.id
    assert data["resolved"]["messages"][written.id]["content"].startswith("`")


@test
def the_endpoint_is_verified_with_a_good_and_a_bad_signature():
    bot = {"Authorization": "Bot " + app.bot_token}
    status, value, _ = app.call("GET", "/applications/@me", headers=bot)
    assert value["verify_key"] == discord.environment()["DISCORD_PUBLIC_KEY"]
    status, value, _ = app.call("PATCH", "/applications/@me", {
        "interactions_endpoint_url": app.url}, headers=bot)
    assert status == 200 and value["interactions_endpoint_url"] == app.url
    rejected(400, 50035, app.call("PATCH", "/applications/@me", {
        "interactions_endpoint_url": discord.origin + "/"}, headers=bot))


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
                                          timeout=5)
        link.request("GET", "/control/feed?user=" + user)
        links[user] = (link, link.getresponse())
        while links[user][1].readline() != b"event: snapshot\n":
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
def a_thousand_interactions_at_once_are_answered():
    def defer_and_edit(interaction):
        return {"type": 4, "data": {"content": interaction["id"],
                                    "flags": 64,
                                    "allowed_mentions": NO_PING}}
    answer["next"] = defer_and_edit
    discord.settings(deadline=30)
    sent = discord.send_many([
        discord.command_order("py", user=f"u{n}") for n in range(1000)])
    good = discord.wait_many(sent, "final", timeout=60)
    discord.settings(deadline=3)
    assert len(good) == 1000
    assert all(one.view["messages"][0]["content"] == one.id for one in sent)
    discord.assert_no_violations()


@test
def it_ends_quickly_while_someone_waits():
    other = Standin()
    other.start()
    feed = http.client.HTTPConnection("127.0.0.1", other.port, timeout=5)
    feed.request("GET", "/control/feed?user=alice")
    assert feed.getresponse().status == 200
    before = time.monotonic()
    assert other.stop() == 0
    assert time.monotonic() - before < 2
    feed.close()


def main():
    """Start what is needed, run the tests, stop it."""
    with discord:
        app.use(discord)
        try:
            run()
        finally:
            app.close()


if __name__ == "__main__":
    main()
