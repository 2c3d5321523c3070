#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A person's files are looked at while their code runs, and that may be hostile
to whoever looks."""

import os
import signal

from driver import N, Cell, pack, wait_until
from tap import run, test

WAIT = "import time\nprint('up', flush=True)\ntime.sleep(1000)\n"
# Calls see(pid) for each process that comes beside us.
LURK = """
import os, time, signal
def others():
    return {int(n) for n in os.listdir('/proc') if n.isdigit()} - {1, os.getpid()}
print('up', flush=True)
while True:
    for pid in others():
        try: see(pid)
        except OSError: pass                # it has ended
"""


class Running:
    """A run that goes on, and those who look beside it."""

    def __init__(self, source=WAIT, **fields):
        self.lease = cell.lease()
        self.lease.start_run(source, wall_ms=600000, **fields)
        self.output = b""
        self.reads("up")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lease.sock.close()
        assert cell.idle()
        assert len(cell.processes()) <= 2, "one who looked is left"

    def reads(self, text):
        """Its output, until there is that in it."""
        while text.encode() not in self.output:
            kind, fields = self.lease.frame()
            assert kind in ("STARTED", "OUTPUT"), (kind, fields)
            self.output += fields.get("DATA", b"")

    def look(self):
        return cell.lease("BESIDE")

    def list(self, path="", **fields):
        with self.look() as look:
            told = look.ask("LIST", path=path, offset=0, count=100, **fields)
        return told if told.reason == N.REASON_ERROR else [
            entry["NAME"] for entry in told.entries]

    def read(self, path):
        with self.look() as look:
            return look.ask("READ", path=path, max_bytes=1 << 20)

    def readers(self):
        """Host pids of those who look: without a session of their own."""
        root = cell.root_pid()
        return [pid for pid in cell.processes()
                if pid != root and os.getsid(pid) == os.getsid(root)]


def hung_up(look):
    """Without a word?"""
    try:
        return look.sock.recv(1) == b""
    except ConnectionResetError:
        return True


@test
def files_are_listed_and_read_beside_a_run():
    with Running("open('made', 'w').write('by it')\n" + WAIT) as it:
        assert it.list() == [b"made"]
        assert it.read("made").files == {b"made": b"by it"}
        with it.look() as look:             # more than one question
            for _ in range(3):
                assert look.ask("STAT", path="made").entries[0]["SIZE"] == 5
        assert it.read("none").code == N.ERROR_NOT_FOUND
        assert it.list("made").code == N.ERROR_NOT_DIRECTORY


@test
def nothing_else_can_be_asked_for():
    with Running("import os\nopen('kept', 'w')\nos.chmod('.', 0o500)\n" +
                 WAIT) as it:
        with it.look() as look:
            for told in (look.run("open('new', 'w')"),
                         look.ask("WRITE", path="new", content=b"1"),
                         look.ask("REMOVE", path="kept"),
                         look.ask("PIP", wall_ms=1000, output_max=1000),
                         look.run("1", inputs=[("new", b"1")])):
                assert told.code == N.ERROR_REQUEST, told
            assert look.ask("STAT", path="").reason == N.REASON_EXIT
        assert b"kept" in it.list() and b"new" not in it.list()
    with Running("import os\nos.chmod('.', 0)\n" + WAIT) as it:
        assert it.list().code == N.ERROR_PERMISSION, "it was unlocked"


@test
def the_run_is_told_as_if_nobody_had_looked():
    with cell.lease() as lease:
        lease.start_run("import signal, sys\n"
                        "signal.pthread_sigmask(signal.SIG_BLOCK, [10])\n"
                        "print(len(sys.stdin.read()), flush=True)\n"
                        "signal.sigwait([10])\nopen('new', 'w').write('1')",
                        stdin="x" * 3000000, collect_files=10,
                        collect_bytes=100, collect_total=100)
        while lease.frame()[0] != "OUTPUT":
            pass
        _, process = cell.processes()
        looks = [cell.lease("BESIDE") for _ in range(4)]
        for look in looks:
            for _ in range(800):
                assert look.ask("STAT", path="").reason == N.REASON_EXIT
        spent = sum(map(cpu_ms, set(cell.processes()[2:])))
        os.kill(process, signal.SIGUSR1)
        told = lease.finish()
        assert told.status == 0 and told.files[b"new"] == b"1", told
        assert told.cpu_us / 1000 < spent, (told, spent)
        assert all(map(hung_up, looks))
    assert cell.idle()


def cpu_ms(pid):
    with open("/proc/%d/schedstat" % pid) as file:
        return int(file.read().split()[0]) / 1e6


@test
def it_ends_with_the_run():
    with Running() as it:
        look = it.look()
        assert look.ask("STAT", path="").reason == N.REASON_EXIT
    assert hung_up(look)
    assert len(cell.processes()) <= 2


@test
def four_look_at_a_time():
    with Running() as it:
        looks = [it.look() for _ in range(4)]
        for look in looks:
            assert look.ask("STAT", path="").reason == N.REASON_EXIT
        assert hung_up(it.look()), "a fifth was served"
        looks.pop().sock.close()
        wait_until(lambda: serves(it.look()))
        for look in looks:
            look.sock.close()


def serves(look):
    try:
        return look.ask("STAT", path="").reason == N.REASON_EXIT
    except (OSError, EOFError):
        return False
    finally:
        look.sock.close()


@test
def one_that_stays_has_its_time_also_when_it_is_stopped():
    with Running("import os, signal\ndef see(pid):\n"
                 "    if not stopped: stopped.add(pid); "
                 "os.kill(pid, signal.SIGSTOP)\n"
                 "stopped = set()\n" + LURK) as it:
        looks = [it.look()]
        wait_until(lambda: "T" in map(state, it.readers()))
        looks += [it.look() for _ in range(3)]
        for look in looks[1:]:
            assert look.ask("STAT", path="").reason == N.REASON_EXIT
        for look in looks[1:]:
            assert hung_up(look)            # by itself, after its time
        assert len(it.readers()) == 1, "one that was stopped went"
        it.look().sock.close()
        assert hung_up(looks[0]), "it stays for good"


def state(pid):
    with open("/proc/%d/stat" % pid) as file:
        return file.read().rpartition(")")[2].split()[0]


@test
def code_that_ends_it_ends_that_alone():
    with Running("def see(pid): os.kill(pid, 9)\n" + LURK) as it:
        for _ in range(3):
            look = it.look()
            assert hung_up(look)
        # and PID 1 is not kept busy by what has hung up
        wait_until(lambda: "S" in state(cell.root_pid()))
    with Running("import os\nos.fork()\n" + WAIT) as it:
        assert isinstance(it.list(), list), "the next run's are not served"


@test
def code_cannot_reach_into_it():
    source = """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
