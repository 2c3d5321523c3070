#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""What holds a cell, on control groups of version 2: memory, processes, the
disk's throughput; each told as what it is.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from session import Session, figure, note, run, test  # noqa: E402

host = Session()

EAT = "rows = []\nwhile True: rows.append(bytearray(8 << 20))"
FORK = """
import os, time
made = 0
try:
    for made in range(200):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
except OSError as error:
    print("refused after", made, error.strerror)
"""

RATE = 1 << 19
WRITTEN = 8 << 20
WRITE = f"""
import os
with open("written", "wb") as file:
    print("left in memory:", file.write(os.urandom({WRITTEN})))
"""
SYNC = "began=$(date +%s); sync; echo $(($(date +%s) - began))"


def groups():
    """The control groups of all cells of people's: alice's, and spare ones."""
    pids = map(host.first_process, host.containers("user"))
    return ["/sys/fs/cgroup" + host.sh(f"sed 's/^0:://' /proc/{pid}/cgroup")
            for pid in pids]


@test
def the_machine_has_control_groups_of_version_2_only():
    assert host.sh("stat -fc %T /sys/fs/cgroup") == "cgroup2fs"


@test
def out_of_memory_is_told_as_memory():
    host.create("alice")
    text = host.say("py", code=EAT)
    assert "memory" in text.lower(), text


@test
def out_of_memory_in_an_api_run_is_a_kill():
    status, answer = host.eval(EAT)
    assert status == 200 and answer["returncode"] == 137, answer


@test
def the_next_run_is_as_if_nothing_had_happened():
    assert "42" in host.say("py", code="print(6 * 7)")
    assert host.run_api("print(6 * 7)") == "42\n"


@test
def processes_are_limited():
    text = host.say("py", code=FORK)
    assert "refused after" in text, text
    after = int(text.split("refused after")[1].split()[0])
    assert 10 < after < 64, text


@test
def a_cells_group_has_the_limits_of_the_configuration():
    host.say("py", code="1")
    limits = host.sh(f"cd {groups()[0]} && "
                     "cat memory.max memory.swap.max pids.max cpu.max")
    note(limits)
    assert limits.split("\n") == ["268435456", "0", "64", "100000 100000"]


@test
def the_disks_throughput_is_limited_where_the_kernel_can():
    line = host.sh(f"cat {groups()[0]}/io.max")
    figure(f"io.max of a cell: {line or 'no limit'}")
    forgets = "forgets IL_TUNE_DISK_RATE" in host.doctor()[1]
    assert forgets != ("bps=" in line), "a cell may use all of the disk"


@test
def what_is_written_back_counts_as_the_cells():
    """With version 1 it would pass by the limit: it is not the cell that
    writes it.  A limit slower than the machine's disk is set for both of the
    cell's devices."""
    host.say("py", code="1")
    for group in groups():
        for device in host.sh("losetup -ln -O MAJ:MIN").split():
            host.sh(f"echo {device} wbps={RATE} >{group}/io.max")
    host.sh("sync")
    text = host.say("py", code=WRITE)
    assert "left in memory" in text, text
    took = int(host.sh(SYNC))
    figure(f"{WRITTEN >> 20} MiB written back at {RATE >> 10} KiB/s: {took} s")
    assert took > 0.5 * WRITTEN / RATE, took


with host:
    run()
