#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Inline in a container with an engine of its own: it answers, all data is in
its volume, and it ends whole."""

import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from house import (IMAGE, NEAR, House, docker, fetch, inside,  # noqa: E402
                   left_over, wait_for)
from tap import run, test  # noqa: E402


@test
def eval_answers():
    assert house.evaluate("print(6 * 7)") == "42\n"


@test
def a_signed_command_is_answered_and_its_quota_holds():
    text = house.py(
        "try:\n"
        "    with open('big', 'wb', buffering=0) as file:\n"
        "        while True: file.write(bytes(65536))\n"
        "except OSError as error: print('errno', error.errno)\n"
        "open('big', 'w').write('kept')")
    assert "errno 28" in text, text


@test
def the_cells_are_in_there():
    assert house.run_in("docker", "ps", "--quiet").split()
    label = "label=inline.instance=" + house.instance
    assert not docker("ps", "--quiet", "--filter", label).split()


@test
def nothing_is_wrong():
    assert "Nothing is wrong." in house.run_in("ilctl", "doctor")
    wait_for(lambda: house.state("Health.Status") == "healthy")


@test
def docker_stop_ends_all_of_it():
    assert house.stop() == 0
    wait_for(lambda: not left_over(house.name))


@test
def the_volume_has_the_data_and_the_images():
    docker("start", house.name)
    house.wait_ready()
    assert "kept" in house.py("print(open('big').read())")
    assert house.logs().count("Loaded image") == 1, house.logs()


@test
def what_comes_from_a_gateway_is_a_stranger_unless_the_operator_says_so():
    """A published port, as any SNAT has it: the gateway's address."""
    with House([*options, *images_there], entry, command,
               volume=True) as other:
        local = {"Host": "localhost"}
        assert fetch(other.url("/eval"), {"input": "1"}, local)[0] == 403
        assert fetch(other.url("/health"), None, local)[0] == 200
        inner = other.run_in("python3", "-c", "import urllib.request as u\n"
                             "try: u.urlopen('http://localhost:8080/eval', b'')"
                             "\nexcept u.HTTPError as e: print(e.code)")
        assert inner.strip() not in ("", "403"), inner


@test
def it_does_not_outlive_its_engine():
    house.run_in("sh", "-c", "kill -KILL $(cat /run/docker.pid)")
    wait_for(lambda: house.state("Running") == "false")
    assert house.state("ExitCode") == "1"
    assert "the engine has ended" in house.logs()
    wait_for(lambda: not left_over(house.name))


with tempfile.TemporaryDirectory(prefix="inline-container-") as images:
    docker("save", "--output", images + "/python.tar", IMAGE)
    options, entry, command = inside()
    images_there = ["--volume", images + ":/images:ro"]
    with House([*options, *images_there], entry, command, volume=True,
               **NEAR) as house:
        run()
