#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Discord errs, limits and vanishes: the final answer is never dropped while
the token lives, and nothing is sent after that."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from service import Service, wait_for  # noqa: E402
from client import File  # noqa: E402
from tap import run, test  # noqa: E402

# Every answer is an edit.
service = Service(IL_WORKERS="16", IL_CELLS="16", IL_TUNE_WARM_CELLS="16",
                  IL_TUNE_INSTANT_MS="0")
# Holds its answer back until the fault for it is in force.
HELD = "import time\ntime.sleep(1.2)\nprint('de' + 'livered')\n"
# What Discord does, and how many edits it has answered in the end.
TRANSIENT = {
    "not-found": ({"kind": "not_found", "count": 5}, 6),
    "user-limit": ({"kind": "rate_limit", "retry_after": 1.5}, 2),
    "shared-limit": ({"kind": "rate_limit", "scope": "shared",
                      "retry_after": 0.4, "count": 3}, 4),
    "500": ({"kind": "status", "status": 500, "count": 2}, 3),
    "502": ({"kind": "status", "status": 502, "body": "<html>bad gateway",
             "headers": [["Content-Type", "text/html"]]}, 2),
    "503": ({"kind": "status", "status": 503}, 2),
    "reset": ({"kind": "reset", "count": 2}, 3),
    "truncated": ({"kind": "truncated", "applied": True}, 2),
    "hang": ({"kind": "hang", "seconds": 120}, 1),
    "long-outage": ({"kind": "status", "status": 500, "count": 6}, 7),
}


def hold(user="alice", more="", **fault):
    """Run something whose answer meets a fault; returns the interaction."""
    sent = service.discord.send_command("py", user=user, code=HELD + more)
    if fault:
        service.discord.fault(route="edit", interaction=sent.id, **fault)
    return sent.wait_answered()


def edits(sent):
    """Return the requests to edit that were made for an interaction."""
    return service.discord.requests(route="edit", interaction=sent.id)


def state(sent):
    """Return the state of an interaction's job."""
    return service.sql("SELECT state FROM jobs WHERE interaction_id = ?",
                       int(sent.id))[0][0]


@test
def what_passes_is_survived_and_nothing_runs_twice():
    write = "open('ran.txt', 'a').write('x')"
    sent = {name: hold(name, write, **fault)
            for name, (fault, _) in TRANSIENT.items()}
    for name, one in sent.items():
        one.wait_final()
        assert "delivered" in one.original.content, (name, one)
        assert one.original.attachment("ran.txt").text() == "x", (name, one)
        tries = len(edits(one))
        assert tries == TRANSIENT[name][1], (name, tries)
        wait_for(lambda: state(one) == "delivered")
        assert name == "hang" or edits(one)[0]["fault"], edits(one)


@test
def rate_limits_are_waited_out():
    service.discord.clear_faults()
    sent = hold(kind="rate_limit", scope="global", retry_after=1.0)
    sent.wait_final()
    first, second = edits(sent)
    assert second["time"] - first["time"] >= 1.0, (first, second)


@test
def cloudflares_block_is_waited_out():
    sent = hold(kind="cloudflare", retry_after=2)
    sent.wait_final()
    first, second = edits(sent)
    assert second["time"] - first["time"] >= 2.0, (first, second)


@test
def an_answer_outlives_its_worker_while_discord_is_away():
    sent = hold(kind="status", status=503, count=0)
    wait_for(lambda: state(sent) == "finished")
    service.kill("il-worker")
    tries = len(edits(sent))
    wait_for(lambda: len(edits(sent)) > tries)
    service.discord.clear_faults()
    sent.wait_final(match="delivered")
    wait_for(lambda: state(sent) == "delivered")


@test
def refused_files_are_left_out_and_named():
    for status, code in (413, 50045), (400, 50035):
        sent = hold(more="open('p.txt', 'a').write('x')", kind="status",
                    status=status, code=code)
        sent.wait_final()
        message = sent.original
        assert "delivered" in message.content and "p.txt" in message.content
        assert not message.attachments, message


@test
def an_answer_that_discord_refuses_comes_as_a_file_or_as_its_reason():
    fault = {"kind": "status", "status": 400, "code": 200000,
             "message": "Message was blocked by automatic moderation"}
    sent = hold(more="print('`' * 5)", **fault)
    sent.wait_final()
    text = sent.original.attachment("output.txt").text()
    assert "delivered\n`````\n" in text, text
    sent = hold(**fault, count=2)
    sent.wait_final()
    text = sent.original.content
    assert "blocked by automatic moderation" in text, text
    assert "200000" in text and "reference" in text, text


@test
def a_message_deleted_by_its_user_is_given_up_quietly():
    sent = hold()
    service.discord.delete_message(sent.refresh().original)
    wait_for(lambda: state(sent) == "undeliverable")
    assert not service.discord.requests(route="followup", interaction=sent.id)


@test
def a_token_that_is_too_old_is_left_alone():
    sent = hold(kind="status", status=503, count=0)
    wait_for(lambda: state(sent) == "finished")
    service.sql("UPDATE jobs SET received_ms = received_ms - 900000 "
                "WHERE interaction_id = ?", int(sent.id))
    wait_for(lambda: state(sent) == "undeliverable")
    tries = len(edits(sent))
    assert service.sql("SELECT token, body FROM jobs WHERE "
                       "interaction_id = ?", int(sent.id)) == [("", None)]
    service.discord.clear_faults()
    service.run("print('other work')")
    assert len(edits(sent)) == tries


@test
def an_upload_that_discord_does_not_give_out_is_told():
    for kind, fields in (("not_found", {}), ("status", {"status": 500})):
        service.discord.fault(kind, "attachment", count=0, **fields)
        text = service.say("put", file=File("a.txt", "a"))
        assert "Discord" in text and "again" in text, text
        service.discord.clear_faults()
    service.discord.fault("reset", "attachment")
    service.say("put", file=File("b.txt", "b-text"))
    assert "b-text" in service.say("look", path="b.txt")


@test
def a_dead_token_is_tried_once():
    sent = hold()
    service.discord.advance_clock(900)
    wait_for(lambda: state(sent) == "undeliverable")
    assert [one["status"] for one in edits(sent)] == [401], edits(sent)
    assert "living" in service.run("print('li' + 'ving')")


@test
def nothing_broke_discords_rules():
    # the answer and the editor that were refused by order
    service.assert_kept_discords_rules(ignore=("endpoint",))


with service:
    service.create("alice", *TRANSIENT)
    run()
