#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""ilctl backup and restore without a service: what else may be the matter with
a folder, a place, or whoever is at work there."""

import fcntl
import hashlib
import os
import shutil
import sqlite3
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from house import House  # noqa: E402
from tap import run, test  # noqa: E402

ID = "a" * 32
house = House()
BACKUP = os.path.join(house.folder, "backup")
BASE = house.environment["IL_BASE_DIR"]
DATABASE = os.path.join(house.state, "inline.db")
IMAGE = os.path.join(BASE, ID, "workspace.ext4")


def ilctl(*words, code=0):
    got, out, errors = house.ilctl(*words)
    assert got == code, (words, got, out, errors)
    return out + errors


def blocks():
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(
        os.path.join(BACKUP, "blocks")) for name in names)


def block_of_image():
    """The block that alone holds the image's bytes."""
    for path in blocks():
        with open(path, "rb") as file:
            if file.read(8) == b"contents":
                return path
    raise AssertionError(blocks())


@test
def what_somebody_has_removed_is_written_anew():
    ilctl("backup", BACKUP)
    ilctl("backup", BACKUP)
    path = block_of_image()
    os.unlink(path)
    assert "damaged" in ilctl("restore", "-n", BACKUP, code=1)
    ilctl("backup", BACKUP)
    assert "all is whole" in ilctl("restore", "-n", BACKUP)
    with open(path, "r+b") as file:
        file.truncate(5)
    ilctl("backup", BACKUP)
    assert "all is whole" in ilctl("restore", "-n", BACKUP)


@test
def nobody_but_its_owner_may_read_it():
    for folder, _, names in os.walk(BACKUP):
        for path in [folder] + [os.path.join(folder, name) for name in names]:
            assert os.stat(path).st_mode & 0o077 == 0, path


@test
def what_is_no_file_is_waited_for_by_nobody():
    for path in (block_of_image(), os.path.join(BACKUP, "manifest")):
        os.rename(path, path + "-kept")
        os.mkfifo(path)
        assert "damaged" in ilctl("restore", "-n", BACKUP, code=1)
        os.rename(path + "-kept", path)


@test
def a_manifest_names_no_file_twice():
    """Also one whose hash is right."""
    path = os.path.join(BACKUP, "manifest")
    shutil.copy(path, path + "-kept")
    with open(path, "rb") as file:
        whole = file.read()[:-32]
    word, made, files, blocks = struct.unpack_from("<16sqQQ", whole)
    at = whole.index(f"{ID}/empty.ext4\0".encode())
    whole = struct.pack("<16sqQQ", word, made, files + 1, blocks) + \
        whole[40:at + 144] + whole[at:]
    with open(path, "wb") as file:
        file.write(whole + hashlib.blake2b(whole, digest_size=32).digest())
    assert "damaged" in ilctl("restore", "-n", BACKUP, code=1)
    os.rename(path + "-kept", path)
    ilctl("restore", "-n", BACKUP)


@test
def a_manifest_is_as_long_as_it_says():
    """One that is not is refused before it is read."""
    path = os.path.join(BACKUP, "manifest")
    size = os.path.getsize(path)
    os.truncate(path, 1 << 40)
    assert "damaged" in ilctl("restore", "-n", BACKUP, code=1)
    os.truncate(path, size)
    ilctl("restore", "-n", BACKUP)


@test
def that_of_another_version_is_called_so():
    folder = BACKUP + "-1"
    os.mkdir(folder)
    with open(os.path.join(folder, "manifest"), "w") as file:
        file.write("inline-backup 1\ntime 5\n")
    assert "another version of Inline" in ilctl("restore", "-n", folder,
                                                code=1)
    assert "another version of Inline; it begins anew" in ilctl("backup",
                                                                folder)
    ilctl("restore", "-n", folder)


@test
def one_person_goes_to_no_node_without_a_name():
    assert "is no node" in ilctl("restore", BACKUP, "--user", "7", "--to", "",
                                 code=78)


@test
def one_at_a_time_works_on_it():
    with open(os.path.join(BACKUP, "lock")) as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        assert "another one works on it" in ilctl("backup", BACKUP, code=1)
        ilctl("restore", "-n", BACKUP)
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "another one works on it" in ilctl("restore", "-n", BACKUP,
                                                  code=1)
    os.unlink(os.path.join(BACKUP, "lock"))     # a copy without it
    ilctl("restore", "-n", BACKUP)


@test
def who_has_the_database_open_is_in_the_way():
    path = block_of_image()
    os.rename(path, path + "-kept")     # to read all of it would find that
    database = sqlite3.connect(DATABASE)
    database.execute("SELECT count(*) FROM jobs").fetchall()
    assert "is in use: stop il-fcgi" in ilctl("restore", "-f", BACKUP, code=1)
    database.close()
    assert "there is a database already" in ilctl("restore", BACKUP, code=1)
    assert "damaged" in ilctl("restore", "-f", BACKUP, code=1)
    os.rename(path + "-kept", path)
    with open(IMAGE, "r+b") as image:
        image.write(b"something else")
    os.chmod(os.path.dirname(IMAGE), 0o755)
    assert "restored" in ilctl("restore", "-f", BACKUP)
    with open(IMAGE, "rb") as image:
        assert image.read() == b"contents" * 1000
    assert os.stat(os.path.dirname(IMAGE)).st_mode & 0o777 == 0o700


with house:
    ilctl("migrate")
    os.makedirs(os.path.dirname(IMAGE))
    with open(IMAGE, "wb") as file:
        file.write(b"contents" * 1000)
    os.utime(IMAGE, (time.time() - 60,) * 2)    # it may be relied on
    with open(IMAGE.replace("workspace", "empty"), "wb"):
        pass
    with sqlite3.connect(DATABASE) as link:
        link.execute(
            "INSERT INTO sandboxes (id, user_id, created_at, used_at,"
            " expires_at) VALUES (?, 7, 1, 1, 9999999999)", (ID,))
    link.close()
    run()
