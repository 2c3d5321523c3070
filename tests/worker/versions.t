#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The Python that a job names: which cell is asked for, and what is told."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__))))

from house import House, fails, says  # noqa: E402
from tap import run, test  # noqa: E402

house = House(IL_CHAT_IMAGES="3.11=a:1,3.13=b:1")


def asked_for():
    """Return the interpreter of the last lease."""
    return house.broker.wait_asked("LEASE")[-1].get("INTERPRETER")


def say(kind, match, **columns):
    """Send a command; returns the text in the end."""
    sent = house.send(kind, **columns)
    return sent.wait_final(match=match).original.text()


@test
def a_run_names_its_version_and_the_answer_does_when_it_is_not_the_usual():
    house.broker.cell = says(b"hello\n")
    for version in ("", "3.11"):
        text = say("py", "hello", text="1", version=version)
        assert asked_for() == b"3.11", asked_for()
        assert "Python" not in text, text
    text = say("py", "hello", text="1", version="3.13")
    assert asked_for() == b"3.13", asked_for()
    assert text.endswith("-# Python 3.13"), text
    house.broker.cell = says(b"hello\n", STATUS=3)
    text = say("py", "hello", text="1", version="3.13")
    assert text.endswith("-# exit 3 · Python 3.13"), text


@test
def one_that_is_not_offered_is_refused_with_those_that_are():
    before = len(house.broker.asked)
    for kind in ("py", "pip"):
        text = say(kind, "here", text="x", version="3.9")
        assert text == "Python `3.9` is not available here. " \
            "Choose from: `3.11`, `3.13`.", text
    say("py", "here", text="x", version="`3.11=a:1,@everyone")
    assert len(house.broker.asked) == before, house.broker.asked[before:]
    house.discord.assert_no_violations()


@test
def files_are_taken_from_any_cell_packages_are_not():
    house.broker.cell = fails("NOT_FOUND")
    say("look", "does not exist", path="a")
    assert asked_for() is None, asked_for()
    say("look", "does not exist", path=".site-packages/a")
    assert asked_for() == b"3.11", asked_for()


@test
def packages_are_installed_for_the_version():
    house.broker.cell = says(b"")
    text = say("pip", "nstalled", text="x", version="3.13")
    assert text == "Installed `x`.\n-# Python 3.13", text
    assert asked_for() == b"3.13", asked_for()
    text = say("pip", "nstalled", text="x")
    assert text == "Installed `x`.", text
    assert asked_for() == b"3.11", asked_for()


@test
def the_first_packages_of_a_version_get_a_volume_first():
    house.broker.refuse_leases = ["NO_WORKSPACE"]
    text = say("pip", "nstalled", text="x", version="3.13")
    assert text == "Installed `x`.\n-# Python 3.13", text
    made = house.broker.wait_asked("CREATE")[-1]
    assert made["INTERPRETER"] == b"3.13", made
    assert "QUOTA_BYTES" not in made, made


@test
def without_room_for_it_that_is_told():
    house.broker.refusal = "NO_WORKSPACE"
    text = say("pip", "reference", text="x", version="3.13")
    assert "not where they should be" in text, text
    house.broker.refusal = None


with house:
    house.sandbox("alice")
    run()
