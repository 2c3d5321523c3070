#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""`systemctl stop inline.target` is over when everything is."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from session import Session, note, run, test  # noqa: E402

host = Session()


@test
def stop_returns_when_no_container_is_left():
    host.create("alice", "bob")
    host.say("py", code="1", user="bob")
    assert host.containers("user") and host.containers("api")
    left = host.sh("systemctl stop inline.target; "
                   "docker ps -q --filter label=inline.instance")
    assert left == "", left


@test
def and_no_program():
    left = host.sh("systemctl is-active inline.target il-fcgi il-api "
                   "il-sandboxd il-worker@0 il-worker@3 il-fcgi.socket "
                   "il-api.socket || :")
    assert set(left.split()) == {"inactive"}, left
    assert host.sh("pgrep -l '^il-' || :") == ""


@test
def and_no_loop_device():
    text = host.sh("losetup -l -O BACK-FILE | grep /var/lib/inline || :")
    assert text == "", text


@test
def it_starts_again():
    host.sh("systemctl start inline.target")
    host.wait_ready()
    assert "42" in host.say("py", code="print(6 * 7)", user="bob")
    note(host.sh("systemctl --failed --no-legend --plain"))


with host:
    run()
