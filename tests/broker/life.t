#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The broker's own ends: SIGTERM, kill -9, and what an earlier life left."""
from brokerlib import *

sys.path.insert(0, os.path.join(ROOT, "tests", "standin"))
from fake import Fake  # noqa: E402
from slices import EXPECTED, slice_of  # noqa: E402


def terminated():
    with Broker() as b:
        b.create(1)
        b.create(2)
        b.lease(1)
        b.lease(2).close()
        asked = b.ask_lease(2)
        is_(slice_of(b.process.pid), EXPECTED, "it has short time slices")
        is_(b.stop(), 0, "SIGTERM with cells leased and idle: exit 0")
        is_(b.containers(), [], "no container is left")
        left = [os.path.relpath(os.path.join(folder, name), b.state)
                for folder, _, names in os.walk(b.state) for name in names]
        left = [name for name in left
                if not name.startswith("broker/counters-")]
        is_(left, ["instance"], "no socket is left")
        is_(sorted(os.listdir(b.state)), ["broker", "instance"],
            "no folder but that of the sockets, which the set-up may have made")
        asked.answer()
        is_(asked.answer()[0], None, "whoever waited is hung up on")


def terminated_with_its_docker():
    """Whoever ends all of a control group ends a look at the engine, too."""
    fake = Fake()
    with Broker(IL_STOP_SECONDS="5", **fake.settings) as b:
        b.create(1)
        lease = b.lease(1)
        fake.set(probe="hang")
        probes = fake.calls().count("probe")
        end = time.monotonic() + PATIENCE
        while fake.calls().count("probe") == probes and \
                time.monotonic() < end:
            b.status()
            time.sleep(0.1)
        children = f"/proc/{b.process.pid}/task/{b.process.pid}/children"
        with open(children) as file:
            docker = [int(pid) for pid in file.read().split()]
        b.process.send_signal(signal.SIGTERM)
        b.wait_log("letting leases end")
        for pid in docker:
            os.kill(pid, signal.SIGTERM)
        # the look has ended before the lease does
        for pid in docker:
            while os.path.exists(f"/proc/{pid}") and time.monotonic() < end:
                time.sleep(0.01)
        lease.close()
        is_(b.process.wait(PATIENCE), 0, "its docker is ended with it: exit 0")
        is_(b.containers(), [], "no container is left")
    fake.close()


def terminated_while_starting():
    with Broker() as b:
        b.create(1)
        b.ask_lease(1)
        b.wait_status(STARTING=1)
        is_(b.stop(), 0, "SIGTERM while a cell starts: exit 0")
        is_(b.containers(), [], "no container is left")


def killed():
    with Broker() as b:
        b.create(1)
        b.create(2)
        lease = b.lease(1)
        lease.cell.send(pack("REQUEST", ("OP", N["OP_RUN"]),
                             ("WALL_MS", 60000), ("OUTPUT_MAX", MIB)))
        lease.cell.send(pack("BYTES", ("PART", 1),
                             ("DATA", "open('a', 'w')\nwhile True: pass")))
        lease.cell.send(pack("GO"))
        b.lease(2).close()
        is_(len(b.containers()), 2, "two cells run")
        b.kill()
        took = b.wait_no_container()
        ok(took < 50, "after kill -9 of the broker no container is left")
        note("gone after %.0f ms" % (took * 1000))
        is_(lease.cell.recv(65536)[:1] in (b"", bytes([N["FRAME_STARTED"]])),
            True, "the client hears of it")
        lease.close()
        b.start()
        is_(b.lease(1).run("import os; print(os.path.exists('a'))")[1],
            b"True\n", "the next life serves the same workspace")


def killed_while_starting():
    with Broker() as b:
        b.create(1)
        for _ in range(5):
            b.ask_lease(1)
            b.wait_status(STARTING=1)
            b.kill()
            b.start()
        lease = b.lease(1)
        is_(lease.run("print(1)")[1], b"1\n",
            "killed five times at a cell's start, it still serves")
        is_(len(b.containers()), 1, "and there is no container but this")
        volumes = subprocess.run(
            [DOCKER, "volume", "ls", "-q", "--filter",
             "label=inline.instance=" + b.instance()],
            stdout=subprocess.PIPE).stdout.split()
        is_(len(volumes), 2, "and no volume but its two")


def swept():
    with Broker() as b:
        b.create(1)
        b.stop()
        name = "broker-test-left-" + b.instance()
        subprocess.run([DOCKER, "run", "-d", "--rm", "--name", name,
                        "--network", "none", "--log-driver", "none", "--label",
                        "inline.instance=" + b.instance(), IMAGE, "python3", "-c",
                        "import time; time.sleep(1000)"], check=True,
                        stdout=subprocess.DEVNULL)
        cells = os.path.join(b.state, "cells", "il-left")
        os.makedirs(cells)
        b.start()
        lease = b.lease(1)
        is_(len(b.containers()), 1,
            "what an earlier life left is removed before the first lease")
        ok(not os.path.exists(cells), "its folders too")
        lease.close()


def upgraded():
    """A package's new files come under the running programs; the restart comes
    later.
    """
    folder = tempfile.mkdtemp(prefix="broker-test-")
    lib = os.path.join(folder, "lib")
    shutil.copytree(os.path.join(BUILD, "lib", "cell"),
                    os.path.join(lib, "cell"))
    for name in "seccomp.json", "seccomp-api.json":
        shutil.copy(os.path.join(BUILD, "lib", name), lib)
    with Broker(folder=folder, IL_TUNE_LIB_DIR=lib) as b:
        b.create(1)
        b.lease(1).close()
        for name in os.listdir(os.path.join(lib, "cell")):
            os.unlink(os.path.join(lib, "cell", name))
        b.create(2)
        is_(b.lease(2).run("print(6 * 7)")[1], b"42\n",
            "a cell has the program of its broker's version")


def told():
    with Broker(start=False) as b:
        path = os.path.join(b.folder, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.bind(path)
            notify.settimeout(PATIENCE)
            b.settings["NOTIFY_SOCKET"] = path
            b.start()
            is_(notify.recv(100), b"READY=1", "systemd hears that it is ready")
            ok("ENGINE" in b.status(), "and then it answers")
    with Broker(NOTIFY_SOCKET="/nonexistent") as b:
        ok("ENGINE" in b.status(), "it serves if that is not heard")


def only_one():
    with Broker() as b:
        second = subprocess.run([PROGRAM], env=b.environment({}),
                                stderr=subprocess.PIPE, cwd="/")
        is_(second.returncode, 1, "a second broker on the same folder ends")
        ok(b"another il-sandboxd" in second.stderr, "and says why")
        ok("ENGINE" in b.status(), "the first one serves on")


main(terminated, terminated_with_its_docker, terminated_while_starting,
     killed, killed_while_starting, swept, upgraded, told, only_one)
