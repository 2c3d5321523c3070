#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Restoring from a folder: on another node, what is damaged or another's."""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from snapshotlib import *  # noqa: E402,F403

home = Snapshotter()
home.make(1, volumes=("workspace", "packages-3.13"))
home.write(1, 8 * MIB, os.urandom(2 * MIB))
home.make(2)
home.wait_saved()
wait_for(lambda: home.told()["saved"] >= 2)
away = Snapshotter(home.store)
PLACE = os.path.join(home.store, sandbox_id(1))
MANIFEST = os.path.join(PLACE, "manifest")


def owner(path):
    told = subprocess.run(["debugfs", "-R", "stat <2>", path],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=True).stdout
    return int(re.search(rb"User: *(\d+)", told).group(1))


def names(node):
    return sorted(name for name in os.listdir(node.base)
                  if name not in (sandbox_id(9),))


def damaged(change):
    """Nothing is restored of a snapshot that was changed so, and it is told."""
    kept = PLACE + ".kept"
    shutil.copytree(PLACE, kept)
    try:
        change()
        assert away.restore(1, 7) == "INPUT", away.logged()
        assert sandbox_id(7) not in os.listdir(away.base)
        assert not [n for n in os.listdir(away.base) if n.startswith(".res")]
    finally:
        shutil.rmtree(PLACE)
        os.rename(kept, PLACE)
        shutil.rmtree(os.path.join(away.base, sandbox_id(7)),
                      ignore_errors=True)


def rewrite(change):
    with open(MANIFEST) as file:
        text = file.read()
    with open(MANIFEST, "w") as file:
        file.write(change(text))


