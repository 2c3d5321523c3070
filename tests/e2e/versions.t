#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Two versions of Python in chat: runs, and packages of each by themselves."""

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from package_index import Index, network  # noqa: E402
from service import DOCKER, IMAGE, Service  # noqa: E402
from tap import run, test  # noqa: E402

NETWORK = f"inline-versions-{os.getpid()}"
NEWER = "inline-python:3.13"
WHICH = "import sys\nprint('%d.%d' % sys.version_info[:2])"


def pip(packages, **options):
    """Install; returns the text in the end."""
    sent = house.discord.send_command("pip", packages=packages, **options)
    return sent.wait_final(match="nstalled", timeout=90).original.text()


@test
def discord_is_told_which_there_are():
    root = json.loads(house.ilctl("commands")[1])
    found = [option["choices"]
             for command in root[0]["options"] if command["name"] in
             ("py", "pip")
             for option in command["options"] if option["name"] == "version"]
    assert found == [[{"name": name, "value": name}
                      for name in ("3.11", "3.13")]] * 2, found


@test
def code_runs_in_the_version_that_is_asked_for():
    house.run("open('a', 'w').write('kept')")
    text = house.run(WHICH, version="3.13")
    assert "3.13\n" in text and text.endswith("-# Python 3.13"), text
    text = house.run("print(open('a').read())", version="3.13")
    assert "kept" in text, text
    text = house.run(WHICH)
    assert "3.11\n" in text and "-# Python" not in text, text


@test
def who_tries_what_was_shared_has_the_same_python():
    message = house.discord.send_command(
        "py", code=WHICH, version="3.13").wait_final().original
    shared = house.discord.press(message, "Share").wait_final().original
    assert shared.text().endswith("-# Python 3.13"), shared
    editor = house.discord.press(shared, "Try it yourself",
                                 user="alice").wait_answered()
    sent = house.discord.submit_modal(editor).wait_final()
    assert "3.13\n" in sent.original.text(), sent.original


@test
def packages_of_two_versions_are_apart():
    text = pip("demo==2.0", version="3.13")
    assert text == "Installed `demo==2.0`.\n-# Python 3.13", text
    text = house.run("import demo")
    assert "ModuleNotFoundError" in text, text
    text = pip("demo==1.0")
    assert text == "Installed `demo==1.0`.", text
    look = "import demo, os\nprint(demo.version, os.listdir(" \
        "'/workspace/.site-packages'))"
    for version, number in (("3.13", 2), ("3.11", 1)):
        text = house.run(look, version=version)
        assert f"{number} [" in text and f"demo-{number}.0" in text, text
        assert f"demo-{3 - number}.0" not in text, text


@test
def they_last_and_the_files_of_both_go_with_the_sandbox():
    house.stop()
    house.start()
    assert "2" in house.run("import demo\nprint(demo.version)",
                            version="3.13")
    house.run("print(1)")
    assert len(house.containers()) == 1, house.containers()
    asked = house.discord.send_command("delete").wait_final()
    house.discord.press(asked.original, "delete-yes").wait_final()
    folder = house.settings["IL_BASE_DIR"]
    left = [name for name in os.listdir(folder) if not name.startswith(".")]
    assert not left, left


@test
def nothing_broke_discords_rules():
    house.assert_kept_discords_rules()


if subprocess.run([DOCKER, "image", "inspect", NEWER],
                  capture_output=True, check=False).returncode:
    print("1..0 # SKIP no image " + NEWER)
    sys.exit()
with tempfile.TemporaryDirectory(prefix="inline-e2e-") as place, \
        network(NETWORK) as gateway, Index(place, gateway) as index:
    for each in (1, 2):
        index.add_wheel("demo", f"{each}.0",
                        {"demo.py": f"version = {each}\n"})
    with Service(IL_CHAT_IMAGES=f"3.11={IMAGE},3.13={NEWER}",
                 IL_PIP_INDEX_URL=index.url, IL_PIP_CA_BUNDLE=index.ca,
                 IL_PIP_NETWORK=NETWORK) as house:
        house.create()
        run()
