#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""il-snapshot with a folder: what is written when, and what comes of it."""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from snapshotlib import *  # noqa: E402,F403

node = Snapshotter()


def manifest(n, of=node):
    with open(os.path.join(of.store, sandbox_id(n), "manifest")) as file:
        return file.read()


def one_of_its_own():
    node = Snapshotter()
    node.make(1)
    node.wait_saved()
    return node


def saved(of, n, change):
    """Change it; what was stored before and after the snapshot of that."""
    before, had = of.stored(n), of.told()
    change()
    wait_for(lambda: of.told()["saved"] > had["saved"], "a snapshot")
    of.wait_saved()
    return before, of.stored(n), of.told()["bytes"] - had["bytes"]


@test
def a_new_sandbox_is_saved_and_the_manifest_says_whose_it_is():
    node.make(1, volumes=("workspace", "packages-3.11"))
    node.wait_saved()
    lines = manifest(1).splitlines()
    assert re.fullmatch(r"inline-snapshot 1 \d{10}", lines[0]), lines[0]
    assert {line.split()[-1] for line in lines if line[0] == "f"} == {
        f"{sandbox_id(1)}/workspace.ext4",
        f"{sandbox_id(1)}/packages-3.11.ext4"}, lines
    assert len(node.blocks(1)) == sum(
        1 for h in {line.split()[-1] for line in lines if line[0] == "b"})


@test
def one_block_that_changes_is_all_that_is_written():
    node.write(1, 5 * MIB, os.urandom(65536))
    node.wait_saved()
    before, after, written = saved(node, 1, lambda: node.write(
        1, 5 * MIB + 100, b"changed"))
    new = {p for p in after if after[p] != before.get(p)}
    assert {p.split("/")[1] for p in new} == {"manifest", "blocks"}, new
    assert len(new) == 2 and len(set(before) - set(after)) == 1, new
    assert written == sum(len(after[p]) for p in new if "/blocks/" in p)


@test
def an_open_and_a_close_write_nothing():
    before, had = node.stored(1), node.told()
    open(node.path(1), "r+b").close()
    wait_for(lambda: node.told()["waiting"])
    node.wait_saved()
    assert node.stored(1) == before
    assert node.told()["saved"] == had["saved"]


@aside
def a_volume_in_use_is_left_alone_until_it_is_let_go():
    node = one_of_its_own()
    before = node.stored(1)
    with open(node.path(1), "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        node.write(1, 3 * MIB, b"one")  # another's close: no reason to read
        tried = node.logged().count("saved,")
        wait_for(lambda: not node.told()["waiting"])    # it gave up
        assert node.stored(1) == before
        assert node.logged().count("saved,") == tried
    node.wait_saved()
    wait_for(lambda: node.stored(1) != before, "a snapshot")


@aside
def whoever_wants_a_large_volume_meanwhile_has_it_soon():
    node = Snapshotter()
    node.make(2, mib=80)
    node.wait_saved()
    node.write(2, 8 * MIB, os.urandom(64 * MIB))
    wait_for(lambda: len(node.blocks(2)) > 100, "its beginning")
    with open(node.path(2), "r+b") as file:     # while it is read
        began = time.monotonic()
        fcntl.flock(file, fcntl.LOCK_EX)
        took = time.monotonic() - began
        file.seek(70 * MIB)
        file.write(b"mine")
        held = node.told()
    print(f"# the lock was free after {took * 1000:.0f} ms")
    assert held["waiting"] == 1 and took < 15, (held, took)
    node.wait_saved()
    away = Snapshotter(node.store)
    assert away.restore(2, 3)
    assert away.read(3)[MIB:] == node.read(2)[MIB:]
    away.close()


@test
def what_changed_while_it_was_not_there_is_saved_at_the_next_start():
    assert node.stop() == 0
    before = node.stored(1)
    node.write(1, 7 * MIB, os.urandom(65536))
    node.start()
    wait_for(lambda: node.stored(1) != before, "a snapshot")
    node.wait_saved()


@test
def what_is_let_go_of_just_before_a_stop_is_saved():
    before = node.stored(1)
    node.write(1, 9 * MIB, b"the last word")
    assert node.stop() == 0
    assert node.stored(1) != before
    node.start()
    node.wait_saved()


@aside
def killed_at_any_moment_the_last_one_stays_whole_and_nothing_is_left():
    node = one_of_its_own()
    for number in range(4):
        had = node.read(1)[MIB:]
        with open(node.path(1), "r+b") as file:
            file.seek(8 * MIB)
            file.write(os.urandom(6 * MIB))
        wait_for(lambda: node.children() or not node.told()["waiting"])
        wait_for(lambda: len(node.blocks(1)) > 24 * number or
                 not node.told()["waiting"])
        node.stop(signal.SIGKILL)
        saver = Snapshotter(node.store)     # another node looks at it
        assert saver.restore(1, 50)
        assert saver.read(50)[MIB:] in (had, node.read(1)[MIB:]), number
        saver.close()
        node.start()
        node.wait_saved()
    away = Snapshotter(node.store)
    assert away.restore(1, 51) and away.read(51)[MIB:] == node.read(1)[MIB:]
    away.close()
    needed = {line.split()[-1] for line in manifest(1, node).splitlines()
              if line[0] == "b"}
    assert {path.rsplit("/")[-1] for path in node.blocks(1)} == needed


@aside
def its_child_killed_it_goes_on():
    node = one_of_its_own()
    had = node.told()["saved"]
    with open(node.path(1), "r+b") as file:
        file.seek(8 * MIB)
        file.write(os.urandom(10 * MIB))
    for pid in wait_for(node.children):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: node.told()["saved"] > had, "another try")
    node.wait_saved()


