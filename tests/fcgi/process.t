#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How il-fcgi starts and ends: exit codes, its socket, SIGTERM, a socket that
was passed to it, peers that stall."""
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import front as f  # noqa: E402
from slices import EXPECTED, slice_of  # noqa: E402

QUEUE = 500
BOUND_SECONDS = 30  # two are ours, two libfcgi's
tap = f.Tap()


def run(front, *arguments, **environment):
    """Run the program to its end; return (code, standard error)."""
    done = subprocess.run(
        [os.path.join(f.BUILD, "bin", front.program), *arguments],
        env={**front.environment, **environment}, cwd=front.folder,
        stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=60)
    return done.returncode, done.stderr.decode()


def check_start(front):
    for name, environment, word in (
            ("no public key", {"DISCORD_PUBLIC_KEY": ""},
             "DISCORD_PUBLIC_KEY"),
            ("a bad public key", {"DISCORD_PUBLIC_KEY": "zz"},
             "DISCORD_PUBLIC_KEY"),
            ("an unknown setting", {"IL_FROBNICATE": "1"}, "IL_FROBNICATE")):
        code, text = run(front, **environment)
        tap.ok(code == 78 and word in text, name + " is 78", code, text)
        code, text = run(front, "-t", **environment)
        tap.ok(code == 78 and word in text, name + " is 78 with -t", text)
    tap.equal(run(front, "-t")[0], 0, "-t says that all is well")
    code, text = run(front, "-x")
    tap.ok(code == 64 and "usage" in text, "a wrong option is 64", text)
    tap.equal(run(front, "more")[0], 64, "an argument is 64")


def check_socket(front):
    mode = os.stat(front.socket_path).st_mode
    tap.ok(stat.S_ISSOCK(mode) and mode & 0o777 == 0o660,
           "the socket is for owner and group", oct(mode))
    code, text = run(front)
    tap.ok(code == 1 and "fcgi.sock" in text,
           "a second one does not take the first one's socket", text)
    tap.equal(front.send(f.interaction(1, None)).status, 200,
              "which still answers")


def check_end(front):
    front.process.send_signal(signal.SIGTERM)
    tap.equal(front.process.wait(60), 0, "SIGTERM ends it with 0")
    tap.ok(not os.path.exists(front.socket_path), "its socket is gone")
    front.start()
    children = front.children()
    front.process.kill()
    front.process.wait()
    # they end with it: until then its socket is not a dead one's
    for pid in children:
        f.wait_gone(pid)
    front.start()
    tap.equal(front.send(f.interaction(1, None)).status, 200,
              "a dead one's socket is taken over")


def check_slices():
    """Without a supervisor that asks for them (systemd's cannot)."""
    for program in ("il-fcgi", "il-api"):
        with f.Front(program=program) as front:
            children = "/proc/{0}/task/{0}/children".format(front.process.pid)
            with open(children) as file:
                pids = [front.process.pid, *map(int, file.read().split())]
            tap.equal([slice_of(pid) for pid in pids],
                      [EXPECTED] * len(pids), program + " has short slices")


def ping(front):
    body = f.encode(f.interaction(1, None))
    return front.records("POST", "/interactions", body, front.headers(body))


def check_drain(front):
    """Those who had connected are answered, even after SIGTERM."""
    front.signal(signal.SIGSTOP)
    waiting = []
    for _ in range(5):
        sock = front.connect()
        sock.sendall(ping(front))
        waiting.append(sock)
    front.process.send_signal(signal.SIGTERM)
    front.signal(signal.SIGCONT)
    answers = []
    for sock in waiting:
        answers.append(f.read_answer(sock))
        sock.close()
    tap.ok(all(a and a.type == 1 for a in answers),
           "who had connected before SIGTERM is answered", answers)
    tap.equal(front.process.wait(60), 0, "and then it ends")
    front.start()


def check_stall(front):
    """Peers that say nothing, or stop in the middle, are dropped."""
    whole = ping(front)
    for name, part in (("nothing", b""), ("half a record", whole[:20]),
                       ("half a body", whole[:-30])):
        with front.connect() as sock:
            sock.sendall(part)
            started = time.monotonic()
            answer = front.send(f.interaction(1, None))
            seconds = time.monotonic() - started
        tap.ok(answer.status == 200 and seconds < BOUND_SECONDS,
               "a peer that sends %s holds others up for a bounded time"
               % name, "%.1f s" % seconds, answer)
    with front.connect() as sock:
        sock.sendall(b"GET / HTTP/1.0\r\n\r\n" + bytes(range(256)) * 20)
    tap.equal(front.send(f.interaction(1, None)).status, 200,
              "rubbish on the socket does no harm")


def check_passed(front):
    """A socket that a supervisor made, as systemd does."""
    front.process.terminate()
    front.process.wait(60)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(front.socket_path)
    listener.listen(1)
    script = ('import os, sys\n'
              'os.dup2(%d, 3); os.set_inheritable(3, True)\n'
              'os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))\n'
              'os.execv(sys.argv[1], sys.argv[1:])\n' % listener.fileno())
    with open(front.log_path, "ab") as log:
        front.process = subprocess.Popen(
            [sys.executable, "-c", script,
             os.path.join(f.BUILD, "bin", "il-fcgi")], env=front.environment,
            cwd=front.folder, stderr=log, pass_fds=[listener.fileno()])
    tap.equal(front.send(f.interaction(1, None)).status, 200,
              "a passed socket is served")
    front.signal(signal.SIGSTOP)
    waiting = [socket.socket(socket.AF_UNIX) for _ in range(QUEUE)]
    for sock in waiting:
        sock.setblocking(False)  # nginx does not wait for a place either
    tap.equal([sock.connect_ex(front.socket_path) for sock in waiting],
              [0] * QUEUE, "its queue is as long as that of one of its own")
    for sock in waiting:
        sock.close()
    front.signal(signal.SIGCONT)
    front.process.send_signal(signal.SIGTERM)
    tap.equal(front.process.wait(60), 0, "and SIGTERM ends it")
    tap.ok(os.path.exists(front.socket_path), "a passed socket stays")
    listener.close()


def check_wake(front):
    """A byte in STATE/wake, after the answer; without a reader nothing."""
    front.start()
    front.add_sandbox()
    fifo = front.path("wake")
    tap.equal(front.send(f.command("look")).type, 5,
              "without the FIFO a command is taken")
    front.finish_jobs()
    os.mkfifo(fifo, 0o660)
    tap.equal(front.send(f.command("look")).type, 5,
              "with nobody reading it too")
    front.finish_jobs()
    for turn in ("first", "second"):
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        front.send(f.command("look"))
        ready = select.select([reader], [], [], 5)[0]
        tap.ok(ready and len(os.read(reader, 100)) == 1,
               "a job wakes the %s reader" % turn)
        front.send(f.command("look"))
        tap.equal(select.select([reader], [], [], 0.2)[0], [],
                  "a refusal does not wake the %s reader" % turn)
        front.finish_jobs()
        os.close(reader)


check_slices()
with f.Front() as front:
    check_start(front)
    check_socket(front)
    check_end(front)
    check_drain(front)
    check_stall(front)
    check_passed(front)
    os.unlink(front.socket_path)
    check_wake(front)
tap.done()
