#!/usr/bin/python3
# SPDX-License-Identifier: MIT
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
    return first_output(asked)


def send_api(asked, source):
    """`python -c source` that goes on."""
    asked.cell.send(pack("REQUEST", ("OP", N["OP_RUN"]), ("PLAIN", 1),
                         ("WALL_MS", 60000), ("MERGE", 1),
                         ("OUTPUT_MAX", MIB)))
    for data in ("-c\0", source + "\0"):
        asked.cell.send(pack("BYTES", ("PART", N["PART_ARGS"]),
                             ("DATA", data)))
    asked.cell.send(pack("GO"))


def first_output(asked):
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


# ---- what the kernel counts by user ----

# Each prints what it found, having taken all that it gets; those that end at
# once give it back.
TAKERS = {
    "pipes": """
import fcntl, os
ends = []
while len(ends) < 400:
    ends += os.pipe()
    try:
        fcntl.fcntl(ends[-1], 1031, 1 << 20)        # F_SETPIPE_SZ
    except OSError:
        pass
""", "inotify instances": """
import ctypes
libc = ctypes.CDLL(None)
while libc.inotify_init1(0) >= 0:
    pass
""", "descriptors under way": """
import array, os, socket
try:
    kept = []
    while True:
        kept.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
        for _ in range(8):
            kept[-1][0].sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                          array.array('i', [0] * 200))])
except OSError:
    pass
""", "signals that wait": """
import os, resource, signal
signal.pthread_sigmask(signal.SIG_BLOCK, range(34, 65))
hard = resource.getrlimit(resource.RLIMIT_SIGPENDING)[1]
resource.setrlimit(resource.RLIMIT_SIGPENDING, (min(hard, 2000),) * 2)
import ctypes
libc = ctypes.CDLL(None)
while libc.sigqueue(os.getpid(), 40, None) == 0:
    pass
"""}
# What there is to be had: the same before and while another holds all of it.
LEFT = {
    "pipes": """
import fcntl, os
print(fcntl.fcntl(os.pipe()[0], 1032))              # F_GETPIPE_SZ
""", "inotify instances": """
import ctypes
print(ctypes.CDLL(None).inotify_init1(0) >= 0)
""", "descriptors under way": """
import array, socket
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
print(a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                          array.array('i', [0] * 200))]))
""", "signals that wait": """
import os, resource, signal
signal.pthread_sigmask(signal.SIG_BLOCK, range(34, 65))
hard = resource.getrlimit(resource.RLIMIT_SIGPENDING)[1]
resource.setrlimit(resource.RLIMIT_SIGPENDING, (min(hard, 2000),) * 2)
import ctypes
print(ctypes.CDLL(None).sigqueue(os.getpid(), 40, None))
"""}
STAY = "print('taken', flush=True)\nimport time; time.sleep(60)\n"


def by_user():
    with Broker() as b:
        b.create(1)
        b.create(2)
        other = b.lease(2)
        session = b.lease_api(cls="session")
        for what, take in TAKERS.items():
            before = other.run(LEFT[what])[1]
            taker = b.lease(1)
            is_(begin(taker, take + STAY), b"taken", "one takes all " + what)
            is_(other.run(LEFT[what])[1], before,
                "as much as before for another: " + before.decode().strip())
            is_(session.run_api(LEFT[what])[1], before, "and for a session")
            taker.close()


def api_by_user():
    with Broker(IL_API_CELLS="2") as b:
        for what in ("pipes", "descriptors under way"):
            session = b.lease_api(cls="session")
            before = session.run_api(LEFT[what])[1]
            session.close()
            one, two = b.lease_api(), b.lease_api()
            send_api(one, TAKERS[what] + STAY)
            is_(first_output(one), b"taken", "a run of an API takes " + what)
            is_(two.run_api(LEFT[what])[1], before,
                "another cell's has as much as ever")
            one.close()
            two.close()


def uid_of(b, asked):
    """The host's users of the processes in a cell."""
    top = subprocess.run([DOCKER, "top", asked.name(), "-o", "pid"],
                         stdout=subprocess.PIPE, check=True).stdout.split()
    users = set()
    for pid in top[1:]:
        with open("/proc/%d/status" % int(pid)) as status:
            for line in status:
                if line.startswith(("Uid:", "Gid:")):
                    users.update(map(int, line.split()[1:]))
    return users


def users():
    with Broker(IL_CELLS="4", IL_API_CELLS="2") as b:
        for n in (1, 2, 3):
            b.create(n)
        first = [b.lease(1), b.lease(2), b.lease_api(), b.lease_api(),
                 b.lease_api(cls="session")]
        seen = [uid_of(b, asked) for asked in first]
        is_([len(each) for each in seen], [1] * 5,
            "each cell has one user and group of the host")
        is_(len(set.union(*seen)), 5, "and no two have the same")
        ok(all(0x78000000 <= n <= 0x7ffcffff for n in set.union(*seen)),
           "of a range that is nobody's")
        first[0].run("import os; os.mkdir('d', 0o700); open('d/f', 'w')")
        for asked in first:
            asked.close()
        b.stop()
        b.start()
        again = b.lease(1)
        is_(uid_of(b, again), seen[0], "a sandbox keeps its own for life")
        is_(again.run("import os; print({os.stat(p).st_uid for p in "
                      "('.', 'd', 'd/f')} == {os.getuid()})")[1], b"True\n",
            "and its files are its own")


# ---- what is left ----

def cells(b):
    found = os.listdir(os.path.join(b.state, "cells"))
    return sorted(set(found) - {"program"})     # what theirs are copies of


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


main(files, names, users, by_user, api_by_user, removed, no_execution)
