#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""il-api is started anew while a run is in hand: the old process finishes it,
the new one serves the sockets meanwhile."""
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import front as f  # noqa: E402

sys.path.insert(0, os.path.join(f.ROOT, "tests", "broker"))
import brokerlib  # noqa: E402

SOCKETS = ("api.sock", "run.sock", "files.sock", "session.sock",
           "connect.sock", "mcp.sock")
START = """import fcntl, os, sys
n = len(sys.argv[2].split(','))
fds = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 100)
       for fd in sys.argv[2].split(',')]
for i, fd in enumerate(fds):
    os.dup2(fd, 3 + i)
    os.set_inheritable(3 + i, True)
os.environ.update(LISTEN_FDS=str(n), LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[1], [sys.argv[1]] + sys.argv[3:])
"""
LONGER_THAN_A_RESTART = 5.5
tap = f.Tap()


class Broker:
    """Takes who asks for a cell, and refuses when told to."""

    def __init__(self, path):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        self.listener.listen(8)
        self.listener.settimeout(60)

    def take(self):
        while True:
            sock, _ = self.listener.accept()
            kind, _ = brokerlib.unpack(sock.recv(4096))
            if kind == "LEASE":
                return sock
            sock.send(brokerlib.pack("STATUS_IS"))
            sock.close()

    def refuse(self, sock):
        sock.send(brokerlib.pack("REFUSED", ("CODE", 3), ("TEXT", "told")))
        sock.close()


def start(front, listeners):
    fds = [sock.fileno() for sock in listeners]
    with open(front.log_path, "ab") as log:
        front.process = subprocess.Popen(
            [sys.executable, "-c", START,
             os.path.join(f.BUILD, "bin", "il-api"),
             ",".join(map(str, fds)), "-l"],
            env=front.environment, cwd=front.folder, stderr=log,
            stdin=subprocess.DEVNULL, pass_fds=fds)
    assert front.request("GET", "/versions").status == 200, front.log()


with f.Front(program="il-api", start=False, nginx=False) as front:
    listeners = []
    for name in SOCKETS:
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(front.path(name))
        sock.listen(64)
        listeners.append(sock)
    os.makedirs(front.path("broker/api"))
    broker = Broker(front.path("broker/api/lease.sock"))
    front._start_nginx()
    start(front, listeners)
    answers = []
    body = b'{"input": "print(1)"}'
    thread = threading.Thread(target=lambda: answers.append(front.request(
        "POST", "/eval", body, {"Content-Type": "application/json"},
        timeout=60)))
    thread.start()
    asked = broker.take()  # a run is in hand
    old = front.process
    old.send_signal(signal.SIGTERM)
    tap.equal(old.wait(60), 0, "SIGTERM: the first process ends at once")
    tap.ok(not answers, "while a run is in hand", answers)
    start(front, listeners)
    tap.equal(front.request("GET", "/versions").status, 200,
              "the next one serves the sockets")
    second = []
    other = threading.Thread(target=lambda: second.append(front.request(
        "POST", "/eval", body, {"Content-Type": "application/json"},
        timeout=60)))
    other.start()
    again = broker.take()
    tap.ok(not answers, "runs, too", answers)
    broker.refuse(asked)
    thread.join()
    tap.equal((answers[0].status, b"502" in answers[0].body), (503, False),
              "and the run in hand is answered by who has begun it")
    # A broker that ends lets those who wait go, after however long.
    deadline = time.monotonic() + LONGER_THAN_A_RESTART
    while time.monotonic() < deadline:
        select.select([], [], [], deadline - time.monotonic())
    again.close()
    broker.refuse(broker.take())
    other.join()
    tap.equal(second[0].status, 503,
              "who was let go by a broker that ends asks the next one")
    front.process.kill()
    front.process.wait()
    for sock in listeners:
        sock.close()
tap.done()
