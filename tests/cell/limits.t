#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Limits, and how truthfully a run's end is told."""

import time

from driver import N, Cell
from tap import run, test

MB = 1 << 20


@test
def the_end_is_told_as_it_was():
    for source, reason, number in (
            ("", N.REASON_EXIT, 0),
            ("raise SystemExit(3)", N.REASON_EXIT, 3),
            ("1 / 0", N.REASON_EXIT, 1),
            ("import os; os._exit(255)", N.REASON_EXIT, 255),
            ("x = bytearray(1 << 60)", N.REASON_EXIT, 1),
            ("import os; os.abort()", N.REASON_SIGNAL, 6),
            ("import os; os.kill(os.getpid(), 9)", N.REASON_SIGNAL, 9),
            ("import os; os.kill(os.getpid(), 15)", N.REASON_SIGNAL, 15),
            ("import os; os.kill(0, 9)", N.REASON_SIGNAL, 9),
            ("import os; os.kill(-1, 9)", N.REASON_EXIT, 1),
            ("import ctypes; ctypes.string_at(0)", N.REASON_SIGNAL, 11)):
        told = lease.run(source)
        assert told.reason == reason, (source, told)
        value = told.status if reason == N.REASON_EXIT else told.signal
        assert value == number, (source, told)
        assert not told.disk_full and told.wall_us > 0 and told.cpu_us > 0
        assert told.used_files >= 0 and told.used_bytes >= 0


STUBBORN = {
    "sleeps": "import time; time.sleep(1000)",
    "spins": "while True: pass",
    "ignores signals": "import signal, time\n"
                       "for n in range(1, 65):\n"
                       "  try: signal.signal(n, signal.SIG_IGN)\n"
                       "  except (OSError, ValueError): pass\n"
                       "while True: time.sleep(1)",
    "stops itself": "import os; os.kill(os.getpid(), 19)",
    "closes its output": "import os, time\nfor n in range(3): os.close(n)\n"
                         "time.sleep(1000)",
    "waits for its child": "import os, time\nif os.fork() == 0:\n"
                           "  os.setsid()\n  time.sleep(1000)\nos.wait()",
    "waits in atexit": "import atexit, time\natexit.register(time.sleep, 1000)",
    "waits for a thread": "import threading, time\n"
                          "threading.Thread(target=time.sleep,"
                          " args=(1000,)).start()",
    "waits in __del__": "import time\nclass A:\n"
                        "  def __del__(self): time.sleep(1000)\na = A()",
    "waits in its repr": "import time\nclass A:\n"
                         "  def __repr__(self): time.sleep(1000)\nA()",
    "cannot be interrupted": "(7 ** 7 ** 7 ** 7) if 0 else "
                             "list(range(10 ** 15).__iter__())"
                             " if 0 else sum(range(10 ** 15))",
    "forks for ever": "import os\nwhile True:\n  try: os.fork()\n"
                      "  except OSError: pass",
    "forks and dies": "import os, time\nwhile True:\n"
                      "  try:\n    if os.fork(): os._exit(0) if os.getpid() % 2"
                      " and os.getppid() == 1 and 0 else None\n"
                      "  except OSError: time.sleep(.001)",
    "opens a new session each time": "import os\nwhile True:\n"
        "  try:\n    if os.fork() == 0:\n      os.setsid()\n"
        "      if os.fork(): os._exit(0)\n  except OSError: pass",
    "signals PID 1": "import os\nwhile True:\n"
                     "  for n in range(1, 65):\n"
                     "    try: os.kill(1, n)\n    except OSError: pass",
    "is in a pipe": "import subprocess\nsubprocess.run(['python3', '-c',"
                    " 'import time; time.sleep(1000)'])",
}


