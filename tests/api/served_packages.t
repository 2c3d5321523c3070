#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`ilctl packages`: what the operator installs is there for runs of the APIs, at
snekbox's place, without a restart; a change is whole or there was none."""

import json
import os
import signal
import subprocess
import tempfile

from served import Served, wait_for
from package_index import Index, network
from service import BUILD, ROOT
from tap import run, test

NETWORK = f"inline-packages-{os.getpid()}"
VERSION = os.environ.get("SANDBOX_IMAGE", "inline-python:3.11").partition(
    ":")[2][:4]
SITE = f"/snekbox/user_base/lib/python{VERSION}/site-packages"
NONE = "ModuleNotFoundError"
API_ID = "0" * 32


def ilctl(*words, code=0):
    """The text that it prints; its errors where it is to fail."""
    got, out, err = served.ilctl("packages", *words)
    assert got == code, (words, got, out, err)
    return out if code == 0 else err


def begin(*words):
    """One that goes on."""
    return subprocess.Popen(
        [os.path.join(BUILD, "bin", "ilctl"), "packages", *words], cwd=ROOT,
        env=served.environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def imports(name, **fields):
    """What a run says that imports it."""
    answer = served.post("/eval", {
        "input": f"import {name}; print({name}.value, {name}.__file__)",
        **fields})
    assert answer.status == 200, answer
    return answer.json["stdout"]


def volumes():
    """What is in the folder of the packages."""
    return sorted(os.listdir(os.path.join(served.settings["IL_BASE_DIR"],
                                          API_ID)))


def asked(name):
    """The index has been asked for a file of that name."""
    return any(f"/files/{name}/" in path for path in index.paths)


@test
def nothing_is_there_at_first():
    assert NONE in imports("alpha")
    assert ilctl("list") == "none\n" and ilctl("list", "--json") == "[]\n"


@test
def what_is_added_is_there_for_the_next_run_and_what_it_needs():
    before = served.pids("il-")
    ilctl("add", "alpha")
    assert imports("alpha") == f"alphabeta {SITE}/alpha.py\n"
    assert sorted(ilctl("list").split("\n")) == ["", "alpha 1.0", "beta 2.0"]
    assert {"name": "beta", "version": "2.0"} in json.loads(
        ilctl("list", "--json"))
    assert served.pids("il-") == before
    assert volumes() == [f"packages-{VERSION}.ext4"]


@test
def a_script_and_another_start_of_python_find_it_too():
    answer = served.post("/eval", {"args": ["main.py"], "files": [
        {"path": "main.py", "content": "aW1wb3J0IGFscGhhOyBwcmludCgxKQ=="}]})
    assert answer.json["stdout"] == "1\n", answer
    answer = served.post("/eval", {"args": ["-X", "utf8", "-c",
                                            "import alpha; print(2)"]})
    assert answer.json["stdout"] == "2\n", answer
    answer = served.post("/eval", {"args": ["-s", "-c", "import alpha"]})
    assert NONE in answer.json["stdout"], answer
    answer = served.post("/v1/execute", {"code": "import alpha; print(3)"})
    assert answer.json["stdout"] == "3\n", answer


@test
def sessions_have_it():
    session = served.post("/v1/sessions", {}).json["session_id"]
    answer = served.post(f"/v1/sessions/{session}/bash", {
        "cmd": "python3 -c 'import alpha; print(4)'"})
    served.request("DELETE", f"/v1/sessions/{session}")
    assert answer.json["stdout"] == "4\n", answer


@test
def nobody_can_change_it():
    answer = served.eval(input=f"import os\ntry: open('{SITE}/x', 'w')\n"
                         "except OSError as e: print(e.errno)")
    assert answer["stdout"] in ("30\n", "13\n"), answer


@test
def an_upgrade_and_a_removal_are_seen():
    index.add_wheel("beta", "3.0", {"beta.py": "value = 'gamma'\n"})
    ilctl("add", "beta==3.0", "--image", VERSION)
    assert imports("alpha").startswith("alphagamma ")
    ilctl("remove", "beta")
    assert NONE in imports("beta")
    assert ilctl("list", "--image", VERSION) == "alpha 1.0\n"
    ilctl("add", "beta==2.0")
    assert imports("alpha").startswith("alphabeta ")


@test
def what_fails_changes_nothing():
    before = os.stat(volume()).st_ino
    assert "not installed" in ilctl("remove", "nothing", code=1)
    assert "pip has failed" in ilctl("add", "nosuchpackage", code=1)
    assert "not a requirement" in ilctl("add", "https://x/y.whl", code=1)
    assert "refused" in ilctl("add", "beta", "--image", "2.7", code=1)
    assert os.stat(volume()).st_ino == before
    assert volumes() == [f"packages-{VERSION}.ext4"]


@test
def it_is_bounded():
    told = ilctl("add", "huge", code=1)
    assert "File too large" in told or "No space left" in told, told
    assert NONE in imports("huge")


def volume():
    return os.path.join(served.settings["IL_BASE_DIR"], API_ID,
                        f"packages-{VERSION}.ext4")


@test
def one_changes_them_at_a_time_and_who_is_killed_changes_nothing():
    slow = begin("add", "slow")
    wait_for(lambda: asked("slow"))
    assert "by another" in ilctl("add", "beta", code=1)
    slow.send_signal(signal.SIGKILL)
    slow.wait()
    wait_for(lambda: volumes() == [f"packages-{VERSION}.ext4"])
    assert NONE in imports("slow")
    assert imports("alpha").startswith("alphabeta ")


@test
def a_broker_that_is_killed_leaves_what_was_there():
    index.paths.clear()
    slow = begin("add", "slow")
    wait_for(lambda: asked("slow"))
    served.kill("il-sandboxd")
    assert slow.wait(60) == 1
    served.wait_serving()
    assert imports("alpha").startswith("alphabeta ")
    assert NONE in imports("slow")
    assert volumes() == [f"packages-{VERSION}.ext4"]
    ilctl("add", "beta==3.0")
    assert imports("alpha").startswith("alphagamma ")


with tempfile.TemporaryDirectory(prefix="inline-packages-") as place, \
        network(NETWORK) as gateway, Index(place, gateway) as index:
    index.add_wheel("alpha", "1.0", {
        "alpha.py": "import beta\nvalue = 'alpha' + beta.value\n"}, ["beta"])
    index.add_wheel("beta", "2.0", {"beta.py": "value = 'beta'\n"})
    index.add_wheel("slow", "1.0", {"slow.py": "value = 1\n"}, slow=20)
    index.add_wheel("huge", "1.0", {"huge.bin": os.urandom(60 << 20)})
    with Served(IL_API_CELLS="2", IL_TUNE_API_WARM="1", IL_PIP_INDEX_URL=index.url,
                IL_PIP_CA_BUNDLE=index.ca, IL_PIP_NETWORK=NETWORK,
                IL_TUNE_API_PACKAGES_QUOTA="32m") as served:
        run()
