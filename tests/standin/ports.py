# SPDX-License-Identifier: MIT
"""A port for a program that will listen there."""

import random
import socket

# Below the ports that connections get: those come and go between the question
# whether one is free and the answer of who listens.
FIRST, LAST = 10000, 32000


def free_port():
    """Return a TCP port of loopback that nobody listens on now."""
    while True:
        port = random.SystemRandom().randrange(FIRST, LAST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