def add_stubborn(name, source):
    def ends_in_time():
        told = lease.run(source, wall_ms=700, echo=1)
        assert told.reason == N.REASON_TIME, told
        assert 700000 <= told.wall_us < 15000000, told
        again = lease.run("import os; print(os.listdir('/proc').__len__() > 0,"
                          "[p for p in os.listdir('/proc') if p.isdigit() and"
                          " p not in ('1', str(os.getpid()))])")
        assert again.stdout == b"True []\n", again

    ends_in_time.__name__ = "ends in time what " + name
    test(ends_in_time)


for pair in STUBBORN.items():
    add_stubborn(*pair)


@test
def survivors_end_with_the_main_process():
    began = time.monotonic()
    told = lease.run("""
import os, signal, time
for n in (1, 2, 3, 15): signal.signal(n, signal.SIG_IGN)
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True: time.sleep(1); print('still here', flush=True)
        os._exit(0)
time.sleep(.2)
print('main')
""", wall_ms=60000)
    assert told.reason == N.REASON_EXIT and told.stdout == b"main\n", told
    assert time.monotonic() - began < 30
    assert len(cell.processes()) == 1


@test
def zombies_of_orphans_do_not_pile_up():
    told = lease.run("""
import os, time
for _ in range(200):
    if os.fork() == 0:
        if os.fork() == 0: os._exit(0)
        os._exit(0)
    os.wait()
print('done')
""")
    assert told.stdout == b"done\n", told


@test
def output_is_cut_exactly():
    for size in (0, 1, 9, 65536, 100000, 1000000):
        told = lease.run("import sys\nsys.stdout.write('x' * %d)" % size,
                         output_max=size)
        assert told.reason == N.REASON_EXIT and told.status == 0, told
        assert len(told.output) == size
        told = lease.run("import sys\nsys.stdout.write('x' * %d)\n"
                         "sys.stdout.flush()" % (size + 1), output_max=size)
        assert told.reason == N.REASON_OUTPUT, told
        assert len(told.output) == size


@test
def both_streams_count_towards_the_output():
    told = lease.run("import sys\nwhile True: print('o'); "
                     "print('e', file=sys.stderr)", output_max=50000)
    assert told.reason == N.REASON_OUTPUT, told
    assert len(told.stdout) + len(told.stderr) == 50000
    assert told.stdout and told.stderr


@test
def a_flood_ends_at_once():
    told = lease.run("while True: print('flood ' * 100)", output_max=300000,
                     wall_ms=20000)
    assert told.reason == N.REASON_OUTPUT, told
    assert told.wall_us < 15000000 and len(told.output) == 300000
    sizes = [len(f["DATA"]) for kind, f in told.frames if kind == "OUTPUT"]
    assert sum(sizes) / len(sizes) > 2000, "frames are not too small"


@test
def a_run_ends_when_its_client_has_enough():
    lease.start_run("import time\nprint('ready')\ntime.sleep(1000)",
                    wall_ms=60000)
    while lease.frame()[0] != "OUTPUT":
        pass
    lease.send("ENOUGH")
    told = lease.finish()
    assert told.reason == N.REASON_OUTPUT, told
    assert told.wall_us < 50000000, told


@test
def enough_after_the_end_is_nothing():
    lease.run("print(1)")
    lease.send("ENOUGH")
    assert lease.run("print(2)").stdout == b"2\n"


@test
def a_request_in_the_course_of_a_run_ends_the_lease():
    with Cell() as own, own.lease() as other:
        other.start_run("import time\nprint('ready')\ntime.sleep(1000)",
                        wall_ms=60000)
        while other.frame()[0] != "OUTPUT":
            pass
        other.send("REQUEST", ("OP", N.OP_RUN))
        assert other.sock.recv(1) == b""


@test
def memory_is_limited_and_told():
    told = lease.run("x = []\nwhile True: x.append(bytearray(1 << 20))")
    assert told.reason == N.REASON_MEMORY, told
    assert 100 * MB < told.max_rss < 300 * MB, told
    told = lease.run("x = bytearray(100 << 20)")
    assert told.reason == N.REASON_EXIT and told.max_rss > 100 * MB, told
    told = lease.run("pass")
    assert told.reason == N.REASON_EXIT and told.max_rss < 40 * MB, told


