#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What programs do with /proc, /dev/stdin and /dev/fd does the same in a plain
container, in a run of /v1 and in a session; and nothing of anybody else's is
seen there."""

import re
import subprocess

from apidriver import EXECUTE_ENV, ApiCell
from driver import DOCKER, IMAGE, N
from tap import run, test

cell = ApiCell()
session = ApiCell(kind="session")
commands = session.lease()
PLAIN = "proc-test-%s" % cell.name

BASH = {
    "process substitution feeds a loop":
        "n=0; while read l; do n=$((n + 1)); done < <(printf 'a\\nb\\n'); "
        "echo $n",
    "two of them are compared":
        "diff <(printf '1\\n2\\n') <(printf '1\\n3\\n'); echo $?",
    "one is written to": "echo x | tee >(cat >/tmp/t.$$) >/dev/null; sleep .2; "
                         "cat /tmp/t.$$",
    "one is named": "f() { cat \"$1\"; }; f <(echo named)",
    "one is sourced": "source <(echo 'A=5'); echo $A",
    "mapfile": "mapfile -t a < <(printf '%s\\n' p q r); echo ${#a[@]} ${a[2]}",
    "/dev/stdin": "printf 'in\\n' | cat /dev/stdin",
    "/dev/stdin of a redirection": "echo r >/tmp/r.$$; cat /dev/stdin </tmp/r.$$",
    "/dev/stdout": "echo out >/dev/stdout",
    "/dev/stderr": "echo err >/dev/stderr",
    "/dev/fd/N": "exec 3< <(echo three); cat /dev/fd/3; exec 3<&-",
    "a here string through /dev/fd": "cat /dev/fd/3 3<<<string",
    "a here document": "cat <<E\n$((1 + 1))\nE",
    "a here document in a loop":
        "while read a b; do echo $b $a; done <<'E'\n1 2\n3 4\nE",
    "descriptors are listed": "ls /dev/fd/ | sort | tr '\\n' ' '",
    "tee to the terminal's place": "echo t | tee /dev/stderr",
    "awk reads /dev/stdin": "echo '1 2' | awk '{print $2}' /dev/stdin",
    "awk writes /dev/stderr": "awk 'BEGIN {print \"e\" > \"/dev/stderr\"}'",
    "sort of /dev/stdin": "printf '2\\n1\\n' | sort /dev/stdin | tr '\\n' ,",
    "a file that is a pipe": "[ -p /dev/stdin ] && echo pipe; "
                             "echo | { [ -p /dev/stdin ] && echo pipe; }",
    "cp of /dev/stdin": "echo c | cp /dev/stdin /tmp/c.$$; cat /tmp/c.$$",
    "its own name": "cat /proc/$$/comm; cat /proc/self/comm",
    "its own arguments": "tr '\\0' ' ' </proc/self/cmdline",
    "its own environment": "A=b env -i A=b cat /proc/self/environ | tr '\\0' ,",
    "its program": "readlink -f /proc/$$/exe; readlink /proc/self/exe",
    "its folder": "cd /tmp; readlink /proc/$$/cwd",
    "its limits": "grep -c 'Max open files' /proc/self/limits",
    "no more rights": "grep -E 'NoNewPrivs|CapEff|CapPrm' /proc/self/status",
    "a child that is there, and gone":
        "sleep 9 & p=$!; [ -d /proc/$p ] && echo there; kill $p; wait $p; "
        "[ -d /proc/$p ] || echo gone",
    "nproc": "[ $(nproc) -ge 1 ] && echo some",
    "is ps installed": "type -P ps >/dev/null; echo $?",
    "which kernel": "cut -d' ' -f1,2 /proc/version",
    "one processor at least":
        "[ $(grep -c ^processor /proc/cpuinfo) -ge 1 ] && echo yes",
    "memory": "grep -o '^Mem[A-Z][a-z]*:' /proc/meminfo",
    "mounts": "grep -c ' / ' /proc/mounts",
    "xargs by four": "printf '%s\\n' 1 2 3 4 | xargs -P4 -n1 | sort | tr '\\n' ' '",
    "a coprocess": "coproc cat; echo co >&${COPROC[1]}; read -u ${COPROC[0]} l; "
                   "echo $l",
    "a FIFO": "mkfifo /tmp/f.$$; echo f >/tmp/f.$$ & cat /tmp/f.$$",
    "exit of a pipeline": "false | true; echo ${PIPESTATUS[*]}",
}

# On standard input: "3\n1 2 3\nabc\n".
PYTHON = {
    "open(0)": "print(open(0).read().split())",
    "open('/dev/stdin')": "print(open('/dev/stdin').read().split())",
    "/dev/fd/0": "print(sum(map(int, open('/dev/fd/0').readlines()[1].split())))",
    "/proc/self/fd/0": "print(open('/proc/self/fd/0').readline())",
    "input": "print([int(x) for x in [input(), input()][1].split()])",
    "sys.stdin": "import sys\nprint([l.strip() for l in sys.stdin])",
    "sys.stdin.buffer": "import sys\nprint(sys.stdin.buffer.read().split())",
    "os.read": "import os\nprint(os.read(0, 99))",
    "readlines and iter": "import sys\nd = iter(sys.stdin.read().split())\n"
                          "print(int(next(d)), [int(next(d)) for _ in '123'])",
    "fileinput": "import fileinput\nprint([l for l in fileinput.input('-')])",
    "numpy's way": "import io, os\nprint(io.BytesIO(os.read(0, os.fstat(0).st_size"
                   " or 99)).readline())",
    "print to /dev/stdout": "print('x', file=open('/dev/stdout', 'w'))",
    "print to /dev/stderr": "print('x', file=open('/dev/stderr', 'w'))",
    "write to 1": "import os\nos.write(1, b'o'); os.write(2, b'e')",
    "subprocess reads": "import subprocess\nprint(subprocess.run(['cat', "
                        "'/dev/stdin'], input=b'sub', capture_output=True))",
    "subprocess gets a descriptor":
        "import os, subprocess\nr, w = os.pipe()\nos.write(w, b'fd'); os.close(w)\n"
        "print(subprocess.check_output(['cat', '/dev/fd/%d' % r], pass_fds=[r]))",
    "subprocess of a shell":
        "import subprocess\nprint(subprocess.check_output(['bash', '-c', "
        "'cat <(echo 1) <(echo 2)']))",
    "a pipeline": "import subprocess as s\np = s.Popen(['echo', 'p'], stdout=-1)\n"
                  "print(s.check_output(['cat'], stdin=p.stdout), p.wait())",
    "a pool of processes": "from multiprocessing import Pool\n"
                           "with Pool(2) as p: print(p.map(abs, [-1, -2, -3]))",
    "processes that are executed":
        "import concurrent.futures as f, multiprocessing as m\n"
        "if __name__ == '__main__':\n"
        "    with f.ProcessPoolExecutor(2, m.get_context('spawn')) as p:\n"
        "        print(list(p.map(abs, [-1, -2])))",
    "a fork server": "import multiprocessing as m\n"
                     "if __name__ == '__main__':\n"
                     "    with m.get_context('forkserver').Pool(2) as p:\n"
                     "        print(p.map(abs, [-4, -5]))",
    "a queue of processes":
        "import multiprocessing as m\n"
        "q = m.Queue()\np = m.Process(target=q.put, args=(5,)); p.start()\n"
        "print(q.get()); p.join()",
    "shared memory": "from multiprocessing import shared_memory\n"
                     "s = shared_memory.SharedMemory(create=True, size=9)\n"
                     "s.buf[0] = 7; print(s.buf[0]); s.close(); s.unlink()",
    "fork and wait": "import os\nif os.fork() == 0: os._exit(3)\n"
                     "print(os.waitstatus_to_exitcode(os.wait()[1]))",
    "threads": "from concurrent.futures import ThreadPoolExecutor as T\n"
               "print(list(T(4).map(abs, range(-3, 0))))",
    "its program": "import os, sys\n"
                   "print(os.readlink('/proc/self/exe') == "
                   "os.path.realpath(sys.executable))",
    "its number": "import os\nprint(int(open('/proc/self/stat').read().split()[0])"
                  " == os.getpid(), os.path.exists('/proc/%d/status' % os.getpid()))",
    "its descriptors": "import os\nprint(sorted(os.listdir('/proc/self/fd')))",
    "its memory": "print(any(l.startswith('VmRSS') for l in "
                  "open('/proc/self/status')), '[stack]' in "
                  "open('/proc/self/maps').read())",
    "its threads": "import os, threading\ne = threading.Event()\n"
                   "threading.Thread(target=e.wait).start()\n"
                   "print(len(os.listdir('/proc/self/task'))); e.set()",
    "a terminal's name": "import os\ntry: os.ttyname(0)\n"
                         "except OSError as e: print(e.errno)",
    "processors": "import os\nprint(os.cpu_count() >= 1, "
                  "len(os.sched_getaffinity(0)) >= 1)",
    "a loop over the network":
        "import socket\ns = socket.create_server(('127.0.0.1', 0))\n"
        "c = socket.create_connection(s.getsockname()); a = s.accept()[0]\n"
        "a.send(b'x'); print(c.recv(1))",
    "a port below 1024": "import socket\n"
                         "print(socket.create_server(('127.0.0.1', 80)))",
    "asyncio": "import asyncio\nasync def f():\n"
               "    p = await asyncio.create_subprocess_exec('cat', '/dev/stdin',"
               " stdin=-1, stdout=-1)\n"
               "    return await p.communicate(b'a')\nprint(asyncio.run(f()))",
}
STDIN = b"3\n1 2 3\nabc\n"


def start_plain():
    subprocess.run([DOCKER, "run", "-d", "--rm", "--name", PLAIN,
                    "--network", "none", "--user", "65532:65532",
                    "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
                    "--workdir", "/workspace", "--tmpfs",
                    "/workspace:uid=65532,gid=65532", "--entrypoint", "sleep",
                    IMAGE, "1000"], check=True, stdout=subprocess.DEVNULL)


def in_plain(*argv, stdin=b""):
    done = subprocess.run([DOCKER, "exec", "-i", *(
        word for entry in EXECUTE_ENV for word in ("--env", entry)), PLAIN,
        *argv], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.stdout, done.stderr, done.returncode


def ends(told):
    return told.stdout, told.stderr, told.status


def bash(command, wait=True):
    return cell.once(dict(op="BASH", source=command.encode(), wall_ms=20000,
                          output_max=100000, env=EXECUTE_ENV,
                          folder="/workspace"), wait)


def in_session(command, **fields):
    return ends(commands.request("BASH", source=command.encode(), wall_ms=20000,
                                 output_max=100000, env=EXECUTE_ENV, **fields))


def has_bash():
    return b"no shell" not in (commands.request(
        "BASH", source=b"test $BASH_VERSION", wall_ms=20000, output_max=99,
        env=EXECUTE_ENV).text or "").encode() and in_session(
            "test -n \"$BASH_VERSION\"")[2] == 0


@test
def idioms_of_bash_do_the_same_everywhere():
    if not has_bash():
        return
    for name, command in BASH.items():
        plain = in_plain("bash", "-c", command)
        assert plain[0] or plain[1], (name, plain)
        assert ends(bash(command)) == plain, (name, bash(command), plain)
        assert in_session(command) == plain, (name, in_session(command), plain)


@test
def idioms_of_python_do_the_same_everywhere():
    for name, code in PYTHON.items():
        in_plain("sh", "-c", "cat >main.py", stdin=code.encode())
        plain = in_plain("python3", "main.py", stdin=STDIN)
        assert plain[0] or plain[1], (name, plain)
        told = cell.run(code, path="main.py", echo=0, stdin=STDIN,
                        inputs=[("main.py", code.encode())])
        assert steady(ends(told)) == steady(plain), (name, told, plain)
        told = commands.request(
            "RUN", path="main.py", inputs=[("main.py", code.encode())],
            stdin=STDIN, wall_ms=20000, output_max=100000, env=EXECUTE_ENV,
            folder="/workspace")
        assert steady(ends(told)) == steady(plain), (name, told, plain)


def steady(ended):
    """Without the numbers of descriptors."""
    return tuple(re.sub(rb"fd=\d+", b"", part) if isinstance(part, bytes)
                 else part for part in ended)


@test
def eval_has_none_of_it():
    told = cell.eval(["-c", "import os\n"
                      "print(sorted(os.listdir('/proc')), os.path.exists("
                      "'/proc/self'), os.path.exists('/dev/stdin'), "
                      "os.path.exists('/dev/fd'))"])
    assert told.output == (b"['cpuinfo', 'filesystems', 'meminfo', 'version'] "
                           b"False False False\n"), told


# What a run finds in its /proc, by name, but for itself.
LOOK = r"""
import os
pids = {name for name in os.listdir('/proc/.pids') if name.isdigit()}
print(pids == {str(os.getpid())}, sorted(set(os.listdir('/proc/.pids')) - pids))
print(sorted(name for name in os.listdir('/proc') if not name.isdigit()))
for name in sorted(map(int, filter(str.isdigit, os.listdir('/proc')))):
    if os.path.exists('/proc/%d' % name) != (name == os.getpid()): print(name)
