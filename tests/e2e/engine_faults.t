#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a run needs is missing or breaks: engine, image, disk, database.  People
are told the truth with a reference, and all is well when it is back."""

import errno
import os
import re
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from service import (IMAGE, Service, docker, own_mounts,  # noqa: E402
                     wait_for)
from tap import run, test  # noqa: E402

TAG = f"inline-e2e-{os.getpid()}:gone"
own_mounts()
service = Service(SANDBOX_IMAGE=TAG, IL_QUOTA="64m", IL_PIP_QUOTA="16m",
                  IL_TIMEOUT_SECONDS="10")
ENGINE = os.path.join(service.folder, "docker.sock")
DISK = service.mount_memory("disk", "500m")
SMALL = service.mount_memory("small", "16m")
REAL = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
service.settings.update(DOCKER_HOST="unix://" + ENGINE, IL_BASE_DIR=DISK,
                        IL_DATABASE=os.path.join(SMALL, "inline.db"))


def told(text, *words):
    """Assert that a message says so, and gives a reference that leads on."""
    for word in words:
        assert word in text, (word, text)
    number = re.search(r"reference:? `?(\d+)", text)
    assert number, text
    service.wait_logged(rf"=\b{number[1]}\b")


def works(user="alice"):
    """Wait until things are as they should be."""
    wait_for(lambda: "served" in service.run("print('ser' + 'ved')",
                                             user=user), pause=0.3)


def fill(path, leave):
    """Use up a small disk but for so many bytes."""
    name = os.path.join(path, "filler")
    with open(name, "wb") as filler:
        def filled():
            disk = os.statvfs(path)
            free = disk.f_bavail * disk.f_frsize
            try:
                os.posix_fallocate(filler.fileno(), 0, max(free - leave, 1))
            except OSError as error:    # somebody else took of it meanwhile
                assert error.errno == errno.ENOSPC, error
                filler.truncate(0)
                return False
            return True
        wait_for(filled)
    return name


@test
def without_an_engine_people_are_told():
    told(service.run("1"), "Docker does not answer", "nothing was run")
    text = service.say("health")
    assert "Docker: reachable" not in text and "Database: answers" in text
    code, out, _ = service.ilctl("doctor")
    assert code != 0 and "ocker" in out, out


@test
def without_the_image_people_are_told():
    os.symlink(REAL.removeprefix("unix://"), ENGINE)
    wait_for(lambda: "Docker: reachable" in service.say("health"),
             pause=0.3)
    told(service.run("1"), "image", "missing", "nothing was run")
    assert TAG in service.say("health")


@test
def it_recovers_when_the_image_comes():
    docker("tag", IMAGE, TAG)
    works()
    wait_for(lambda: "Python 3." in service.say("health"), pause=0.3)


@test
def an_engine_that_goes_away_leaves_warm_cells_and_comes_back():
    service.create("bob")
    os.unlink(ENGINE)
    works("alice")
    told(service.run("1", user="bob"), "Docker does not answer")
    os.symlink(REAL.removeprefix("unix://"), ENGINE)
    works("bob")


@test
def an_image_that_goes_away_and_comes_back():
    service.create("carol")
    docker("rmi", TAG)
    told(service.run("1", user="carol"), "image", "missing")
    docker("tag", IMAGE, TAG)
    works("carol")


@test
def a_full_disk_of_the_host_is_told_and_passes():
    filler = fill(DISK, 200 << 20)
    told(service.say("create", user="dave"), "disk", "full")
    told(service.run("1", user="dave"), "disk", "full")
    os.unlink(filler)
    service.create("dave")
    works("dave")


@test
def a_disk_that_fills_up_during_a_run_harms_no_other():
    service.run("open('kept', 'w').write('kept')")
    filler = fill(DISK, 0)
    service.run("f = open('lost', 'wb')\n"
                "for i in range(40): f.write(os.urandom(1 << 20))\n"
                "os.fsync(f.fileno())".replace("f = ", "import os\nf = ", 1))
    os.unlink(filler)
    works("bob")
    wait_for(lambda: "kept" in service.run(
        "print(open('kept').read())"), pause=0.3)


def begin_run(seconds):
    """Begin a run that prints "late" after so long."""
    sent = service.discord.send_command(
        "py", user="alice",
        code=f"import time\ntime.sleep({seconds})\nprint('la' + 'te')")
    wait_for(lambda: service.sql("SELECT 1 FROM jobs WHERE state = 'started'"))
    return sent


def all_settled():
    """Everybody has been told about everything."""
    wait_for(lambda: not service.sql("SELECT 1 FROM jobs WHERE state NOT IN "
                                     "('delivered', 'undeliverable')"))


@test
def a_full_database_is_told_and_passes():
    sent = begin_run(2)
    filler = fill(SMALL, 0)
    asked = []
    while not asked or asked[-1].answer_type != 4:      # an editor each
        assert len(asked) < 900, "the database takes everything"
        asked.append(service.discord.send_command("py", user="bob")
                     .wait_answered())
    told(asked[-1].original.text(), "Something on our side")
    text = sent.wait_final().original.text()
    assert "late" in text, text
    os.unlink(filler)
    works()
    all_settled()


@test
def a_locked_database_is_told_and_passes():
    sent = begin_run(1)
    holder = sqlite3.connect(service.database, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    told(service.say("create", user="bob"), "Something on our side")
    assert "Database: answers" in service.say("health", user="bob")
    text = sent.wait_final().original.text()
    assert "late" in text, text
    holder.execute("ROLLBACK")
    holder.close()
    works()
    all_settled()


@test
def nothing_broke_discords_rules():
    service.assert_kept_discords_rules()


try:
    with service:
        service.create()
        run()
finally:
    docker("rmi", TAG, check=False)
