#!/usr/bin/python3
"""What one cell does is not felt in another: neither by files that both have,
nor by what the kernel counts by user."""
from brokerlib import *

NAME = "import getpass, os; print(getpass.getuser(), os.path.expanduser('~'))"
FILES = """
import os
for path in ('/run/cell/cell.py', '/run/cell', '/run/inline', '/etc/passwd'):
    there = os.stat(path)
    print(path, there.st_dev, there.st_ino)
"""
LOCK = """
import fcntl, os
for path in ('/run/cell/cell.py', '/run/cell', '/etc/passwd'):
    fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
print('locked', flush=True)
"""
HOLD = LOCK + "import time; time.sleep(60)\n"


def begin(asked, source):
    """Run code that goes on: its first output."""
    asked.cell.send(pack("REQUEST", ("OP", N["OP_RUN"]), ("WALL_MS", 60000),
                         ("MERGE", 1), ("OUTPUT_MAX", MIB)))
    asked.cell.send(pack("BYTES", ("PART", N["PART_SOURCE"]),
                         ("DATA", source)))
    asked.cell.send(pack("GO"))
    while True:
        kind, fields = unpack(asked.cell.recv(65536))
        if kind in ("OUTPUT", "RESULT", None):
            return fields.get("DATA", b"").strip()


def files():
    with Broker() as b:
        b.create(1)
        b.create(2)
        one, two = b.lease(1), b.lease(2)
        session = b.lease_api(cls="session")
        seen = [told.split(b"\n")[:-1] for told in (
            one.run(FILES)[1], two.run(FILES)[1], session.run_api(FILES)[1])]
        is_([len(set(same)) for same in zip(*seen)], [3, 3, 3, 3],
            "no file of the host is in two cells")
        is_(begin(one, HOLD), b"locked", "one holds locks on those it has")
        is_(two.run(LOCK)[1], b"locked\n", "another may have them, too")
        is_(session.run_api(LOCK)[1], b"locked\n", "and a session")


def names():
    with Broker() as b:
        b.create(1)
        is_(b.lease(1).run(NAME)[1], b"sandbox /workspace\n",
            "the user of a cell has a name and a home")
        is_(b.lease_api(cls="session").run_api(NAME)[1].split()[0], b"sandbox",
            "of a session's, too")
        is_(b.lease_api().run_api(NAME)[1].split()[0], b"sandbox",
            "and of a run that has namespaces of its own")


def cells(b):
    return os.listdir(os.path.join(b.state, "cells"))


def removed():
    with Broker() as b:
        b.create(1)
        lease = b.lease(1)
        is_(cells(b), [lease.name()], "a cell has a folder of its own")
        b.remove(1)
        b.wait_status(CELLS=0)
        is_(cells(b), [], "which goes with it")
        b.create(2)
        name = b.lease(2).name()
        b.kill()
        is_(cells(b), [name], "after a kill it is left")
        b.start()
        is_(cells(b), [], "until the next start")


def no_execution():
    """/run of a Debian host is mounted so."""
    folder = tempfile.mkdtemp(prefix="broker-noexec-")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m,noexec",
                    "broker-test", folder], check=True)
    try:
        os.mkdir(os.path.join(folder, "own"))
        with Broker(folder=os.path.join(folder, "own")) as b:
            is_(b.lease_api().run_api("print(1)")[1], b"1\n",
                "a state folder from which nothing may be executed")
            is_(b.status()["ISOLATION"], N["ISOLATION_RUN"],
                "keeps no run from its namespaces")
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        os.rmdir(folder)


main(files, names, removed, no_execution)
