#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The packages of the APIs' runs, as the broker keeps them: what is staged and
published, and what cells mount of it.  (tests/api/served_packages.t has pip.)"""
import contextlib
import fcntl
import glob

from brokerlib import *
from fake import Fake

VERSION = IMAGE.partition(":")[2][:4]
FOLDER = "0" * 32
QUOTA = 64 * MIB
SETTINGS = {"IL_TUNE_API_PACKAGES_QUOTA": "64m",
            "SANDBOX_IMAGES": "%s=%s" % (VERSION, IMAGE)}


def publish(b, module=None):
    """What is there, or nothing, is staged and published again, with a file."""
    with b.ask(pack("STAGE"), "ctl") as staged:
        assert staged.answer()[0] == "GRANTED", staged.fields
        if module is not None:
            subprocess.run(["debugfs", "-w", "-R", "write /dev/null " + module,
                            os.path.join(b.base, FOLDER,
                                         "staging-%s.ext4" % VERSION)],
                           check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
        with b.ask(pack("PUBLISH"), "ctl") as asked:
            assert asked.answer()[0] == "GRANTED", asked.fields
    return os.stat(os.path.join(b.base, FOLDER,
                                "packages-%s.ext4" % VERSION)).st_ino


def devices(b):
    """{N: what backs it} of the loop devices in the folder."""
    found = {}
    for path in glob.glob("/sys/block/loop*/loop/backing_file"):
        try:
            with open(path) as file:
                backing = file.read().strip()
        except OSError:     # it has just gone
            continue
        if backing.startswith(os.path.join(b.base, FOLDER)):
            found[path.split("/")[3]] = backing
    return found


def a_cell_mounts_what_it_was_told_of():
    """docker run takes a while: meanwhile others are published, and the number
    that it was called with must not become another volume's."""
    with contextlib.closing(Fake(run="slow 5")) as fake, \
            Broker(**fake.settings, **SETTINGS) as b:
        before = publish(b)
        asked = b.ask_api()
        fake.wait_called("run")
        told = devices(b)
        is_(len(told), 1, "a cell that starts has a device")
        ok(publish(b) != before, "others are published")
        ok("started" not in fake.calls(), "while docker has not mounted it")
        is_(set(told) & set(devices(b)), set(told), "the device is still there")
        fake.wait_called("started")
        kind, _ = asked.answer()
        is_(kind, "GRANTED", "who asked gets a cell")
        asked.close()
        is_(b.stop(PATIENCE), 0, "the broker ends")
        is_(devices(b), {}, "and no device is left")


def what_is_staged_counts_after_a_kill():
    with Broker(**SETTINGS) as b:
        alone = b.status()["PROMISED"]
        os.mkdir(os.path.join(b.base, FOLDER), 0o700)
        b.kill()
        path = os.path.join(b.base, FOLDER, "staging-%s.ext4" % VERSION)
        with open(path, "wb") as volume:
            volume.truncate(QUOTA)
            fcntl.flock(volume, fcntl.LOCK_EX)  # as its device has it
            b.start()
            ok(not os.path.exists(path), "it is swept")
            ok(b.status()["PROMISED"] >= alone + QUOTA,
               "and counts while a cell may still write to it")
        b.wait_status(PROMISED=alone)
        ok(True, "and no longer")


LOCK = """
import fcntl, glob, os
path, = glob.glob('/snekbox/user_base/lib/*/site-packages/module.py')
file = open(path)
for lock in (fcntl.flock, fcntl.lockf):
    try: lock(file, (fcntl.LOCK_EX if lock is fcntl.flock else fcntl.LOCK_SH)
              | fcntl.LOCK_NB)
    except OSError as error: print(error)
print('locked', not os.access(path, os.W_OK), flush=True)
"""


def a_lock_on_a_package_is_seen_in_no_other_run():
    with Broker(IL_TUNE_API_WARM="2", **SETTINGS) as b:
        publish(b, "module.py")
        with b.lease_api(VERSION) as one, b.lease_api(VERSION) as two:
            one.start_api(LOCK + "import time; time.sleep(60)", wall_ms=60000)
            one.wait_output(b"locked True\n")
            is_(two.run_api(LOCK)[1], b"locked True\n",
                "two runs lock a file of a package, and do not meet")


main(a_lock_on_a_package_is_seen_in_no_other_run,
     a_cell_mounts_what_it_was_told_of, what_is_staged_counts_after_a_kill)
