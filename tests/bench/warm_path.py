#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Where the time of one warm POST /eval goes: perf watches the whole machine
while requests come one after another, and the samples of the service and its
cells are folded by program and by what was being done.

    BUILD=$PWD/build SANDBOX_IMAGE=inline-python:3.11 tests/bench/warm_path.py [SECONDS]

Needs root and Debian's linux-perf.  In a virtual machine without counters perf
samples by a timer, which is enough.
"""

import collections
import os
import re
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import floor  # noqa: E402
import place as p  # noqa: E402

FREQUENCY = 5000

# The first line of these of which a function is on the stack says what was
# being done.
TOPICS = (
    ("namespaces, made", r"create_new_namespaces|create_user_ns|copy_mnt_ns"
     r"|copy_pid_ns|copy_ipcs|unshare_userns"),
    ("namespaces, ended", r"free_nsproxy|put_mnt_ns|namespace_unlock"
     r"|zap_pid_ns|free_ipc|mntput_no_expire|cleanup_mnt|put_pid_ns"
     r"|__put_user_ns|deactivate_super|kill_litter_super"),
    ("mounts", r"path_mount|do_mount|path_umount|vfs_get_tree|do_move_mount"
     r"|do_new_mount|pivot_root|fsconfig|fsmount|open_tree"),
    ("fork: memory copied", r"dup_mm|dup_mmap|copy_page_range|anon_vma_fork"),
    ("fork: the rest", r"copy_process|kernel_clone"),
    ("exit: memory given back", r"exit_mmap|unmap_vmas|mmput|tlb_finish_mmu"),
    ("exit: the rest", r"do_exit|do_group_exit|release_task|wait_consider"
     r"|do_wait"),
    ("page faults: copy on write", r"do_wp_page|wp_page_copy|do_cow_fault"),
    ("page faults: of files", r"do_read_fault|filemap_|do_fault_around"
     r"|next_uptodate_folio|do_shared_fault"),
    ("page faults: zeroed", r"do_anonymous_page|clear_page"),
    ("page faults: the rest", r"exc_page_fault|handle_mm_fault"),
    ("exec", r"bprm_execve|do_execveat"),
    ("memory maps", r"do_mmap|vm_munmap|__vm_munmap|mprotect|do_brk|sys_brk"
     r"|madvise"),
    ("seccomp filter, made", r"seccomp_set_mode|do_seccomp|prctl_set_seccomp"),
    ("TCP", r"tcp_|inet_|__sys_accept|sock_def_readable"),
    ("unix sockets, pipes", r"unix_|pipe_|sock_|__sys_sendmsg|__sys_recvmsg"),
    ("waiting and waking", r"ep_|epoll|do_poll|do_sys_poll|schedule"
     r"|try_to_wake_up|futex|do_select"),
    ("files", r"vfs_|do_sys_open|path_|filename_|sys_close|__fput|getdents"
     r"|fstat|statfs|shmem_"),
    ("signals, limits, identity", r"kill|signal|rlimit|prctl|setgroups|setuid"
     r"|capset|setsid"),
)
COMPILED = [(name, re.compile(pattern)) for name, pattern in TOPICS]


# Processes of a cell, by how many forks they are below its first one.
LEVELS = ("cell: PID 1", "cell: supervisor", "cell: runs")


class Fold:
    """Counts samples; learns from forks whose a process is."""

    def __init__(self, roles):
        self.known = roles  # perf tells of the forks before its time, too
        self.roles = dict(roles)
        self.counts = collections.Counter()

    def fork(self, child, parent):
        role = self.roles.get(parent)
        if role is None or child == parent or child in self.known:
            return
        self.roles[child] = LEVELS[min(LEVELS.index(role) + 1, 2)] \
            if role in LEVELS else role

    def sample(self, pid, comm, frames):
        role = self.roles.get(pid)
        if role is None and re.match(r"kworker|ksoftirqd|rcu|kthread", comm):
            role = "the kernel's helpers (for anybody)"
        if role is not None:
            self.counts[role, topic(frames)] += 1


def topic(frames):
    """frames: (function, object), the innermost first."""
    if not frames:
        return "?"
    if "kernel" not in frames[0][1] and not frames[0][1].startswith("["):
        name = os.path.basename(frames[0][1])
        return "user: " + re.sub(r"[-.]\d.*|\.so.*", "", name)
    names = " ".join(function for function, _ in frames)
    for name, pattern in COMPILED:
        if pattern.search(names):
            return "kernel: " + name
    return "kernel: other"


def read_samples(data, fold):
    """Feed what `perf script` prints: a head, then a frame each line."""
    script = subprocess.Popen(
        ["perf", "script", "-i", data, "--show-task-events",
         "-F", "comm,pid,tid,time,event,ip,sym,dso"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        errors="replace")
    head = re.compile(r"^\s*(.+?)\s+(\d+)/(\d+)\s+[\d.]+:")
    task = re.compile(r"PERF_RECORD_FORK\((\d+):\d+\):\((\d+):\d+\)")
    frame = re.compile(r"^\s+[0-9a-f]+ (.*) \((.*)\)$")
    pid, comm, frames = None, "", []
    with script:
        for line in script.stdout:
            found = task.search(line)
            if found:
                fold.fork(int(found[1]), int(found[2]))
                continue
            if not line.strip():
                if pid is not None:
                    fold.sample(pid, comm, frames)
                pid, frames = None, []
                continue
            found = frame.match(line) if pid is not None else None
            if found:
                frames.append((found[1].split("+")[0], found[2]))
                continue
            found = head.match(line)
            if found:
                comm, pid, frames = found[1], int(found[2]), []


def roles_of(service):
    roles = dict(service.processes())
    for cell in service.cell_ids():
        level, pids = 0, [p.pid_of(cell)]
        while pids:
            roles.update((pid, LEVELS[min(level, 2)]) for pid in pids)
            level, pids = level + 1, p.children(pids)
    return roles


def record(place, service, seconds):
    """Returns (the Fold, what bench_load says)."""
    data = os.path.join(place.folder, "perf.data")
    spec = place.eval(service)
    place.load("alternate", 20, 1, 0, spec)
    fold = Fold(roles_of(service))
    perf = subprocess.Popen(
        ["perf", "record", "-q", "-a", "-g", "-F", str(FREQUENCY), "-o", data],
        stdin=subprocess.DEVNULL)
    try:
        p.wait_for(lambda: os.path.exists(data) and os.path.getsize(data))
        done = place.load("sustain", 1, 1, int(seconds * 1000), spec)[0]
    finally:
        perf.send_signal(signal.SIGINT)
        perf.wait()
    read_samples(data, fold)
    return fold, done


def show(title, counter, total, each):
    print("\n" + title)
    for name, count in counter.most_common():
        share = 100 * count / total
        if share >= 0.5:
            print("  %5.1f %%  %6.3f ms  %s" % (share, count * each, name))


def report(fold, done):
    total = sum(fold.counts.values())
    each = 1000 / FREQUENCY / done["counted"]  # ms of a request
    by_role, by_topic = collections.Counter(), collections.Counter()
    for (role, what), count in fold.counts.items():
        by_role[role] += count
        by_topic[what] += count
    print("%d requests, one after another: p50 %.2f ms; %d samples, %.2f ms of"
          " CPU for each request" % (
              done["counted"], done["whole"]["p50"], total, total * each))
    show("by program", by_role, total, each)
    show("by what is being done", by_topic, total, each)
    for role, _ in by_role.most_common(4):
        own = collections.Counter({what: count for (whose, what), count
                                   in fold.counts.items() if whose == role})
        show(role, own, total, each)


def main():
    signal.signal(signal.SIGTERM, p.interrupt)
    if os.geteuid() != 0 or shutil.which("perf") is None:
        sys.exit("this takes root, and perf: apt-get install linux-perf")
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    with p.Place() as place, \
            place.service(IL_TUNE_API_RUNS="1000000") as service:
        report(*record(place, service, seconds))
    print()
    for name, (cpu_ms, time_ms) in zip(
            ("a fork that prints", "with namespaces of its own"),
            floor.measure()):
        print("floor: %s: CPU %.2f ms, time %.2f ms" % (name, cpu_ms, time_ms))


if __name__ == "__main__":
    main()
