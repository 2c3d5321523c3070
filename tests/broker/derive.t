#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Cells of an image without byte code start from one that has been derived."""
from brokerlib import *
from fake import Fake

HAS = """
import importlib.util, json, os
print(os.path.exists(importlib.util.cache_from_source(json.__file__)))
"""
# A matplotlib that does one thing, and says whether that is kept.
LIBRARY = """
folder = sys.path[-1] + "/matplotlib"
os.mkdir(folder)
with open(folder + "/font_manager.py", "w") as file:
    file.write("import os; os.makedirs(os.environ['MPLCONFIGDIR'])")
"""
FONTS = "import os\nprint(os.path.isdir('/usr/share/inline/matplotlib'))"
DERIVED = "start from inline-derived:"


def docker(*words):
    return subprocess.run([DOCKER, *words], check=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE).stdout.decode().split()


class Bare:
    """The image of these tests without byte code, and without the label by
    which ours are known; each call of make() gives its name another id."""

    def __init__(self):
        self.name = "inline-test:3.11-bare-%d" % os.getpid()
        self.ids = []

    def make(self):
        name = "bare-%d" % os.getpid()
        docker("run", "--name", name, "--network", "none", "--entrypoint",
               "python3", IMAGE, "-I", "-B", "-c", "import os, shutil, sys\n"
               "for top in {p for p in sys.path if os.path.isdir(p)}:\n"
               "    for at, folders, _ in os.walk(top):\n"
               "        if '__pycache__' in folders:\n"
               "            shutil.rmtree(at + '/__pycache__')\n" + LIBRARY)
        try:
            self.ids += docker("commit", "--change", "LABEL inline.recipe=",
                               name, self.name)
        finally:
            docker("rm", "-f", name)
        return self.name

    def __enter__(self):
        self.make()
        return self

    def __exit__(self, *_):
        subprocess.run([DOCKER, "rmi", "-f", *self.ids],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def derived(b):
    """Names of what this broker has derived; one that was removed while a
    container used it has none any more."""
    names = docker("image", "ls", "--format", "{{.Repository}}:{{.Tag}}",
                   "--filter", "label=inline.derived=1", "--filter",
                   "label=inline.instance=" + b.instance())
    return [name for name in names if "<none>" not in name]


def has_byte_code(b, n):
    b.create(n)
    lease = b.lease(n)
    output = lease.run(HAS)[1]
    lease.close()
    return output == b"True\n"


def once(bare):
    with Broker(IL_TUNE_DERIVE="1", SANDBOX_IMAGE=bare.name) as b:
        try:
            used(b, bare)
        finally:
            for name in derived(b):
                subprocess.run([DOCKER, "rmi", "-f", name],
                               stdout=subprocess.DEVNULL)


def used(b, bare):
    ok(not has_byte_code(b, 1), "before it is there, a cell starts without it")
    b.wait_log(DERIVED, patience=240)
    ok(has_byte_code(b, 2), "then a new one has byte code")
    lease = b.lease(2)
    is_(lease.run(FONTS)[1], b"True\n", "and matplotlib's list of fonts")
    lease.close()
    is_(b.status()["IMAGE_NAME"].decode(), bare.name,
        "the status names the operator's image")
    first = derived(b)
    is_(len(first), 1, "one image was derived")

    b.stop()
    b.start()
    b.wait_log(DERIVED, 2)
    ok(has_byte_code(b, 3), "after a restart it is used again")
    is_(b.logged().count("is being made"), 1, "and not made again")

    b.stop()
    b.start(IL_TUNE_DERIVE="0")
    ok(not has_byte_code(b, 4), "IL_TUNE_DERIVE=0 leaves it alone")

    b.stop()
    b.start()
    b.wait_log(DERIVED, 3)
    docker("rmi", "-f", *first)
    ok(not has_byte_code(b, 6), "removed: a cell starts without it")
    b.wait_log(DERIVED, 4, 240)
    ok(has_byte_code(b, 7), "and it is made again")

    b.stop()
    bare.make()
    b.start()
    b.wait_log(DERIVED, 5, 240)
    end = time.monotonic() + PATIENCE
    while first[0] in derived(b) and time.monotonic() < end:
        time.sleep(0.1)
    second = derived(b)
    ok(len(second) == 1 and second != first,
       "an image of another id: derived anew, and the old one goes")


def kept_ready(bare):
    fake = Fake(pull="hang")
    with Broker(IL_TUNE_DERIVE="1", SANDBOX_IMAGE=bare.name, IL_TUNE_API_WARM="1",
                SANDBOX_IMAGES="a=%s,b=inline-test:none" % bare.name,
                SANDBOX_PULL_ON_STARTUP="1", IL_API_ISOLATION="auto",
                **fake.settings) as b:
        try:
            one = b.lease_api()
            is_(one.run_api(HAS)[1], b"False\n", "a run before it is there")
            one.close()
            b.wait_log(DERIVED, patience=240)
            ok(b.logged().index("pulling") < b.logged().index("being made"),
               "a pull that has begun before does not hold it up")
            two = b.lease_api()
            is_(two.run_api(HAS)[1], b"True\n",
                "cells that were kept ready are replaced")
            two.close()
        finally:
            b.stop()
            for name in derived(b):
                subprocess.run([DOCKER, "rmi", "-f", name],
                               stdout=subprocess.DEVNULL)
    fake.close()


def killed(bare):
    with Broker(IL_TUNE_DERIVE="1", SANDBOX_IMAGE=bare.name) as b:
        b.wait_log("is being made")
        end = time.monotonic() + PATIENCE
        while not b.containers() and time.monotonic() < end:
            time.sleep(0.05)
        ok(b.containers(), "a container makes it")
        b.kill()
        b.start(IL_TUNE_DERIVE="0")
        b.wait_no_container(PATIENCE)
        ok(True, "killed meanwhile: the next start removes that")
        is_(derived(b), [], "and nothing is half derived")


def ours():
    with Broker(IL_TUNE_DERIVE="1") as b:
        ok(has_byte_code(b, 1), "an image of ours has byte code")
        ok("is being made" not in b.logged(), "nothing is derived from it")


with Bare() as image:
    main(lambda: once(image), lambda: kept_ready(image), lambda: killed(image),
         *([ours] if IMAGE.startswith("inline-python:") and
           not IMAGE.endswith("-musl") else []))
