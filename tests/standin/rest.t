#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The REST API refuses what Discord refuses."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from client import File  # noqa: E402
from harness import (  # noqa: E402
    DEFER, app, button, command, discord, kinds, rejected, row, token, main)
from tap import test  # noqa: E402


@test
def a_deferral_is_thinking_until_it_is_edited():
    sent = command()
    assert sent.original.loading and sent.original.ephemeral
    status, value, _ = app.edit(token(sent), {"content": "4"})
    assert status == 200 and value["content"] == "4"
    sent.wait_final(match="^4$")
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
    sent.wait_deleted()


@test
def commands_are_registered_with_the_bots_token():
    path = f"/applications/{app.application_id}/commands"
    tree = [{"name": "il", "description": "Python", "options": [
        {"type": 1, "name": "py", "description": "run", "options": [
            {"type": 3, "name": "code", "description": "the code"}]}]},
        {"name": "Run Python", "type": 3}]
    bot = {"Authorization": "Bot " + app.bot_token}
    many = [{"type": 3, "name": f"o{n}", "description": "x", "choices": [
        {"name": "n" * m, "value": "v" * m} for m in (100, 10)]}
            for n in range(25)]
    assert app.call("PUT", path, [{"name": "il", "description": "x",
                                   "options": many}], headers=bot)[0] == 200
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
            [{"name": "il", "description": "x",
              "name_localizations": {"de": "Il"}}],
            [{"name": "il", "description": "x",
              "name_localizations": {"tlh": "il"}}],
            [{"name": "il", "description": "x",
              "description_localizations": {"de": "x" * 101}}],
            [{"name": "il", "description": "x", "options": [
                dict(one, description_localizations={"de": "ö" * 100})
                for one in many]}],
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


if __name__ == "__main__":
    main()
