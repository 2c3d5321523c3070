#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs in one api cell, one after another: hostile pairs of them, and code
that wants out of its jail."""

import os
import platform
import time

from apidriver import EVAL_ENV, ApiCell
from driver import USER, Cell, N
from tap import run, test

cell = ApiCell()
# PID 1, the supervisor, and of the jail that waits for a lease init and run.
AT_REST = 4

# What one run does to leave or to send something, and how the next one looks
# for it: it prints what it finds.
PAIRS = {
    "files, wherever a file can be written": ("""
import os
for top, folders, names in os.walk('/'):
    if top.startswith('/proc/') or top.startswith('/sys/'): continue
    try:
        with open(os.path.join(top, 'leak-a'), 'w') as f: f.write('x')
        print('wrote', top)
    except OSError: pass
""", """
import os
for top, folders, names in os.walk('/'):
    for name in names + folders:
        if 'leak-a' in name: print(top, name)
"""),
    "changes of files that are there": ("""
import os
for top, folders, names in os.walk('/'):
    for name in names + folders:
        path = os.path.join(top, name)
        if os.path.islink(path) or top.startswith(('/home', '/tmp')): continue
        try: os.chmod(path, 0o777); print('chmod', path)
        except OSError: pass
        try: os.utime(path, (1, 1)); print('utime', path)
        except OSError: pass
        try: open(path, 'ab').close()
        except OSError: continue
        if not path.startswith('/dev/'): print('open', path)
""", "import os; print(end=''.join(p for p in ('/dev/null', '/dev/pts', '/dev/tty',"
     " '/home', '/workspace', '/tmp', '/dev/shm') if os.path.exists(p)"
     " and os.stat(p).st_mtime == 1))"),
    "shared memory": ("""
from multiprocessing import resource_tracker, shared_memory
resource_tracker.register = lambda *_: None
shared_memory.SharedMemory('leak-b', True, 4096)
print('made')
""", """
import os
from multiprocessing import shared_memory
try: shared_memory.SharedMemory('leak-b'); print('found')
except OSError: pass
print(*os.listdir('/dev/shm'), end='')
"""),
    "System V IPC and message queues": ("""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print(libc.shmget(4711, 4096, 0o1666), libc.semget(4711, 1, 0o1666),
      libc.msgget(4711, 0o1666), libc.mq_open(b'/leak', 0o102, 0o666, None))
""", """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for got in (libc.shmget(4711, 4096, 0), libc.semget(4711, 1, 0),
            libc.msgget(4711, 0), libc.mq_open(b'/leak', 0)):
    if got != -1: print(got)
print(*os.listdir('/dev/mqueue'), end='')
"""),
    "keys": ("""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
n = 248 if __import__('platform').machine() == 'x86_64' else 217
for ring in -1, -2, -3, -4, -5: print(libc.syscall(n, b'user', b'leak', b'x', 1, ring))
""", """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
n = 249 if __import__('platform').machine() == 'x86_64' else 218
got = libc.syscall(n, b'user', b'leak', None, 0)
if got != -1: print(got)
"""),
    "processes that survive": ("""
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            try: open('/home/leak-c', 'w').close()
            except OSError: pass
            time.sleep(.01)
    os._exit(0)
print('gone')
""", """
import os, time
time.sleep(.1)
print(*os.listdir('/home'), end='')
for pid in range(2, 400):
    if pid == os.getpid(): continue
    try: os.kill(pid, 0); print(pid)
    except ProcessLookupError: pass
"""),
    "unix sockets without a name in the file system": ("""
import os, socket
s = socket.socket(socket.AF_UNIX); s.bind('\\0leak'); s.listen()
if os.fork() == 0: s.accept()
print('listens')
""", """
import socket
try: socket.socket(socket.AF_UNIX).connect('\\0leak'); print('connected')
except OSError: pass
"""),
    "ports on the loopback device": ("""
import socket
s = socket.create_server(('127.0.0.1', 4711))
c = socket.create_connection(('127.0.0.1', 4711)); a, _ = s.accept()
a.send(b'x'); c.recv(1)
a.close(); c.close(); s.close()
print('closed')
""", """
import socket
s = socket.socket(); s.bind(('127.0.0.1', 4711)); s.listen()
"""),
    "the counters of the loopback device": ("""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(100): s.sendto(bytes(1000), ('127.0.0.1', 9))