for pid in 1, os.getppid(), 3, 400:
    for base in '/proc/', '/proc/.pids/':
        for name in 'environ', 'cmdline', 'fd', 'mem', 'root', 'status', 'net':
            try: os.stat('%s%d/%s' % (base, pid, name)); print(pid, name)
            except OSError: pass
"""


@test
def a_run_sees_its_own_processes_and_none_of_the_kernels_files():
    told = cell.run(LOOK, echo=0)
    assert told.stdout.decode().splitlines() == [
        "True ['self', 'thread-self']",
        "['.pids', 'cpuinfo', 'filesystems', 'meminfo', 'mounts', 'net', "
        "'self', 'stat', 'thread-self', 'version']"], told
    told = bash("sleep 9 & set -- /proc/.pids/[0-9]*; echo $#")
    assert told.stdout == b"2\n", told


@test
def what_docker_masks_is_not_there():
    told = cell.run("""
import os
for name in ('kcore', 'keys', 'key-users', 'timer_list', 'sysrq-trigger', 'sys',
             'kmsg', 'kallsyms', 'interrupts', 'acpi', 'bus', 'fs', 'irq',
             'scsi', 'asound', 'latency_stats', 'sched_debug', 'vmstat',
             'locks', 'loadavg', 'diskstats', 'sysvipc', 'slabinfo'):
    for path in '/proc/' + name, '/proc/.pids/' + name:
        if os.path.lexists(path): print(path)
