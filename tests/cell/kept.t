#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An interpreter that is kept for its owner's next run: what lives on, what ends
it, and that nothing of a user's runs between two runs."""

import contextlib
import os
import signal
import time

from driver import N, Cell, unpack, wait_until
from tap import run, test

MIB = 1 << 20
# A timer that wakes its process, which is stopped; again and again, as it may
# be late in being stopped.
WAKES = """
import ctypes, os, signal
class Event(ctypes.Structure):
    _fields_ = [("value", ctypes.c_void_p), ("signal", ctypes.c_int),
                ("notify", ctypes.c_int), ("rest", ctypes.c_char * 48)]
timer = ctypes.c_void_p()
event = Event(None, signal.SIGCONT, 0, b"")
libc = ctypes.CDLL(None)
assert libc.timer_create(1, ctypes.byref(event), ctypes.byref(timer)) == 0
when = (ctypes.c_long * 4)(0, 300000000, 0, 300000000)
assert libc.timer_settime(timer, 0, when, None) == 0
"""


def again(source, keep=1, idle=True, **fields):
    """A run in a lease of its own; is anything kept, does the cell say?"""
    with cell.lease(keep=1) as lease:
        told = lease.run(source, keep=keep, merge=1, **fields)
    if idle:
        kind, said = unpack(cell.control.recv(65536))
        assert kind == "IDLE" and said.get("KEPT") == told.kept, (said, told)
    return told


def fresh():
    """Nothing is kept."""
    told = again("", keep=0)
    assert told.kept is None
    return told


def start(source="", **fields):
    fresh()
    told = again(source, **fields)
    assert (told.kept, told.went_on) == (1, None), told
    return told


def ends(told):
    """What was kept is gone, and nobody need be told why."""
    assert told.kept is None, told
    told = again("print('here' in globals())")
    assert (told.output, told.went_on, told.kept, told.ended) == (
        b"False\n", None, 1, None), told


@test
def one_that_leaves_no_room_for_a_process_is_told_as_that():
    for fill in ("import os\nx = 1\nwhile True:\n"       # never waited for
                 "    try:\n        if os.fork() == 0: os._exit(0)\n"
                 "    except OSError: break\n",
                 "import threading\nx = 1\nwhile True:\n"
                 "    try: threading.Thread(target=threading.Event().wait,\n"
                 "                          daemon=True).start()\n"
                 "    except RuntimeError: break\n"):
        for files in (0, 100):      # that a child of PID 1's would send
            fresh()
            told = again(fill + "open('new%d', 'w').write('n')" % files,
                         idle=False, collect_files=files, collect_bytes=1000,
                         collect_total=9999)
            assert told.reason == N.REASON_EXIT, (fill, told)
            assert files == 0 or told.files == {b"new100": b"n"}, told
            kind, said = unpack(cell.control.recv(65536))
            assert kind == "IDLE" and "RETIRE" not in said, said
            told = again("print('x' in globals())")
            assert (told.reason, told.output) == (N.REASON_EXIT, b"False\n"), (
                fill, told)
            assert told.ended == N.KEPT_PROCESSES, told


@test
def variables_imports_and_the_current_folder_live_on():
    start("import os, json as j\nx = 1\nos.mkdir('d')\nos.chdir('d')\n"
          "def f(): return x\nprint(os.getpid())")
    told = again("x += 1; print(f(), j.dumps([]), os.getcwd()); x", echo=1)
    assert (told.output, told.went_on) == (b"2 [] /workspace/d\n2\n", 1), told
    assert told.kept_names == 4 and 4 * MIB < told.kept_bytes < 64 * MIB, told
    told = again("print(_ + x, __name__, __file__)")
    assert told.output == b"4 __main__ /code/main-3.py\n", told
    # who goes to another folder meanwhile is there
    assert again("print(os.getcwd())", cwd="").output == b"/workspace/d\n"
    assert again("print(os.getcwd())", cwd="d").output == b"/workspace/d\n"
    assert again("print(os.getcwd())", cwd="").output == b"/workspace\n"