@test
def another_node_has_the_same_bytes_and_gives_them_to_nobody_yet():
    seconds = away.restore(1, 9)
    assert abs(seconds - time.time()) < 300, seconds
    for volume in ("workspace", "packages-3.13"):
        ours, theirs = home.read(1, volume), away.read(9, volume)
        differ = [at for at in range(0, len(ours), 4096)
                  if ours[at:at + 4096] != theirs[at:at + 4096]]
        assert len(ours) == len(theirs) and len(differ) == 1, differ
        path = away.path(9, volume)
        assert (owner(home.path(1, volume)), owner(path)) == (UID, 65532)
        assert os.stat(path).st_mode & 0o777 == 0o600
        done = subprocess.run(["e2fsck", "-fn", path],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout
    assert os.stat(os.path.dirname(away.path(9))).st_mode & 0o777 == 0o700
    assert os.stat(away.path(9)).st_blocks * 512 < 8 * MIB      # sparse


@aside
def asked_again_it_says_the_same_and_what_it_was_made_of_goes_when_it_is_used():
    home = Snapshotter()
    home.make(1)
    home.wait_saved()
    home.stop()
    away = Snapshotter(home.store)
    first = away.restore(1, 9)
    away.wait_saved()
    wait_for(lambda: away.told()["saved"] == 1)
    assert home.stored(1)       # so far nobody has used it
    away.write(9, 12 * MIB, b"newer work")
    data = away.read(9)
    assert away.restore(1, 9) == first and away.read(9) == data
    away.wait_saved()
    wait_for(lambda: sandbox_id(1) not in os.listdir(home.store))
    assert away.restore(1, 9) == first and away.read(9) == data
    assert away.restore(9, 8) and away.read(8)[MIB:] == data[MIB:]


@test
def what_is_there_and_is_not_of_it_is_not_touched():
    away.make(5)
    data = away.read(5)
    assert away.restore(1, 5) == "CONFLICT"
    assert away.restore(2, 9) == "CONFLICT"
    assert away.read(5) == data


@test
def where_there_is_no_snapshot_there_is_none():
    assert away.restore(77, 78) is None
    assert sandbox_id(78) not in os.listdir(away.base)


@aside
def a_folder_that_is_not_mounted_is_not_taken_for_an_empty_one():
    home = Snapshotter()
    home.make(1)
    home.wait_saved()
    away = Snapshotter(home.store)      # both have seen it
    new = Snapshotter(home.store, start=False)
    os.rename(home.store, home.store + ".there")
    os.mkdir(home.store)
    new.start()         # which has never seen it
    for node in (away, new):
        assert node.restore(1, 6) == "UNAVAILABLE", node.logged()
    assert home.forget(1) == "UNAVAILABLE", home.logged()
    assert away.process.poll() is None
    home.write(1, 8 * MIB, b"later")
    wait_for(lambda: home.told()["failing_ms"])
    assert "is it mounted?" in home.logged() and not os.listdir(home.store)
    away.stop(signal.SIGKILL)
    away.start()        # after a boot, say
    assert away.process.wait(PATIENCE) == 1
    os.rmdir(home.store)
    os.rename(home.store + ".there", home.store)
    home.wait_saved()
    away.start()
    for node in (away, new):
        assert node.restore(1, 6) and node.read(6)[8 * MIB:][:5] == b"later"


@test
def a_damaged_block_restores_nothing():
    def spoil(how):
        def change():
            for folder, _, files in os.walk(PLACE):
                for name in files:
                    if name != "manifest":
                        path = os.path.join(folder, name)
                        with open(path, "rb") as file:
                            data = file.read()
                        with open(path, "wb") as file:
                            file.write(how(data))
                        return
        return change

    damaged(spoil(lambda d: d[:-1]))                    # cut
    damaged(spoil(lambda d: b""))
    damaged(spoil(lambda d: d[:9] + bytes([d[9] ^ 1]) + d[10:]))
    damaged(spoil(lambda d: d + d))                     # two frames
    damaged(spoil(lambda d: b"x" * (90 << 10)))         # too long
    def swap():     # each is a block, and none the one of its name
        paths = [os.path.join(f, n) for f, _, ns in os.walk(PLACE)
                 for n in ns if n != "manifest"]
        for a, b in zip(paths, paths[1:]):
            shutil.copy(a, b)
    damaged(swap)
    damaged(lambda: shutil.rmtree(os.path.join(PLACE, "blocks")))


@test
def a_damaged_manifest_restores_nothing():
    damaged(lambda: rewrite(lambda t: t[:len(t) // 2]))
    damaged(lambda: rewrite(lambda t: ""))
    damaged(lambda: rewrite(lambda t: t.replace("e ", "e 0", 1)))
    damaged(lambda: rewrite(lambda t: re.sub(r"(?m)^b (\d+) (\d+) (..)",
                                             r"b \1 \2 00", t, count=1)))
    damaged(lambda: rewrite(lambda t: t + t))
    damaged(lambda: rewrite(lambda t: re.sub(r"^inline-snapshot",
                                             "inline-backup", t)))


def forge(change):
    """With the hash that it needs."""
    def forged(text):
        lines = change(text.splitlines()[:-1])
        digest = hashlib.blake2b(b"".join(l.encode() + b"\0" for l in lines),
                                 digest_size=32).hexdigest()
        return "".join(l + "\n" for l in lines + ["e " + digest])
    return lambda: rewrite(forged)


@test
def a_forged_manifest_restores_nothing():
    file = f"f 384 0 0 65536 0 0 {sandbox_id(1)}/"
    damaged(forge(lambda ls: ls + [file + "workspace.ext4"]))   # once more
    damaged(forge(lambda ls: ls + [file + f"v{n}.ext4" for n in range(70)]))
    damaged(forge(lambda ls: ls + [file + ".ext4"]))
    damaged(forge(lambda ls: [re.sub("^f ", "f 1 ", l) for l in ls]))
    forge(lambda ls: ls)()
    assert away.restore(1, 71)


@test
def another_sandboxs_snapshot_is_refused():
    def swap():
        shutil.rmtree(PLACE)
        shutil.copytree(os.path.join(home.store, sandbox_id(2)), PLACE)
    damaged(swap)


@aside
def killed_while_it_restores_nothing_has_a_name_and_the_next_one_is_whole():
    home = Snapshotter()
    away = Snapshotter(home.store)
    home.make(1, volumes=("workspace", "packages-3.13"))
    home.write(1, 8 * MIB, os.urandom(10 * MIB))
    home.wait_saved()
    for _ in range(4):
        asked = away.ask(pack("RESTORE", ("SANDBOX", sandbox_id(7)),
                              ("NAME", sandbox_id(1))))
        wait_for(lambda: [n for n in os.listdir(away.base)
                          if sandbox_id(7) in n])
        away.stop(signal.SIGKILL)
        asked.close()
        if sandbox_id(7) in os.listdir(away.base):
            break
        away.start()
        assert not [n for n in os.listdir(away.base) if n.startswith(".res")]
    else:
        assert away.restore(1, 7)
    assert away.process or away.start()
    assert away.read(7, "packages-3.13")[MIB:] == \
        home.read(1, "packages-3.13")[MIB:]
    assert away.read(7)[MIB:] == home.read(1)[MIB:]


@test
def many_ask_at_one_time_and_nonsense_is_refused():
    asked = [away.ask(pack("RESTORE", ("SANDBOX", sandbox_id(n)),
                           ("NAME", sandbox_id(1)))) for n in [60] * 20 +
             list(range(61, 71))]
    answers = {away.answer(sock) for sock in asked}
    assert len(answers) == 1 and None not in answers, answers
    for packet in (b"\0", b"\xff" * 1000, pack("LEASE"), pack("RESTORE"),
                   pack("FORGET", ("SANDBOX", "../../../../etc")),
                   pack("FORGET", ("SANDBOX", "0" * 32)),
                   pack("RESTORE", ("SANDBOX", sandbox_id(1)),
                        ("NAME", "A" * 32))):
        assert away.answer(away.ask(packet)) == "INPUT", packet
    away.ask(b"\0").close()


run()
