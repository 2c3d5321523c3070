#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What is typed is completed from what a person's commands have left; packages
are listed and removed."""

import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from package_index import Index, network  # noqa: E402
from service import Service, wait_for  # noqa: E402
from client import File  # noqa: E402
from tap import run, test  # noqa: E402

NETWORK = f"inline-e2e-names-{os.getpid()}"


def offered(command, option, typed, user="alice"):
    """What is suggested for a half-typed value."""
    return [choice["value"] for choice in house.discord.autocomplete(
        command, focused=option, user=user, **{option: typed})]


def becomes(*names, command="look", option="path", typed="", user="alice"):
    """The names are kept after the answer: wait for them."""
    wait_for(lambda: offered(command, option, typed, user) == list(names) or
             None)


def rows():
    return house.sql("SELECT count(*) FROM names")[0][0]


@test
def a_file_is_offered_after_the_command_that_made_it():
    assert offered("look", "path", "") == []
    house.say("write", name="notes.txt", content="x")
    becomes("notes.txt")
    house.run("import os; os.makedirs('data/in'); open('data/a', 'w')")
    becomes("data/", "notes.txt", "data/in/", "data/a")
    house.say("put", file=File("up.csv", b"1"))
    becomes("up.csv", typed="u")
    house.say("rm", name="notes.txt")
    becomes(typed="notes")
    house.run("import os; os.rmdir('data/in')")
    becomes("data/a", typed="data/")


@test
def what_is_offered_works():
    house.say("look", path=offered("look", "path", "da")[0])
    assert offered("py", "file", "") == ["a"]
    house.say("write", name="~/run.py", content="print('from ' + 'the top')")
    becomes("~/run.py", command="py", option="file", typed="run")
    assert "from the top" in house.say("py", file="~/run.py")
    house.say("look", path="~")
    assert "from the top" in house.say("py", file=offered(
        "py", "file", "RU")[0])


@test
def a_run_that_changes_nothing_costs_nothing():
    before = house.sql("SELECT named_files FROM sandboxes")
    assert before[0][0] > 0, before
    house.sql("DELETE FROM names")
    house.run("print(1)")
    house.run("import io; io.BytesIO()")
    house.say("look", path="~")
    assert rows() == 0
    house.run("open('new', 'w')")
    becomes("new", typed="new")


@test
def hostile_names_are_not_offered():
    house.run(r"""
for name in (b'\xff', b'new\nline', b'\xe2\x80\xaetxt', b' ', b'blank ',
             b'\xe3\x80\x80', b'\xe2\x80\x8b', b'es\x1b[1mc', b'n' * 201,
             b'good \xc3\xa4'):
    open(name, 'w')
""")
    becomes("good ä", typed="good")
    for name, in house.sql("SELECT name FROM names"):
        assert name.isprintable() and name == name.strip(), name
    house.run("import os\nfor n in os.listdir(b'.'):\n"
              "    if not n.isalnum() and os.path.isfile(n): os.unlink(n)")


@test
def many_are_bounded():
    house.run("""
import os
for i in range(1500): open('many%d' % i, 'w')
""")
    wait_for(lambda: len(offered("look", "path", "many")) == 25 or None)
    assert 500 < rows() <= 1000, rows()
    house.run("import os\nfor n in os.listdir():\n"
              "    if n.startswith('many'): os.unlink(n)")


@test
def packages_are_listed_offered_and_removed():
    assert "No packages" in house.say("packages list")
    house.say("pip", packages="demo part")
    becomes("demo", "part", command="packages remove", option="name")
    text = house.say("packages list")
    assert "2 packages" in text and "demo 2.0" in text and \
        "part 1.5" in text, text
    assert "is not installed" in house.say("packages remove", name="nothing")
    assert "is not installed" in house.say("packages remove",
                                           name="../../workspace")
    assert "Removed" in house.say("packages remove", name="PART")
    becomes("demo", command="packages remove", option="name")
    text = house.say("packages list")
    assert "1 package" in text and "part" not in text, text
    assert "ModuleNotFoundError" in house.run("import part")
    assert "two" in house.run("import demo; print('t' + 'wo')")
    house.say("rm", name=".site-packages", recursive=True)
    becomes(command="packages remove", option="name")
    assert "No packages" in house.say("packages list")


@test
def a_session_tells_names_and_lives_on():
    house.say("session start")
    house.run("x = 'li' + 'ves'; open('of_session', 'w')")
    becomes("of_session", typed="of_s")
    assert "lives" in house.run("x")
    house.run("import os; os.unlink('of_session')")
    becomes(typed="of_s")
    assert "lives" in house.run("x")
    house.say("session stop")


@test
def each_person_has_their_own():
    house.create("bob")
    assert offered("look", "path", "", user="bob") == []
    house.say("write", name="bobs", content="x", user="bob")
    becomes("bobs", user="bob")
    assert "bobs" not in offered("look", "path", "")


@test
def they_go_with_the_sandbox():
    house.say("write", name="last", content="x")
    becomes("last", typed="last")
    sent = house.discord.send_command("delete", user="alice")
    sent.wait_answered()
    house.discord.press(sent.original, "Delete everything").wait_final()
    wait_for(lambda: rows() == 1 or None)
    assert offered("look", "path", "") == []
    house.sql("UPDATE sandboxes SET expires_at = 1")
    house.ilctl("expire")
    wait_for(lambda: rows() == 0 or None)


@test
def nothing_broke_discords_rules():
    house.assert_kept_discords_rules()


with tempfile.TemporaryDirectory(prefix="inline-e2e-") as place, \
        network(NETWORK) as gateway, Index(place, gateway) as index:
    index.add_wheel("demo", "2.0", {"demo.py": ""})
    index.add_wheel("part", "1.5", {"part.py": ""})
    with Service(IL_PIP_INDEX_URL=index.url, IL_PIP_CA_BUNDLE=index.ca,
                 IL_PIP_NETWORK=NETWORK, IL_USER_RATE="1000") as house:
        house.create()
        run()
