#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Inline in a container, with the engine of its host: it answers, its limits
hold, and nothing is left of it."""

import os
import sqlite3
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from house import (INLINE, OUTSIDE, House, begin, docker,  # noqa: E402
                   fetch, wait_for)
from tap import run, test  # noqa: E402

# Ends at the quota with the kernel's own number for "no space left".
FILL = """
import os
try:
    with open("big", "wb", buffering=0) as file:
        while True: file.write(bytes(65536))
except OSError as error:
    print("errno", error.errno, os.stat("big").st_size >> 20)
os.unlink("big")
"""


@test
def eval_answers_at_the_published_port():
    assert house.evaluate("print(6 * 7)") == "42\n"


@test
def a_signed_command_is_answered():
    assert "forty-two" in house.py("print('forty-two')")


@test
def the_quota_holds_in_the_kernel():
    assert "errno 28 1" in house.py(FILL), house.py(FILL)


@test
def the_health_check_says_so():
    wait_for(lambda: house.state("Health.Status") == "healthy")


@test
def the_doctor_finds_nothing_wrong():
    assert "Nothing is wrong." in house.run_in("ilctl", "doctor")


@test
def only_what_starts_containers_is_root():
    lines = docker("top", house.name, "-eo", "user,pid,args").splitlines()[1:]
    roots = [line.split()[2].rsplit("/", 1)[-1] for line in lines
             if line.split()[0] == "root"]
    assert sorted(roots) == ["il-sandboxd", "ilctl", "tini"], lines
    assert len(lines) > 10, lines


@test
def whoever_is_not_the_host_is_a_stranger():
    ask = ("import urllib.request as u\n"
           "try: print(u.urlopen(u.Request('http://%s:8080/eval', b'{}', "
           "{'Host': 'localhost'})).status)\n"
           "except u.URLError as e: print(e.code)")
    address = docker("inspect", "--format", "{{range .NetworkSettings.Networks}}"
                     "{{.IPAddress}}{{end}}", house.name).strip()
    said = docker("run", "--rm", "--entrypoint", "python3", INLINE, "-c",
                  ask % address)
    assert said.strip() == "403", said
    assert fetch(house.url("/eval"), {})[0] == 400


@test
def docker_stop_lets_runs_end_and_leaves_nothing():
    """What a command in chat runs, and what a program waits for."""
    house.py("open('kept', 'w').write('still here')")
    house.discord.send_command(
        "py", code="import time\nprint('begun', flush=True)\ntime.sleep(4)\n"
        "open('whole', 'w').write('x')").wait_final(match="begun")
    program = begin(house.url("/eval"),
                    "import time\ntime.sleep(4)\nprint('to its end')")
    wait_for(lambda: "inline_api_running 1\n" in fetch(
        house.url("/metrics"))[1])
    assert house.stop() == 0
    status, text = program.result()
    assert status == 200 and "to its end" in text, (status, text)
    rows = sqlite3.connect(house.settings["IL_DATABASE"]).execute(
        "SELECT state, outcome FROM jobs ORDER BY id DESC LIMIT 1").fetchall()
    assert rows == [("delivered", "exit 0")], rows
    house.wait_nothing_left()


@test
def the_next_start_finds_all_files():
    docker("start", house.name)
    house.wait_ready()
    text = house.py("import os\nprint(open('kept').read(), os.listdir())")
    assert "still here" in text and "whole" in text, text


@test
def a_kill_leaves_nothing_either():
    docker("kill", house.name)
    house.wait_nothing_left()


with House(OUTSIDE) as house:
    run()