@test
def a_file_runs_among_the_same_variables():
    start("import os; os.makedirs('p', exist_ok=True)\n"
          "open('p/a.py', 'w').write('import b; import sys;"
          " print(x, b.y, __file__, sys.argv)')\n"
          "open('p/b.py', 'w').write('y = 2')\nx = 1")
    told = again(None, path="p/a.py", args=["z"])
    assert told.output == (
        b"1 2 /workspace/p/a.py ['/workspace/p/a.py', 'z']\n"), told
    assert again("import b; print(x, b.y)").output == b"1 2\n"


@test
def one_that_is_not_asked_to_be_kept_is_the_last():
    start("import atexit; atexit.register(print, 'end'); here = 1")
    told = again("print(here)", keep=0)
    assert (told.output, told.kept, told.went_on) == (b"1\nend\n", None, 1)
    ends(told)


@test
def nothing_is_kept_unless_the_broker_says_so():
    fresh()
    with cell.lease() as lease:
        told = lease.run("x = 1", keep=1)
        assert told.kept is None and told.status == 0, told
    assert cell.idle()


@test
def errors_and_exits_are_the_end_of_a_run_only():
    start("def f():\n    return 1 / 0  # here\n")
    for source, status, words in (
            ("f()", 1, (b"File \"/code/main.py\", line 2, in f\n    return 1 /"
                        b" 0  # here\n", b"ZeroDivisionError")),
            ("x = (", 1, (b"SyntaxError", b"x = (")),
            ("import sys; sys.exit(3)", 3, ()),
            ("sys.exit('bye')", 1, (b"bye\n",)),
            ("exit()", 0, ()),
            ("raise KeyboardInterrupt", 1, (b"KeyboardInterrupt",)),
            ("import os, signal; os.kill(os.getpid(), signal.SIGINT)", 1,
             (b"KeyboardInterrupt",)),
            ("sys.excepthook = lambda *a: print('hook', a[1]); [][1]", 1,
             (b"hook list index out of range\n",)),
            ("del sys.excepthook; [][1]", 1, (b"IndexError",)),
            ("import inspect; print(inspect.getsource(f))", 0, (b"# here",))):
        told = again(source)
        assert (told.reason, told.status, told.kept, told.went_on) == (
            N.REASON_EXIT, status, 1, 1), (source, told)
        assert all(word in told.output for word in words), (source, told)
        assert b"/run/cell" not in told.output, told


@test
def an_interpreter_that_is_gone_is_not_kept():
    for source, reason, value in (
            ("os._exit(4)", "status", 4),
            ("os.execv('/bin/true', ['true'])", "status", 0),
            ("os.kill(os.getpid(), 11)", "signal", 11),
            ("os.abort()", "signal", 6)):
        start("import os; here = 1")
        told = again(source)
        assert getattr(told, reason) == value and told.went_on == 1, told
        ends(told)


@test
def limits_end_it():
    for source, reason in (
            ("while True: pass", N.REASON_TIME),
            ("print('x' * 3000)", N.REASON_OUTPUT),
            ("import os\nwhile os.write(1, b'x' * 3000): pass",
             N.REASON_OUTPUT),
            ("a = [bytearray(1 << 20) for _ in range(400)]",
             N.REASON_MEMORY)):
        start("here = 1")
        told = again(source, wall_ms=2000, output_max=2000)
        assert (told.reason, told.went_on) == (reason, 1), told
        ends(told)


@test
def time_and_cpu_are_those_of_a_run():
    start("import os, time\nt = time.process_time()\n"
          "while time.process_time() < t + 0.4: pass")
    told = again("t = time.process_time()\n"
                 "while time.process_time() < t + 0.1: pass")
    assert 100000 <= told.cpu_us < 300000 and told.wall_us >= 100000, told
    told = again("if not (pid := os.fork()):\n"
                 "    t = time.process_time()\n"
                 "    while time.process_time() < t + 0.3: pass\n"
                 "    os._exit(0)\n"
                 "os.waitpid(pid, 0)")
    assert 250000 <= told.cpu_us < 450000, told
    told = again("os._exit(0)")
    assert told.cpu_us < 100000, told