for path in '/sys/firmware', '/sys/devices/virtual', '/sys/kernel', '/sys/fs':
    if os.path.exists(path): print(path)
""", echo=0)
    assert (told.status, told.output) == (0, b""), told


@test
def nothing_there_can_be_changed():
    told = cell.run(r"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for path in '/proc', '/proc/.pids':
    for make in os.mkdir, lambda p: open(p, 'w'):
        try: make(path + '/x'); print(path)
        except OSError: pass
    print(libc.umount2(path.encode(), 2), ctypes.get_errno())
def call(*args):
    print(libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a
                         for a in args]), ctypes.get_errno())
here = os.open('/proc/.pids', os.O_PATH)
call(429, here, b'', -100, b'/tmp', 4)          # move_mount
call(429, here, b'', -100, b'/tmp', 0)
call(428, here, b'', 0x81001)                   # open_tree
call(430, b'proc', 1)                           # fsopen
call(272, 0x40000000)                           # unshare the network
for name in sorted(os.listdir('/proc/self/ns')):
    if libc.setns(os.open('/proc/self/ns/' + name, os.O_RDONLY), 0) == 0:
        print(name)
for name in 'uid_map', 'setgroups', 'projid_map', 'attr/current':
    try:
        with open('/proc/self/' + name, 'w') as f: f.write('0 0 1')
        print(name)
    except OSError: pass
""", echo=0)
    assert told.stdout == b"-1 1\n" * 7, told