print('sent')
""", """
import glob, socket
print(*glob.glob('/sys/class/net/*') + glob.glob('/proc/net/*'), end='')
try: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); print('netlink')
except OSError: pass
"""),
    "the cell's own counters": ("""
x = bytearray(100 << 20); print(len(x))
""", """
import glob, os, resource
print(*glob.glob('/sys/fs/cgroup/*') + glob.glob('/proc/[0-9]*')
      + glob.glob('/proc/self/*'), end='')
use = resource.getrusage(resource.RUSAGE_SELF)
if use.ru_maxrss > 60 << 10: print('memory', use.ru_maxrss)
use = resource.getrusage(resource.RUSAGE_CHILDREN)
if use.ru_maxrss: print('children', use)
"""),
    "the interpreter": ("""
import atexit, builtins, os, sys, random, linecache
builtins.leak = sys.leak = os.leak = 1
sys.path.append('/leak'); os.environ['LEAK'] = '1'; sys.argv.append('leak')
sys.modules['leak'] = sys; sys.setrecursionlimit(4711)
os.umask(0o777); os.chdir('/tmp'); os.nice(3); linecache.cache['leak'] = ()
import faulthandler, signal; signal.signal(signal.SIGUSR1, signal.SIG_IGN)
print('changed')
""", """
import builtins, os, signal, sys
if any(hasattr(m, 'leak') for m in (builtins, sys, os)): print('names')
if '/leak' in sys.path or 'LEAK' in os.environ or 'leak' in sys.argv: print(1)
if 'leak' in sys.modules or sys.getrecursionlimit() == 4711: print(2)
if os.getcwd() != '/home' or os.nice(0) > 5: print(3)
if signal.getsignal(signal.SIGUSR1) != signal.SIG_DFL: print(4)
if os.umask(0) == 0o777: print(5)
"""),
    "memory": ("""
secret = [('lea' + 'k-%d-' % n) * 50 for n in range(20000)]
print(len(secret))
""", "LOOK"),
    "output": ("""
for n in range(4000): print(('lea' + 'k-%d-' % n) * 5)
""", "LOOK"),
    "open descriptors": ("""
import os, socket
fds = [os.open('/', os.O_RDONLY) for _ in range(20)]
for fd in fds: os.set_inheritable(fd, True)
print(len(fds))
""", """
import os
for fd in range(3, 1024):
    try: os.fstat(fd); print(fd)
    except OSError: pass
"""),
    "locks on files of the image": ("""
import fcntl, os, sys
f = open(os.__file__); fcntl.flock(f, fcntl.LOCK_EX)
if os.fork() == 0: __import__('time').sleep(60)
print('locked')
""", """
import fcntl, os
fcntl.flock(open(os.__file__), fcntl.LOCK_EX | fcntl.LOCK_NB)
"""),
}


# Reads all of its memory that is near a known place: the kernel says which
# pages are there.  The pattern does not match itself.
LOOK = """
import ctypes, gc, os, re
pattern = re.compile(rb'leak-(\\d+)-leak-\\1-leak-')
libc = ctypes.CDLL(None)
out, into = os.pipe()
places = {id(o) >> 24 for o in gc.get_objects()}
places.add(ctypes.addressof(ctypes.create_string_buffer(40000)) >> 24)
hits = pages = 0
for place in sorted({p + d for p in places for d in (-1, 0, 1)}):
    for page in range(place << 24, (place + 1) << 24, 4096):
        if libc.write(into, ctypes.c_void_p(page), 4096) == 4096:
            pages += 1
            hits += len(pattern.findall(os.read(out, 4096)))
