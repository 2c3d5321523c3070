#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Versions of Python in chat: a cell for the one that is asked for, and packages
of each minor version by themselves."""
from brokerlib import *

TWO = {"IL_CHAT_IMAGES": "3.11=%s,3.13=%s,3.13.9=%s" % (IMAGE, IMAGE, IMAGE)}
WHICH = """
import os
try:
    open('/workspace/.site-packages/x', 'w')
except OSError as error:
    print(error.strerror)
print(sorted(os.listdir('/workspace/.site-packages')))
"""
LOCKED = b"Read-only file system\n"


def volumes(b, n):
    return sorted(os.listdir(os.path.join(b.base, sandbox_id(n))))


def install(b, n, volume, name):
    """What pip would leave in a volume that is not in use."""
    subprocess.run(["debugfs", "-w", "-R", "write /dev/null " + name,
                    os.path.join(b.base, sandbox_id(n), volume)],
                   check=True, stderr=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL)


def cells():
    with Broker(**TWO) as b:
        b.create(1)
        first = b.lease(1, version="3.11")
        first.run("open('a', 'w')")
        first.close()
        other = b.lease(1, version="3.13")
        ok(other.name() != first.name(), "another version has another cell")
        is_(other.run("print(open('a').read() == '')")[1], b"True\n",
            "with the same files")
        is_(b.refusal(1, version="3.11"), "BUSY", "one of them at a time")
        other.close()
        b.wait_status(LEASED=0)
        any_one = b.lease(1)
        is_(any_one.name(), other.name(),
            "who names none gets the cell that is there")
        any_one.close()
        b.wait_status(LEASED=0)
        b.refusal(1, version="3.11")
        b.wait_status(CELLS=1)
        ok(True, "and the one before has ended")
        is_(b.status()["CHAT_IMAGES"].decode(), TWO["IL_CHAT_IMAGES"],
            "the status names them")


def refused():
    with Broker(**TWO) as b:
        b.create(1)
        for version in ("3.12", "x" * 40, "3.11\0", "3.1", "../3.11"):
            is_(b.refusal(1, version=version), "INTERPRETER",
                "%r is not on offer" % version)
            is_(b.create_packages(1, version), "INTERPRETER",
                "nor has it packages")
        is_(b.create_packages(2, "3.13"), "NO_WORKSPACE",
            "packages without a sandbox are not made")
        is_(b.folders(), [sandbox_id(1)], "and make none")
    with Broker(IL_CHAT_IMAGES="3.11=%s,9=il-no-such:1" % IMAGE) as b:
        b.create(1)
        is_(b.refusal(1, version="9"), "IMAGE", "an image that is missing")
        is_(b.refusal(1), "GRANTED", "does not keep the others from running")


def packages_apart():
    with Broker(IL_PIP_NETWORK=pip_network(), **TWO) as b:
        b.create(1)
        is_(volumes(b, 1), ["packages-3.11.ext4", "workspace.ext4"],
            "a new sandbox has those of the usual version")
        is_(b.refusal(1, cls="pip", version="3.13"), "NO_WORKSPACE",
            "pip does not begin without a volume")
        with b.lease(1, version="3.13") as lease:
            is_(lease.run(WHICH)[1], LOCKED + b"[]\n",
                "to code there are none, and it can make none")
        with b.lease(1, cls="packages", access="TIDY",
                     version="3.13") as lease:
            is_(lease.op("REMOVE", ("PATH", "a"))[0]["CODE"],
                N["ERROR_NOT_FOUND"], "there is none to remove")
        is_([b.create_packages(1, "3.13") for _ in range(2)],
            ["GRANTED", "GRANTED"], "made once, granted again")
        is_(b.folders(), [sandbox_id(1)], "with no draft left")
        is_(volumes(b, 1), ["packages-3.11.ext4", "packages-3.13.ext4",
                            "workspace.ext4"], "a volume of its own")
        is_(b.refusal(1, cls="pip", version="3.13"), "GRANTED",
            "which pip gets")
        b.wait_status(CELLS=0)
        install(b, 1, "packages-3.11.ext4", "old")
        install(b, 1, "packages-3.13.ext4", "new")
        for version, name in (("3.11", b"old"), ("3.13", b"new"),
                              ("3.13.9", b"new")):
            with b.lease(1, version=version) as lease:
                is_(lease.run(WHICH)[1], LOCKED + b"['%s']\n" % name,
                    "%s sees those of its minor version alone" % version)
        b.remove(1)
        is_(b.folders(), [], "all of them are removed with the sandbox")


def many_at_once():
    with Broker(**TWO) as b:
        b.create(1)
        packet = pack("CREATE", ("SANDBOX", sandbox_id(1)),
                      ("INTERPRETER", "3.13"))
        asked = [b.ask(packet) for _ in range(10)]
        is_({a.answer()[0] for a in asked}, {"GRANTED"},
            "ten who make the same packages at once all succeed")
        is_(b.folders(), [sandbox_id(1)], "and leave nothing else")


def from_before():
    with Broker(**TWO) as b:
        for n in (1, 2):
            b.create(n)
        b.stop()
        for n in (1, 2):
            folder = os.path.join(b.base, sandbox_id(n))
            os.rename(folder + "/packages-3.11.ext4", folder + "/packages.ext4")
            install(b, n, "packages.ext4", "before")
        # a change that was interrupted after the first of them
        folder = os.path.join(b.base, sandbox_id(1))
        os.rename(folder + "/packages.ext4", folder + "/packages-3.11.ext4")
        b.start()
        for n in (1, 2):
            is_(volumes(b, n), ["packages-3.11.ext4", "workspace.ext4"],
                "one volume for all packages is the usual version's now")
            with b.lease(n, version="3.11") as lease:
                is_(lease.run(WHICH)[1], LOCKED + b"['before']\n",
                    "what it holds is there")
        with b.lease(1, version="3.13") as lease:
            is_(lease.run(WHICH)[1], LOCKED + b"[]\n",
                "and is not another's")
        b.stop()
        b.start(IL_CHAT_IMAGES="3.13=%s,3.11=%s" % (IMAGE, IMAGE))
        is_(b.lease(2, version="3.11").run(WHICH)[1],
            LOCKED + b"['before']\n",
            "also when another version is the usual one")


main(cells, refused, packages_apart, many_at_once, from_before)