@test
def each_run_has_streams_of_its_own():
    start("import os, sys, io")
    for source in ("os.close(0); os.close(1); os.close(2)",
                   "os.closerange(0, 3); f = open('/dev/null'); g = f",
                   "os.close(1)", "os.close(0); os.close(2)",
                   "sys.stdout = io.StringIO(); sys.stdin = None",
                   "sys.stdout = sys.stderr = object()",
                   "sys.stdout.close(); sys.stdin.close()",
                   "del sys.stdout, sys.__stdout__",
                   "sys.stdout.reconfigure(line_buffering=False)",
                   "os.dup2(os.open('/dev/null', os.O_WRONLY), 1)",
                   "import builtins; builtins.print = None; del builtins.print"
                   ):
        assert again(source).kept == 1, source
        told = again("sys.stdout.write(input() + sys.stdin.read())\n"
                     "assert f if 'f' in globals() else True",
                     stdin=b"one\ntwo\n")
        assert (told.output, told.kept) == (b"onetwo\n", 1), (source, told)
    assert again("sys.stdout.write(repr(sys.stdin.read()))").output == b"''"


@test
def what_it_has_started_ends_and_its_threads_stand_still():
    start("""
import os, subprocess, threading, time
def count():
    while True:
        with open('count', 'a') as file:
            file.write('x')
threading.Thread(target=count, daemon=True).start()
late = threading.Thread(target=lambda: (time.sleep(0.3), print('late')))
late.start()
subprocess.Popen(['sleep', '1000'])
subprocess.Popen(['sleep', '1001'], start_new_session=True)
if not os.fork():
    os.setsid()
    for _ in range(3): os.fork()
    while True: pass
print(os.getpid())
""")
    with cell.lease(keep=1) as lease:
        one = lease.ask("STAT", path="count").entries[0]["SIZE"]
        stopped = stopped_processes()
        assert len(stopped) == 1, stopped
        time.sleep(0.3)     # any of them would have written
        assert lease.ask("STAT", path="count").entries[0]["SIZE"] == one
    assert cell.idle()
    told = again("time.sleep(0.2); print(os.path.getsize('count') > %d)\n"
                 "n = [p for p in os.listdir('/proc') if p.isdigit()]\n"
                 "n = [open('/proc/%%s/stat' %% p).read().split()[2]"
                 " for p in n]; print(len(n) - n.count('Z'))" % one)
    assert told.output == b"True\n2\n", told


def stopped_processes():
    """Of those in the cell, who stands still."""
    found = []
    for pid in cell.processes():
        with contextlib.suppress(OSError), open("/proc/%d/stat" % pid) as file:
            if file.read().rpartition(")")[2].split()[0] == "T":
                found.append(pid)
    return found


@test
def a_thread_that_is_no_daemon_is_waited_for():
    told = start("import threading, time\ndef f(): time.sleep(0.3); print(1)\n"
                 "threading.Thread(target=f).start()")
    assert told.output == b"1\n", told


@test
def one_that_wakes_by_itself_is_killed():
    fresh()
    pid = cell.spare()
    told = again(WAKES + "here = 1")
    assert told.kept == 1, told
    # it may be over before anybody could see it stand still
    wait_until(lambda: pid not in cell.processes())
    told = again("print('here' in globals())")
    assert (told.output, told.went_on, told.ended) == (
        b"False\n", None, N.KEPT_DIED), told
    assert again("").ended is None, "told once"


@contextlib.contextmanager
def standing_still(pid):
    """Has it time to do what another process would keep it from?"""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@test
