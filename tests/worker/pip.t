#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""/il pip: the log while it runs, and what is never given to pip."""

import os
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__))))

from house import House, says  # noqa: E402
from tap import run, test  # noqa: E402

house = House(IL_PIP_INDEX_URL="http://127.0.0.1:9/simple")


def installs(seconds):
    """A cell whose pip talks for so long."""
    def cell_runs(cell):
        began = time.monotonic()
        number = 0
        while time.monotonic() - began < seconds:
            cell.output(b"Collecting part %d @everyone\n" % number)
            number += 1
            time.sleep(0.05)
        cell.output(b"Successfully installed x-1\n")
        cell.result()
    return cell_runs


@test
def the_log_is_shown_live_and_not_too_often():
    house.broker.cell = installs(7.5)
    sent = house.send("pip", text="x 'y>=1; python_version < \"4\"'")
    message = sent.wait_final(match="Installed").original
    assert "Installed `x`, `y>=1; python_version < \"4\"`." in \
        message.text(), message
    assert "Successfully" not in message.text(), message
    edits = house.discord.requests(interaction=sent.id, route="edit")
    times = [one["time"] for one in edits]
    assert len(times) == 3, times
    assert times[1] - times[0] >= 2.9, times
    house.discord.assert_no_violations()


@test
def the_cell_gets_the_words_and_nothing_about_where_from():
    asked = house.broker.wait_asked("PIP")[-1]
    assert asked["ARG"] == [b"x", b'y>=1; python_version < "4"'], asked
    assert not {"INDEX_URL", "SDIST", "CA"} & set(asked), asked
    lease = house.broker.wait_asked("LEASE")[-1]
    assert lease["CLASS"] == b"pip", lease


@test
def options_paths_and_urls_are_refused():
    before = len(house.broker.asked)
    for text in ("-r x", "--index-url=http://e.org", "./x", "/x", "x.whl/..",
                 "git+https://e.org/x", "x @ file:///etc", "~/x", ""):
        sent = house.send("pip", text=text)
        text = sent.wait_final().original.text()
        assert "not a requirement" in text or "at least one" in text, text
    sent = house.send("pip", text="'x")
    assert "quote" in sent.wait_final().original.text()
    assert len(house.broker.asked) == before


@test
def a_failure_says_why():
    house.broker.cell = says(b"ERROR: No matching distribution found for x\n",
                             STATUS=1)
    message = house.send("pip", text="x").wait_final(match="Not inst").original
    text = message.text()
    assert "There is no `x` as a wheel" in text and "exit 1" in text, text
    assert "ERROR" not in text, text
    assert message.attachment("pip.log").text() == \
        "ERROR: No matching distribution found for x\n"


@test
def a_log_flood_is_cut_from_the_top():
    data = b"".join(b"line %d\n" % n for n in range(9999))
    house.broker.cell = says(data, STATUS=1)
    message = house.send("pip", text="x").wait_final().original
    text = message.text()
    assert "line 9998\n" in text and "line 0\n" not in text
    assert "lines left out" in text, text
    assert message.attachment("pip.log").read() == data


@test
def what_pip_uses_is_not_the_sandboxs_usage():
    assert house.sql("SELECT used_bytes FROM sandboxes") == [(0,)]


@test
def discord_failing_while_it_runs_does_not_harm_it():
    house.discord.fault("status", "edit", status=500)
    house.broker.cell = installs(4)
    house.send("pip", text="x").wait_final(match="Installed")
    house.discord.fault("rate_limit", "edit", retry_after=0.5)
    house.send("pip", text="x").wait_final(match="Installed")
    house.discord.assert_no_violations()


@test
def progress_is_left_out_when_many_requests_were_invalid():
    house.stop()
    minute = int(time.time()) // 60
    # sandbox/rest/limiter.c: no block, 600 in this minute
    words = [0] + [minute << 24 | 600 if minute % 11 == i else 0
                   for i in range(11)]
    with open(os.path.join(house.state, "worker", "brake"), "r+b") as file:
        file.write(struct.pack("=12Q", *words))
    house.start()
    house.broker.cell = installs(4.0)
    sent = house.send("pip", text="x")
    sent.wait_final(match="Installed")
    assert len(house.discord.requests(interaction=sent.id,
                                      route="edit")) == 1
    house.stop()
    os.remove(os.path.join(house.state, "worker", "brake"))
    house.start()


def main():
    """Run them in one house."""
    with house:
        house.sandbox("alice")
        run()


main()