@aside
def one_that_always_dies_does_not_begin_each_second():
    node = one_of_its_own()
    had = node.told()
    before = manifest(1, node)
    node.write(1, 8 * MIB, os.urandom(10 * MIB))
    for _ in range(2):
        for pid in wait_for(node.children):
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not node.children())
    assert node.logged().count("its process died; again in") == 2
    assert "again in 10 s" in node.logged()
    assert node.told()["failures"] == had["failures"] + 2
    assert node.told()["failing_ms"] and manifest(1, node) == before
    node.wait_saved()
    assert manifest(1, node) != before and not node.told()["failing_ms"]


@aside
def more_happens_than_the_kernel_keeps_for_us():
    with open("/proc/sys/fs/inotify/max_queued_events") as file:
        most = int(file.read())
    if most > 100000:
        raise Skip("the kernel keeps too much")
    node = Snapshotter()
    node.make(1)
    node.make(2)
    node.wait_saved()
    before = node.stored(1)
    os.kill(node.process.pid, signal.SIGSTOP)
    for _ in range(most // 2 + 2):      # two in a row that are alike are one
        for n in (1, 2):
            os.close(os.open(node.path(n), os.O_WRONLY))
    shutil.rmtree(os.path.dirname(node.path(2)))
    with open(node.path(1), "r+b") as file:
        file.seek(8 * MIB)
        file.write(b"after all that")
    os.kill(node.process.pid, signal.SIGCONT)
    wait_for(lambda: node.told()["sandboxes"] == 1, "what is gone is noticed")
    wait_for(lambda: node.stored(1) != before, "a snapshot")
    node.wait_saved()


@test
def a_sandbox_that_is_removed_keeps_its_snapshot_until_it_is_forgotten():
    node.drop(1)
    assert node.stored(1)
    assert node.forget(1) is None and node.forget(1) is None
    assert sandbox_id(1) not in os.listdir(node.store)


@aside
def one_that_is_forgotten_while_it_is_saved_leaves_nothing():
    node = Snapshotter()
    node.make(4)
    node.write(4, 8 * MIB, os.urandom(10 * MIB))
    wait_for(lambda: node.blocks(4))
    # a folder is made before the block in it, and it may be killed between
    os.makedirs(os.path.join(node.store, sandbox_id(4), "blocks", "00"),
                exist_ok=True)
    node.drop(4)
    assert node.forget(4) is None
    wait_for(lambda: not node.children())
    assert sandbox_id(4) not in os.listdir(node.store)


@aside
def a_file_system_that_does_not_say_what_is_a_folder():
    node = Snapshotter(start=False)     # as many that come by the network
    image = node.store + ".ext4"
    with open(image, "wb") as file:
        file.truncate(16 * MIB)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-O", "^filetype", image],
                   check=True)
    if subprocess.run(["mount", "-o", "loop", image, node.store],
                      stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("nothing can be mounted")
    try:
        node.start()
        node.make(1)
        node.wait_saved()
        node.write(1, 8 * MIB, b"x")
        node.wait_saved()
        node.drop(1)
        assert node.forget(1) is None, node.logged()
        assert sandbox_id(1) not in os.listdir(node.store)
        assert "blocks stay" not in node.logged(), node.logged()
        node.stop()
    finally:
        subprocess.run(["umount", "-l", node.store], check=True)


@aside
def a_second_one_does_not_start_and_a_wrong_key_is_told():
    node = Snapshotter()
    done = subprocess.run([PROGRAM], env=node.environment(),
                          stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "another il-snapshot" in done.stderr
    for settings, why in (
            ({"IL_SNAPSHOTS": "s3://"}, "must be a folder, or s3://"),
            ({"IL_SNAPSHOTS": "s3://bucket/../x"}, "must be a folder, or"),
            ({"IL_SNAPSHOTS": node.folder + "/none"}, "IL_SNAPSHOTS: "),
            ({"IL_SNAPSHOTS": "s3://b"}, "IL_SNAPSHOTS_KEY_FILE: is needed"),
            ({"IL_SNAPSHOTS": "s3://b", "IL_SNAPSHOTS_KEY_FILE": node.log},
             "everybody may read it")):
        env = dict(node.environment(), IL_STATE_DIR=node.folder, **settings)
        done = subprocess.run([PROGRAM], env=env, stderr=subprocess.PIPE,
                              text=True)
        assert done.returncode in (1, 78) and why in done.stderr, done
    env = dict(node.environment(), IL_SNAPSHOTS="")
    done = subprocess.run([PROGRAM], env=env, stderr=subprocess.PIPE,
                          text=True)
    assert done.returncode == 0 and "nothing to do" in done.stderr, done


run()
