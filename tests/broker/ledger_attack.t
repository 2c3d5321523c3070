#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Code that wants the disk to run out under somebody: whatever it does with its
blocks, what is promised stays there, and no file system is damaged."""
from brokerlib import *
from damage import damage

QUOTA = 128 * MIB
SETTINGS = {"IL_QUOTA": "128m", "IL_PIP_QUOTA": "64m"}
# Fill all that there is; then do something; say what is left.
FILL = """
import os, mmap, errno, random
block = os.urandom(1 << 20)
def fill(name, most=1000):
    try:
        with open(name, 'wb', buffering=0) as f:
            for _ in range(most):
                f.write(block)
    except OSError as e:
        return errno.errorcode[e.errno]
    return 'all'
"""


def covered(b):
    """What is free holds what is promised, and the floor."""
    s = b.status()
    note("free %d floor %d promised %d" % tuple(
        s[k] // MIB for k in ("FREE_BYTES", "FLOOR", "PROMISED")))
    return s["FREE_BYTES"] - s["FLOOR"] >= s["PROMISED"]


def many(b, n):
    """A sandbox each for n people."""
    for i in range(1, n + 1):
        b.create(i, QUOTA, 20000)


def blocks_given_back_are_still_its_own():
    """It fills, gives back, waits until others were let in, and fills again."""
    with Disk(760) as disk, Broker(IL_BASE_DIR=disk.path, **SETTINGS) as b:
        many(b, 6)
        trick = b.lease(1, access="ANY")
        is_(trick.access(), "WRITE", "it may write")
        trick.run(FILL + "print(fill('a'))")
        trick.run("""
import os
fd = os.open('a', os.O_RDWR)
os.ftruncate(fd, 0)
os.fsync(fd)
os.sync()
""")
        others = [b.ask_lease(n, access="ANY") for n in range(2, 7)]
        for other in others:
            other.answer()
        note([o.access() for o in others])
        ok("READ" in [o.access() for o in others], "there is no room for all")
        ok(covered(b), "what it gave back is promised to it still")
        writers = [trick] + [o for o in others if o.access() == "WRITE"]
        for w in writers:
            w.start(FILL + "print(fill('b'))")
        is_({w.result()[1].split()[-1] for w in writers} <=
            {b"ENOSPC", b"EFBIG", b"all"}, True, "all of them fill at once")
        ok(covered(b), "and it holds")
        for w in writers + others:
            w.close()
        is_(b.stop(), 0, "the broker ends")
        is_(damage(b), [], "no image has an error")


# What is done to blocks and names; each ends by itself.
TRICKS = {
    "punched holes": """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
fill('a')
fd = os.open('a', os.O_RDWR)
size = os.fstat(fd).st_size
for turn in range(3):
    for at in range(0, size, 8192):
        libc.fallocate(fd, 3, ctypes.c_long(at), ctypes.c_long(4096))
    os.fsync(fd)
    for at in range(0, size, 8192):
        os.pwrite(fd, block[:4096], at)
    os.fsync(fd)
""",
    "pages of a mapping, left dirty": """
fill('a', 100)
fd = os.open('m', os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 24 << 20)
m = mmap.mmap(fd, 24 << 20)
for at in range(0, 24 << 20, 4096):
    m[at:at + 8] = b'somebody'
""",
    "sparse files": """
for i in range(200):
    fd = os.open('s%d' % i, os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, 100 << 20)
    for at in range(0, 100 << 20, 1 << 20):
        try:
            os.pwrite(fd, b'x', at + random.randrange(1 << 20))
        except OSError:
            break
    os.close(fd)
""",
    "fallocate": """
fd = os.open('f', os.O_RDWR | os.O_CREAT)
n = 128 << 20
while n >= 4096:
    try:
        os.posix_fallocate(fd, os.fstat(fd).st_size, n)
    except OSError:
        n //= 2
for at in range(0, os.fstat(fd).st_size, 1 << 20):
    os.pwrite(fd, block[:4096], at)
""",
    "many files, and long names": """
try:
    for d in range(40):
        os.mkdir('d%d' % d)
        for i in range(450):
            with open('d%d/%s%d' % (d, 'n' * 200, i), 'wb') as f:
                f.write(block[:5000])
except OSError as e:
    print(e.strerror)
""",
    "a storm of renames": """
for i in range(300):
    open('r%d' % i, 'wb').write(block[:9000])
for turn in range(20):
    os.mkdir('t%d' % turn)
    for i in range(300):
        os.rename('r%d' % i, 't%d/%d' % (turn, i))
        os.rename('t%d/%d' % (turn, i), 'r%d' % i)
""",
}


def tricks_beside_each_other():
    with Disk(1600) as disk, Broker(IL_BASE_DIR=disk.path, IL_CELLS="8",
                                    **SETTINGS) as b:
        many(b, len(TRICKS) + 3)
        leases = [b.lease(n + 1, access="ANY") for n in range(len(TRICKS))]
        disk.fill(b.status()["FLOOR"] + b.status()["PROMISED"])
        ok(covered(b), "the disk holds just what is promised")
        for lease, trick in zip(leases, TRICKS.values()):
            lease.start(FILL + trick)
        lease = b.lease(len(TRICKS) + 1, access="ANY")
        is_(lease.access(), "READ", "meanwhile nobody else may write")
        lease.close()
        for one, name in zip(leases, TRICKS):
            result, output = one.result()
            is_(result.get("REASON") in (N["REASON_EXIT"], N["REASON_TIME"]),
                True, name)
            if output:
                note(output[-200:])
        ok(disk.free() >= b.status()["FLOOR"] - MIB, "the floor is whole")
        # ended with dirty pages, some of them while they are written out
        for one in leases:
            one.close()
        is_(b.stop(), 0, "the broker ends")
        is_(damage(b), [], "no image has an error")


def ended_while_it_is_written_out():
    """A cell is killed with dirty pages; its room is nobody's until they are
    on the disk."""
    with Disk(640) as disk, Broker(IL_BASE_DIR=disk.path, **SETTINGS) as b:
        many(b, 4)
        for turn in range(3):
            lease = b.lease(1, access="ANY")
            is_(lease.access(), "WRITE", "turn %d" % turn)
            lease.start(FILL + "os.path.exists('a') and os.remove('a')\n"
                        "fill('a', 90); print('x', flush=True)\n"
                        "import time; time.sleep(60)")
            lease.cell.recv(65536)
            while unpack(lease.cell.recv(65536))[0] != "OUTPUT":
                pass
            subprocess.run([DOCKER, "kill", lease.name()], check=True,
                           stdout=subprocess.DEVNULL)
            others = [b.ask_lease(n, access="ANY") for n in (2, 3, 4)]
            for other in others:
                other.answer()
            ok(covered(b), "what is promised is there")
            for other in others:
                other.close()
            lease.close()
        is_(b.stop(), 0, "the broker ends")
        is_(damage(b), [], "no image has an error")


main(blocks_given_back_are_still_its_own, tricks_beside_each_other,
     ended_while_it_is_written_out)
