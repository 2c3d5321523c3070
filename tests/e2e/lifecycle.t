#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Starting, ending, starting again, and the age of sandboxes."""

import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from service import Service, wait_for  # noqa: E402
from tap import run, test  # noqa: E402

service = Service(IL_RETENTION_SECONDS="3600")


def sandbox(user):
    """Return the id of a user's sandbox, made for it."""
    before = {row[0] for row in service.sql("SELECT id FROM sandboxes")}
    service.create(user)
    after = {row[0] for row in service.sql("SELECT id FROM sandboxes")}
    return (after - before).pop()


def expire(name):
    """Let a sandbox be too old."""
    service.sql("UPDATE sandboxes SET expires_at = unixepoch() - 5 "
                "WHERE id = ?", name)


def on_disk(name):
    """Whether a sandbox's folder is there."""
    return os.path.exists(os.path.join(service.settings["IL_BASE_DIR"], name))


@test
def two_do_not_run_in_one_folder():
    code, _, errors = service.ilctl("run")
    assert code == 78 and "another ilctl" in errors, (code, errors)
    assert "served" in service.run("print('ser' + 'ved')")


def begin(seconds):
    """Begin a run that takes so long."""
    service.discord.send_command(
        "py", user="alice",
        code=f"import time\ntime.sleep({seconds})").wait_answered()
    wait_for(lambda: service.sql("SELECT 1 FROM jobs WHERE state = 'started'"))
    assert service.containers()


def assert_nothing_left():
    """No process, container, volume, device or socket is left."""
    assert not service.left_over(), service.left_over()
    left = [name for name in os.listdir(service.settings["IL_STATE_DIR"])
            if name.endswith((".sock", ".pid")) or name == "cells"]
    assert not left, left


def last_job():
    """Return what became of the last command."""
    return service.sql("SELECT state, outcome FROM jobs ORDER BY id DESC "
                       "LIMIT 1")[0]


def endings():
    with open(service.log, errors="replace") as file:
        return file.read().count("ending: what runs has")


@test
def the_end_waits_for_what_runs_and_leaves_nothing():
    begin(11)
    assert service.stop(signal.SIGTERM) == 0
    assert last_job() == ("delivered", "exit 0"), last_job()
    assert_nothing_left()
    service.start()


@test
def a_second_signal_does_not_wait_and_leaves_nothing():
    begin(30)
    before = endings()
    began = time.monotonic()
    service.process.send_signal(signal.SIGINT)
    wait_for(lambda: endings() > before)
    wait_for(lambda: time.monotonic() > began + 1.1)  # or it is the first one
    assert service.stop(signal.SIGINT) == 0
    assert time.monotonic() - began < 18, time.monotonic() - began
    assert last_job()[0] == "started", last_job()
    assert_nothing_left()
    service.start()
    wait_for(lambda: last_job()[1] == "interrupted")


@test
def sandboxes_directories_and_buttons_outlive_a_restart():
    service.run("import os\nos.makedirs('deep/in', exist_ok=True)\n"
                "for i in range(30): open(f'deep/in/f{i:02}', 'w').close()")
    service.say("look", path="deep/in")
    view = service.sql("SELECT max(id) FROM views")[0][0]
    service.stop()
    service.start()
    text = service.run("import os\nprint(os.getcwd(), len(os.listdir()))")
    assert "/workspace/deep/in 30" in text, text
    # The stand-in has forgotten the message; its button is known here.
    message = service.discord.send_command("look", user="alice")
    message.wait_final()
    control = message.original.control("look-next")
    old = f"{control['custom_id'].partition(':')[0]}:{view}"
    pressed = service.discord.press_id(message.original, old, user="alice",
                                       order={"force": True})
    pressed.wait_final()
    assert "f20" in message.refresh().original.content, message


@test
def what_expires_is_removed_while_running():
    name = sandbox("bob")
    service.run("open('old', 'w').close()", user="bob")
    assert on_disk(name)
    expire(name)
    wait_for(lambda: not on_disk(name))
    text = service.run("'n' + 'ew'", user="bob")
    assert "new" in text and "expired" in text, text
    assert "old" not in service.say("look", user="bob")


@test
def use_keeps_a_sandbox():
    name = sandbox("carol")
    service.sql("UPDATE sandboxes SET expires_at = unixepoch() + 30 "
                "WHERE id = ?", name)
    service.run("1", user="carol")
    left = service.sql("SELECT expires_at - unixepoch() FROM sandboxes "
                       "WHERE id = ?", name)[0][0]
    assert left > 3500, left


@test
def ilctl_expire_removes_it_at_once():
    names = [sandbox(user) for user in ("dave", "erin")]
    service.run("1", user="dave")   # its cell is warm: that ends first
    for name in names:
        expire(name)
    code, out, errors = service.ilctl("expire")
    assert code == 0, (out, errors)
    wait_for(lambda: not any(map(on_disk, names)))
    assert "0 left" in out, out
    kept = service.ilctl("expire")[1]
    assert "0 removed" in kept, kept
    assert "served" in service.run("print('ser' + 'ved')")


@test
def nothing_broke_discords_rules():
    service.assert_kept_discords_rules()


with service:
    service.create()
    run()
