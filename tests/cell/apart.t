#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the kernel keeps for a user or for a file, and not for a run: runs of
two api cells at the same time, and of one after another, must not meet there.
And what a hostile run does to those who look after it."""

import os
import shutil
import tempfile

from apidriver import EVAL_ENV, ApiCell
from driver import N, wait_until
from tap import run, test

cell, other = ApiCell(), ApiCell()


class Held:
    """A run that has done its code and stays, while others are looked at."""

    def __init__(self, code, inside=cell, **more):
        self.cell = inside
        self.lease = inside.lease()
        self.said = b""
        self.lease.begin("RUN", plain=1, folder="/home", merge=1,
                         wall_ms=60000, output_max=100000, env=EVAL_ENV,
                         args=["-c", code + "\nprint('held', flush=True)\n"
                                     "import time\ntime.sleep(60)"], **more)

    def __enter__(self):
        while b"held" not in self.said:
            kind, fields = self.lease.frame()
            assert kind != "RESULT", (fields, self.said)
            self.said += fields.get("DATA", b"")
        return self

    def __exit__(self, *_):
        self.lease.sock.close()
        self.cell.said()


# Some files of each file system, locked.
LOCKS = """
import fcntl, os, stat
seen, kept = {}, []
for top, folders, names in os.walk('/'):
    for path in [os.path.join(top, name) for name in names]:
        if not os.path.isfile(path) or os.path.islink(path): continue
        device = os.stat(path).st_dev
        seen[device] = seen.get(device, 0) + 1
        if seen[device] > 20: continue
        try: kept.append(open(path))
        except OSError: continue
        try: fcntl.flock(kept[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error: print(path, error)
print(len(kept) > 20)
"""


@test
def a_lock_on_a_file_is_seen_in_no_other_cell():
    with Held(LOCKS, limit_files=1000) as held:
        assert held.said == b"True\nheld\n", held.said
        told = other.eval(["-c", LOCKS], limit_files=1000)
        assert told.output == b"True\n", told


@test
def nothing_tells_that_others_open_a_file():
    told = cell.eval(["-c", """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
for call in (libc.inotify_init, lambda: libc.inotify_init1(0),
             lambda: libc.fanotify_init(0, 0)):
    print(call() == -1 and errno.errorcode[ctypes.get_errno()])
"""])
    first, second, third = told.output.split()
    assert (first, second) == (b"EPERM", b"EPERM"), told
    assert third in (b"EPERM", b"ENOSYS"), told     # ... says a newer Docker


@test
def the_times_of_devices_are_out_of_reach():
    told = cell.eval(["-c", """
import os
n = 0
for top, folders, names in os.walk('/dev'):
    if top.startswith('/dev/shm'): continue
    for path in [top] + [os.path.join(top, name) for name in names]:
        n += 1
        for follow in (True, False):
            try: os.utime(path, follow_symlinks=follow); print('touched', path)
            except OSError: pass
print(n > 8)
with open('/dev/null', 'w') as null: print(null.write('x'))
print(len(open('/dev/zero', 'rb', 0).read(9)), os.isatty(os.openpty()[1]))
"""])
    assert told.output == b"True\n1\n9 True\n", told


@test
def a_flow_label_is_not_left_to_the_next_run():
    told = cell.eval(["-c", """
import socket, struct
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
request = (socket.inet_pton(socket.AF_INET6, '::1') +
           struct.pack('>I', 0x12345) +
           struct.pack('=BBHHHI', 0, 1, 3, 60, 60, 0))
try: s.setsockopt(41, 32, request); print('leased')
except OSError as error: print(error.errno)
s.setsockopt(41, 26, 1)
"""])
    assert (told.output, told.status) == (b"1\n", 0), told


@test
def no_line_discipline_is_asked_of_the_host():
    told = cell.eval(["-c", """
import ctypes, os, struct, termios
fd = os.openpty()[1]
libc = ctypes.CDLL(None, use_errno=True)
for word in (0x5423, 0x5423 | 1 << 32):
    print(libc.ioctl(fd, ctypes.c_ulong(word), struct.pack('i', 21)),
          ctypes.get_errno())
termios.tcgetattr(fd)
"""])
    assert (told.output, told.status) == (b"-1 1\n-1 1\n", 0), told


SIGNALS = """
import ctypes, errno, os, signal
libc = ctypes.CDLL(None, use_errno=True)
signal.pthread_sigmask(signal.SIG_BLOCK, {40})
n = 0
while libc.sigqueue(os.getpid(), 40, None) == 0: n += 1
print(n, errno.errorcode[ctypes.get_errno()], flush=True)
"""


@test
def signals_that_wait_in_one_cell_leave_room_in_others():
    with Held(SIGNALS) as held:
        assert held.said.startswith(b"256 EAGAIN"), held.said
        told = other.eval(["-c", SIGNALS])
        assert told.output == b"256 EAGAIN\n", told


# POST /eval, and both forms of POST /v1/execute.
FORMS = (lambda cell, code: cell.eval(["-c", code]),
         lambda cell, code: cell.run(code, echo=0),
         lambda cell, code: cell.run(code, name="<stdin>"))


@test
def what_was_random_at_import_differs_in_each_run():
    folder = tempfile.mkdtemp(prefix="cell-test-")
    files = {"numpy/__init__.py": "", "numpy/random/__init__.py":
             "import os\ndef seed():\n    global state\n"
             "    state = os.urandom(8)\nseed()\n",
             "keeps.py": "import numpy.random, random\nr = random.Random()\n",
             # an image's, before each start of Python
             "itself/sitecustomize.py": "import keeps\n"}
    code = ("import keeps, random, sys\nprint(keeps.r.random(), "
            "sys.modules['numpy.random'].state, random.random())")
    try:
        os.chmod(folder, 0o755)
        for name, text in files.items():
            os.makedirs(os.path.dirname(folder + "/" + name), exist_ok=True)
            with open(folder + "/" + name, "w") as file:
                file.write(text)
        for way in (["IL_CELL_PRELOAD=keeps", "PYTHONPATH=/numpy"],
                    ["PYTHONPATH=/numpy:/numpy/itself"]):
            with ApiCell(options=["-v", folder + ":/numpy:ro", *(
                    word for one in way for word in ("--env", one))]) as seeded:
                told = [form(seeded, code).output.split()
                        for form in FORMS for _ in range(2)]
            assert [len(set(column)) for column in zip(*told)] == [
                6, 6, 6], (way, told)
    finally:
        shutil.rmtree(folder)


@test
def nothing_random_is_there_before_the_code():
    code = """
import gc, sys
there = sorted({'random', '_random', 'uuid', 'secrets', 'ssl', '_ssl', 'numpy',
                'tempfile'} & {*sys.modules})
gc.unfreeze()
there += [one for one in gc.get_objects() if type(one).__name__ in (
    'Random', 'SystemRandom', 'RandomState', 'Generator', 'SSLContext')]
import os, random, secrets, ssl, tempfile, uuid
print(there, random.random(), uuid.uuid1().clock_seq, uuid.uuid4(),
      secrets.token_hex(9), ssl.RAND_bytes(9).hex(), os.urandom(9).hex(),
      next(tempfile._get_candidate_names()), sep='\\n')
"""
    told = [form(cell, code).output.split() for form in FORMS
            for _ in range(2)]
    assert {each[0] for each in told} == {b"[]"}, told
    # a sequence has 14 bits: two of six may be the same
    assert [len(set(column)) > 1 + 4 * (at != 1) for at, column in enumerate(
        zip(*(each[1:] for each in told)))] == [True] * 7, told


@test
def a_child_that_is_given_to_the_supervisor_ends_with_the_run():
    """clone(CLONE_PARENT): its parent is the run's, outside the jail."""
    number = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
    told = cell.eval(["-c", """
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
out, into = os.pipe()
for i in range(8):
    if libc.syscall(*map(ctypes.c_long, (%d, 0x8000 | 17, 0, 0, 0, 0))) == 0:
        os.write(into, b'x')
        if i %% 2: os._exit(99)
        while True: time.sleep(9)
while i >= 0: i -= len(os.read(out, 99))
try: os.wait()
except ChildProcessError: print('not ours')
raise SystemExit(3)
""" % number])
    assert (told.reason, told.status, told.output) == (
        N.REASON_EXIT, 3, b"not ours\n"), told
    assert len(cell.processes()) == 4
    assert cell.eval(["-c", "print(1)"]).output == b"1\n"


@test
def a_run_that_stops_itself_ends_at_its_time():
    told = cell.eval(["-c", "import os, signal\n"
                      "if os.fork() == 0: os.kill(os.getppid(), 18)\n"
                      "os.kill(0, signal.SIGSTOP)"], wall_ms=300)
    assert told.reason == N.REASON_TIME, told
    assert len(cell.processes()) == 4


@test
def nothing_but_the_run_goes_first_when_memory_runs_out():
    def scores(of):
        try:
            return sorted(int(open("/proc/%d/oom_score_adj" % pid).read())
                          for pid in of.processes())
        except FileNotFoundError:
            return [] # one has ended meanwhile
    # The next run is one before its lease comes.
    wait_until(lambda: scores(cell)[-2:] == [0, 1000])
    rest = scores(cell)
    assert len(rest) == 4 and rest[0] == rest[1], rest
    lease = cell.lease()
    lease.begin("RUN", plain=1, folder="/home", wall_ms=9000, output_max=99,
                env=EVAL_ENV, collect_files=9, collect_bytes=9 << 20,
                collect_total=9 << 20,
                args=["-c", "open('x', 'wb').write(bytes(8 << 20))"])
    # The run is over, and who sends its file waits for us to read it.
    wait_until(lambda: scores(cell) == rest[:2] + [1000])
    told = lease.finish()
    assert len(told.files[b"x"]) == 8 << 20, told
    lease.sock.close()
    assert cell.said() == {}


@test
def a_run_that_is_killed_before_its_lease_comes_is_made_anew():
    before = cell.processes()
    os.kill(before[-1], 9)
    wait_until(lambda: "Z" in open("/proc/%d/stat" % before[-1]).read())
    told = cell.eval(["-c", "print(1)"])
    assert (told.output, told.idle) == (b"1\n", {}), told
    assert cell.processes()[:2] == before[:2]


@test
def the_end_of_the_supervisor_is_the_end_of_all():
    ours = ApiCell()
    try:
        with ours.lease() as lease:
            lease.begin("RUN", plain=1, folder="/home", wall_ms=60000,
                        output_max=99, env=EVAL_ENV, args=[
                            "-c", "import os\nif os.fork() == 0: os.setsid()\n"
                            "print(1, flush=True)\nwhile True: pass"])
            while lease.frame()[0] != "OUTPUT":
                pass
            pids = ours.processes()
            os.kill(pids[1], 9)
            wait_until(lambda: not any(os.path.exists("/proc/%d" % pid)
                                       for pid in pids))
            wait_until(lambda: not ours.is_running())
    finally:
        ours.close()


@test
def what_was_in_memory_file_systems_is_free_for_the_next_run():
    fill = """
for folder in ('/code', '/tmp', '/dev/shm', '/workspace'):
    with open(folder + '/x', 'wb', 0) as f:
        try:
            while f.write(bytes(1 << 16)): pass
        except OSError as error: print(error.errno)
"""
    for _ in range(5):
        told = cell.eval(["-c", fill], limit_memory=0)
        assert told.output == b"28\n" * 4, told
        told = cell.eval(["-c", "print(len(bytearray(200 << 20)))"],
                         limit_memory=0)
        assert told.output == b"%d\n" % (200 << 20), told


HOSTILE = r"""
import os, socket
os.mkfifo('fifo'); os.symlink('fifo', 'to-fifo'); os.symlink('loop', 'loop')
os.symlink('/dev/zero', 'zero'); os.symlink('/', 'root')
os.symlink('/run/cell/cell.py', 'ours'); os.symlink('/tmp/t', 'elsewhere')
open('/tmp/t', 'w').write('t')
socket.socket(socket.AF_UNIX).bind('socket')
for name in (b'bad\xff', b'new\nline', b'x' * 255): open(name, 'w').write('y')
os.truncate(os.open('sparse', os.O_CREAT | os.O_RDWR), 1 << 40)
os.truncate(os.open('holes', os.O_CREAT | os.O_RDWR), 20 << 20)
os.mkdir('deep'); os.chdir('deep')
for _ in range(1500): os.mkdir('d' * 50); os.chdir('d' * 50)
os.chdir('/home')
open('secret', 'w').write('s'); os.chmod('secret', 0)
os.mkdir('locked'); open('locked/in', 'w').write('i'); os.chmod('locked', 0)
os.utime('secret', (2 ** 62, 2 ** 62))
if os.fork() == 0:
    os.setsid()
    while True:
        try: os.rename('secret', 'secre7'); os.rename('secre7', 'secret')
        except OSError: pass
os.chmod('/home', 0)
"""


@test
def a_hostile_tree_is_sent_as_far_as_it_goes():
    for how in (0, N.COLLECT_LINKS):
        told = cell.eval(["-c", HOSTILE], collect_how=how)
        assert (told.reason, told.status) == (N.REASON_EXIT, 0), told
        names = {name.replace(b"secre7", b"secret") for name in told.files}
        assert names == {b"bad\xff", b"new\nline", b"x" * 255, b"holes",
                         b"secret", b"locked/in"}, (how, told)
        assert told.left_out.pop(b"sparse") == N.LEFT_OUT_SIZE, told.left_out
        kinds = [why for why in told.left_out.values()
                 if why != N.LEFT_OUT_KIND]
        assert kinds == [N.LEFT_OUT_PATH], told.left_out
        assert told.idle == {}, told.idle
    assert cell.eval(["-c", "print(1)"]).output == b"1\n"


try:
    run()
finally:
    cell.close()
    other.close()
