# SPDX-License-Identifier: MIT
"""The least that a run can cost in Python: an interpreter that has done the same
before forks, and the child prints; and the same with namespaces of its own,
whose init is one fork more.  In a container of the image."""

import subprocess

import place as p

FLOOR = """
import ctypes, gc, os, resource, sys, time
libc = ctypes.CDLL(None)
NAMESPACES = 0x10000000 | 0x20000 | 0x20000000 | 0x8000000 | 0x4000000
def cpu():
    return sum(sum(resource.getrusage(who)[:2]) for who in
               (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
def end(pid):
    return os.waitpid(pid, 0)[1] != 0
def run():
    exec(compile("print(1)", "main.py", "exec"), {})
    sys.stdout.flush()
def once(apart):
    pid = os.fork()
    if pid == 0:
        if apart:
            if libc.unshare(NAMESPACES) != 0:
                os._exit(1)
            inner = os.fork()
            if inner != 0:
                os._exit(end(inner))
        run()
        os._exit(0)
    if end(pid):
        sys.exit("no namespaces here")
for _ in range(20):
    run()
gc.collect()
gc.freeze()
for apart in (False, True):
    for turn in range(2):
        used, began = cpu(), time.monotonic()
        for _ in range(200):
            once(apart)
    print(5 * (cpu() - used), 5 * (time.monotonic() - began), file=sys.stderr)
"""


def measure():
    """[(CPU, time)] in ms of a fork, and of one with namespaces."""
    done = subprocess.run(
        [p.DOCKER, "run", "--rm", "--network", "none", "--user", "65532:65532",
         "--security-opt", "seccomp=unconfined", p.IMAGE, "python3", "-c",
         FLOOR], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise p.Failed("the floor: " + done.stderr)
    return [tuple(map(float, line.split()))
            for line in done.stderr.splitlines()]
