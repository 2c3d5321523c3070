#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""What people are told when a part fails, lies or hangs."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__))))

from house import House, N, fails, says  # noqa: E402
from tap import run, test  # noqa: E402

house = House(IL_TIMEOUT_SECONDS="1.0")


def told(sent, *parts):
    """Assert that the final message has these parts; returns it."""
    text = sent.wait_final().original.text()
    for part in parts:
        assert part in text, (part, text)
    return text


def reference(sent):
    """Return the reference of a command."""
    return house.sql("SELECT id FROM jobs WHERE interaction_id = ?",
                     int(sent.id))[0][0]


@test
def a_run_is_told():
    house.broker.cell = says(b"hello\n")
    sent = house.send("py", text="```py\nprint('hello')\n```")
    assert told(sent) == "```\nhello\n```", sent.original
    house.wait_state(sent, "delivered")
    assert house.outcome(sent)[1] == "exit 0"
    asked = house.broker.wait_asked("RUN")[-1]
    assert asked["ECHO"] == 1 and asked["MERGE"] == 1, asked
    assert asked["WALL_MS"] == 1000, asked


@test
def what_was_told_is_forgotten():
    rows = house.sql("SELECT token, text, body FROM jobs")
    assert rows == [("", "", None)], rows


@test
def usage_is_noted_and_the_sandbox_kept():
    rows = house.sql("SELECT used_bytes, used_files FROM sandboxes")
    assert rows == [(4096, 1)], rows


@test
def the_first_command_makes_a_sandbox_and_says_so_once():
    told(house.send("py", user="bob", text="1"), "hello", "-# A sandbox of "
         "your own was made")
    [(name,)] = house.sql("SELECT id FROM sandboxes WHERE user_id = ?",
                          house.user_id("bob"))
    assert house.broker.wait_asked("CREATE")[-1]["SANDBOX"] == name.encode()
    text = told(house.send("py", user="bob", text="1"), "hello")
    assert "was made" not in text, text


@test
def a_sandbox_that_cannot_be_made_is_not_there():
    house.broker.refusal = "DISK"
    told(house.send("look", user="dan"), "disk")
    house.broker.refusal = None
    assert not house.sql("SELECT 1 FROM sandboxes WHERE user_id = ? AND "
                         "state = 'active'", house.user_id("dan"))


@test
def a_command_that_is_registered_can_be_clicked():
    assert house.ctl("register").returncode == 0
    il = next(one["id"] for one in house.discord.commands()
              if one["name"] == "il")
    told(house.send("delete", user="nobody"), f"</il create:{il}> makes")
    house.sql("DELETE FROM command_ids")
    told(house.send("delete", user="nobody"), "`/il create` makes")


@test
def an_expired_sandbox():
    old = house.sandbox("carol", days=-1, pinned=0)
    told(house.send("py", user="carol", text="1"), "hello", "expired <t:",
         "This is a new one")
    rows = house.sql("SELECT id FROM sandboxes WHERE user_id = ? AND "
                     "state = 'active'", house.user_id("carol"))
    assert len(rows) == 1 and rows[0][0] != old, rows
    house.wait_sql("SELECT count(*) FROM sandboxes WHERE id = ?", old,
                   want=[(0,)])


@test
def every_refusal_says_what_is_wrong():
    words = {"FULL": "Too much is running", "ENGINE": "Docker does not answer",
             "IMAGE": "image", "NO_WORKSPACE": "/il create",
             "DISK": "disk is nearly full",
             "SANDBOXES": "limit of sandboxes",
             "START": "could not be started", "INPUT": "Sandbox error",
             "BUSY": "busy"}
    for refusal, word in words.items():
        house.broker.refusal = refusal
        sent = house.send("py", text="1")
        text = told(sent, word)
        if refusal in ("ENGINE", "IMAGE", "DISK", "START", "INPUT"):
            assert str(reference(sent)) in text, text
        house.wait_state(sent, "delivered")
    house.broker.refusal = None


@test
def a_job_that_was_refused_was_not_started():
    rows = house.sql("SELECT count(*) FROM jobs WHERE outcome LIKE 'refused%'"
                     " AND started_ms IS NOT NULL AND user_id = ?",
                     house.user_id())
    assert rows == [(0,)], rows


@test
def a_cell_that_speaks_nonsense_is_our_fault():
    for packet in (b"\xff", b"", b"\x35" + b"\0" * 40):
        def lies(cell, packet=packet):
            cell.output(b"so far\n")
            if packet:
                cell.sock.send(packet)
            else:
                cell.sock.close()
        house.broker.cell = lies
        sent = house.send("py", text="1")
        told(sent, "so far", f"Sandbox error, reference {reference(sent)}")