@test
def memory_of_a_child_is_its_own_story():
    told = lease.run("""
import os
if os.fork() == 0:
    x = []
    while True: x.append(bytearray(1 << 20))
print(os.wait()[1])
""")
    assert told.reason == N.REASON_EXIT and told.stdout == b"9\n", told
    told = lease.run("import os; os.kill(os.getpid(), 9)")
    assert told.reason == N.REASON_SIGNAL, told


@test
def many_small_eaters_of_memory_do_not_take_the_cell():
    for _ in range(3):
        told = lease.run("""
import os
for _ in range(40):
    try:
        if os.fork() == 0: break
    except OSError: break
x = []
while True: x.append(bytearray(1 << 16))
""", wall_ms=8000)
        assert told.reason in (N.REASON_MEMORY, N.REASON_TIME), told
    assert lease.run("print(1)").stdout == b"1\n"


@test
def files_in_memory_do_not_take_the_cell():
    told = lease.run("""
import os
for folder in '/tmp', '/dev/shm', '/code':
    try:
        with open(folder + '/big', 'wb') as f:
            while True: f.write(bytes(1 << 20))
    except OSError as e: print(e.errno)
x = []
while True: x.append(bytearray(1 << 20))
""")
    assert told.stdout == b"28\n" * 3, told
    assert told.reason == N.REASON_MEMORY, told
    assert lease.run("print(1)", name="x").stdout == b"1\n"


@test
def cpu_time_counts_all_processes():
    told = lease.run("""
import os, time
for _ in range(2):
    if os.fork() == 0:
        end = time.process_time() + .4
        while time.process_time() < end: pass
        os._exit(0)
time.sleep(.1)
if os.fork() == 0:
    while True: pass
os.wait(); os.wait()
""")
    assert 800000 < told.cpu_us < 3000000, told
    told = lease.run("import time; time.sleep(.5)")
    assert told.cpu_us < 200000 and told.wall_us > 2 * told.cpu_us, told


@test
def a_request_without_limits_is_refused():
    for fields in ({"wall_ms": None}, {"wall_ms": 0}, {"wall_ms": -1},
                   {"output_max": -1}, {"wall_ms": 1 << 62}):
        told = lease.run("print(1)", **fields)
        assert told.reason == N.REASON_ERROR, told
        assert told.code == N.ERROR_REQUEST, told


@test
def a_full_disk_is_told():
    told = lease.run("""
try:
    with open('big', 'wb') as f:
        while True: f.write(bytes(1 << 20))
except OSError as e: print(e.errno)
""")
    assert told.stdout == b"28\n", told
    assert told.disk_full == N.DISK_FULL_BYTES, told
    assert told.used_bytes > 15 * MB, told
    assert lease.ask("REMOVE", path="big").disk_full is None
    told = lease.run("""
n = 0
try:
    while True: open(str(n), 'w').close(); n += 1
except OSError as e: print(e.errno, n > 100)
""")
    assert told.stdout == b"28 True\n", told
    assert told.disk_full == N.DISK_FULL_FILES, told
    told = lease.run("import os; [os.unlink(n) for n in os.listdir()]")
    assert told.disk_full is None, told


@test
def a_run_has_the_limits_of_the_container():
    told = lease.run("""
import os, resource
print(resource.getrlimit(resource.RLIMIT_CORE),
      resource.getrlimit(resource.RLIMIT_NOFILE),
      open('/proc/self/oom_score_adj').read().strip(), os.getpgrp() ==
      os.getsid(0) == os.getpid())
""")
    assert told.stdout == b"(0, 0) (1024, 1024) 1000 True\n", told


with Cell(workspace_size="16m", inodes=500) as cell:
    with cell.lease() as lease:
        run()
