# SPDX-License-Identifier: MIT
"""Code for a run that has the kernel's memory limit take its whole cell.

It makes itself no better a choice for the kernel than the first process of the
container, and is smaller.
"""

_SMALL = """
import os, time
print("before", flush=True)
for folder in "/tmp", "/dev/shm", "/code", ".":
    try:
        with open(folder + "/x", "wb", 0) as file:
            while True: file.write(bytes(1 << 16))
    except OSError: pass
for i in range(25):
    try:
        if os.fork() == 0: break
    except OSError: break
x = []
while True:
    x.append(b"x" * (1 << 14))
    time.sleep(0.001)
"""
TAKES_THE_CELL = """
import os, sys
with open("/proc/self/oom_score_adj", "w") as file:
    file.write(open("/proc/1/oom_score_adj").read())
os.execv(sys.executable, [sys.executable, "-ISc", %r])
""" % _SMALL
