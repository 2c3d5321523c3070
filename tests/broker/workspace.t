#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Workspaces: made, removed, kept, mended, and never outside their folder."""
import fcntl

from brokerlib import *


def made_and_removed():
    with Broker() as b:
        is_(b.refusal(1), "NO_WORKSPACE", "no lease without a workspace")
        is_(b.create(1), "GRANTED", "made")
        is_(b.create(1), "GRANTED", "made already: granted as well")
        is_(b.folders(), [sandbox_id(1)], "one folder")
        is_(sorted(os.listdir(os.path.join(b.base, sandbox_id(1)))),
            ["packages-3.11.ext4", "workspace.ext4"], "with two images")
        is_(b.remove(1), "GRANTED", "removed")
        is_(b.remove(1), "GRANTED", "removed already: granted as well")
        is_(b.folders(), [], "the folder is gone")
        is_(b.refusal(1), "NO_WORKSPACE", "and so are leases")


def two_at_once():
    with Broker() as b:
        packet = pack("CREATE", ("SANDBOX", sandbox_id(1)),
                      ("QUOTA_BYTES", 4 * MIB), ("QUOTA_FILES", 10))
        asked = [b.ask(packet) for _ in range(20)]
        is_({a.answer()[0] for a in asked}, {"GRANTED"},
            "twenty who make the same one at once all succeed")
        is_(b.folders(), [sandbox_id(1)], "and leave one folder")


def removed_in_use():
    with Broker() as b:
        b.create(1)
        lease = b.lease(1)
        lease.run("open('a', 'w')")
        is_(b.remove(1), "GRANTED", "a leased workspace is removed")
        is_(lease.answer()[0], None, "the lease has ended")
        is_(b.folders(), [], "the folder is gone")
        b.create(1)
        is_(b.lease(1).run("import os; print(os.path.exists('a'))")[1],
            b"False\n", "made anew it is empty")


def removed_while_starting():
    with Broker() as b:
        b.create(1)
        lease = b.ask_lease(1)
        b.wait_status(STARTING=1)
        is_(b.remove(1), "GRANTED", "removed while its cell starts")
        is_(lease.answer()[0], "REFUSED", "who waited is refused")
        b.wait_status(CELLS=0)
        b.wait_no_container()
        ok(True, "and the cell is gone")


def leftovers():
    with Broker(start=False) as b:
        for name in (".new-1-2-3", ".old-1-2-3"):
            os.makedirs(os.path.join(b.base, name))
            with open(os.path.join(b.base, name, "workspace.ext4"), "w"):
                pass
        b.start()
        is_(b.folders(), [], "what a crash left is swept at start")
    with Broker(start=False) as b:
        os.makedirs(os.path.join(b.base, ".old-1-2-3", "foreign"))
        os.makedirs(os.path.join(b.base, ".new-1-2-3"))
        b.start()
        is_(b.folders(), [".old-1-2-3"],
            "what cannot be swept stays and keeps nobody from working")
        is_(b.create(1), "GRANTED", "a workspace is made beside it")


def disk_full():
    folder = tempfile.mkdtemp(prefix="broker-disk-")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m",
                    "broker-test", folder], check=True)
    try:
        with Broker(IL_BASE_DIR=folder) as b:
            is_(b.create(1), "GRANTED", "with 300 MiB free: made")
            is_(b.refusal(1), "GRANTED", "and leased")
            with open(os.path.join(folder, "fill"), "wb") as fill:
                os.posix_fallocate(fill.fileno(), 0, 60 * MIB)
            is_(b.create(2), "DISK", "under 256 MiB: not made")
            is_(b.refusal(1), "DISK", "nor leased")
            os.remove(os.path.join(folder, "fill"))
            is_(b.refusal(1), "GRANTED", "with room again: leased")
            is_(b.remove(1), "GRANTED", "and removed")
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        os.rmdir(folder)