# All that tells of what was sent; the sockets of now have other numbers.
COUNTERS = r"""
import os
for name in 'dev', 'snmp', 'snmp6', 'netstat', 'tcp', 'tcp6', 'udp', 'udp6':
    try: print(name, open('/proc/self/net/' + name).read())
    except OSError: pass
print(len(open('/proc/self/net/unix').readlines()))
"""
TRAFFIC = {
    "to nobody": "s = socket.socket(type=socket.SOCK_DGRAM)\n"
                 "s.sendto(b'x', ('127.0.0.1', 9))",
    "a connection": "s = socket.create_server(('127.0.0.1', 4711))\n"
                    "c = socket.create_connection(('127.0.0.1', 4711))\n"
                    "a = s.accept()[0]; a.close(); c.close()",
    "to where no way leads": "s = socket.socket(type=socket.SOCK_DGRAM)\n"
                             "try: s.sendto(b'x', ('192.0.2.1', 9))\n"
                             "except OSError: pass",
    "by IPv6": "s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\n"
               "try: s.sendto(b'x', ('::1', 9))\nexcept OSError: pass",
    "a socket that nobody closes": "s = socket.create_server(('127.0.0.1', 4712))"
                                   "\nif os.fork() == 0: time.sleep(60)",
}


@test
def its_network_has_counted_nothing_before():
    fresh = cell.run(COUNTERS, echo=0).stdout
    assert b"lo:       0       0" in fresh, fresh
    for name, code in TRAFFIC.items():
        code = "import os, socket, time\n" + code
        for left in (cell.run(code, echo=0), cell.eval(["-c", code])):
            assert left.status == 0, (name, left)
            told = cell.run(COUNTERS, echo=0)
            assert told.stdout == fresh, (name, [
                pair for pair in zip(told.stdout.split(b"\n"),
                                     fresh.split(b"\n")) if len({*pair}) > 1])
    told = cell.run(TRAFFIC["a connection"].join(("import socket\n", COUNTERS)),
                    echo=0)
    assert told.stdout != fresh, "what looks would find it"


