#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A full disk locks nobody out, and damages nothing: who may write is let in
while the disk holds all of it, others read."""
import re

from brokerlib import *
from damage import damage

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


def many_at_one_moment():
    """Room for three: of seven who ask at once, no more than that write, and
    all that they write at one time finds room."""
    with Disk(1300) as disk, Broker(IL_BASE_DIR=disk.path, IL_QUOTA="256m",
                                    IL_PIP_QUOTA="512m") as b:
        people = range(1, 8)
        for n in people:
            b.create(n, QUOTA, 1000)
        asked = [b.ask_lease(n, access="ANY") for n in people]
        is_({a.answer()[0] for a in asked}, {"GRANTED"}, "all have a lease")
        granted = [a.access() for a in asked]
        note(granted)
        is_(granted.count("WRITE"), 3, "so many may write as there is room")
        before = b.status()
        ok(before["FREE_BYTES"] - before["FLOOR"] >= before["PROMISED"],
           "what is promised is there")
        ok(before["PROMISED"] >= 3 * QUOTA, "to all of them")
        writers = [a for a in asked if a.access() == "WRITE"]
        for a in writers:
            a.start(FILL)
        is_([a.result()[1].splitlines()[-1:] for a in writers], [[b"True"]] * 3,
            "each of them fills its sandbox, and reads what it wrote")
        is_([a.run("print(open('/workspace/a', 'w'))")[1].count(
            b"Read-only file system") for a in asked
            if a.access() == "READ"], [1] * 4, "the others cannot write")
        is_([a.run("import os; print(os.listdir('.site-packages'), 6 * 7)")[1]
             for a in asked if a.access() == "READ"], [b"[] 42\n"] * 4,
            "but run, with their files to read")
        for a in asked:
            a.close()
        is_(b.stop(), 0, "the broker ends")
        is_(damage(b), [], "no image has an error")


def idle_cells_make_room():
    """Warm cells may still have something to write out: they count, and they
    end before anybody is refused."""
    with Disk(1000) as disk, Broker(IL_BASE_DIR=disk.path, IL_QUOTA="256m",
                                    IL_PIP_QUOTA="512m") as b:
        for n in (1, 2, 3, 4):
            b.create(n, QUOTA, 1000)
        for n in (1, 2, 3, 4):
            with b.lease(n) as lease:
                is_(lease.run("open('a', 'w').write('x')")[0]["STATUS"], 0,
                    "%d writes" % n)
        is_(b.status()["CELLS"] <= 2, True, "there is room for two at a time")
        is_(b.create(5, QUOTA, 1000), "GRANTED", "a new one finds room, too")
        with b.lease(1) as lease, b.lease(2):
            is_(b.refusal(3), "DISK", "who is leased makes no room")
            with b.lease(3, access="ANY") as other:
                is_(other.access(), "READ", "but may be read beside")
            lease.run("open('b', 'w').write('y')")
        with b.lease(3, access="ANY") as lease:
            is_(lease.access(), "WRITE", "and written when they have gone")


def others_eat_the_disk():
    """What was promised is asked for anew with each lease, also of a cell
    that is warm."""
    with Disk(1000) as disk, Broker(IL_BASE_DIR=disk.path, IL_QUOTA="64m",
                                    IL_PIP_QUOTA="64m") as b:
        b.create(1, 64 * MIB, 100)
        b.create(2, 64 * MIB, 100)
        with b.lease(1) as lease:
            lease.run("open('a', 'w').write('mine')")
        disk.fill(FLOOR + 20 * MIB)
        with b.lease(1, access="ANY") as lease:
            is_(lease.access(), "READ", "a warm cell writes no more")
            is_(lease.run("print(open('a').read())")[1], b"mine\n", "it reads")
        with b.lease(1, access="TIDY") as lease:
            is_(lease.op("REMOVE", ("PATH", "a"))[0].get("STATUS"), 0,
                "and is tidied up")
        os.remove(os.path.join(disk.path, "others"))
        with b.lease(1, access="ANY") as lease:
            is_(lease.access(), "WRITE", "with room again it writes")
        disk.fill(4096)
        with b.lease(2, access="TIDY") as lease:
            is_(lease.op("LIST", ("PATH", ""))[0].get("STATUS"), 0,
                "with no block left: a look")
        is_(b.remove(2), "GRANTED", "delete")
        is_(b.stop(), 0, "the broker ends")
        is_(damage(b), [], "no image has an error")


def no_block_left():
    """The floor is gone as well, by whoever: removing files needs none."""
    with Disk(700) as disk, Broker(IL_BASE_DIR=disk.path, IL_QUOTA="32m",
                                   IL_PIP_QUOTA="32m") as b:
        b.create(1, 32 * MIB, 2000)
        with b.lease(1) as lease:
            is_(lease.run("""
