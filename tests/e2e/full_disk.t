#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Two people fill the host's disk as fast as they can.  Nobody is locked out,
everybody is told, and no file of anybody's is damaged."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from service import Service, own_mounts, wait_for  # noqa: E402
from client import File  # noqa: E402  (service.py knows the way)
from tap import run, test  # noqa: E402

own_mounts()
service = Service(IL_PIP_QUOTA="256m", IL_TIMEOUT_SECONDS="60")
DISK = service.mount_disk("disk", 920)
service.settings["IL_BASE_DIR"] = DISK
FULL = "disk is nearly full"
FILL = """
import hashlib, os
block, wrote, found = os.urandom(1 << 20), hashlib.sha256(), hashlib.sha256()
for name in ('big', 'more'):
    try:
        with open(name, 'wb', buffering=0) as file:
            while True:
                wrote.update(block[:file.write(block)])
    except OSError as error:
        print(error.strerror)
for name in ('big', 'more'):
    fd = os.open(name, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    while piece := os.read(fd, 1 << 20):
        found.update(piece)
print('wh' + 'ole' if found.digest() == wrote.digest() else 'dam' + 'aged')
"""


def begin(user):
    return service.discord.send_command("py", user=user, code=FILL)


@test
def two_people_fill_the_disk():
    sent = [begin("mallory"), begin("trudy")]
    # and meanwhile
    assert "mine.txt" in service.say("look", user="carol")
    assert "kept" in service.run("print(open('mine.txt').read())",
                                 user="carol")
    for one in sent:
        text = one.wait_final().original.text()
        assert "No space left on device" in text and "whole" in text, text
    begin("trudy").wait_final()


@test
def who_comes_then_reads():
    text = service.run("print(open('mine.txt').read())\n"
                       "print(sum(range(10)))", user="carol")
    assert "kept" in text and "45" in text, text
    assert FULL in text and "not write" in text, text
    text = service.run("open('new', 'w')", user="carol")
    assert "Read-only file system" in text and FULL in text, text


@test
def what_needs_room_is_refused_in_words():
    text = service.say("write", user="carol", name="a", content="b")
    assert FULL in text and "`/il rm`" in text, text
    text = service.say("pip", user="carol", packages="six")
    assert FULL in text, text
    text = service.say("put", user="carol", file=File("a.csv", "1,2"))
    assert FULL in text, text
    text = service.say("create", user="dave")
    assert FULL in text, text
    assert FULL in service.run("1", user="dave")


@test
def look_get_rm_and_delete_work():
    assert "mine.txt" in service.say("look", user="carol")
    assert "kept" in service.say("look", user="carol", path="mine.txt")
    sent = service.discord.send_command("get", user="carol", path="mine.txt")
    message = sent.wait_final().original
    assert message.attachment("mine.txt").text() == "kept", message
    assert "Removed" in service.say("rm", user="carol", name="other.txt")
    assert "other.txt" not in service.say("look", user="carol")
    wait_for(lambda: service.ilctl("status")[0] == 1)
    text = service.say("health")
    assert text.startswith("Not all is well."), text
    assert "**Problem** · Free disk" in text and "reserved" in text, text
    code, out, _ = service.ilctl("status")
    assert code == 1 and out.startswith("DEGRADED: the disk"), out
    assert "kept free" in out, out


@test
def with_room_again_all_is_well():
    assert "Removed" in service.say("rm", user="mallory", name="big")
    # the host has the blocks a moment later
    wait_for(lambda: FULL not in service.run(
        "open('new', 'w').write('x')\nprint('writ' + 'ten')", user="carol"))
    text = service.say("look", user="carol", path="new")
    assert "x" in text, text
    text = service.say("create", user="dave")
    assert "ready" in text, text


@test
def no_file_system_has_an_error():
    service.stop()
    images = [os.path.join(at, name) for at, _, names in os.walk(DISK)
              for name in names if name.endswith(".ext4")]
    assert len(images) == 8, images
    for image in images:
        done = subprocess.run(["e2fsck", "-f", "-n", image],
                              capture_output=True, text=True)
        assert done.returncode == 0, (image, done.stdout)
        head = subprocess.run(["dumpe2fs", "-h", image], text=True,
                              capture_output=True, check=True).stdout
        assert "FS Error count" not in head, (image, head)


with service:
    for person in ("mallory", "trudy", "carol"):
        service.create(person)
    service.say("write", user="carol", name="mine.txt", content="kept")
    service.say("write", user="carol", name="other.txt", content="other")
    run()
