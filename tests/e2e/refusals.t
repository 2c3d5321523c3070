#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What people may not do, and what they are told then."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from service import Service, wait_for  # noqa: E402
from client import File  # noqa: E402
from tap import run, test  # noqa: E402

service = Service(IL_TIMEOUT_SECONDS="60", IL_QUOTA="8m", IL_USER_RATE="200")
OUTSIDE = "inside your sandbox"


@test
def the_first_command_makes_a_sandbox():
    for number, (command, options) in enumerate((
            ("py", {"code": "'f' + 'irst'"}), ("look", {}),
            ("write", {"name": "x", "content": "y"}), ("rm", {"name": "x"}),
            ("get", {"path": "x"}), ("put", {"file": File("x", "y")}))):
        user = f"new{number}"
        text = service.say(command, user=user, **options)
        assert "was made for this" in text, (command, text)
        text = service.run("1 + 1", user=user)
        assert "was made" not in text and "2" in text, text
    text = service.say("delete", user="nobody")
    assert "no sandbox" in text and "/il create" in text, text


@test
def paths_that_leave_the_sandbox_are_refused():
    service.run("import os\nos.symlink('/etc', 'link')\n"
                "os.symlink('/etc/passwd', 'file')\n"
                "os.mkdir('real')\nopen('real/f', 'w').write('real')\n"
                "os.symlink('real', 'inner')")
    for path in ("../x", "/etc/passwd", "real/../../x", "link/passwd", "file",
                 "inner/f", "n" * 256, "/".join(["d"] * 600), "a\0b"):
        for command, options in (("look", {"path": path}),
                                 ("get", {"path": path}),
                                 ("rm", {"name": path}),
                                 ("write", {"name": path, "content": "no"}),
                                 ("put", {"file": File("x", "no"),
                                          "path": path}),
                                 ("py", {"file": path})):
            if command == "rm" and path in ("file",):
                continue  # removing a link removes the link
            text = service.say(command, **options)
            assert OUTSIDE in text, (command, path, text)
            assert "root:" not in text, (command, path, text)
    text = service.run("print(open('real/f').read())")
    assert "real" in text, text


@test
def an_expired_sandbox_is_told_about_and_made_anew():
    service.create("carol")
    service.run("open('old', 'w').close()", user="carol")
    row = service.sql("SELECT id FROM sandboxes ORDER BY created_at DESC, "
                      "rowid DESC LIMIT 1")[0][0]
    service.sql("UPDATE sandboxes SET expires_at = unixepoch() - 5 "
                "WHERE id = ?", row)
    text = service.run("'n' + 'ew'", user="carol")
    assert "new" in text and "expired" in text, text
    assert "old" not in service.say("look", user="carol")


@test
def over_quota_says_so():
    text = service.run("open('big', 'wb').write(bytes(20 << 20))")
    assert "quota" in text.lower() or "full" in text.lower(), text
    text = service.say("write", name="more", content="x" * 4000)
    assert "full" in text.lower() or "quota" in text.lower() \
        or "room" in text.lower(), text
    text = service.say("put", file=File("large.bin", bytes(9 << 20)))
    assert "quota" in text.lower() or "full" in text.lower() \
        or "room" in text.lower() or "large" in text.lower(), text
    service.say("rm", name="big")


def cancel(sent):
    """End a run."""
    wait_for(lambda: "Cancel" in sent.refresh().original.buttons())
    service.discord.press(sent.original, "Cancel")
    sent.wait_final(match="cancelled")
    wait_for(lambda: not service.sql(
        "SELECT 1 FROM jobs WHERE state = 'started'"))


@test
def a_second_run_is_told_that_one_is_running():
    first = service.discord.send_command(
        "py", user="alice", code="while True: pass")
    first.wait_answered()
    text = service.run("print('second')")
    assert "running" in text.lower() and "second" not in text, text
    cancel(first)
    assert "third" in service.run("print('third')")


@test
def another_sandbox_does_not_wait():
    service.create("dave")
    first = service.discord.send_command(
        "py", user="alice", code="while True: pass")
    first.wait_answered()
    assert "free" in service.run("print('free')", user="dave")
    first.refresh()
    assert service.sql("SELECT 1 FROM jobs WHERE state = 'started' AND "
                       "interaction_id = ?", int(first.id)), first
    cancel(first)


@test
def someone_elses_button_is_refused_privately():
    service.run("import os\nos.makedirs('l', exist_ok=True)\n"
                "for i in range(30): open(f'l/{i}', 'w').close()")
    sent = service.discord.send_command("look", user="alice", path="l")
    sent.wait_final()
    pressed = service.discord.press(sent.original, "look-next", user="dave",
                                    order={"force": True})
    pressed.wait_answered()
    assert pressed.original.ephemeral
    assert "yours" in pressed.original.text() \
        or "belongs" in pressed.original.text(), pressed
    service.say("look", path="~")


@test
def requirements_that_are_options_or_paths_are_refused():
    for packages, word in (
            ("--index-url http://x", "not a requirement"),
            ("-r req.txt", "not a requirement"),
            ("six --target=/tmp", "not a requirement"),
            ("./here", "not a requirement"),
            ("/tmp/x", "not a requirement"),
            ("http://x/y.whl", "not a requirement"),
            ("'six @ file:///x'", "not a requirement"),
            ("six @ file:///x", "not a requirement"),
            ("a b;", "not a requirement"),
            ("git+https://x", "not a requirement"),
            ("six\n--pre", "not a requirement"),
            ("'unclosed", "quote"), ("  ", "at least one")):
        text = service.say("pip", packages=packages)
        assert word in text, (packages, text)
    assert not service.sql("SELECT 1 FROM jobs WHERE kind = 'pip' "
                           "AND outcome != 'not a requirement'")


@test
def unknown_commands_and_options_get_a_friendly_private_answer():
    for command, options in (("teleport", {}), ("py", {"speed": 9})):
        sent = service.discord.send_command(
            command, user="alice", **options)
        sent.wait_final()
        assert "I do not know" in sent.original.text(), sent
        assert sent.original.ephemeral, sent


@test
def too_many_requests_are_told():
    most = int(service.settings["IL_USER_RATE"])
    sent = service.discord.send_many(
        [service.discord.command_order("py", user="eve")    # an editor each
         for _ in range(most + 5)])
    refused = [one.original for one in sent
               if one.wait_answered().answer_type == 4]
    assert len(refused) == 5, [one.text() for one in refused]
    assert all(one.ephemeral and "Wait a minute" in one.text()
               for one in refused)
    assert "running" in service.say("health", user="frank")


@test
def nothing_broke_discords_rules():
    service.assert_kept_discords_rules()


with service:
    service.create()
    run()
