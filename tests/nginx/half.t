#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Requests that are begun and not ended: more of them than nginx once had
connections, opened again as they are closed, and others are served."""

import os
import resource
import select
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "api"))
from served import Served  # noqa: E402
from tap import run, test  # noqa: E402

COUNT = 4300
HEAD = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A"
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))


class Halves:
    """So many connections that say no more than the beginning of a head."""

    def __init__(self, port, count):
        self.port = port
        self.poll = select.epoll()
        self.links = {}
        self.again = 0
        self.ending = threading.Event()
        for _ in range(count):
            self.open()
        self.thread = threading.Thread(target=self.keep)
        self.thread.start()

    def open(self):
        link = socket.create_connection(("127.0.0.1", self.port), 30)
        link.sendall(HEAD)
        self.links[link.fileno()] = link
        self.poll.register(link, select.EPOLLIN)

    def keep(self):
        while not self.ending.is_set():
            for fd, _ in self.poll.poll(0.2):
                self.again += 1
                self.links.pop(fd).close()
                self.open()

    def close(self):
        self.ending.set()
        self.thread.join()
        for link in self.links.values():
            link.close()


@test
def others_are_served_all_the_time():
    halves = Halves(served.port, COUNT)
    try:
        until = time.monotonic() + 240
        # All of them are there, and nginx has closed some for their time.
        while halves.again < COUNT:
            assert time.monotonic() < until, halves.again
            answer = served.request("GET", "/health", timeout=60)
            assert answer.status == 200, answer
            answer = served.post("/eval", {"input": "print(1)"}, timeout=60)
            assert answer.json["stdout"] == "1\n", answer
    finally:
        halves.close()


with Served() as served:
    run()
