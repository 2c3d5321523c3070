#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A workspace holds what it promises, and not more, while code runs."""
from brokerlib import *

FILL = """
import os, errno
n = 0
try:
    with open("fill", "wb", buffering=0) as f:
        while n < %d:
            n += f.write(b"x" * 65536)
except OSError as e:
    print(errno.errorcode[e.errno])
print(n)
"""

FILES = """
import errno
n = 0
try:
    while n < %d:
        open("f%%d" %% n, "w").close()
        n += 1
except OSError as e:
    print(errno.errorcode[e.errno])
print(n)
"""


def bytes_held():
    for quota in (4 * MIB, 16 * MIB, 100 * MIB):
        with Broker(IL_QUOTA="256m") as b:
            b.create(1, quota=quota)
            lease = b.lease(1)
            result, output = lease.run(FILL % (2 * quota))
            error, written = output.split()
            is_(error, b"ENOSPC", "%d MiB: then it is full" % (quota // MIB))
            written = int(written)
            note("%d of %d" % (written, quota))
            ok(quota <= written <= quota + MIB,
               "and not before, nor much later")
            is_(result.get("DISK_FULL"), 1, "the result says so")
            is_(lease.run("import os; os.remove('fill')")[0]["STATUS"], 0,
                "what is full can be emptied")


def files_held():
    with Broker() as b:
        b.create(1, files=1000)
        lease = b.lease(1)
        error, made = lease.run(FILES % 3000)[1].split()
        is_(error, b"ENOSPC", "1,000 files: then it is full")
        note("%s files" % made.decode())
        ok(1000 <= int(made) <= 1064, "and not before, nor much later")


def whole_and_clean():
    with Broker() as b:
        b.create(1)
        lease = b.lease(1)
        is_(lease.run("import os; print(os.listdir())")[1],
            b"['.site-packages']\n", "a new workspace is empty")
        is_(lease.run("import os; print([{s.st_uid, s.st_gid} == {os.getuid()}"
                      " for s in map(os.stat, ('.', '.site-packages'))],"
                      " os.listdir('.site-packages'))")[1],
            b"[True, True] []\n", "and its user's")
        is_(lease.run("import os; os.rename('.site-packages', 'x')")[0]
            ["STATUS"], 1, "the packages cannot be moved away")
        path = os.path.join(b.base, sandbox_id(1), "workspace.ext4")
        ok(os.stat(path).st_blocks * 512 < 6 * MIB,
           "it takes less than 6 MiB of the host's disk")
        lease.run("f = open('big', 'wb'); f.write(bytes(1) * 12000000);"
                  "f.flush(); import os; os.fsync(f.fileno())")
        grown = os.stat(path).st_blocks * 512
        lease.run("import os; os.remove('big'); os.sync()")
        lease.close()
        ok(b.stop() == 0 and os.stat(path).st_blocks * 512 < grown - 8 * MIB,
           "what is deleted in it is given back to the host")


main(bytes_held, files_held, whole_and_clean)
