#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""ilctl backup while all runs, and what ilctl restore makes of it."""

import hashlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from service import BUILD, Service, wait_for  # noqa: E402
from tap import run, test  # noqa: E402

service = Service(IL_TIMEOUT_SECONDS="60", IL_TUNE_SPARE_CELLS="0",
                  IL_QUOTA="16m")
BASE = service.settings["IL_BASE_DIR"]
BACKUP = os.path.join(os.path.dirname(BASE), "backup")
SIZES = {"KiB": 1 << 10, "MiB": 1 << 20, "B": 1}


def backup(*words, code=0, folder=BACKUP):
    got, out, errors = service.ilctl("backup", *words, folder)
    assert got == code, (got, out, errors)
    return out, errors


def is_whole(folder=BACKUP):
    return service.ilctl("restore", "-n", folder)


def written(out):
    number, unit = re.search(r"([\d.]+) (\w+) written", out).groups()
    return float(number) * SIZES[unit]


def sandbox(name):
    return service.sql(
        "SELECT s.id FROM sandboxes AS s JOIN jobs USING (user_id) WHERE "
        "interaction_id = ?", int(service.discord.send_command(
            "create", user=name).wait_final().id))[0][0]


def images():
    """{path: (hash, uid, gid, mode)} of all volumes and their folders."""
    found = {}
    for folder, _, names in os.walk(BASE):
        for name in names + ["."]:
            path = os.path.join(folder, name)
            status = os.stat(path)
            data = b""
            if name.endswith(".ext4"):
                with open(path, "rb") as file:
                    data = file.read()
            found[os.path.relpath(path, BASE)] = (
                hashlib.sha256(data).hexdigest(), status.st_uid,
                status.st_gid, status.st_mode)
    return found


@test
def a_warm_cell_is_ended_and_all_is_copied():
    for user in ("alice", "bob"):
        service.run(f"open('f', 'w').write('{user} ' * 1000)", user=user)
    out, _ = backup()
    assert written(out) > 100000, out
    code, out, errors = is_whole()
    assert code == 0 and "all is whole" in out, (out, errors)
    assert service.sql("SELECT count(*) FROM jobs WHERE outcome LIKE "
                       "'refused%'") == [(0,)]


@test
def the_next_one_writes_what_has_changed():
    service.run("open('g', 'w').write('x' * 9)")
    before = service.containers(everything=False)
    out, _ = backup()
    assert 0 < written(out) < 2 << 20, out
    bob = sandbox("bob")
    with open(os.path.join(BACKUP, "manifest"), "rb") as manifest:
        names = re.findall(rb"[\w./-]+(?=\0{20})", manifest.read())
    assert names[0] == b".database" and names[-1] == b"uids" and \
        f"{bob}/workspace.ext4".encode() in names, names
    assert is_whole()[0] == 0 and before, before


@test
def what_is_in_use_stays_as_it_was():
    sent = service.discord.send_command(
        "py", user="bob", code="open('f', 'w').write('torn')\nimport time\n"
        "print('begun', flush=True)\nimport os; os.sync()\ntime.sleep(50)")
    sent.wait_answered()
    wait_for(lambda: "begun" in sent.refresh().original.text())
    _, errors = backup("-w", "0", code=1)
    assert "is in use: it stays as in the last backup" in errors, errors
    assert is_whole()[0] == 0
    user = service.sql("SELECT user_id FROM jobs WHERE interaction_id = ?",
                       int(sent.id))[0][0]
    assert service.ilctl("user", str(user), "cancel")[0] == 0
    sent.wait_final(match="cancelled")
    backup()


@test
def killed_at_any_moment_it_leaves_the_last_one():
    def blocks():
        return {name for _, _, names in os.walk(os.path.join(BACKUP, "blocks"))
                for name in names}

    for number in range(3):
        service.run("import os; open('h', 'wb').write(os.urandom(9000000))")
        had = blocks()
        process = subprocess.Popen(
            [os.path.join(BUILD, "bin", "ilctl"), "backup", BACKUP],
            env=service.environment(), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        while process.poll() is None and \
                len(blocks() - had) <= 30 * number:
            pass
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "it was over too soon"
        code, _, errors = is_whole()
        assert code == 0, errors
    backup()
    assert is_whole()[0] == 0


@test
def damage_is_found_before_anything_is_written():
    copy = BACKUP + "-copy"
    shutil.copytree(BACKUP, copy)
    blocks = sorted(os.path.join(folder, name) for folder, _, names in
                    os.walk(os.path.join(copy, "blocks")) for name in names)

    def damaged(path, change, said):
        with open(path, "rb") as file:
            good = file.read()
        bad = change(good)
        with open(path, "wb") as file:
            file.write(bad)
        code, _, errors = is_whole(copy)
        assert code == 1 and said in errors, (code, errors)
        with open(path, "wb") as file:
            file.write(good)

    damaged(blocks[0], lambda data: b"x" + data[1:], "holds something else")
    damaged(blocks[-1], lambda data: data[:-1], "another length")
    manifest = os.path.join(copy, "manifest")
    for change in (lambda data: data[:-70], lambda data: data[:len(data) // 2],
                   lambda data: b"", lambda data: data + b"e 1\n",
                   lambda data: data[:30] + b"\xff" + data[31:],
                   lambda data: re.sub(rb"[0-9a-f]{32}/", b"../../etc/", data),
                   lambda data: data[:-40] + b"x" + data[-39:],
                   lambda data: data[:-1] + bytes([data[-1] ^ 1])):
        damaged(manifest, change, "its manifest is not whole")
    os.unlink(blocks[3])
    assert is_whole(copy)[0] == 1
    assert service.ilctl("restore", "-n", os.path.dirname(copy))[2].endswith(
        f"there is no backup in {os.path.dirname(copy)}\n")
    shutil.rmtree(copy)


@test
def it_is_restored_with_owners_and_nothing_is_overwritten():
    service.run("open('f', 'w').write('as it was')")
    backup()
    code, _, errors = service.ilctl("restore", BACKUP)
    assert code == 1 and "running" in errors, errors
    service.stop()
    before = images()
    kept = service.sql("SELECT id, user_id, outcome FROM jobs ORDER BY id")
    code, _, errors = service.ilctl("restore", BACKUP)
    assert code == 1 and "already" in errors, errors
    assert images() == before
    os.rename(BASE, BASE + "-old")
    shutil.move(service.database, service.database + "-old")
    code, out, errors = service.ilctl("restore", BACKUP)
    assert code == 0 and "restored" in out, (out, errors)
    after = images()
    # the broker gives the folder of all its mode
    del before["."], after["."]
    assert after == before, (before, after)
    for name in after:
        if name.endswith(".ext4"):
            subprocess.run(["fsck.ext4", "-n", "-f", os.path.join(BASE, name)],
                           check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    database = sqlite3.connect(service.database)
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    database.close()
    assert service.sql("SELECT id, user_id, outcome FROM jobs WHERE id <= ?"
                       " ORDER BY id", kept[-1][0] - 1) == kept[:-1]
    code, _, errors = service.ilctl("restore", "-f", BACKUP)
    assert code == 0, errors
    service.start()
    assert "as it was" in service.run("print(open('f').read())")
    assert "torn" in service.run("print(open('f').read())", user="bob")


with service:
    service.create("alice", "bob")
    run()