if hits: print('found', hits)
assert pages > 500, pages
"""


@test
def the_cell_says_how_it_isolates():
    assert cell.ready[1]["ISOLATION"] == N.ISOLATION_RUN, cell.ready


@test
def one_run_leaves_nothing_for_the_next():
    for name, (leave, look) in PAIRS.items():
        look = LOOK if look == "LOOK" else look
        left = cell.eval(["-c", leave])
        assert left.reason == N.REASON_EXIT and left.status == 0, (name, left)
        assert left.output, (name, left)
        for _ in range(2):
            found = cell.eval(["-c", look])
            assert found.fields["REASON"] == N.REASON_EXIT, (name, found)
            assert (found.status, found.output) == (0, b""), (name, found)


# Ends that are not its own; the time limit takes its time, and is met below.
ENDS = {
    "a kill": ("os.kill(0, 9)", N.REASON_SIGNAL),
    "output": ("while True: print('x' * 999)", N.REASON_OUTPUT),
    "memory": ("x = []\nwhile True: x.append(bytearray(1 << 20))",
               N.REASON_MEMORY),
}


@test
def one_that_was_ended_leaves_nothing_either():
    for name, (leave, look) in PAIRS.items():
        look = LOOK if look == "LOOK" else look
        for end, (code, reason) in ENDS.items():
            code = leave + "\nimport os, sys; sys.stdout.flush()\n" + code
            left = cell.eval(["-c", code], limit_memory=0)
            assert left.output, (name, end, left)
            assert (left.reason, left.idle) == (reason, {}), (name, end, left)
            found = cell.eval(["-c", look])
            assert (found.status, found.output) == (0, b""), (name, end, found)


@test
def what_looks_into_memory_would_find_it():
    told = cell.eval(["-c", PAIRS["memory"][0] + LOOK])
    assert b"found" in told.output, told


@test
def what_is_no_runs_own_cannot_be_looked_into():
    def owner(pid):
        return os.stat("/proc/%d/environ" % pid).st_uid
    # What may not be traced by its own user is root's there.
    assert [owner(pid) for pid in cell.processes()] == [
        0, 0, 0, USER]


@test
def only_memory_of_its_own_is_writable():
    left = cell.eval(["-c", PAIRS["files, wherever a file can be written"][0]])
    assert set(left.output.decode().split("\n")) - {""} == {
        "wrote /home", "wrote /tmp", "wrote /dev/shm", "wrote /code",
        "wrote /workspace"}, left


@test
def the_previous_run_is_dead_when_the_next_begins():
    cell.eval(["-c", PAIRS["processes that survive"][0]])
    assert len(cell.processes()) == AT_REST, cell.processes()


@test
def a_run_has_no_capability():
    told = cell.eval(["-c", """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
head = (ctypes.c_uint32 * 2)(0x20080522, 0)
data = (ctypes.c_uint32 * 6)()
print(libc.capget(head, data), list(data))
print([n for n in range(64) if libc.prctl(23, n, 0, 0, 0) == 1])
print(libc.prctl(39, 0, 0, 0, 0), libc.prctl(21, 0, 0, 0, 0))
print(os.getresuid(), os.getresgid(), os.getgroups())
"""])
    assert told.output == (b"0 [0, 0, 0, 0, 0, 0]\n[]\n1 2\n"
                           b"(65532, 65532, 65532) (65532, 65532, 65532) "
                           b"[65532]\n"), told


CALLS = {       # x86-64, aarch64, arguments
    "unshare": (272, 97, (0x10000000,)), "unshare, none": (272, 97, (0,)),
    "setns": (308, 268, (0, 0)), "mount": (165, 40, (0, 0, 0, 6, 0)),
    "umount2": (166, 39, (b"/proc", 2)), "pivot_root": (155, 41, (0, 0)),
    "chroot": (161, 51, (b"/",)), "fsopen": (430, 430, (b"tmpfs", 0)),
    "open_tree": (428, 428, (-100, b"/", 1)),
    "move_mount": (429, 429, (-1, 0, -1, 0, 0)),
    "mount_setattr": (442, 442, (-1, 0, 0, 0, 0)),
    "sethostname": (170, 161, (b"x", 1)),
    "clone, user": (56, 220, (0x10000011, 0, 0, 0, 0)),
    "clone, all": (56, 220, (0x3c020011, 0, 0, 0, 0)),
    "clone, net": (56, 220, (0x40000011, 0, 0, 0, 0)),
    "clone, cgroup": (56, 220, (0x02000011, 0, 0, 0, 0)),
    "ptrace, init": (101, 117, (0x4206, 1, 0, 0)),
    "process_vm_readv": (310, 270, (1, 0, 0, 0, 0, 0)),
    "process_vm_writev": (311, 271, (1, 0, 0, 0, 0, 0)),
    "pidfd_getfd": (438, 438, (0, 0, 0)), "bpf": (321, 280, (0, 0, 0)),
    "keyctl": (250, 219, (0, -3, 0, 0, 0)),
    "io_uring_setup": (425, 425, (1, 0)), "userfaultfd": (323, 282, (1,)),
    "perf_event_open": (298, 241, (0, 0, -1, -1, 0)),
    "open_by_handle_at": (304, 265, (-1, 0, 0)),
}


@test
def calls_that_lead_out_are_not_permitted():
    at = 0 if platform.machine() == "x86_64" else 1
    calls = {name: (row[at], row[2]) for name, row in CALLS.items()}
    told = cell.eval(["-c", """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