import os
for i in range(40):
    os.makedirs("d%d/e" % i)
    for j in range(40):
        open("d%d/e/f%d" % (i, j), "w").write("x" * j * 100)
""")[0]["STATUS"], 0, "a tree of many files")
        is_(b.stop(), 0, "the cell is gone")
        disk.fill(0)
        is_(disk.free(), 0, "the disk is full to the last block")
        b.start()
        with b.lease(1, access="TIDY") as lease:
            for i in range(40):
                lease.op("REMOVE", ("PATH", "d%d" % i), ("RECURSIVE", 1))
            is_(lease.op("LIST", ("PATH", ""))[0].get("TOTAL"), 0,
                "all of it is removed")
        is_(b.stop(), 0, "the broker ends")
        is_(damage(b), [], "no image has an error")


def tidy_is_no_more():
    """Who may look and remove cannot do what needs room."""
    with Broker() as b:
        b.create(1)
        with b.lease(1, access="TIDY") as lease:
            is_(lease.run("print(1)")[0].get("CODE"), N["ERROR_REQUEST"],
                "no run")
            is_(lease.op("WRITE", ("PATH", "a"), content=b"x")[0].get("CODE"),
                N["ERROR_REQUEST"], "no file")
            is_(lease.op("LIST", ("PATH", ""))[0].get("TOTAL"), 0,
                "nothing was left")
        with b.lease(1, cls="packages", access="TIDY") as lease:
            is_(lease.op("REMOVE", ("PATH", ""), ("RECURSIVE", 1))[0]
                .get("STATUS"), 0, "packages are removed by a cell of theirs")
            is_(lease.op("PIP", ("ARG", "six"))[0].get("CODE"),
                N["ERROR_REQUEST"], "which installs none")
        asked = b.ask(pack("LEASE", ("CLASS", "user"), ("ACCESS", 7),
                           ("SANDBOX", sandbox_id(1)), ("LEASE_MS", 1000)))
        is_(asked.answer()[0], "REFUSED", "there is no other access")


def packages_are_read():
    with Broker() as b:
        b.create(1)
        with b.lease(1) as lease:
            ok(b"Read-only file system" in lease.run(
                "open('.site-packages/a.py', 'w')")[1],
               "user code does not write to the packages")


def a_bound_on_sandboxes():
    with Broker(IL_SANDBOXES="3") as b:
        for n in (1, 2, 3):
            is_(b.create(n), "GRANTED", "made: %d" % n)
        is_(b.create(4), "SANDBOXES", "no more than there may be")
        is_(b.create(3), "GRANTED", "one that is there is granted")
        is_(b.status()["SANDBOXES"], 3, "the status counts them")
        b.remove(1)
        is_(b.create(4), "GRANTED", "for one that has gone there is another")
    with Broker(IL_SANDBOXES="3") as b:
        asked = [b.ask(pack("CREATE", ("SANDBOX", sandbox_id(n)),
                            ("QUOTA_BYTES", 4 * MIB), ("QUOTA_FILES", 10)))
                 for n in range(20)]
        is_(sorted(a.answer()[0] for a in asked),
            ["GRANTED"] * 3 + ["REFUSED"] * 17, "also of twenty at once")


def killed_while_they_write():
    """The next life counts what the last one has left mounted."""
    with Disk(1000) as disk, Broker(IL_BASE_DIR=disk.path, IL_QUOTA="256m",
                                    IL_PIP_QUOTA="64m") as b:
        for n in range(1, 6):
            b.create(n, QUOTA, 1000)
        leases = [b.lease(n) for n in (1, 2)]
        for lease in leases:
            lease.start(FILL)
        b.kill()
        b.start()
        asked = [b.ask_lease(n, access="ANY") for n in (3, 4, 5)]
        for a in asked:
            a.answer()
        note([a.access() for a in asked])
        status = b.status()
        ok(status["FREE_BYTES"] - status["FLOOR"] >= status["PROMISED"],
           "what is promised is there")
        writers = [a for a in asked if a.access() == "WRITE"]
        for a in writers:
            a.start(FILL)
        is_([a.result()[1].splitlines()[-1:] for a in writers],
            [[b"True"]] * len(writers), "and is found by those who write")
        for a in asked:
            a.close()
        is_(b.stop(), 0, "the broker ends")
        is_(damage(b), [], "no image has an error")


def reservations():
    """Bytes for files that another program writes."""
    with Disk(700) as disk, Broker(IL_BASE_DIR=disk.path, IL_QUOTA="64m",
                                   IL_PIP_QUOTA="64m",
                                   IL_API_FILES=disk.path) as b:
        b.create(1, 64 * MIB, 100)
        held = b.reserve(100 * MIB)
        is_(held.answer()[0], "GRANTED", "there is room")
        is_(b.status()["PROMISED"], 100 * MIB, "it is promised")
        is_(b.reserve(1 << 34).answer()[0], "REFUSED", "there is not so much")
        more = b.reserve(250 * MIB)
        is_(more.answer()[0], "GRANTED", "there is some more")
        is_(b.refusal(1), "DISK", "which nobody else gets")
        more.close()
        is_(b.wait_granted(1), True, "when it is given back they do")
        b.kill()
        is_(held.sock.recv(1), b"", "a broker that is killed ends it")


def reservations_have_a_bound():
    """Whoever has il-api's socket may not keep all the disk for itself."""
    with Disk(1800) as disk, Broker(IL_BASE_DIR=disk.path, IL_QUOTA="64m",
                                    IL_PIP_QUOTA="64m", IL_API_CELLS="2",
                                    IL_API_SESSIONS="2",
                                    IL_API_FILES=disk.path) as b:
        b.create(1, 64 * MIB, 100)
        is_(b.reserve(1 << 40).answer()[1].get("CODE"), N["REFUSAL_DISK"],
            "so much at once is refused")
        held = [b.reserve(8 * MIB + 65536) for _ in range(130)]
        granted = [a.answer()[0] for a in held].count("GRANTED")
        note(granted)
        ok(granted >= 2 * (2 + 2), "what its processes need is granted")
        ok(granted < 130, "more than that is not")
        with b.lease(1, access="ANY") as lease:
            is_(lease.access(), "WRITE", "and people may still write")
        held[0].close()
        again = b.reserve(8 * MIB)
        while again.answer()[0] != "GRANTED":   # it has yet to hear of the end
            again = b.reserve(8 * MIB)
        ok(True, "what is given back can be had again")


