#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The worked examples of CONTRIBUTING.md are whole: a copy of the tree with all
of them is built, says what it should of itself, and does it."""

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "lint"))

from examples import examples  # noqa: E402
from source import files  # noqa: E402

COPY = tempfile.mkdtemp(prefix="inline-examples-")
os.chmod(COPY, 0o755)       # a user of its own for each program goes in there
atexit.register(shutil.rmtree, COPY)
BUILD = os.path.join(COPY, "build")


def make():
    """Copy the tree, apply the examples, build the programs, quickly."""
    for path in files():
        os.makedirs(os.path.join(COPY, os.path.dirname(path)), exist_ok=True)
        shutil.copy2(os.path.join(ROOT, path), os.path.join(COPY, path),
                     follow_symlinks=False)
    for one in examples():
        wrong = one.apply(COPY)
        assert not wrong, (one.title, wrong)
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith("MAKE")}
    done = subprocess.run(
        ["make", "-s", "-j2", "-C", COPY, "O=build", "WERROR=1", "optimise=-O0",
         "build"], env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout[-3000:]


make()
os.environ["BUILD"] = BUILD     # for what is imported from the copy
for name in "standin", "cell", "e2e":
    sys.path.insert(0, os.path.join(COPY, "tests", name))
import driver  # noqa: E402
from service import Service  # noqa: E402
from tap import run, test  # noqa: E402

service = Service(IL_PING_TEXT="ping-pong", IL_TUNE_API_WARM="0")


@test
def the_tree_with_them_keeps_the_rules_of_the_tree():
    for name in "docs", "layers", "banned", "sizes", "sql":
        done = subprocess.run(
            [os.path.join(COPY, "tests", "lint", name + ".t")], cwd=COPY,
            env=dict(os.environ, BUILD=BUILD), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout


@test
def the_command_is_registered():
    commands = json.loads(service.ilctl("commands")[1])
    names = [one["name"] for one in commands[0]["options"]]
    assert names[-1] == "ping", names


@test
def it_answers_and_its_button_does_it_again():
    sent = service.discord.send_command("ping", user="alice")
    sent.wait_final(match="ping-pong after")
    assert sent.original.buttons() == ["Again"], sent.original
    service.sql("UPDATE jobs SET outcome = 'before'")
    pressed = service.discord.press(sent.original, "Again")
    pressed.wait_final()
    assert service.sql("SELECT kind, outcome FROM jobs ORDER BY id") == [
        ("ping", "before"), ("ping", "pong")]
    assert sent.refresh().original.buttons() == ["Again"], sent.original


@test
def the_route_answers_and_stands_in_the_document():
    url = f"http://127.0.0.1:{service.port}"
    with urllib.request.urlopen(url + "/version", timeout=60) as answer:
        assert json.load(answer) == {"version": "0.1.0"}
    with urllib.request.urlopen(url + "/docs", timeout=60) as answer:
        assert b"The version of Inline" in answer.read()


def post(path, body):
    url = f"http://127.0.0.1:{service.port}{path}"
    try:
        with urllib.request.urlopen(url, body, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


@test
def the_contract_runs_code():
    assert post("/plain", b"print(6 * 7)") == (200, b"42\n")
    status, text = post("/plain", b"print(1)\n1 / 0")
    assert status == 422 and text.startswith(b"1\nTraceback"), text


@test
def the_key_is_known_with_its_default():
    rows = service.ilctl("config")[1]
    assert "| `IL_PING_TEXT` | `pong` | what `/il ping` answers |" in rows


@test
def the_cell_does_the_operation():
    with driver.Cell() as cell, cell.lease() as lease:
        lease.send("REQUEST", ("OP", driver.F["OP_ECHO"]), ("NAME", "hello"),
                   ("OUTPUT_MAX", 100))
        lease.send("GO")
        done = lease.finish()
        assert done.reason == driver.F["REASON_EXIT"], done
        assert done.stdout == b"hello", done


@test
def nothing_broke_discords_rules():
    service.assert_kept_discords_rules()


with service:
    run()
