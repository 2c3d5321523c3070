#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Which Docker engine a set-up takes, with a played client."""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "standin"))
from tap import run, test  # noqa: E402


def engine(version):
    """Run engine.sh with a client whose engine answers, and that calls itself
    so; returns (code, what it said)."""
    with tempfile.TemporaryDirectory(prefix="inline-ctl-") as folder:
        docker = os.path.join(folder, "docker")
        with open(docker, "w") as file:
            file.write("#!/bin/sh\ncase $1 in\n--version) echo '%s' ;;\n"
                       "version) echo 4.3.1 ;;\n*) exit 9 ;;\nesac\n" % version)
        os.chmod(docker, 0o755)
        done = subprocess.run(
            ["sandbox/setup/engine.sh"], cwd=ROOT, text=True, timeout=60,
            stdin=subprocess.DEVNULL, capture_output=True,
            env={"PATH": os.environ["PATH"], "IL_ENV_FILE": "/dev/null",
                 "DOCKER_BINARY": docker})
        return done.returncode, done.stdout + done.stderr


@test
def one_that_answers_is_taken_as_it_is():
    assert engine("Docker version 20.10.24, build 297e128") == (0, "")


@test
def podman_is_refused_with_the_reason():
    code, said = engine("podman version 4.3.1")
    assert code == 1, (code, said)
    assert "podman is not supported" in said and "volume-nocopy" in said, said


run()
