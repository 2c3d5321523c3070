#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The seccomp profile: what is refused, and what has to work all the same."""

import platform

from driver import N, Cell
from tap import run, test

# x86-64 and aarch64 numbers of calls that must be refused, with arguments that
# would do no harm if they were not.
REFUSED = {
    "ptrace": (101, 117, (0, 0, 0, 0)),
    "process_vm_readv": (310, 270, (1, 0, 0, 0, 0, 0)),
    "process_vm_writev": (311, 271, (1, 0, 0, 0, 0, 0)),
    "process_madvise": (440, 440, (-1, 0, 0, 0, 0)),
    "kcmp": (312, 272, (1, 1, 0, 0, 0)),
    "pidfd_getfd": (438, 438, (-1, 0, 0)),
    "keyctl": (250, 219, (0, -3, 0, 0, 0)),
    "add_key": (248, 217, (0, 0, 0, 0, 0)),
    "request_key": (249, 218, (0, 0, 0, 0)),
    "bpf": (321, 280, (0, 0, 0)),
    "perf_event_open": (298, 241, (0, 0, -1, -1, 0)),
    "userfaultfd": (323, 282, (1,)),
    "io_uring_setup": (425, 425, (0, 0)),
    "io_uring_enter": (426, 426, (-1, 0, 0, 0, 0)),
    "io_uring_register": (427, 427, (-1, 0, 0, 0)),
    "io_setup": (206, 0, (0, 0)),
    "mount": (165, 40, (0, 0, 0, 0, 0)),
    "umount2": (166, 39, (0, 0)),
    "pivot_root": (155, 41, (0, 0)),
    "chroot": (161, 51, (0,)),
    "open_tree": (428, 428, (-1, 0, 0)),
    "move_mount": (429, 429, (-1, 0, -1, 0, 0)),
    "fsopen": (430, 430, (0, 0)),
    "fsconfig": (431, 431, (-1, 0, 0, 0, 0)),
    "fsmount": (432, 432, (-1, 0, 0)),
    "fspick": (433, 433, (-1, 0, 0)),
    "mount_setattr": (442, 442, (-1, 0, 0, 0, 0)),
    "unshare, user": (272, 97, (0x10000000,)),
    "unshare, nothing": (272, 97, (0,)),
    "setns": (308, 268, (-1, 0)),
    "clone, new user": (56, 220, (0x10000011, 0, 0, 0, 0)),
    "clone, new pid": (56, 220, (0x20000011, 0, 0, 0, 0)),
    "clone, new net": (56, 220, (0x40000011, 0, 0, 0, 0)),
    "clone, new mount": (56, 220, (0x00020011, 0, 0, 0, 0)),
    "clone, new ipc": (56, 220, (0x08000011, 0, 0, 0, 0)),
    "clone, new uts": (56, 220, (0x04000011, 0, 0, 0, 0)),
    "clone, new cgroup": (56, 220, (0x02000011, 0, 0, 0, 0)),
    "clone3": (435, 435, (0, 0)),
    "personality, no randomising": (135, 92, (0x0040000,)),
    "personality, read implies exec": (135, 92, (0x0400000,)),
    "open_by_handle_at": (304, 265, (-1, 0, 0)),
    "name_to_handle_at": (303, 264, (-1, 0, 0, 0, 0)),
    "syslog": (103, 116, (3, 0, 0)),
    "acct": (163, 89, (0,)),
    "quotactl": (179, 60, (0, 0, 0, 0)),
    "sync": (162, 81, ()),      # of all the host's disks
    "syncfs": (306, 267, (0,)),
    "swapon": (167, 224, (0, 0)),
    "reboot": (169, 142, (0, 0, 0, 0)),
    "init_module": (175, 105, (0, 0, 0)),
    "finit_module": (313, 273, (-1, 0, 0)),
    "kexec_load": (246, 104, (0, 0, 0, 0)),
    "settimeofday": (164, 170, (0, 0)),
    "clock_settime": (227, 112, (0, 0)),
    "adjtimex": (159, 171, (0,)),
    "sethostname": (170, 161, (0, 0)),
    "setdomainname": (171, 162, (0, 0)),
    "vhangup": (153, 58, ()),
    "fanotify_init": (300, 262, (0, 0)),
    "lookup_dcookie": (212, 18, (0, 0, 0)),
    "move_pages": (279, 239, (1, 0, 0, 0, 0, 0)),
    "migrate_pages": (256, 238, (1, 0, 0, 0)),
    "mbind": (237, 235, (0, 0, 0, 0, 0, 0)),
    "set_mempolicy": (238, 237, (0, 0, 0)),
    "shmget": (29, 194, (0, 4096, 0o1600)),
    "semget": (64, 190, (0, 1, 0o1600)),
    "msgget": (68, 186, (0, 0o1600)),
    "mq_open": (240, 180, (0, 0, 0, 0)),
    "memfd_secret": (447, 447, (0,)),
    "socket, vsock": (41, 198, (40, 1, 0)),
    "socket, alg": (41, 198, (38, 5, 0)),
    "socket, packet": (41, 198, (17, 3, 0)),
    "socket, bluetooth": (41, 198, (31, 3, 0)),
    "socket, can": (41, 198, (29, 3, 0)),
    "socket, SCTP": (41, 198, (2, 1, 132)),
    "socket, SCTP on IPv6": (41, 198, (10, 1, 132)),
    "socket, MPTCP": (41, 198, (2, 1, 262)),
    "socket, UDP-Lite": (41, 198, (2, 2, 136)),
    "socket, L2TP": (41, 198, (2, 2, 115)),
    "socket, netlink audit": (41, 198, (16, 3, 9)),
    "socket, netlink netfilter": (41, 198, (16, 3, 12)),
    "socket, xdp": (41, 198, (44, 3, 0)),
    "prlimit of another": (302, 261, (1, 0, 0, 0)),
    "a call of tomorrow": (600, 600, ()),
}


