#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A cell without network does not wait for name servers it cannot reach."""
from brokerlib import *

# A look-up asks each name server several times and waits for each answer, so
# what is found in the file is as good as what the clock says, which is also
# asked: musl's default is 5 s.
LOOK_UP = """
import socket, time
began = time.monotonic()
try:
    print(socket.getaddrinfo("example.com", 80))
except socket.gaierror:
    print("failed")
print(time.monotonic() - began)
print([line.split()[1:] for line in open("/etc/resolv.conf")
       if line.startswith("options")])
"""
SOON_S = 4.9


def look_up(output, kind):
    result, seconds, options = output.decode().splitlines()
    is_(result, "failed", kind + ": a look-up fails")
    ok("timeout:0" in options, kind + ": it is told to wait for nobody")
    note("%s s, %s" % (seconds, options))
    ok(float(seconds) < SOON_S, kind + ": and so it does not")


def no_network():
    with Broker() as b:
        b.create(1)
        look_up(b.lease(1).run(LOOK_UP)[1], "user")
        look_up(b.lease_api().run_api(LOOK_UP)[1], "api")


def with_network():
    """Where there is a network, its name servers are waited for."""
    with Broker(IL_PIP_NETWORK=pip_network()) as b:
        b.create(1)
        lease = b.lease(1, "pip")
        found = subprocess.run(
            [DOCKER, "exec", lease.name(), "cat", "/etc/resolv.conf"],
            stdout=subprocess.PIPE).stdout.decode()
        is_("timeout:0" in found, b.settings["IL_PIP_NETWORK"] == "none",
            "pip: the options are the host's")


main(no_network, with_network)