for name, (number, args) in %r.items():
    args = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    if libc.syscall(ctypes.c_long(number), *args) != -1: print(name)
    elif ctypes.get_errno() != errno.EPERM: print(name, ctypes.get_errno())
if libc.syscall(ctypes.c_long(435), 0, 0) != -1 or ctypes.get_errno() != 38:
    print('clone3', ctypes.get_errno())
""" % calls])
    assert (told.status, told.output) == (0, b""), told


@test
def another_number_for_the_same_call_is_not_permitted():
    if platform.machine() != "x86_64":
        return
    told = cell.eval(["-c", """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall(ctypes.c_long(0x40000000 | 272), ctypes.c_long(0x10000000)),
      ctypes.get_errno() in (errno.EPERM, errno.ENOSYS))
"""])
    assert told.output == b"-1 True\n" or told.signal == 31, told


@test
def the_jails_init_does_not_mind():
    told = cell.eval(["-c", """
import os, signal
for number in range(1, 65):
    if number in (32, 33): continue
    try: os.kill(1, number)
    except OSError: pass
try: os.setpriority(os.PRIO_PROCESS, 1, 19); print('slower')
except OSError: pass
print(os.getppid())
"""])
    # The parent is out of sight.
    assert told.output == b"0\n" and told.status == 0, told


@test
def what_covers_proc_says_little_and_no_lie():
    told = cell.eval(["-c", """
import os
print(sorted(os.listdir('/proc')), os.listdir('/sys/devices/system/cpu'))
total = [l for l in open('/proc/meminfo') if l.startswith('MemTotal')]
print(total[0].split()[1], os.cpu_count() == os.sysconf('SC_NPROCESSORS_ONLN'))
try: open('/proc/x', 'w')
except OSError as e: print(e.errno)
"""])
    lines = told.output.decode().split("\n")
    assert lines[0].startswith("['cpuinfo', 'filesystems', 'meminfo', "
                               "'version'] ["), told
    assert lines[1:] == [str(256 << 10) + " True", "30", ""], told


@test
def a_fork_bomb_harms_nobody_else():
    for processes in (15, 1000):
        told = cell.eval(["-c", "import os\nwhile True:\n  try: os.fork()\n"
                          "  except OSError: pass"], wall_ms=1000,
                         limit_processes=processes)
        assert told.reason == N.REASON_TIME, told
        assert told.idle == {}, told.idle
        assert len(cell.processes()) == AT_REST
        assert cell.eval(["-c", "print(1)"]).output == b"1\n"


@test
def the_limit_of_processes_counts_those_of_the_run():
    told = cell.eval(["-c", """
import os, time
n = 1
try:
    while True:
        if os.fork() == 0: time.sleep(9); os._exit(0)
        n += 1
except OSError: print(n)
"""], limit_processes=5)
    assert told.output == b"5\n", told


@test
def a_memory_bomb_harms_nobody_else():
    told = cell.eval(["-c", "x = []\nwhile True: x.append(bytearray(1 << 20))"],
                     limit_memory=0)
    assert told.reason == N.REASON_MEMORY, told
    assert told.idle == {}, told.idle
    told = cell.eval(["-c", "x = []\nwhile True: x.append(bytearray(1 << 20))"])
    assert b"MemoryError" in told.output or told.reason == N.REASON_MEMORY, told
    assert cell.eval(["-c", "print(1)"]).output == b"1\n"


@test
def a_full_folder_is_empty_for_the_next():
    fill = """
import os
for folder in %r:
    with open(folder + '/full', 'wb', 0) as f:
        try:
            while True: f.write(bytes(1 << 16))
        except OSError as e: print(folder, e.errno, f.tell() >> 20)
"""
    told = cell.eval(["-c", fill % (["/home"],)])
    assert told.output == b"/home 28 48\n", told
    assert told.disk_full == 1 and told.files.keys() == {b"full"}, told.fields
    told = cell.eval(["-c", "import os; s = os.statvfs('/home'); "
                            "print(s.f_blocks - s.f_bfree, os.listdir())"])
    assert told.output == b"0 []\n", told


@test
def all_folders_full_leave_room_to_say_so():
    told = cell.eval(["-c", """
