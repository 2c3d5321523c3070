#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Leases: what ends when, and what is left of it."""

import os
import signal
import time

from driver import N, Cell, unpack, wait_until
from tap import run, test

LINGER = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(1000)
    time.sleep(1000)
print("up", flush=True)
time.sleep(1000)
"""


def start_lingering(lease):
    lease.start_run(LINGER, wall_ms=600000)
    while lease.frame()[0] != "OUTPUT":
        pass


@test
def ready_tells_the_version():
    with Cell() as cell:
        kind, fields = cell.ready
        assert kind == "READY" and list(fields) == ["PYTHON"]
        with cell.lease() as lease:
            told = lease.run("import platform; print(platform.python_version())")
            assert told.stdout.decode().strip().startswith(fields["PYTHON"])


@test
def closing_the_lease_ends_the_run_with_all_its_processes():
    with Cell() as cell:
        with cell.lease() as lease:
            start_lingering(lease)
            wait_until(lambda: len(cell.processes()) == 4)
            before = set(cell.processes())
        began = time.monotonic()
        assert cell.idle()
        assert time.monotonic() - began < 20
        assert before & set(cell.processes()) == {cell.root_pid()}


@test
def a_lease_that_ends_in_the_middle_of_a_request_is_over():
    with Cell() as cell:
        with cell.lease() as lease:
            lease.send("REQUEST", ("OP", N.OP_WRITE), ("PATH", "half"))
            lease.send("BYTES", ("PART", N.PART_CONTENT), ("DATA", b"x" * 9))
        assert cell.idle()
        with cell.lease() as lease:
            told = lease.run("import os; print(os.listdir('.'))")
            assert told.stdout == b"[]\n", told


@test
def nothing_is_left_in_tmp_and_shm():
    with Cell() as cell:
        with cell.lease() as lease:
            told = lease.run("""
import os
from multiprocessing import shared_memory
memory = shared_memory.SharedMemory(create=True, size=4096)
os._exit(0) if os.fork() == 0 else os.wait()
os.makedirs('/tmp/a/b/c'); open('/tmp/a/b/c/f', 'w').close()
os.mkfifo('/tmp/fifo'); os.symlink('/etc', '/tmp/link')
os.chmod('/tmp/a/b/c', 0); os.chmod('/tmp/a/b', 0o500)
open('/dev/shm/x', 'w').close()
print(os.listdir('/tmp') != [], flush=True)
os._exit(0)
""")
            assert told.stdout == b"True\n", told
            told = lease.run("import os; print(len(os.listdir('/tmp')))")
            assert told.stdout == b"3\n", "kept within a lease"
        assert cell.idle()
        with cell.lease() as lease:
            told = lease.run("import os; print(os.listdir('/tmp') +"
                             "os.listdir('/dev/shm'))")
            assert told.stdout == b"[]\n", told


@test
def a_code_folder_that_a_run_has_locked_is_opened():
    with Cell() as cell:
        for mode in 0, 0o500:
            with cell.lease() as lease:
                for _ in range(2):
                    told = lease.run("import os\nprint(1)\n"
                                     "os.chmod('/code', %d)" % mode)
                    assert (told.stdout, told.status) == (b"1\n", 0), told
                    told = lease.run("print(2)", args=["not fast"])
                    assert (told.stdout, told.status) == (b"2\n", 0), told
                lease.run("import os; os.chmod('/code', %d)" % mode)
            assert cell.idle()


@test
def a_lease_is_served_once():
    """Also when its process has died before it took it."""
    with Cell() as cell:
        spare = cell.spare()
        os.kill(spare, signal.SIGSTOP)
        with cell.lease() as lease:
            time.sleep(.3)
            os.kill(spare, signal.SIGKILL)
            assert lease.finish().reason == N.REASON_ERROR
        assert cell.idle()
        cell.control.settimeout(1)
        try:
            assert False, unpack(cell.control.recv(65536))
        except OSError:
            pass
        cell.control.settimeout(60)
        assert cell.run_ahead("print(1)").stdout == b"1\n"


@test
def the_end_of_the_broker_ends_the_container():
    with Cell() as cell, cell.lease() as lease:
        start_lingering(lease)
        cell.control.close()
        wait_until(lambda: not cell.is_running())


@test
def the_end_of_the_broker_ends_an_idle_container():
    with Cell() as cell:
        cell.control.close()
        wait_until(lambda: not cell.is_running())


@test
def the_end_of_the_cell_ends_lease_and_control():
    with Cell() as cell, cell.lease() as lease:
        start_lingering(lease)
        os.kill(cell.root_pid(), signal.SIGKILL)
        while lease.sock.recv(65536):
            pass
        assert cell.control.recv(65536) == b""


@test
def several_requests_on_one_lease_and_several_leases_on_one_cell():
    with Cell() as cell:
        for _ in range(5):
            with cell.lease() as lease:
                for number in range(20):
                    told = lease.run("print(%d)" % number)
                    assert told.stdout == b"%d\n" % number, told
                assert lease.ask("STAT", path="").entries[0]["NAME"] == b"."
            assert cell.idle()
        with cell.lease() as lease:
            told = lease.run("import os; print(len(os.listdir('/proc/1/task')),"
                             "os.getpid() < 500)")
            assert told.stdout == b"1 True\n", told


@test
def the_client_may_be_slow_and_the_clock_is_not():
    with Cell() as cell, cell.lease() as lease:
        lease.start_run("import time\n"
                        "try:\n"
                        "    while True: print('x' * 999)\n"
                        "finally: pass", wall_ms=1500, output_max=50000000)
        time.sleep(4)
        told = lease.finish()
        assert told.reason == N.REASON_TIME, told
        assert 1400000 < told.wall_us < 3900000, told
        assert len(told.output) < 2000000


run()
