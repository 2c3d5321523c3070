#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Code that tries to break each limit of a run, on the real engine."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from greedy import TAKES_THE_CELL  # noqa: E402
from service import Service  # noqa: E402
from tap import run, test  # noqa: E402

SECONDS = 4
service = Service(IL_TIMEOUT_SECONDS=str(SECONDS), IL_MEMORY="128m",
                  IL_TUNE_SPARE_CELLS="1",
                  IL_QUOTA="32m", IL_TUNE_FILES="500", IL_OUTPUT_LIMIT="200k",
                  IL_TUNE_PIDS="32", IL_USER_RATE="1000")


def py(code, **options):
    """Run code; returns the final text."""
    return service.run(code, **options)


def alive():
    """The sandbox works, and nothing but the cell itself runs in it."""
    text = py("import os\nprint(*sorted(int(p) for p in os.listdir('/proc')"
              " if p.isdigit()))")
    pids = text.split("```")[1].split("\n")[1].split()
    assert len(pids) <= 3, text


@test
def a_run_has_no_network():
    text = py("import socket\ns = socket.socket()\ns.settimeout(2)\n"
              "for host in '1.1.1.1', '172.17.0.1', '127.0.0.1':\n"
              "    try:\n        s.connect((host, 80))\n"
              "        print('REACHED', host)\n"
              "    except OSError as e:\n        print(e)\n"
              "try:\n    socket.getaddrinfo('example.org', 80)\n"
              "    print('REACHED')\n"
              "except OSError as e:\n    print(e)")
    assert "REACHED" not in text and "exit" not in text, text


@test
def nothing_outside_can_be_written():
    text = py(
        "import os\n"
        "for place in ('/', '/etc', '/usr/lib', '/root', '/run', '/run/inline',"
        " '/run/cell', '/var/tmp', '/proc/sys/kernel', '/sys', '/home', '/dev'):\n"
        "    try:\n"
        "        open(place + '/x', 'w').close()\n"
        "        print('WROTE', place)\n"
        "    except OSError:\n        pass\n"
        "for path in '/etc/passwd', '/proc/1/mem', '/proc/1/oom_score_adj',"
        " '/proc/sysrq-trigger', '/run/cell/cell.py':\n"
        "    try:\n"
        "        open(path, 'r+b').close()\n"
        "        print('WROTE', path)\n"
        "    except OSError:\n        pass\n"
        "print('tried')")
    assert "WROTE" not in text and "tried" in text, text


@test
def the_run_has_no_privileges():
    text = py("import os, pwd\nprint(*(pwd.getpwuid(n)[0] for n in "
              "(os.getuid(), os.geteuid())))\n"
              "for line in open('/proc/self/status'):\n"
              "    if line.startswith(('Cap', 'NoNewPrivs', 'Seccomp:')):\n"
              "        print(line.split())")
    assert "sandbox sandbox" in text, text
    for name in "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb":
        assert f"['{name}:', '0000000000000000']" in text, text
    assert "['NoNewPrivs:', '1']" in text and "['Seccomp:', '2']" in text


@test
def the_docker_socket_is_not_there():
    text = py("import os\nprint([p for p in ('/var/run/docker.sock',"
              " '/run/docker.sock') if os.path.exists(p)])")
    assert "[]" in text, text


@test
def a_fork_bomb_ends_and_leaves_nothing():
    text = py("import os\nwhile True:\n    try:\n        os.fork()\n"
              "    except OSError:\n        pass")
    assert "time limit" in text.lower(), text
    alive()


@test
def a_memory_bomb_ends_with_the_truth():
    text = py("x = []\nwhile True: x.append(bytearray(1 << 20))")
    assert "memory" in text.lower(), text
    alive()


@test
def memory_that_takes_the_cell_is_told_as_memory():
    text = py(TAKES_THE_CELL)
    assert "before\n" in text and "memory limit of 128 MiB" in text, text
    service.wait_logged("out of memory cell=")
    alive()


@test
def an_output_flood_is_ended():
    text = py("while True: print('x' * 1000)")
    assert "output limit" in text.lower(), text
    alive()


@test
def the_disk_quota_holds_while_code_runs():
    text = py("import os\n"
              "f = open('big', 'wb')\n"
              "try:\n"
              "    while True: f.write(b'x' * 65536); f.flush()\n"
              "except OSError as e:\n    print(e)\n"
              "print(os.stat('big').st_size <= 34 << 20)\n"
              "raise SystemExit(3)")
    assert "No space left" in text and "True" in text, text
    assert "quota is used up (32 MiB):" in text, text
    service.say("rm", name="big")
    alive()


