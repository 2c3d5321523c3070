#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""What people and programs get on a real host: signed interactions by TLS,
the APIs on loopback, a doctor that finds nothing.
"""

import http.client
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from session import (ENV, NAME, Session, figure, note, run,  # noqa: E402
                     test, trusted)
from machine import HOST  # noqa: E402
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
from package_index import Index  # noqa: E402

host = Session()


@test
def a_signed_ping_is_answered_over_tls():
    sent = host.discord.send({"ping": True}).wait_answered(60)
    assert sent.http_status == 200, sent
    link = http.client.HTTPSConnection(
        "127.0.0.1", host.machine.ports["https"],
        context=trusted(host.house), timeout=60)
    link.request("POST", "/interactions", b"{}", {"Host": NAME})
    assert link.getresponse().status == 401, "not signed"
    figure(f"a signed PING over TLS: {sent.answer_ms:.0f} ms")


@test
def create_makes_a_sandbox():
    host.create("alice")


@test
def py_runs_code_and_the_answer_comes():
    text = host.say("py", code="import platform; print(6 * 7)")
    assert "42" in text, text


@test
def a_file_that_was_made_is_seen_by_look():
    host.say("py", code="open('seen.txt', 'w').write('there')")
    assert "seen.txt" in host.say("look"), "not listed"
    assert "there" in host.say("look", path="seen.txt")


@test
def pip_installs_from_an_index_of_ones_own_authority():
    with tempfile.TemporaryDirectory() as folder, \
            Index(folder, HOST, listen="127.0.0.1") as index:
        index.add_wheel("demo", "1.0", {"demo.py": "word = 'installed'"})
        with open(index.ca, encoding="ascii") as file:
            host.machine.write("/etc/inline/index.pem", file.read())
        host.configure(IL_PIP_INDEX_URL=index.url,
                       IL_PIP_CA_BUNDLE="/etc/inline/index.pem")
        text = host.say("pip", packages="demo", timeout=300,
                        match=r"[Ii]nstalled:? ")
        assert "demo" in text, text
    assert "installed" in host.say("py", code="import demo; demo.word")


@test
def eval_runs_code_on_loopback():
    assert host.run_api("print(6 * 7)") == "42\n"


@test
def eval_is_not_served_to_the_public_name():
    status = host.sh(f"curl -s -o /dev/null -w '%{{http_code}}' "
                     f"-d '{{}}' https://{NAME}/eval")
    assert status == "404", status


@test
def the_doctor_finds_nothing():
    status, text = host.doctor()
    note(text)
    assert status == 0 and "FAIL" not in text, text


@test
def selftest_finds_the_address_good():
    note(host.sh(f"ilctl selftest https://{NAME}/interactions"))


@test
def health_is_told_to_people():
    text = host.say("health")
    assert text, json.dumps(text)


@test
def nothing_was_logged_as_an_error():
    text = host.sh("journalctl -q -b -p err -u 'il-*' --no-pager | "
                   "grep -v 'fetch credentials' || :")
    assert text == "", text


@test
def discords_rules_were_kept():
    host.discord.assert_no_violations(ignore=("early",))


with host:
    run()
