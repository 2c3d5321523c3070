#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Start a daemon in a session of its own and wait until it is ready.

    detach.py SECONDS LOG COMMAND [ARG...]

The command must speak the readiness protocol of sd_notify(3), as dockerd does:
we wait for its READY=1 on a socket and for its end on a pidfd, never by time.
Status 0: ready, and it goes on after us.  Status 1: it ended; after SECONDS
without a word it is ended.
"""
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile


def wait_ready(notify, process, seconds):
    """True when READY=1 came, False when the process ended or time is up."""
    pidfd = os.pidfd_open(process.pid)
    poll = select.poll()
    poll.register(notify, select.POLLIN)
    poll.register(pidfd, select.POLLIN)
    try:
        while True:
            ready = [fd for fd, _ in poll.poll(seconds * 1000)]
            if notify.fileno() not in ready:
                return False
            if b"READY=1" in notify.recv(4096).split(b"\n"):
                return True
    finally:
        os.close(pidfd)


def main():
    seconds, log, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    with tempfile.TemporaryDirectory(prefix="il-setup-") as folder, \
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify, \
            open(log, "ab") as output:
        path = os.path.join(folder, "notify")
        notify.bind(path)
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            cwd="/", start_new_session=True,
            env=dict(os.environ, NOTIFY_SOCKET=path))
        if wait_ready(notify, process, seconds):
            return 0
        process.send_signal(signal.SIGTERM)
        process.wait()
        return 1


if __name__ == "__main__":
    sys.exit(main())