@test
def the_file_count_holds_while_code_runs():
    text = py("import os\nos.mkdir('many')\n"
              "try:\n"
              "    for i in range(2000): open(f'many/{i}', 'w').close()\n"
              "    print('NO LIMIT')\n"
              "except OSError as e:\n    print(e)\n"
              "print(len(os.listdir('many')))\n"
              "raise SystemExit(3)")
    assert "NO LIMIT" not in text and "No space left" in text, text
    assert "quota is used up (500 files):" in text, text
    service.say("rm", name="many", recursive=True)


@test
def memory_file_systems_are_bounded():
    text = py("for place in '/tmp', '/dev/shm':\n"
              "    try:\n"
              "        with open(place + '/big', 'wb') as f:\n"
              "            for i in range(1024): f.write(bytes(1 << 20))\n"
              "        print('NO LIMIT')\n"
              "    except OSError as e:\n        print(e)\n")
    assert "NO LIMIT" not in text, text
    alive()


@test
def ignoring_sigterm_does_not_help():
    text = py("import signal, time\n"
              "for n in range(1, 32):\n"
              "    try: signal.signal(n, signal.SIG_IGN)\n"
              "    except (OSError, ValueError): pass\n"
              "print('begun', flush=True)\ntime.sleep(600)")
    assert "begun" in text and "time limit" in text.lower(), text
    alive()


@test
def double_forked_survivors_are_ended():
    text = py("import os, time\n"
              "if os.fork() == 0:\n"
              "    os.setsid()\n"
              "    if os.fork() == 0:\n"
              "        for fd in range(3): os.close(fd)\n"
              "        time.sleep(600)\n"
              "    os._exit(0)\n"
              "os.wait()\nprint('done')")
    assert "done" in text and "exit" not in text, text
    alive()


@test
def nothing_in_the_kernel_outlives_a_run():
    """Message queues are made without mq_open(), too: as files."""
    text = py("import os\n"
              "for place in '/dev/mqueue', '/dev/shm', '/tmp', '/code':\n"
              "    try: open(place + '/left', 'w').close()\n"
              "    except OSError: pass\n"
              "print('made')")
    assert "made" in text, text
    text = py("import os\nprint(sum((os.listdir(d) for d in ('/dev/mqueue',"
              " '/dev/shm', '/tmp')), []), os.listdir('/code'))")
    assert "[] ['main.py']" in text, text


@test
def a_child_that_holds_the_output_does_not_hold_the_run():
    text = py("import os, time\n"
              "if os.fork() == 0: time.sleep(600)\n"
              "print('parent')")
    assert "parent" in text and "exit" not in text, text
    alive()


@test
def sleeping_past_the_limit_is_ended():
    text = py("import time\nprint('zzz', flush=True)\ntime.sleep(600)")
    assert "zzz" in text and "time limit" in text.lower(), text


@test
def the_supervisor_cannot_be_harmed():
    text = py(
        "import os, signal, ctypes\n"
        "for n in range(1, 32):\n"
        "    try: os.kill(1, n)\n"
        "    except OSError: pass\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "print('ptrace', libc.ptrace(16, 1, 0, 0))\n"
        "for path in '/proc/1/mem', '/proc/1/environ', '/proc/1/maps':\n"
        "    try:\n"
        "        open(path, 'rb').read(1)\n        print('READ', path)\n"
        "    except OSError: pass\n"
        "try: print('FDS', os.listdir('/proc/1/fd'))\n"
        "except OSError: pass\n"
        "for fd in range(3, 1024):\n"
        "    try:\n"
        "        os.write(fd, b'forged')\n        print('OPEN', fd)\n"
        "    except OSError: pass\n"
        "print('survived')")
    assert "survived" in text and "ptrace -1" in text, text
    for word in "READ", "FDS", "OPEN":
        assert word not in text, text
    alive()


@test
def a_run_ends_with_its_true_reason():
    assert "exit 7" in py("raise SystemExit(7)")
    assert "SIGSEGV" in py("import os, signal\n"
                           "os.kill(os.getpid(), signal.SIGSEGV)")
    assert "SIGKILL" in py("import os\nos.kill(os.getpid(), 9)")
    assert "SIGABRT" in py("import os\nos.abort()")


@test
def another_sandbox_never_sees_this_one():
    service.create("bob")
    py("open('secret', 'w').write('alice only')")
    text = py("import os\nprint(os.listdir('.'), os.listdir('/tmp'))",
              user="bob")
    assert "secret" not in text, text


@test
def nothing_broke_discords_rules():
    service.assert_kept_discords_rules()


with service:
    service.create()
    run()