@test
def what_reaches_others_or_the_kernel_is_refused():
    arm = platform.machine() == "aarch64"
    calls = [(name, pair[arm], args) for name, (*pair, args) in REFUSED.items()
             if pair[arm]]
    told = lease.run("""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for name, number, args in %r:
    ctypes.set_errno(0)
    got = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, args))
    if got == 0 and name.startswith('clone'): os._exit(0)
    if got != -1 or ctypes.get_errno() not in (1, 38):
        print(name, got, ctypes.get_errno())
print('all')
""" % calls)
    assert told.stdout == b"all\n", told
    assert told.reason == N.REASON_EXIT and told.status == 0, told


@test
def calls_of_32_bit_programs_are_deadly():
    if platform.machine() != "x86_64":
        return
    told = lease.run("""
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=7)
code.write(bytes.fromhex('b814000000cd80c3'))   # getpid by int 0x80
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(
    ctypes.c_char.from_buffer(code)))())
""")
    assert told.stdout == b"" or told.stdout.startswith(b"-"), told


WORKS = {
    "threads": "import threading\nts = [threading.Thread(target=int) for _ in"
               " range(20)]\n[t.start() for t in ts]\n[t.join() for t in ts]",
    "processes": "import multiprocessing as m\n"
                 "with m.Pool(4) as p: assert p.map(abs, [-1, 2]) == [1, 2]",
    "queues and locks": "import multiprocessing as m\nq = m.Queue(); q.put(1)\n"
                        "assert q.get() == 1\nwith m.Lock(), m.RLock(): pass\n"
                        "assert m.Value('i', 3).value == 3",
    "shared memory": "from multiprocessing import shared_memory as s\n"
                     "m = s.SharedMemory(create=True, size=9); m.unlink()",
    "pools": "from concurrent.futures import *\n"
             "with ProcessPoolExecutor(2) as p: assert p.submit(abs, -1)"
             ".result() == 1\nwith ThreadPoolExecutor(2) as p:"
             " assert p.submit(abs, -1).result() == 1",
    "subprocesses": "import subprocess, sys\nassert subprocess.run([sys."
                    "executable, '-c', 'print(1)'], stdout=-1).stdout == b'1\\n'",
    "asyncio": "import asyncio\nasync def f():\n"
               "  p = await asyncio.create_subprocess_exec('python3', '-c', '1')\n"
               "  return await p.wait()\nassert asyncio.run(f()) == 0",
    "sqlite": "import sqlite3\nd = sqlite3.connect('t.db')\n"
              "d.execute('create table t (x)'); d.execute('insert into t values"
              " (1)'); d.commit(); d.execute('pragma journal_mode=wal')\n"
              "assert list(d.execute('select * from t')) == [(1,)]",
    "sockets": "import socket\na, b = socket.socketpair(); a.send(b'x')\n"
               "assert b.recv(1) == b'x'\ns = socket.socket()\n"
               "socket.if_nametoindex('lo'); socket.getaddrinfo('127.0.0.1', 1)",
    "sockets of every usual kind": "import socket as s\n"
        "for f in s.AF_INET, s.AF_INET6:\n"
        "  for k, p in (1, 0), (1, 6), (2, 0), (2, 17): s.socket(f, k, p)",
    "mmap": "import mmap\nm = mmap.mmap(-1, 4096); m[0] = 1; m.madvise(4)"
            " if hasattr(m, 'madvise') else 0",
    "files": "import os, shutil, tempfile, fcntl\nos.sync()\n"
             "with tempfile.NamedTemporaryFile() as f: os.sendfile(f.fileno(),"
             " f.fileno(), 0, 0); fcntl.flock(f, 2); os.fsync(f.fileno())\n"
             "shutil.copy('t.db', 'u.db'); os.statvfs('.'); hasattr(os, 'listxattr')"
             " and os.listxattr('.'); os.memfd_create('x'); os.posix_fallocate("
             "os.open('v', 66), 0, 10); os.copy_file_range",
    "time": "import time, signal\ntime.sleep(.001)\n"
            "signal.signal(14, lambda *a: None)\n"
            "signal.setitimer(0, .01); signal.pause()\ntime.process_time()",
    "one's own limits": "import os, resource as r\n"
                        "r.setrlimit(r.RLIMIT_CPU, (9, 9))\n"
                        "r.prlimit(0, r.RLIMIT_NOFILE, (99, 99)); os.nice(1)\n"
                        "os.sched_setaffinity(0, os.sched_getaffinity(0))",
    "random": "import secrets, uuid, random, ssl, hashlib\n"
              "secrets.token_hex(); uuid.uuid4(); ssl.create_default_context()",
    "numpy, where the image has it":
        "try: import numpy as n\nexcept ImportError: pass\n"
        "else: assert n.linalg.inv(n.eye(300)).sum() == 300",
}


def add(name, source):
    def works():
        told = lease.run(source, wall_ms=60000)
        assert told.status == 0 and told.stderr == b"", told

    works.__name__ = "it leaves working: " + name
    test(works)


for pair in WORKS.items():
    add(*pair)

with Cell() as cell:
    with cell.lease() as lease:
        run()
