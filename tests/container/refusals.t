#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What cannot work in a container is refused at once, and the missing option of
`docker run` is named."""

import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from house import OUTSIDE, inside, start  # noqa: E402
from tap import run, test  # noqa: E402

SOCKET, LOOPS = OUTSIDE[:2], OUTSIDE[2:]
MISCONFIGURED = 78


def refused(*options, entry=(), command=(), place=None):
    """What the container says when it ends at once."""
    with tempfile.TemporaryDirectory(prefix="inline-container-") as home:
        os.chmod(home, 0o755)
        env = {"IL_STATE_DIR": home + "/run",
               "IL_DATABASE": home + "/run/inline.db"}
        volume = ["--volume", f"{home}:{place or home}"] if place != "" else []
        name = os.path.basename(home).replace("_", "-")
        try:
            done = start(*volume, *options, name=name, env=env, entry=entry,
                         command=command)
        finally:
            subprocess.run(["docker", "rm", "--force", "--volumes", name],
                           capture_output=True)
        assert done.returncode == MISCONFIGURED, done
        return done.stderr


@test
def without_any_engine():
    text = refused()
    assert "-v /var/run/docker.sock:/var/run/docker.sock" in text, text
    assert "--privileged" in text, text


@test
def without_the_right_to_loop_devices():
    text = refused(*SOCKET)
    assert "--device-cgroup-rule 'c 10:237 rwm'" in text, text
    assert "--device-cgroup-rule 'b 7:* rwm'" in text, text


@test
def with_half_of_it():
    text = refused(*SOCKET, *LOOPS[:2])
    assert "--device-cgroup-rule 'b 7:* rwm' is missing" in text, text


@test
def without_the_right_to_make_their_nodes():
    text = refused(*OUTSIDE, "--cap-drop", "MKNOD")
    assert "--cap-add MKNOD is missing" in text, text


@test
def with_its_folder_elsewhere_than_on_the_host():
    with tempfile.TemporaryDirectory(prefix="inline-container-") as home:
        text = refused(*OUTSIDE, "--volume", f"{home}:/somewhere", place="")
    assert "-v /tmp/" in text and "is missing" in text, text


@test
def with_a_port_that_is_open_to_all():
    for publish in "0:8080", "0.0.0.0:0:8080":
        text = refused(*OUTSIDE, "--publish", publish)
        assert "-p 127.0.0.1:8080:8080" in text, text


@test
def with_an_engine_in_it_and_no_volume():
    options, entry, command = inside()
    text = refused(*options, entry=entry, command=command, place="")
    assert "-v inline:" in text, text


@test
def with_an_engine_in_it_in_the_network_of_the_host():
    options, entry, command = inside()
    text = refused(*options, "--network", "host", entry=entry, command=command)
    assert "not --network host" in text, text


run()
