#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Plays one of our programs for the tests of `ilctl run`; its name says which.

It tells the FIFO $FAKE_LOG that it started and that it was told to end, and
makes the socket that shows that it is ready, unless it was handed one.  $FAKE_DO ("il-worker=stubborn,
il-api=exit:78") makes it misbehave:

    exit:N     end with that status at once
    stubborn   pass over SIGTERM
    leave      start a process that outlives it, then end when told
"""

import os
import signal
import socket
import subprocess
import sys

SOCKETS = {"il-sandboxd": ("broker/worker/lease.sock", "broker/api/lease.sock",
                           "broker/ctl/lease.sock"),
           "il-fcgi": ("fcgi.sock",), "il-api": ("api.sock",)}


def main():
    name = os.path.basename(sys.argv[0])
    deeds = dict(one.split("=") for one in
                 os.environ.get("FAKE_DO", "").split(",") if one)
    deed = deeds.get(name, "")
    kept = []
    log = os.open(os.environ["FAKE_LOG"], os.O_WRONLY)

    def tell(word):
        os.write(log, f"{word} {name} {os.getpid()} {' '.join(sys.argv[1:])}"
                 f" key={os.environ.get('DISCORD_PUBLIC_KEY', '')[:8]}\n"
                 .encode())

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    if deed == "leave":
        child = subprocess.Popen(["sleep", "600"])
        os.write(log, f"left {name} {child.pid}\n".encode())
    tell("start")
    if deed.startswith("exit:"):
        sys.exit(int(deed[5:]))
    if name in SOCKETS and os.environ.get("LISTEN_PID") != str(os.getpid()):
        for path in SOCKETS[name]:
            listener = socket.socket(socket.AF_UNIX)
            kept.append(listener)
            listener.bind(os.path.join(os.environ["IL_STATE_DIR"], path))
            listener.listen()
    if name == "il-fcgi":
        with open(os.path.join(os.environ["IL_STATE_DIR"], "front/jobs"), "w"):
            pass
    signal.sigwait({signal.SIGTERM})
    tell("term")
    if deed == "stubborn":
        signal.sigwait({signal.SIGUSR1})
    os._exit(0)


main()
