#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Which images a set-up provides, with a played `docker` that has some and can
pull some."""

import hashlib
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "standin"))
from tap import run, test  # noqa: E402

DOCKER = """#!/bin/sh
case "$1 $2" in
"image inspect")
	case "$*" in *Labels*) echo "$RECIPE"; exit ;; esac
	case " $HAVE " in *" $3 "*) exit 0 ;; esac
	exit 1 ;;
"pull "*)
	echo "$2" >>"$PULLED"
	case " $PULLS " in *" $2 "*) exit 0 ;; esac
	exit 1 ;;
esac
exit 9
"""


def recipe(name):
    """The label of our image of that name, as image-make.sh writes it."""
    text = name.encode() + b"\n"
    finish = "image-musl.sh" if name.endswith("-musl") else "image-hook.sh"
    for script in "image-make.sh", finish, "image-wheels.txt":
        with open(os.path.join(ROOT, "sandbox", "setup", script), "rb") as file:
            text += file.read()
    return hashlib.sha256(text).hexdigest()[:16]


def provide(*words, have="", pulls="", ours="", **settings):
    """Run image.sh; returns (code, its last line, what it tried to pull)."""
    with tempfile.TemporaryDirectory(prefix="inline-ctl-") as folder:
        docker = os.path.join(folder, "docker")
        with open(docker, "w") as file:
            file.write(DOCKER)
        os.chmod(docker, 0o755)
        pulled = os.path.join(folder, "pulled")
        done = subprocess.run(
            ["sandbox/setup/image.sh", *words], cwd=ROOT, text=True,
            capture_output=True, timeout=60, stdin=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "IL_ENV_FILE": "/dev/null",
                 "DOCKER_BINARY": docker, "HAVE": have, "PULLS": pulls,
                 "RECIPE": recipe(ours), "PULLED": pulled, **settings})
        tried = ""
        if os.path.exists(pulled):
            with open(pulled) as file:
                tried = file.read()
        return (done.returncode, (done.stdout.splitlines() or [""])[-1],
                tried.split())


def offered(image, **more):
    return provide("--interpreters", image, **more)


@test
def an_image_that_is_there_is_taken_as_it_is():
    assert provide(have="python:3.11-alpine") == (0, "python:3.11-alpine", [])
    assert provide(have="a/b:c", SANDBOX_IMAGE="a/b:c") == (0, "a/b:c", [])


@test
def one_that_is_not_is_pulled():
    image = "python:3.13-slim"
    assert provide(SANDBOX_IMAGE=image, pulls=image) == (0, image, [image])


@test
def one_that_cannot_be_pulled_is_replaced_by_ours_of_its_version():
    assert provide(SANDBOX_IMAGE="python:3.13-slim", ours="3.13") == \
        (0, "inline-python:3.13", [])
    assert provide(SANDBOX_IMAGE="python:3.8", ours="3.11",
                   SANDBOX_PULL_ON_STARTUP="0") == (0, "inline-python:3.11", [])


ALPINE = ["python:%s-alpine" % version for version in ("3.11", "3.13", "3.14")]
THREE = ["%s=%s" % (image[7:11], image) for image in ALPINE]


@test
def three_interpreters_are_offered_where_nobody_has_said_and_the_newest_leads():
    assert offered(ALPINE[0], have=ALPINE[0], pulls=" ".join(ALPINE[1:])) == \
        (0, ",".join(THREE[2:] + THREE[:2]), [ALPINE[2], ALPINE[1]])


@test
def who_names_an_image_has_it_lead():
    assert offered("x/y:3.13.1", have="x/y:3.13.1 " + " ".join(ALPINE),
                   SANDBOX_IMAGE="x/y:3.13.1") == \
        (0, ",".join(["3.13.1=x/y:3.13.1", THREE[0], THREE[2]]), [])
    assert offered("mine", have="mine " + " ".join(ALPINE),
                   SANDBOX_IMAGE="mine") == \
        (0, ",".join(["default=mine"] + THREE), [])
    assert offered("x/y:3.14", have="x/y:3.14 " + " ".join(ALPINE),
                   SANDBOX_IMAGE="x/y:3.14") == \
        (0, ",".join(["3.14=x/y:3.14"] + THREE[:2]), [])


@test
def ours_stands_in_for_the_newest():
    assert offered(ALPINE[0], have=" ".join(ALPINE[:2]), ours="3.14") == \
        (0, ",".join(["3.14=inline-python:3.14"] + THREE[:2]), [])


@test
def every_image_of_sandbox_images_is_provided():
    assert offered("mine", have="mine b:1", pulls="c:2",
                   SANDBOX_IMAGES="a=b:1,b=c:2") == (0, "a=b:1,b=c:2", ["c:2"])
    assert offered("mine", have="mine", ours="3.13",
                   SANDBOX_IMAGES="new=python:3.13") == \
        (0, "new=inline-python:3.13", [])


@test
def ours_is_made_once_for_its_recipe():
    for name in "3.11", "3.11-musl":
        assert provide(name, ours=name) == (0, "inline-python:" + name, [])
        done = subprocess.run(
            ["sandbox/setup/image-make.sh", "--made", name], cwd=ROOT,
            env={"PATH": os.environ["PATH"], "DOCKER_BINARY": "/bin/false"})
        assert done.returncode == 1, name


@test
def a_version_that_cannot_be_had_is_left_out():
    assert offered("mine", have="b:1", SANDBOX_IMAGES="a=b:1,3.9=python:3.9") \
        == (0, "a=b:1", ["python:3.9"])
    code, line, _ = offered("mine", SANDBOX_IMAGES="3.9=python:3.9")
    assert code == 1 and line == ""


run()
