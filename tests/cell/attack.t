#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Code in a cell tries to get at the supervisor, or to pass for it."""

from apidriver import ApiCell
from driver import USER, N, Cell, pack
from tap import run, test

# What a run tries; each prints what it got, which must be this.
ATTEMPTS = {
    "looks into PID 1": ("""
import os
for name in ('mem', 'maps', 'environ', 'auxv', 'stack', 'syscall', 'pagemap',
             'fd', 'fdinfo', 'map_files', 'task/1/mem', 'task/1/fd'):
    try:
        path = '/proc/1/' + name
        found = os.listdir(path) if os.path.isdir(path) else open(path, 'rb').read(1)
        if found: print(name, found)
    except OSError: pass
for name in ('cwd', 'root', 'exe', 'fd/3', 'ns/pid'):
    try: print(name, os.readlink('/proc/1/' + name))
    except OSError: pass
""", b""),
    "writes to PID 1": ("""
import os
for name in ('mem', 'oom_score_adj', 'comm', 'coredump_filter', 'clear_refs',
             'timerslack_ns', 'autogroup', 'sched', 'fd/3', 'attr/current'):
    try:
        fd = os.open('/proc/1/' + name, os.O_WRONLY)
        os.write(fd, b'1')
        print(name)
    except OSError: pass
""", b""),
    "traces PID 1": ("""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
for request in (16, 0x4206): print(libc.ptrace(request, 1, 0, 0))
class iovec(ctypes.Structure):
    _fields_ = [('base', ctypes.c_void_p), ('len', ctypes.c_size_t)]
data = ctypes.create_string_buffer(16)
ours, theirs = iovec(ctypes.addressof(data), 16), iovec(0x400000, 16)
print(libc.process_vm_readv(1, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0))
print(libc.process_vm_writev(1, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0))
""", b"-1\n" * 4),
    "takes a descriptor of PID 1": ("""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.syscall(434, 1, 0)
print([libc.syscall(438, fd, n, 0) for n in range(12)] == [-1] * 12)
""", b"True\n"),
    "slows PID 1 down": ("""
import ctypes, os, resource
def attempt(f, *args):
    try: f(*args)
    except OSError: return
    print(f, args)
for which in (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE, resource.RLIMIT_AS):
    attempt(resource.prlimit, 1, which, (1, 1))
attempt(os.sched_setaffinity, 1, [0])
attempt(os.setpriority, os.PRIO_PROCESS, 1, 19)
attempt(os.setpriority, os.PRIO_USER, 0, 19)
attempt(os.setpriority, os.PRIO_USER, os.getuid(), 19)
attempt(os.setpriority, os.PRIO_PGRP, 1, 19)
libc = ctypes.CDLL(None)
print(libc.syscall(251, 1, 1, 3 << 13), libc.syscall(251, 3, os.getuid(), 3 << 13))
# sched_setscheduler to SCHED_IDLE, sched_getscheduler: musl's are none
print(libc.syscall(144, 1, 5, ctypes.byref(ctypes.c_int(0))))
print(os.getpriority(os.PRIO_PROCESS, 1), libc.syscall(145, 1))
print(resource.getrlimit(resource.RLIMIT_NOFILE), os.nice(1) > 0)
""", b"-1 -1\n-1\n0 0\n(1024, 1024) True\n"),
    "looks for the socket": ("""
import os, socket
print(os.listdir('/run/inline'))
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
try: s.connect('/run/inline/cell.sock')
except OSError as e: print(type(e).__name__)
print([os.stat('/proc/self/fd/' + n).st_mode & 0o170000 == 0o140000
       for n in '012'])
""", b"[]\nFileNotFoundError\n[False, False, False]\n"),
    "writes to the cell": ("""
import os
for path in ('/run/cell/cell.py', '/run/inline/x', '/etc/x', '/usr/x', '/x',
             '/run/x', '/proc/sys/kernel/core_pattern', '/sys/fs/cgroup/x',
             '/sys/fs/cgroup/memory/memory.limit_in_bytes', '/dev/x',
             '/var/tmp/x', '/home/x', '/proc/sysrq-trigger'):
    try: open(path, 'w').write('1'); print(path)
    except OSError: pass
""", b""),
    "reaches the network": ("""
import socket
for family, address in ((socket.AF_INET, ('1.1.1.1', 53)),
                        (socket.AF_INET, ('172.17.0.1', 80)),
                        (socket.AF_INET6, ('2606:4700:4700::1111', 53))):
    try:
        socket.socket(family, socket.SOCK_STREAM).connect(address)
        print(address)
    except OSError: pass
try: print(socket.getaddrinfo('example.com', 80))
except OSError: pass
""", b""),
    "becomes somebody else": ("""
import os
for f, args in ((os.setuid, (0,)), (os.setgid, (0,)), (os.setgroups, ([0],)),
                (os.setresuid, (0, 0, 0)), (os.chroot, ('/tmp',)),
                (os.chown, ('/workspace', 0, 0)), (os.mknod, ('/tmp/n', 0o60600, 1793))):
    try: f(*args); print(f)
    except OSError: pass
print(os.getresuid(), os.getresgid(), os.getgroups())
status = open('/proc/self/status').read()
print([l.split()[1] for l in status.splitlines()
       if l.startswith(('CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs'))])
""", b"(%d, %d, %d) (%d, %d, %d) [%d]\n" % ((USER,) * 7) +
     b"['0000000000000000', '0000000000000000', '0000000000000000', "
     b"'0000000000000000', '1']\n"),
}


