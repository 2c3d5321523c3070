#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The retry policy, against a Discord that is told to fail.

A worker sends the answers; what it does is read from the stand-in's log of
requests.
"""

import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "worker"))

from house import PUBLIC, House, says  # noqa: E402
from tap import run, test  # noqa: E402

house = House()
FILES = [("a.csv", b"1,2")]


def begin(**fault):
    """Order a fault, send a command that makes a file."""
    if fault:
        house.discord.fault(fault.pop("kind"), "edit", **fault)
    house.broker.cell = says(b"4\n", files=FILES)
    return house.send("py", text="2 + 2")


def tries(sent):
    """Return the edits of an interaction as (status, time)."""
    return [(one["status"], one["time"]) for one
            in house.discord.requests(interaction=sent.id, route="edit")]


def gaps(sent):
    """Return the seconds between its edits."""
    times = [time for _, time in tries(sent)]
    return [round(b - a, 2) for a, b in zip(times, times[1:])]


def arrives(sent, files=True):
    """Assert that the whole answer arrives and is noted."""
    message = sent.wait_final(match="```\n4\n```").original
    assert ("a.csv" in [one.filename for one in message.attachments]) == files
    house.wait_state(sent, "delivered")
    return message


def clean(*ignore):
    """Assert that no rule was broken; forget faults."""
    house.discord.assert_no_violations(ignore=ignore)
    house.discord.clear_violations()
    house.discord.clear_faults()


@test
def without_a_fault_one_edit_is_enough():
    sent = begin()
    arrives(sent)
    assert len(tries(sent)) == 1
    agent = house.discord.requests(route="edit")[0]["headers"]["user-agent"]
    # whose URL it is, the build says
    assert re.fullmatch(r"DiscordBot \(https://[^\s,()]+, \d+(\.\d+)+\)",
                        agent) and "github.com" not in agent, agent
    clean()


@test
def a_404_right_after_the_deferral_is_tried_again():
    sent = begin(kind="not_found", count=4)
    arrives(sent)
    assert len(tries(sent)) == 5, gaps(sent)
    clean()


@test
def a_404_for_good_is_given_up_after_ten_seconds():
    sent = begin(kind="not_found", count=0)
    house.wait_state(sent, "undeliverable")
    times = [time for _, time in tries(sent)]
    assert 7 < times[-1] - times[0] <= 13, times
    assert len(times) <= 6, times
    clean()


@test
def a_token_that_was_given_up_is_never_used_again():
    message = arrives(begin())
    house.discord.fault("not_found", "any", count=0)
    name = message.control("py-remove")["custom_id"]
    sent = house.press(message, name, "py-remove",
                       view_id=int(name.partition(":")[2]))
    house.wait_state(sent, "undeliverable")
    asked = house.discord.requests(interaction=sent.id)
    assert {one["route"] for one in asked} == {"delete"}, asked
    assert len(asked) <= 6, len(asked)
    clean()


@test
def a_deleted_message_is_given_up_soon():
    sent = begin(kind="status", status=404, code=10008, count=0)
    house.wait_state(sent, "undeliverable")
    times = [time for _, time in tries(sent)]
    assert times[-1] - times[0] < 6, times
    clean("rejected-10008")


@test
def a_429_is_waited_out():
    sent = begin(kind="rate_limit", retry_after=1.3, count=2)
    arrives(sent)
    assert [status for status, _ in tries(sent)] == [429, 429, 200]
    assert all(1.3 <= gap < 2.5 for gap in gaps(sent)), gaps(sent)
    clean()


@test
def a_global_429_holds_up_the_next_answer_too():
    first = begin(kind="rate_limit", retry_after=1.5, scope="global")
    house.wait_state(first, "finished")
    second = begin()
    arrives(first)
    arrives(second)
    assert tries(second)[0][1] - tries(first)[0][1] >= 1.5
    clean()


@test
def cloudflares_429_is_waited_out():
    sent = begin(kind="cloudflare", retry_after=2)
    arrives(sent)
    assert len(tries(sent)) == 2 and gaps(sent)[0] >= 2, gaps(sent)
    clean()


CLOUDFLARE = {"status": 403, "body": "<html>error code: 1015",
              "headers": [["Content-Type", "text/html"],
                          ["Retry-After", "2"]]}
BLOCKS = {"a 403 without JSON": CLOUDFLARE,
          "Cloudflare's own JSON": dict(
              CLOUDFLARE, body='{"error_code": 1015, "status": 403}'),
          "code 40333": {"status": 403, "code": 40333,
                         "headers": [["Retry-After", "2"]]},
          "401": {"status": 401, "headers": [["Retry-After", "2"]]}}


def blocked(seconds):
    """Meet a block that lasts so long; returns the interaction when the
    workers know of it."""
    before = house.log().count("Discord blocks us")
    sent = begin(kind="status", **dict(
        CLOUDFLARE, headers=[["Retry-After", str(seconds)]]))
    deadline = time.monotonic() + 120
    while house.log().count("Discord blocks us") == before:
        assert time.monotonic() < deadline, house.log()
        time.sleep(0.02)    # a log cannot be waited for
    return sent


@test
def a_block_is_waited_out_and_nothing_is_sent_in_it():
    before = house.log()
    for name, fault in BLOCKS.items():
        sent = begin(kind="status", **fault)
        arrives(sent)
        statuses = [status for status, _ in tries(sent)]
        assert statuses == [fault["status"], 200], (name, statuses)
        assert gaps(sent)[0] >= 2, (name, gaps(sent))
    log = house.log()[len(before):]
    assert log.count("Discord blocks us") == 3, log
    assert log.count("the block by Discord has passed") == 3, log
    clean("rejected-40333", "rejected-0")


@test
def an_answer_outlives_a_long_block_with_its_files():
    # longer than files are tried while Discord fails
    sent = blocked(65)
    status = house.ctl("status").stdout
    assert re.search(r"takes nothing for \d+ s more, \d+ invalid", status), \
        status
    sent.wait_final(match="4", timeout=180)
    arrives(sent)
    assert len(tries(sent)) == 2 and gaps(sent)[0] >= 65, gaps(sent)
    clean()


@test
def what_one_worker_learns_holds_for_all():
    first = blocked(5)
    house.stop(number=signal.SIGKILL)   # only the file knows of it now
    house.start(slot=1)
    second = begin()
    arrives(second)
    house.start()
    arrives(first, files=False)
    assert tries(second)[0][1] - tries(first)[0][1] >= 5
    house.stop(slot=1)
    clean()


@test
def a_brake_that_is_not_ours_holds_up_nobody():
    house.stop()
    brake = os.path.join(house.state, "worker", "brake")
    os.remove(brake)
    os.symlink("/dev/zero", brake)
    house.start()
    arrives(begin())
    assert "limits are not shared" in house.log(), house.log()
    house.stop()
    os.remove(brake)
    with open(brake, "wb") as file:
        file.write(b"\xff" * 96)
    house.start()
    arrives(begin())
    clean()


@test
def a_long_429_is_waited_out_and_holds_up_nobody_else():
    first = begin(kind="rate_limit", retry_after=25, count=1)
    house.wait_state(first, "finished")
    began = time.monotonic()
    second = house.send("py", user="bob", text="2 + 2")
    arrives(second)
    assert time.monotonic() - began < 20, time.monotonic() - began
    house.wait_state(first, "delivered")
    arrives(first)
    assert [status for status, _ in tries(first)] == [429, 200], tries(first)
    assert gaps(first)[0] >= 25, gaps(first)
    clean()


@test
def server_errors_back_off():
    sent = begin(kind="status", status=503, count=3)
    arrives(sent)
    assert [status for status, _ in tries(sent)] == [503, 503, 503, 200]
    first, second, third = gaps(sent)
    assert first >= 1 and second >= 2 and third >= 4, gaps(sent)
    clean()


@test
def a_reset_connection_is_tried_again():
    arrives(begin(kind="reset", count=2))
    clean()


@test
def an_answer_that_is_cut_short_is_tried_again():
    sent = begin(kind="truncated", applied=True)
    arrives(sent)
    clean()


@test
def a_success_that_is_not_json_is_a_success():
    sent = begin(kind="garbage", applied=True)
    arrives(sent)
    assert len(tries(sent)) == 1, tries(sent)
    clean()


@test
def a_slow_answer_is_waited_for():
    sent = begin(kind="slow", seconds=4)
    arrives(sent)
    assert len(tries(sent)) == 1, tries(sent)
    clean()


@test
def a_bucket_that_is_empty_is_left_alone():
    house.discord.settings(rate_limit=1)
    house.broker.cell = says(b"4\n", files=FILES)
    sent = house.send("py", text="1", order={"attachment_size_limit": 2})
    arrives(sent, files=False)
    assert [status for status, _ in tries(sent)] == [413, 200], tries(sent)
    assert gaps(sent)[0] > 0.5, gaps(sent)
    house.discord.settings(rate_limit=5)
    clean("rejected-40005")


@test
def refused_files_are_left_out_and_that_is_told():
    for status, code in ((413, 40005), (400, 50045), (403, 50013), (400, 400001)):
        sent = begin(kind="status", status=status, code=code)
        message = arrives(sent, files=False)
        assert "`a.csv` could not be attached" in message.text()
        assert len(tries(sent)) == 2, tries(sent)
    clean("rejected-40005", "rejected-50045", "rejected-50013",
          "rejected-400001")


@test
def an_answer_that_is_refused_as_text_comes_as_a_file():
    # with its file, and without it
    sent = begin(kind="status", status=400, code=200000, count=2)
    message = sent.wait_final(match="as a file").original
    house.wait_state(sent, "delivered")
    assert len(tries(sent)) == 3, tries(sent)
    assert [one.filename for one in message.attachments] == ["output.txt"]
    text = message.attachment("output.txt").text()
    assert text.startswith("4\n") and "a.csv" in text, text
    clean("rejected-200000")


AUTOMOD = (200000, 200001, 240000)


def published(sent):
    """What everybody was shown of it, in all its forms."""
    return [str(one["content"]) + str(one["attachments"])
            for message in sent.messages if not message.ephemeral
            for one in message.history]


def apart(sent):
    """The message that its owner alone sees."""
    return [one for one in sent.messages if one.ephemeral][0]


@test
def what_a_server_forbids_is_told_its_owner_apart():
    for code in AUTOMOD:
        for files in FILES, ():
            house.discord.fault("status", "edit", status=400, code=code)
            house.broker.cell = says(b"rude\n", files=files)
            sent = house.send("py", text="2 + 2", share=1,
                              answer=PUBLIC).wait_followups()
            house.wait_state(sent, "delivered")
            assert "moderation" in sent.original.text(), sent.original
            assert not [one for one in published(sent)
                        if "rude" in one or "a.csv" in one]
            text = apart(sent).text()
            assert "rude" in text and "only you see it" in text, text
            assert [one.filename for one in apart(sent).attachments] == \
                [name for name, _ in files], sent
            clean(f"rejected-{code}")


@test
def its_owner_is_told_apart_after_a_crash_too():
    house.discord.fault("status", "followup", status=503, count=0)
    house.discord.fault("status", "edit", status=400, code=200000)
    house.broker.cell = says(b"rude\n", files=FILES)
    sent = house.send("py", text="1", share=1, answer=PUBLIC)
    sent.wait_final(match="moderation")
    house.stop(number=signal.SIGKILL)
    house.discord.clear_faults()
    house.start()           # nobody else is asked to read it once more
    sent.wait_followups()
    house.wait_state(sent, "delivered")
    assert "rude" in apart(sent).text()
    assert not [one for one in published(sent) if "rude" in one]
    clean("rejected-200000")


@test
def nobody_else_reads_it_while_its_owner_cannot_be_told():
    for files in FILES, ():
        house.discord.fault("status", "followup", status=503, count=5)
        house.discord.fault("status", "edit", status=400, code=200000)
        house.broker.cell = says(b"rude\n", files=files)
        sent = house.send("py", text="1", share=1, answer=PUBLIC)
        house.wait_state(sent.wait_followups(), "delivered")
        assert "moderation" in sent.original.text(), sent.original
        assert not [one for one in published(sent) if "rude" in one], sent
        assert "rude" in apart(sent).text()
        clean("rejected-200000")


@test
def what_is_forbidden_while_it_runs_is_not_tried_again():
    def streams(cell):
        cell.send("STARTED")
        cell.output(b"rude\n")
        while house.discord.requests(route="edit")[-1]["status"] != 400:
            time.sleep(0.05)    # requests cannot be waited for
        cell.output(b"and more\n")
        time.sleep(5)           # two more edits would be due by then
        cell.result()
    house.discord.fault("status", "edit", status=400, code=200000, count=2)
    house.broker.cell = streams
    sent = house.send("py", text="1", share=1, answer=PUBLIC)
    sent.wait_followups()
    assert [status for status, _ in tries(sent)] == [400, 400, 200]
    clean("rejected-200000")


@test
def where_nobody_can_be_told_apart_all_read_the_reason():
    house.discord.fault("status", "edit", status=400, code=200000)
    house.discord.fault("status", "followup", status=400, code=40094, count=0)
    house.broker.cell = says(b"rude\n")
    sent = house.send("py", text="1", share=1, answer=PUBLIC)
    sent.wait_final(match="did not accept")
    house.wait_state(sent, "delivered")
    assert not [one for one in published(sent) if "rude" in one]
    clean("rejected-200000", "rejected-40094")


@test
def one_that_is_told_after_a_crash_does_so_too():
    house.discord.fault("status", "edit", status=503, count=0)
    house.broker.cell = says(b"```x``\n")
    sent = house.send("py", text="1")
    house.wait_state(sent, "finished")
    house.stop(number=signal.SIGKILL)
    house.discord.clear_faults()
    house.discord.fault("status", "edit", status=400, code=200000)
    house.start()
    message = sent.wait_final(match="as a file").original
    assert "x" in message.attachment("output.txt").text()
    clean("rejected-200000")


@test
def what_is_refused_as_a_file_too_leaves_discords_own_words():
    for columns, count in (({}, 3), ({"may_attach": 0}, 1)):
        house.discord.fault(
            "status", "edit", status=400, code=240000, count=count,
            message="Message `blocked`\nby <@1> harmful links filter" * 20)
        house.broker.cell = says(b"4\n", files=() if columns else FILES)
        sent = house.send("py", text="2 + 2", **columns)
        message = sent.wait_final(match="did not accept").original
        text = message.text()
        assert "240000" in text and "reference" in text, text
        assert "harmful links filter" in text and len(text) < 300, text
        assert "`blocked`" not in text, text
        house.wait_state(sent, "delivered")
        assert len(tries(sent)) == count + 1, tries(sent)
        clean("rejected-240000")


@test
def a_dead_token_is_left_alone():
    sent = begin(kind="status", status=401, code=50027)
    house.wait_state(sent, "undeliverable")
    assert len(tries(sent)) == 1, tries(sent)
    clean("rejected-50027")


@test
def no_token_is_ever_logged():
    tokens = {one.rsplit("/", 3)[1] for one in
              (request["path"] for request in house.discord.requests())
              if "/webhooks/" in one}
    log = house.log()
    assert tokens and not [one for one in tokens if one in log]
    assert "/webhooks/" not in log


def main():
    """Run them in one house."""
    with house:
        house.sandbox("alice")
        house.sandbox("bob")
        run()


main()