def nothing_else_is_followed():
    with Broker() as b:
        b.create(1)
        victim = os.path.join(b.folder, "victim")
        os.rename(os.path.join(b.base, sandbox_id(1)), victim)
        os.symlink(victim, os.path.join(b.base, sandbox_id(2)))
        is_(b.refusal(2), "NO_WORKSPACE", "a link is no workspace")
        os.mkdir(os.path.join(b.base, sandbox_id(3)))
        for image in ("workspace.ext4", "packages-3.11.ext4"):
            os.symlink(os.path.join(victim, image),
                       os.path.join(b.base, sandbox_id(3), image))
        is_(b.refusal(3), "START", "nor is a link an image")
        b.remove(2)
        b.remove(3)
        is_(sorted(os.listdir(victim)), ["packages-3.11.ext4", "workspace.ext4"],
            "removing removes links, not what they name")


def image(b, n):
    return os.path.join(b.base, sandbox_id(n), "workspace.ext4")


def errors_noted():
    with Broker() as b:
        b.create(1)
        subprocess.run(["debugfs", "-w", "-R", "set_super_value state 2",
                        image(b, 1)], check=True, stderr=subprocess.DEVNULL)
        lease = b.lease(1)
        is_(lease.run("open('a', 'w').write('x')")[0]["STATUS"], 0,
            "an image with errors noted is checked, and works")
        ok("checked workspace.ext4" in b.logged(), "the log says so")


def superblock_lost():
    with Broker() as b:
        b.create(1)
        b.create(2)
        with open(image(b, 1), "r+b") as file:
            file.write(bytes(4096))
        is_(b.refusal(1) in ("START", "GRANTED"), True,
            "an image without a superblock: an answer, not a hang")
        ok("e2fsck" in b.logged() or "checked" in b.logged(),
           "after e2fsck has had a look")
        is_(b.refusal(2), "GRANTED", "others are served")
        is_(b.remove(1), "GRANTED", "it can be removed")
        b.create(1)
        is_(b.refusal(1), "GRANTED", "and made anew")


def garbage():
    with Broker() as b:
        b.create(1)
        with open(image(b, 1), "r+b") as file:
            file.write(os.urandom(MIB))
        is_(b.refusal(1), "START", "an image of garbage is refused")
        is_(b.refusal(1), "START", "each time")
        b.wait_status(CELLS=0)
        b.wait_no_container()
        ok(True, "and no container is left")


def held_elsewhere():
    with Broker() as b:
        b.create(1)
        b.create(2)
        with open(image(b, 1), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            asked = b.ask_lease(1)
            is_(b.refusal(2), "GRANTED", "an image in use holds up nobody else")
            is_((b.status()["WAITING"], len(b.containers())), (1, 1),
                "who asks for it waits, and nothing is started on it")
        began = time.monotonic()
        is_(asked.answer()[0], "GRANTED", "until it is free")
        ok(time.monotonic() - began < 14, "and no longer")
        asked.close()
        b.remove(1)
        b.create(1)
        with open(image(b, 1), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            is_(b.refusal(1), "START", "not for ever")
            waiters = subprocess.run(
                ["ps", "--ppid", str(b.process.pid), "-o", "stat="],
                stdout=subprocess.PIPE)
            is_(waiters.stdout.split(), [], "and no process waits on")


def never_twice():
    with Broker() as b:
        b.create(1)
        lease = b.lease(1)
        attached = subprocess.run(["losetup", "-j", image(b, 1), "-O", "NAME",
                                   "-n"], stdout=subprocess.PIPE)
        is_(len(attached.stdout.split()), 1, "a leased image is attached once")
        lease.close()
        b.kill()
        b.start()
        is_(b.lease(1).run("print(1)")[1], b"1\n",
            "a new life waits until the old container has let go of it")
        attached = subprocess.run(["losetup", "-j", image(b, 1), "-O", "NAME",
                                   "-n"], stdout=subprocess.PIPE)
        is_(len(attached.stdout.split()), 1, "it is attached once again")
        b.stop()
        attached = subprocess.run(["losetup", "-j", image(b, 1), "-O", "NAME",
                                   "-n"], stdout=subprocess.PIPE)
        is_(attached.stdout.split(), [], "and not at all at the end")


main(made_and_removed, two_at_once, removed_in_use, removed_while_starting,
     leftovers, disk_full, nothing_else_is_followed, errors_noted,
     superblock_lost, garbage, held_elsewhere, never_twice)
