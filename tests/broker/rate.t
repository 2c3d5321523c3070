#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A cell has its share of the disk's time and no more."""
import json

from brokerlib import *

RATE = 4 * MIB
SIZE = 12 * MIB
# Prints the seconds that each took.  Direct: in no cgroup's memory, and so
# counted by cgroup v1, too.
TIMED = """
import mmap, os, time
size, one = %d, mmap.mmap(-1, 1 << 20)
def timed(what):
    began = time.monotonic()
    what()
    print(time.monotonic() - began)
def write():
    fd = os.open('direct', os.O_CREAT | os.O_WRONLY | os.O_DIRECT)
    for _ in range(size >> 20):
        os.write(fd, one)
def read():
    fd = os.open('direct', os.O_RDONLY | os.O_DIRECT)
    for _ in range(size >> 20):
        os.readv(fd, [one])
def synced():
    with open('buffered', 'wb') as file:
        file.write(os.urandom(size))
        file.flush()
        os.fsync(file.fileno())
""" % SIZE
KINDS = ("write", "read", "synced")
SMALL = """
import mmap, os, time
one = mmap.mmap(-1, 4096)
fd = os.open('small', os.O_CREAT | os.O_RDWR | os.O_DIRECT)
began = time.monotonic()
for n in range(200):
    os.pwrite(fd, one, n << 12)
print(time.monotonic() - began)
"""


def seconds(lease, what):
    fields, output = lease.run(TIMED + "timed(%s)\n" % what, wall_ms=60000)
    assert fields.get("STATUS") == 0, (fields, output)
    return float(output)


def held():
    with Broker(IL_TUNE_DISK_RATE=str(RATE), IL_QUOTA="64m") as b:
        b.create(1, quota=64 * MIB)
        lease = b.lease(1)
        for what in KINDS:
            took = seconds(lease, what)
            note("%s: %.2f s" % (what, took))
            ok(took > SIZE / RATE * 0.7, "as slow as IL_TUNE_DISK_RATE: " + what)


def held_by_count():
    with Broker(IL_TUNE_DISK_OPS="100") as b:
        b.create(1)
        took = float(b.lease(1).run(SMALL)[1])
        note("%.2f s" % took)
        ok(took > 200 / 100 * 0.7, "as slow as IL_TUNE_DISK_OPS")


def rates_of(b, lease):
    """What docker was told, by option."""
    told = subprocess.run(
        [DOCKER, "inspect", "-f", "{{json .HostConfig}}", lease.name()],
        stdout=subprocess.PIPE, check=True).stdout
    host = json.loads(told)
    return {key: sorted(each["Rate"] for each in host[key] or [])
            for key in host if key.startswith("BlkioDevice")
            and key != "BlkioDeviceWeight" and host[key]}


def each_device():
    with Broker(IL_TUNE_DISK_RATE="1m", IL_TUNE_DISK_OPS="50") as b:
        b.create(1)
        is_(rates_of(b, b.lease(1)), {
            "BlkioDeviceReadBps": [MIB] * 2,
            "BlkioDeviceWriteBps": [MIB] * 2,
            "BlkioDeviceReadIOps": [50] * 2,
            "BlkioDeviceWriteIOps": [50] * 2}, "both devices have a limit")
    with Broker(IL_TUNE_DISK_RATE="0", IL_TUNE_DISK_OPS="0") as b:
        b.create(1)
        is_(rates_of(b, b.lease(1)), {}, "0 is none")


main(held, held_by_count, each_device)