def what_one_that_wakes_has_made_is_killed_too():
    fresh()
    root = cell.root_pid()
    told = again(WAKES.replace("0, 300000000, 0, 300000000", "0, 0, 2, 0") + """
# and by then a thread of the C library's, which waits for no interpreter, is to
# make a process
import struct
command = ctypes.create_string_buffer(b"exec sleep 1000")
system = ctypes.cast(libc.system, ctypes.c_void_p).value
event = Event(ctypes.addressof(command), 0, 2, struct.pack("QQ", system, 0))
assert libc.timer_create(1, ctypes.byref(event), ctypes.byref(timer)) == 0
assert libc.timer_settime(timer, 0, when, None) == 0
""")
    assert told.kept == 1, told
    wait_until(lambda: len(cell.processes()) == 3)
    with standing_still(root):
        wait_until(lambda: len(cell.processes()) == 4)
    wait_until(lambda: len(cell.processes()) == 2)
    assert again("").ended == N.KEPT_DIED


@test
def one_that_wakes_while_files_are_sent_holds_nobody_up():
    fresh()
    pid = cell.spare()
    with cell.lease(keep=1) as lease:
        lease.start_run(WAKES + """
import threading
open('large', 'wb').truncate(4 << 20)
def stop_others():
    while True:
        try: os.kill(-1, signal.SIGSTOP)
        except OSError: pass
threading.Thread(target=stop_others, daemon=True).start()
""", keep=1, collect_files=5, collect_bytes=1 << 22, collect_total=1 << 22)
        # meanwhile nobody reads what is sent
        wait_until(lambda: pid not in cell.processes())
        told = lease.finish()
    assert told.kept == 1 and len(told.files[b"large"]) == 4 << 20, told
    assert unpack(cell.control.recv(65536)) == ("IDLE", {})


@test
def a_process_whose_first_thread_is_over_ends_too():
    start("""
import os, threading, time, _thread, ctypes
child = os.fork()
if not child:
    _thread.start_new_thread(time.sleep, (1000,))
    ctypes.CDLL(None).pthread_exit(None)
about = '/proc/%d' % child
while ') Z' not in open(about + '/stat').read():
    time.sleep(0.01)
print(len(os.listdir(about + '/task')))
""")
    told = again("print(len(os.listdir(about + '/task')))")
    assert told.output == b"1\n", told     # its parent has not waited for it


@test
def one_that_says_it_and_hangs_up_is_not_kept():
    fresh()
    pid = cell.spare()
    with cell.lease(keep=1) as lease:
        lease.start_run("import os, time\nprint(1, flush=True)\n"
                        "while not os.path.exists('go'): time.sleep(0.01)\n"
                        "os.write(1000, bytes(16)); os.close(1000)\n"
                        "time.sleep(1000)", keep=1)
        while lease.frame()[0] != "OUTPUT":
            pass
        with standing_still(cell.root_pid()):
            open("/proc/%d/root/workspace/go" % pid, "w").close()
            wait_until(lambda: not os.path.exists("/proc/%d/fd/1000" % pid))
        told = lease.finish()
    assert (told.status, told.kept) == (0, None), told
    assert cell.idle()


@test
def what_it_says_by_itself_ends_its_own_run():
    word = "os.write(%d, (%%d).to_bytes(8, 'little') + bytes(8))" % 1000
    begin = "import os, time; here = 1\n"
    # in its middle, twice
    told = start(begin + "print(1)\n" + word % 7 + "\n" + word % 8 +
                 "\ntime.sleep(100)\nprint('never')")
    assert (told.output, told.status) == (b"1\n", 7), told
    # It goes on where it was, and has said the second word before it stopped,
    # which is forgotten, or says it now.
    told = again("", wall_ms=1000)
    assert told.went_on == 1 and b"never" not in told.output, told
    assert told.reason == N.REASON_TIME or told.status == 8, told
    for nonsense in (word % 256, "os.write(1000, b'x')",
                     "os.write(1000, b'x' * 4000)"):
        fresh()
        told = again(begin + nonsense + "\ntime.sleep(100)")
        assert told.kept is None, told
        ends(told)
    # without a way to say it, it ends as any other
    fresh()
    told = again("import os; os.closerange(3, 1024); print(1)")
    assert (told.output, told.status, told.kept) == (b"1\n", 0, None), told
    # who has no room for what it is sent
    start("import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))")
    told = again("print(1)")
    assert told.kept is None, told
    ends(told)