seen = set()
def attempt(what, call, *args):
    try: print('reached', what, call(*args), flush=True)
    except OSError: pass
def see(pid):
    if pid in seen: return
    seen.add(pid)
    for name in ('mem', 'maps', 'environ', 'auxv', 'syscall', 'pagemap', 'fd/0',
                 'map_files', 'task/%d/mem' % pid, 'fd/3', 'fd/4', 'fd/5'):
        attempt(name, lambda path: os.open(path, os.O_RDWR),
                '/proc/%d/%s' % (pid, name))
        attempt(name, os.listdir, '/proc/%d/fd' % pid)
    for number in (16, 0x4206):
        if libc.ptrace(number, pid, 0, 0) != -1: print('traced', flush=True)
    fd = libc.syscall(434, pid, 0)
    for n in range(12):
        if libc.syscall(438, fd, n, 0) != -1: print('taken', n, flush=True)
    forged = FORGED
    for n in range(64):
        try: os.write(n, forged)
        except OSError: pass
    print('tried', flush=True)
""".replace("FORGED", repr(pack("RESULT", ("REASON", N.REASON_EXIT))))
    with Running(source + LURK) as it:
        look = it.look()
        it.reads("tried")
        assert b"reached" not in it.output and b"traced" not in it.output \
            and b"taken" not in it.output, it.output
        pid, = it.readers()
        wait_until(lambda: len(os.listdir("/proc/%d/fd" % pid)) == 4)
        assert look.ask("STAT", path="").reason == N.REASON_EXIT
        look.sock.close()


@test
def where_no_process_can_be_made_it_is_refused():
    with Running("import os, time\ntry:\n    while os.fork(): pass\n"
                 "except OSError: print('up', flush=True)\n"
                 "time.sleep(1000)") as it:
        for _ in range(3):
            assert hung_up(it.look())
    with Running() as it:
        assert isinstance(it.list(), list)


@test
def nothing_that_code_makes_holds_it_up():
    with Running("import os\nos.mkfifo('fifo')\nos.mkdir('many')\n"
                 "for n in range(3000): os.close(os.open('many/%d' % n, "
                 "os.O_CREAT))\n" + WAIT) as it:
        assert it.read("fifo").code == N.ERROR_NOT_REGULAR
        assert len(it.list("many")) == 100
    with Running("""
