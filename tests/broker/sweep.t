#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A first sweep that fails is tried again without anybody asking."""
import select

from brokerlib import *

SECONDS = 60  # il-sandboxd looks again after 30

folder = tempfile.mkdtemp(prefix="broker-sweep-")
os.environ.update(FAKE=folder, REAL_DOCKER=shutil.which(DOCKER) or DOCKER)


def set_list(how):
    with open(os.path.join(folder, "ps.new"), "w") as file:
        file.write(how)
    os.rename(os.path.join(folder, "ps.new"), os.path.join(folder, "ps"))


def swept():
    """Look into the log, which asks the broker for nothing."""
    deadline = time.monotonic() + SECONDS
    with open(os.path.join(folder, "calls")) as calls:
        seen = ""
        while time.monotonic() < deadline:
            seen += calls.read()
            if seen.split().count("volume") > 0:
                return True
            select.select([], [], [], 0.2)
    return False


def swept_at_last():
    set_list("fails")
    with Broker(DOCKER_BINARY=os.path.join(HERE, "fake-docker"), FAKE=folder,
                REAL_DOCKER=os.environ["REAL_DOCKER"]) as b:
        b.wait_log("sweep: docker")
        set_list("real")
        ok(swept(), "the sweep is tried again, and comes to its end")
        b.create(1)
        ok(b.wait_granted(1), "then there are leases")
    shutil.rmtree(folder)


main(swept_at_last)