@test
def a_forked_child_does_not_speak_for_it():
    told = start("import os\nprint(0, flush=True)\nif os.fork():\n"
                 "    os.wait()\n    me = 'parent'\nelse:\n    me = 'child'")
    assert told.output == b"0\n" and told.kept == 1, told
    assert again("print(me)").output == b"parent\n"
    told = again("if not os.fork(): raise ValueError(5)\nprint(os.wait()[1])")
    assert b"ValueError: 5" in told.output, told
    assert told.output.endswith(b"256\n") and told.status == 0, told


@test
def files_are_looked_at_beside_it():
    start("x = 1; open('made', 'w').write('abc')")
    with cell.lease() as lease:
        told = lease.ask("READ", path="made", max_bytes=10)
        assert list(told.files.values()) == [b"abc"], told
        told = lease.ask("WRITE", path="m.py", content="v = 7")
        assert told.reason == N.REASON_EXIT, told
    assert unpack(cell.control.recv(65536)) == ("IDLE", {"KEPT": 1})
    told = again("import m; print(x, m.v)\nopen('new', 'w').write('n')",
                 collect_files=5, collect_bytes=100, collect_total=1000)
    assert told.output == b"1 7\n" and told.files == {b"new": b"n"}, told


@test
def several_runs_in_one_lease():
    fresh()
    with cell.lease(keep=1) as lease:
        for i in range(5):
            told = lease.run("n = globals().get('n', 0) + 1; print(n)", keep=1)
            assert told.output == b"%d\n" % (i + 1), told
    assert unpack(cell.control.recv(65536)) == ("IDLE", {"KEPT": 1})


@test
def who_hangs_up_ends_it():
    start("here = 1; import time, os")
    with cell.lease(keep=1) as lease:
        lease.start_run("print(1, flush=True); time.sleep(100)", keep=1)
        while lease.frame()[0] != "OUTPUT":
            pass
    assert unpack(cell.control.recv(65536)) == ("IDLE", {})
    assert again("print('here' in globals())").output == b"False\n"


@test
def memory_files_stay_with_it_and_go_with_it():
    start("open('/tmp/t', 'w').write('x')")
    assert again("print(open('/tmp/t').read())").output == b"x\n"
    again("", keep=0)
    told = again("import os; print(os.listdir('/tmp'))")
    assert told.output == b"[]\n", told


@test
def one_that_cannot_be_handed_anything_is_ended():
    start("""
import os, socket, array
here, held = 1, []
while True:
    a, b = socket.socketpair()
    held += [a, b]
    try:
        for _ in range(40):
            a.sendmsg([b'x'], [(socket.SOL_SOCKET,
                socket.SCM_RIGHTS, array.array('i', [0] * 200))])
    except OSError as error:
        break
""")
    told = again("print('here' in globals())")
    if told.output != b"True\n":        # where the kernel counts them
        assert told.output == b"False\n" and told.ended == N.KEPT_DIED, told
        assert told.kept == 1 and told.went_on is None, told


@test
def await_and_loops():
    start("import asyncio\nawait asyncio.sleep(0)\nx = 5")
    assert again("async def f(): return x\nprint(await f())").output == b"5\n"
    assert again("asyncio.run(f())").status == 0
    told = again("await asyncio.wait_for(asyncio.sleep(100), 0.01)")
    assert told.status == 1 and b"Timeout" in told.output, told
    assert again("print(await f())").output == b"5\n"


@test
def signals_that_it_has_set_up():
    start("import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
          "signal.alarm(1); signal.setitimer(signal.ITIMER_REAL, 0.2)")
    time.sleep(0.4)
    told = again("time.sleep(0.3); print(1)")
    assert (told.output, told.kept) == (b"1\n", 1), told


cell = Cell(memory="96m")
try:
    run()
finally:
    cell.close()