@test
def a_cell_that_never_ends_loses_its_lease():
    waited = []

    def hangs(cell):
        cell.output(b"begun\n")
        waited.append(cell.wait_hang_up())
    house.broker.cell = hangs
    sent = house.send("py", text="1")
    told(sent, "begun", "Sandbox error, reference")
    assert house.outcome(sent)[1] == "overdue"
    assert 5 < waited[0] < 40, waited    # its limit of 1 s, and 5 s more


@test
def a_cell_that_never_stops_talking_loses_its_lease():
    def talks(cell):
        while True:
            cell.send("LEFT_OUT", ("PATH", "a"), ("SIZE", 1),
                      ("WHY", N["LEFT_OUT_COUNT"]))
            time.sleep(0.05)
    house.broker.cell = talks
    told(house.send("py", text="1"), "Sandbox error")


@test
def more_output_than_asked_for_is_a_lie():
    def floods(cell):
        cell.output(b"x" * (3 << 20))
    house.broker.cell = floods
    told(house.send("py", text="1"), "Sandbox error")


@test
def output_mentions_nobody_and_stays_in_its_block():
    house.broker.cell = says(b"@everyone <@1> ```\n**bold**\x1b[31m\0")
    text = told(house.send("py", text="1"), "@everyone")
    assert text.count("```") == 2 and "\x1b" not in text, text
    house.discord.assert_no_violations()


@test
def long_output_is_cut_and_attached():
    data = b"".join(b"line %d\n" % n for n in range(9000))
    house.broker.cell = says(data)
    sent = house.send("py", text="1")
    text = told(sent, "line 0\n", "line 8999\n", " 8981 lines left out ")
    assert len(text) <= 2000, len(text)
    assert sent.original.attachment("output.txt").read() == data