def the_last_files():
    """A file system can have so many files, whatever room there is."""
    with Disk(700, files=6000) as disk, Broker(
            IL_BASE_DIR=disk.path, IL_QUOTA="64m", IL_PIP_QUOTA="64m",
            IL_API_FILES=disk.path) as b:
        is_(b.create(1, 64 * MIB, 100), "GRANTED", "there are many left")
        is_(b.reserve(1000).answer()[0], "GRANTED", "for the APIs, too")
        for n in range(os.statvfs(disk.path).f_favail - 4000):
            os.mknod(os.path.join(disk.path, "others-%d" % n))
        is_(b.create(2, 64 * MIB, 100), "DISK", "of the last no new sandbox")
        is_(b.reserve(1000).answer()[1].get("CODE"), N["REFUSAL_DISK"],
            "nor a file")
        with b.lease(1, access="ANY") as lease:
            is_(lease.access(), "WRITE", "who has a sandbox is not concerned")


def what_nginx_spools():
    """nginx writes large bodies to the disk: where `ilctl run` tells it to."""
    with open(os.path.join(ROOT, "sandbox/ctl/child.c")) as file:
        made = re.findall(r'{ "([a-z/]+)", ACCOUNT_NGINX', file.read())
    with open(os.path.join(ROOT, "nginx", "nginx.conf.in")) as file:
        place = re.search(r'client_body_temp_path "@STATE_DIR@/([^"]+)"',
                          file.read())[1]
    ok(place in made, "ilctl run makes the folder before the broker starts")
    with Disk(2000) as disk:
        b = Broker(start=False, IL_QUOTA="64m", IL_PIP_QUOTA="64m",
                   IL_BASE_DIR=disk.path)
        b.state = os.path.join(disk.path, "state")
        os.makedirs(os.path.join(b.state, place))
        with b:
            b.start()
            ok(b.status()["PROMISED"] > 700 * MIB, "is promised from the start")


def more_than_the_quota():
    """Who asks for a sandbox says its size, and gets the operator's at most."""
    with Disk(700) as disk, Broker(IL_BASE_DIR=disk.path, IL_QUOTA="64m",
                                   IL_PIP_QUOTA="64m") as b:
        is_(b.create(1, 1 << 40, 1 << 20), "GRANTED", "a TiB is asked for")
        with b.lease(1) as lease:
            size = int(lease.run("import os; s = os.statvfs('.');"
                                 "print(s.f_blocks * s.f_frsize)")[1])
            note(size)
            ok(60 * MIB < size < 80 * MIB, "and 64 MiB are given")


main(what_nginx_spools, the_last_files, more_than_the_quota, two_fill_the_disk, many_at_one_moment, idle_cells_make_room,
     others_eat_the_disk, no_block_left, tidy_is_no_more, packages_are_read,
     a_bound_on_sandboxes, killed_while_they_write, reservations,
     reservations_have_a_bound)
