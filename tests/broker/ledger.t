#!/usr/bin/python3
"""A full disk locks nobody out, and damages nothing: who may write is let in
while the disk holds all of it, others read."""
from brokerlib import *

QUOTA = 256 * MIB
FLOOR = 256 * MIB

# Until the disk, or the quota, says no; what was written whole is read again.
GREEDY = """
import os, hashlib
block = os.urandom(1 << 20)
def fill(name, most):
    h = hashlib.sha256()
    with open(name, 'wb', buffering=0) as f:
        for _ in range(most):
            try:
                n = f.write(block)
                h.update(block[:n])
                if n < len(block):
                    break
            except OSError as e:
                print(e.strerror)
                break
        os.fsync(f.fileno())
    return h.hexdigest()
def read(name):
    h = hashlib.sha256()
    with open(name, 'rb', buffering=0) as f:
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        for piece in iter(lambda: f.read(1 << 20), b''):
            h.update(piece)
    return h.hexdigest()
"""
FILL = GREEDY + "print(fill('big', 1000) == read('big'))"


def damage(b):
    """What is wrong with the images, once nobody has them mounted."""
    found = []
    for folder in sorted(os.listdir(b.base)):
        if not re.fullmatch("[0-9a-f]{32}", folder):
            continue
        for image in ("workspace.ext4", "packages.ext4"):
            path = os.path.join(b.base, folder, image)
            head = subprocess.run(["dumpe2fs", "-h", path],
                                  stdout=subprocess.PIPE, check=True,
                                  stderr=subprocess.DEVNULL).stdout.decode()
            if "FS Error count" in head or "with errors" in head:
                found.append((folder, image, "errors noted"))
            check = subprocess.run(["e2fsck", "-f", "-n", path],
                                   stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
            if check.returncode != 0:
                found.append((folder, image, check.stdout.decode()))
    return found


def two_fill_the_disk():
    with Disk(1500) as disk, Broker(IL_BASE_DIR=disk.path, IL_QUOTA="256m",
                                    IL_PIP_QUOTA="512m") as b:
        people = range(1, 8)
        for n in people:
            is_(b.create(n, QUOTA, 1000), "GRANTED", "made: %d" % n)
        with b.lease(3) as lease:
            lease.op("WRITE", ("PATH", "mine"), content=b"kept" * 1000)
        outputs, granted = [], []
        for n in people:
            with b.lease(n, access="ANY") as lease:
                granted.append(lease.access())
                outputs.append(lease.run(FILL, wall_ms=120000)[1])
        note((granted, outputs, disk.free() // MIB))
        ok(granted.count("WRITE") >= 3, "some may write")
        ok(granted[-1] == "READ", "who comes when there is no room reads")
        is_([o.splitlines()[-1] for o, g in zip(outputs, granted)
             if g == "WRITE"], [b"True"] * granted.count("WRITE"),
            "what could be written reads back as it was written")
        ok(disk.free() >= FLOOR, "the floor is left")
        for n in people:
            with b.lease(n, access="TIDY") as lease:
                is_(lease.op("LIST", ("PATH", ""))[0].get("STATUS"), 0,
                    "%d: a look" % n)
        with b.lease(3, access="TIDY") as lease:
            is_(lease.op("READ", ("PATH", "mine"))[1], b"kept" * 1000, "get")
        is_(b.refusal(7), "DISK", "writing is refused before it begins")
        is_(b.refusal(7, cls="pip"), "DISK", "so is installing")
        is_(b.create(99, QUOTA, 1000), "DISK", "and a new sandbox")
        with b.lease(1, access="TIDY") as lease:
            is_(lease.op("REMOVE", ("PATH", "big"))[0].get("STATUS"), 0, "rm")
        is_(b.remove(2), "GRANTED", "delete")
        with b.lease(7, access="ANY") as lease:
            is_(lease.access(), "WRITE", "with room again they may write")
            is_(lease.run("open('a', 'w').write('x')")[0]["STATUS"], 0,
                "and do")
        is_(b.stop(), 0, "the broker ends")
        is_(damage(b), [], "no image has an error")


main(two_fill_the_disk)