@test
def output_is_what_a_terminal_would_show():
    house.broker.cell = says(
        b"\x1b[?25l" + b"".join(b"\r%3d%%|%s" % (n, b"#" * (n // 10))
                               for n in range(101)) + b"\n"
        b"\x1b]0;title\a\x1b[1;91mError\x1b[0m a\xe2\x80\xaeb\n")
    sent = house.send("py", text="1")
    assert told(sent) == ("```ansi\n100%|##########\n"
                          "\x1b[1;31mError \x1b[0ma\\u202eb\n```"), sent
    house.discord.assert_no_violations()


@test
def files_come_images_first_with_clean_names():
    house.broker.cell = says(b"", files=[
        ("a.csv", b"1,2"), ("sub/pl\u00f6t.png".encode(), b"PNG")])
    message = house.send("py", text="1").wait_final().original
    names = [one.filename for one in message.attachments]
    assert names == ["pl__t.png", "a.csv"], names
    assert message.attachment("pl__t.png").read() == b"PNG"
    assert message.attachment("pl__t.png").title == "pl\u00f6t.png"


@test
def where_files_may_not_be_attached_it_says_so():
    def makes(cell):
        assert cell.request.get("COLLECT_TOTAL", 0) == 0
        cell.send("LEFT_OUT", ("PATH", "a.csv"), ("SIZE", 3),
                  ("WHY", N["LEFT_OUT_TOTAL"]))
        cell.result()
    house.broker.cell = makes
    told(house.send("py", text="1", may_attach=0), "`a.csv` (3 B)",
         "may not attach")


@test
def hostile_names_are_one_line():
    def lists(cell):
        for name in (b"a\n@everyone", b"`b`", b"\xff", b"\xe2\x80\xaec",
                     b"n" * 255):
            cell.send("ENTRY", ("NAME", name), ("KIND", N["ENTRY_FILE"]),
                      ("SIZE", 1), ("MTIME", 0))
        cell.result(TOTAL=5)
    house.broker.cell = lists
    text = told(house.send("look"), "5 entries", "a @everyone")
    assert text.count("\n") == 8, text


@test
def paths_that_lead_out_never_reach_the_cell():
    before = len(house.broker.asked)
    for path in ("..", "/etc/passwd", "a/../../b", "~/..", "n" * 256):
        for kind in ("look", "rm", "get", "write", "put", "py"):
            told(house.send(kind, path=path), {
                "rm": "The sandbox itself stays", "write": "name of a dir"
                }.get(kind * path.endswith(".."), "not inside your sandbox"))
    assert len(house.broker.asked) == before


@test
def errors_of_the_cell_are_told_in_words():
    for error, word in (("NOT_INSIDE", "not inside your sandbox"),
                        ("NOT_FOUND", "does not exist"),
                        ("NOT_EMPTY", "recursive"),
                        ("NO_SPACE", "no room"),
                        ("FAILED", "Sandbox error, reference")):
        house.broker.cell = fails(error)
        told(house.send("rm", path="a"), word)


@test
def a_directory_becomes_the_current_one():
    def lists(cell):
        cell.result(TOTAL=0)
    house.broker.cell = lists
    told(house.send("look", path="a/./b/../c"), "`~/a/c` is empty")
    house.broker.cell = says(b"")
    told(house.send("py", text="1"), "No output.")
    assert house.broker.wait_asked("RUN")[-1]["CWD"] == b"a/c"
    house.broker.cell = lists
    told(house.send("look", path="~"), "`~` is empty")


@test
def pages_turn_by_buttons():
    def lists(cell):
        first = cell.request.get("OFFSET", 0)
        for number in range(first, min(first + 20, 45)):
            cell.send("ENTRY", ("NAME", f"f{number}"),
                      ("KIND", N["ENTRY_FILE"]), ("SIZE", 1), ("MTIME", 0))
        cell.result(TOTAL=45)
    house.broker.cell = lists
    message = house.send("look", page=9).wait_final().original
    assert "page 3 of 3" in message.text() and "f44" in message.text()
    view = int(message.control("look-prev")["custom_id"].partition(":")[2])
    assert message.control("look-next")["disabled"]
    house.press(message, "look-prev", "look", view_id=view,
                page=2).wait_final()
    message = message.refresh()
    assert "f20" in message.text() and "f40" not in message.text()
    assert house.sql("SELECT page FROM views WHERE id = ?", view) == [(2,)]


@test
def delete_removes_the_workspace_and_then_the_row():
    message = house.send("look").wait_final().original
    house.sandbox("dave")
    sent = house.send("delete", user="dave")
    told(sent, "deleted")
    assert house.sql("SELECT 1 FROM sandboxes WHERE user_id = ?",
                     house.user_id("dave")) == []
    assert house.broker.wait_asked("REMOVE")
    assert message.buttons() == ["Previous", "Next"]


@test
def create_makes_and_a_failed_one_is_taken_back():
    house.broker.refusal = "DISK"
    told(house.send("create", user="erin"), "disk")
    assert house.sql("SELECT 1 FROM sandboxes WHERE user_id = ?",
                     house.user_id("erin")) == []
    house.broker.refusal = None
    told(house.send("create", user="erin"), "ready", "256 MiB", "<t:")
    told(house.send("create", user="erin"), "already")
    asked = house.broker.wait_asked("CREATE")[-1]
    assert asked["QUOTA_FILES"] == 10000, asked


@test
def a_command_of_a_newer_front_is_answered_once_and_not_done():
    sent = house.send("newer", text="1")
    told(sent, "being updated", "was not run")
    house.wait_state(sent, "delivered")
    assert house.outcome(sent)[1] == "unknown kind"
    sent = house.begin("newer")
    assert "being updated" in sent.wait_answered().original.text()
    house.wait_state(sent, "delivered")
    sent = house.send("newer", state="lost", claimed_by=0)
    told(sent, "interrupted")
    house.wait_state(sent, "delivered")
    told(house.send("create"), "already")


@test
def a_token_too_old_is_not_used():
    before = len(house.discord.requests())
    old = int(time.time() * 1000) - 15 * 60 * 1000
    sent = house.send("py", text="1", received_ms=old)
    house.wait_state(sent, "undeliverable")
    assert len(house.discord.requests()) == before


@test
def what_cannot_end_in_time_is_not_begun():
    old = int(time.time() * 1000) - (14 * 60 + 28) * 1000
    told(house.send("py", text="1", received_ms=old), "waited too long")
    # nor what follows another step: here a sandbox is made before
    old = int(time.time() * 1000) - (14 * 60 + 25) * 1000
    sent = house.send("py", text="1", user="zoe", received_ms=old)
    house.wait_sql("SELECT state IN ('delivered', 'undeliverable') FROM jobs "
                   "WHERE interaction_id = ?", int(sent.id), want=[(1,)])
    assert house.outcome(sent)[1] in ("too late", "gone"), house.outcome(sent)


@test
def nothing_broke_discords_rules():
    house.discord.assert_no_violations()


def main():
    """Run them in one house."""
    with house:
        house.sandbox("alice")
        run()


main()