@test
def runs_that_send_nothing_share_it():
    code = "import os; print(os.readlink('/proc/self/ns/net'))"
    names = [cell.run(code, echo=0).stdout for _ in range(20)]
    assert len(set(names)) == 1 and names[0].startswith(b"net:"), names


@test
def its_pids_are_the_same_each_time():
    # by one write: print() makes several, and the child's come between them
    code = "import os; told = os.getpid(), os.getppid(), os.fork()\n" \
           "if told[2]: os.write(1, b'%d %d %d' % told)"
    told = {cell.run(code, echo=0).stdout for _ in range(9)}
    assert told == {b"2 0 3"}, told


@test
def either_kind_of_run_may_come_first():
    look = "import os; print(os.path.exists('/proc/self/stat'))"
    with ApiCell() as other:
        for kind in "veevvevvv" + "e" * 12 + "vev":
            told = (other.run(look, echo=0) if kind == "v" else
                    other.eval(["-c", look]))
            assert told.stdout == b"%r\n" % (kind == "v"), (kind, told)
            assert told.idle == {}, told


@test
def a_port_of_one_run_is_free_in_the_next():
    serve = """
import socket
s = socket.socket()
s.bind(('127.0.0.1', 5000))
s.listen()
c = socket.create_connection(('127.0.0.1', 5000))
a, _ = s.accept()
a.close()           # this side is the one that keeps the port
c.recv(1)
print('served')
"""
    with ApiCell() as other:
        for kind in "ee" + "v" + "e" * 12 + "vvee":
            told = (other.run(serve, echo=0) if kind == "v" else
                    other.eval(["-c", serve]))
            assert told.stdout == b"served\n", (kind, told)


@test
def where_the_engine_masks_parts_of_it_runs_go_on_without():
    with ApiCell(masked=True) as other:
        ready = other.ready[1]
        assert ready["ISOLATION"] == N.ISOLATION_RUN, ready
        assert ready["TEXT"].startswith("mount proc: EPERM"), ready
        told = other.run("import os; print(os.path.exists('/proc/self'), "
                         "sorted(os.listdir('/proc')))", echo=0)
        assert told.stdout == (b"False ['cpuinfo', 'filesystems', 'meminfo', "
                               b"'version']\n"), told
    assert "TEXT" not in cell.ready[1], cell.ready


try:
    start_plain()
    run()
finally:
    subprocess.run([DOCKER, "rm", "-f", PLAIN], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    cell.close()
    session.close()