for folder in ('/workspace', '/home', '/tmp', '/dev/shm'):
    with open(folder + '/full', 'wb', 0) as f:
        try:
            while True: f.write(bytes(1 << 16))
        except OSError as e: print(folder, e.errno)
"""], collect_bytes=1000)
    assert told.reason in (N.REASON_EXIT, N.REASON_MEMORY), told
    assert told.reason == N.REASON_MEMORY or told.left_out == {
        b"full": N.LEFT_OUT_SIZE}, told
    assert cell.eval(["-c", "print(1)"]).output == b"1\n"


@test
def too_many_files_are_none_for_the_next():
    told = cell.eval(["-c", """
n = 0
try:
    while True: open('/tmp/%d' % n, 'w').close(); n += 1
except OSError as e: print(e.errno)
"""])
    assert told.output == b"28\n", told
    assert cell.eval(["-c", "open('/tmp/x', 'w')"]).status == 0


@test
def an_end_by_a_limit_ends_the_run_alone():
    for code, reason, more in (
            ("while True: pass", N.REASON_TIME, {"wall_ms": 300}),
            ("while True: print('x' * 999)", N.REASON_OUTPUT, {}),
            ("import os; os.kill(0, 9)", N.REASON_SIGNAL, {})):
        told = cell.eval(["-c", code], **more)
        assert told.reason == reason, told
        assert told.idle == {}, (code, told.idle)
        assert len(cell.processes()) == AT_REST, code
    for code in ("import os; os.abort()", "raise SystemExit(255)", "1/0"):
        told = cell.eval(["-c", code])
        assert told.idle == {}, (code, told.idle)


@test
def a_client_that_hangs_up_ends_its_run():
    lease = cell.lease()
    lease.begin("RUN", args=["-c", "print(1, flush=True)\nwhile True: pass"],
                plain=1, folder="/home", wall_ms=60000, output_max=1000,
                env=EVAL_ENV)
    while lease.frame()[0] != "OUTPUT":
        pass
    began = time.monotonic()
    lease.sock.close()
    assert cell.said() == {}
    assert time.monotonic() - began < 30
    assert len(cell.processes()) == AT_REST


@test
def a_lease_without_a_request_costs_nothing():
    cell.lease().sock.close()
    assert cell.said() == {}
    assert cell.eval(["-c", "print(1)"]).output == b"1\n"


@test
def a_lease_is_good_for_one_run():
    with cell.lease() as lease:
        told = lease.request("RUN", args=["-c", "print(1)"], plain=1,
                             wall_ms=9999, output_max=99, env=EVAL_ENV)
        assert told.output == b"1\n", told
        try:
            lease.request("RUN", args=["-c", "print(2)"], plain=1,
                          wall_ms=9999, output_max=99)
            assert False, "a second run"
        except (EOFError, OSError):
            pass
    assert cell.said() == {}


@test
def a_hundred_runs_leave_the_cell_as_it_was():
    before = open("/proc/%d/status" % cell.root_pid()).read()
    for n in range(100):
        told = cell.eval(["-c", "print(%d)" % n])
        assert told.output == b"%d\n" % n, told
    after = open("/proc/%d/status" % cell.root_pid()).read()
    rss = [int(text.split("VmRSS:")[1].split()[0]) for text in (before, after)]
    assert rss[1] - rss[0] < 1024, rss
    assert len(cell.processes()) == AT_REST


@test
def descriptors_under_way_elsewhere_do_not_matter():
    """The kernel counts them by user, which is one for all cells."""
    with Cell() as other, other.lease() as lease:
        lease.start_run("import socket, time\n"
                        "pairs = []\n"
                        "try:\n"
                        "    while True:\n"
                        "        pairs.append(socket.socketpair())\n"
                        "        socket.send_fds(pairs[-1][0], [b'x'], [0] * 250)\n"
                        "except OSError as error: print(error)\n"
                        "time.sleep(60)\n", wall_ms=60000)
        while lease.frame()[0] != "OUTPUT":
            pass
        for _ in range(2):
            told = cell.eval(["-c", "print(1)"])
            assert told.output == b"1\n", told


@test
def the_cell_goes_when_the_broker_does():
    cell.control.close()
    end = time.monotonic() + 60
    while cell.is_running() and time.monotonic() < end:
        time.sleep(.02)
    assert not cell.is_running()


try:
    run()
finally:
    cell.close()