import os
os.mkfifo('a'); os.symlink('/proc/self', 'b'); open('c', 'w').write('c' * 9)
os.mkdir('d')
print('up', flush=True)
while True:
    for name in 'abcd':
        try: os.unlink('x')
        except OSError: pass
        os.rename(name, 'x')
        os.rename('x', name)
        if name == 'c':
            os.link('c', 'x')
            open('c', 'w').write('c' * 9)
""") as it:
        with it.look() as look:
            for n in range(300):
                told = look.ask("READ", path="x", max_bytes=9)
                assert told.code in (
                    None, N.ERROR_NOT_REGULAR, N.ERROR_NOT_INSIDE,
                    N.ERROR_NOT_FOUND, N.ERROR_IS_DIRECTORY), told
        assert cell.is_running() and it.list()


@test
def outside_of_a_run_it_is_hung_up_on():
    with cell.lease() as lease:
        assert lease.run("1").reason == N.REASON_EXIT
        look = cell.lease("BESIDE")
        assert lease.run("2").reason == N.REASON_EXIT
    assert cell.idle() and hung_up(look)
    look = cell.lease("BESIDE")             # between two leases
    with cell.lease() as lease:
        assert hung_up(look)
        assert lease.run("print(3)").stdout == b"3\n"
    assert cell.idle()


@test
def it_goes_with_an_interpreter_that_is_kept():
    for _ in range(2):
        with cell.lease(keep=1) as lease:
            lease.start_run("input()", stdin="x", keep=1)
            assert lease.finish().kept == 1
        assert cell.idle()
    with cell.lease(keep=1) as lease:
        lease.start_run(WAIT, keep=1, wall_ms=600000)
        while lease.frame()[0] != "OUTPUT":
            pass
        with cell.lease("BESIDE") as look:
            assert look.ask("STAT", path="").reason == N.REASON_EXIT
    assert cell.idle()
    with cell.lease(keep=1) as lease:
        assert lease.run("1", keep=1).kept == 1
    assert cell.idle()
    assert hung_up(cell.lease("BESIDE"))
    stopped, = [pid for pid in cell.processes() if state(pid) == "T"]
    os.kill(stopped, signal.SIGCONT)        # it is still watched, and ended
    wait_until(lambda: stopped not in cell.processes())


@test
def it_waits_while_the_client_of_the_run_is_slow():
    with cell.lease() as lease:
        lease.start_run("open('large', 'wb').write(bytes(9 << 20))",
                        collect_files=1, collect_bytes=10 << 20,
                        collect_total=10 << 20)
        while lease.frame()[0] != "FILE":
            pass
        look = cell.lease("BESIDE")         # its files are being sent
        left = 9 << 20
        while left > 0:
            left -= len(lease.frame()[1]["DATA"])
        assert lease.frame()[0] == "RESULT"
    assert cell.idle() and hung_up(look)


@test
def it_waits_also_for_the_last_output():
    with cell.lease() as lease:
        lease.start_run("import os, time\nos.set_blocking(1, False)\n"
                        "sent = left = 0\nwhile left < 50:\n"
                        "    try: sent += os.write(1, bytes(4096))\n"
                        "    except OSError: left += 1; time.sleep(0.01)\n"
                        "os.write(2, b'%d' % sent)",
                        output_max=10 << 20)
        wait_until(lambda: len(cell.processes()) == 2)
        wait_until(lambda: len(cell.processes()) == 1)
        look = cell.lease("BESIDE")         # the lease is full
        told = lease.finish()
        assert told.stderr == b"%d" % len(told.stdout), told.fields
    assert cell.idle() and hung_up(look)


with Cell() as cell:
    run()