def add(name, source, expected):
    def attempt():
        for told in (lease.run(source), ahead.run_ahead(source)):
            assert told.reason == N.REASON_EXIT, told
            got = told.stdout.replace(b"[]\n", b"[%d]\n" % USER) \
                if "somebody" in name else told.stdout
            assert (got, told.stderr) == (expected, b""), told
        assert lease.run("print(1)").stdout == b"1\n"

    attempt.__name__ = "a run " + name
    test(attempt)


for title, (code, wanted) in ATTEMPTS.items():
    add(title, code, wanted)


@test
def a_forged_frame_is_only_output():
    forged = pack("RESULT", ("REASON", N.REASON_EXIT), ("STATUS", 0))
    told = lease.run("""
import os
forged = %r
for fd in range(1024):
    try: os.write(fd, forged)
    except OSError: pass
raise SystemExit(5)
""" % forged)
    assert told.status == 5, told
    assert told.stdout == forged and told.stderr == forged, told


@test
def no_signal_reaches_the_supervisor():
    told = lease.run("""
import os, signal, ctypes
libc = ctypes.CDLL(None)
for n in list(range(1, 65)):
    for _ in range(20):
        try: os.kill(1, n)
        except OSError: pass
        libc.syscall(234, 1, 1, n)      # tgkill, x86-64
fd = libc.syscall(434, 1, 0)
print([libc.syscall(424, fd, n, 0, 0) for n in (9, 11, 15, 19)])
""")
    assert told.reason == N.REASON_EXIT, told
    assert lease.run("print(1)").stdout == b"1\n"
    assert len(cell.processes()) == 1


@test
def a_later_run_does_not_find_the_source_of_an_earlier_one():
    lease.run("secret = 1", name="secret.py")
    told = lease.run("import os; print(os.listdir('/code'))", name="b.py")
    assert told.stdout == b"['b.py']\n", told


@test
def the_command_line_is_all_that_proc_tells():
    told = lease.run("print(open('/proc/1/cmdline').read().split('\\0')[-3:])")
    assert told.stdout == (b"['/run/cell/cell.py', '/run/inline/cell.sock', "
                           b"'']\n"), told


@test
def what_a_run_of_the_apis_sees_in_proc_is_no_way_either():
    with ApiCell() as api:
        for pid in "1", ".pids/1", "self/task/1":
            for name in "looks into PID 1", "writes to PID 1":
                code, wanted = ATTEMPTS[name]
                told = api.run(code.replace("/proc/1/", "/proc/%s/" % pid),
                               echo=0)
                assert (told.status, told.stdout) == (0, wanted), (
                    pid, name, told)
        told = api.run("""
import os
for fd in os.listdir('/proc/self/fd'):
    try: where = os.readlink('/proc/self/fd/' + fd)
    except OSError: continue        # of the listing
    print(where.split(':')[0])
print(b'/run/cell/cell.py' in open('/proc/self/cmdline', 'rb').read())
print([word for word in open('/proc/self/environ').read().split('\\0')
       if 'IL_' in word or 'TOKEN' in word])
""", echo=0)
        assert told.stdout == b"pipe\npipe\npipe\nTrue\n[]\n", told


@test
def the_gc_finds_nothing_of_the_protocol():
    source = """
import gc, sys
gc.collect(); gc.unfreeze()
print([o for o in gc.get_objects() if type(o).__name__ in
       ('Lease', 'Control', 'Cell', 'Supervisor', 'supervisor',
        'supervisor_plan')])
print([o for o in gc.get_objects() if type(o).__name__ == 'socket'])
"""
    for told in (lease.run(source), ahead.run_ahead(source)):
        assert told.stdout == b"[]\n[]\n", told


with Cell() as cell, Cell() as ahead:
    with cell.lease() as lease:
        run()
