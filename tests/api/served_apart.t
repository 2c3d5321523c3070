#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Nothing of one run is visible to another over POST /eval: not to the next one
in the same cell, not to a simultaneous one in another.

What a run plants wherever it can, the same code finds in that run itself; so
the others would find it, too, if it were there.
"""

import json
import threading

from served import Served, wait_for
from tap import run, test

served = Served(IL_API_CELLS="2", IL_TUNE_API_WARM="2").__enter__()
lonely = Served(IL_API_CELLS="1", IL_TUNE_API_WARM="1").__enter__()

COMMON = r"""
import builtins, ctypes, json, os, socket, sys, time
TOKEN = 'planted-4711'
libc = ctypes.CDLL(None, use_errno=True)
ADD_KEY, KEYCTL = {'x86_64': (248, 250), 'aarch64': (217, 219)}[
    os.uname().machine]
SESSION, USER = -3, -4
PORT = 45671

def folders():
    for root, names, _ in os.walk('/'):
        if root == '/':
            names[:] = [n for n in names if n not in ('proc', 'sys')]
        yield root

def survivor(task):
    "A process of its own that outlives the run, if it can."
    out, into = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            import signal
            for number in (1, 2, 3, 13, 15):
                signal.signal(number, signal.SIG_IGN)
            keep = task()
            libc.prctl(15, TOKEN.encode(), 0, 0, 0)
            os.write(into, b'1')
            for fd in range(3):
                os.close(fd)
            while True:
                time.sleep(100)
        os._exit(0)
    os.wait()
    os.read(out, 1)

def listen():
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind('\0' + TOKEN)
    abstract.listen()
    tcp = socket.socket()
    tcp.bind(('127.0.0.1', PORT))
    tcp.listen()
    udp = socket.socket(type=socket.SOCK_DGRAM)
    udp.bind(('127.0.0.1', PORT))
    return abstract, tcp, udp

def plant():
    for folder in folders():
        for make in (lambda p: open(p, 'w').write(TOKEN), os.mkdir, os.mkfifo):
            try:
                make(os.path.join(folder, TOKEN + make.__name__[0]))
            except OSError:
                pass
    for folder in ('/dev/shm', '/tmp', '/home', '/workspace'):
        try:
            with open(folder + '/deleted', 'w') as file:
                file.write(TOKEN)
            os.remove(folder + '/deleted')
        except OSError:
            pass
    for make in (libc.shmget, libc.semget, libc.msgget):
        make(4711, *((4096,) if make is libc.shmget else
                     (1,) if make is libc.semget else ()), 0o1666)
    for ring in (SESSION, USER):
        libc.syscall(ADD_KEY, b'user', TOKEN.encode(), b'x', 1, ring)
    libc.mq_open(b'/' + TOKEN.encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
    os.environ[TOKEN] = TOKEN
    builtins.planted = sys.planted = True
    sys.modules['planted'] = sys
    sys.path.append(TOKEN)
    try:
        socket.sethostname(TOKEN)
    except OSError:
        pass
    survivor(listen)

def connects(family, address):
    with socket.socket(family) as link:
        try:
            link.connect(address)
            return True
        except OSError:
            return False

def lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True

def look():
    found = set()
    for root, names, files in os.walk('/'):
        if root == '/':
            names[:] = [n for n in names if n not in ('proc', 'sys')]
        if any(TOKEN in name for name in names + files):
            found.add('file')
    if connects(socket.AF_UNIX, '\0' + TOKEN):
        found.add('abstract socket')
    if connects(socket.AF_INET, ('127.0.0.1', PORT)):
        found.add('tcp')
    with socket.socket(type=socket.SOCK_DGRAM) as udp:
        try:
            udp.bind(('127.0.0.1', PORT))
        except OSError:
            found.add('udp')
    if sum(map(lives, range(1, 3000))) > 2:
        found.add('process')
    for get in (libc.shmget, libc.semget, libc.msgget):
        if get(4711, *((4096,) if get is libc.shmget else
                       (1,) if get is libc.semget else ()), 0) >= 0:
            found.add('sysv')
    for ring in (SESSION, USER):
        if libc.syscall(KEYCTL, 10, ring, b'user', TOKEN.encode(), 0) >= 0:
            found.add('key')
    if libc.mq_open(b'/' + TOKEN.encode(), os.O_RDONLY) >= 0:
        found.add('queue')
    if TOKEN in os.environ:
        found.add('environment')
    if (hasattr(builtins, 'planted') or hasattr(sys, 'planted') or
            'planted' in sys.modules or TOKEN in sys.path):
        found.add('interpreter')
    if socket.gethostname() == TOKEN:
        found.add('host name')
    for place in ('/proc', '/sys'):
        for root, names, files in os.walk(place):
            # its own streams, which it would wait for
            names[:] = [n for n in names if n not in ('fd', 'map_files')]
            for name in files:
                try:
                    with open(os.path.join(root, name), 'rb') as file:
                        if TOKEN.encode() in file.read(1 << 20):
                            found.add(place)
                except OSError:
                    pass
    print(json.dumps(sorted(found)))
"""
PLANT = COMMON + "plant()\nprint('planted')\n"
LOOK = COMMON + "look()\n"
BOTH = COMMON + "plant()\nlook()\n"
SEEN_BY_ITSELF = {"file", "abstract socket", "tcp", "udp", "process",
                  "environment", "interpreter"}

STATE = r"""
import ctypes, gc, json, locale, os, resource, signal, socket, sys, time
def is_open(number):
    try:
        return bool(os.fstat(number))
    except OSError:
        return False
state = {
    'umask': os.umask(0o22), 'cwd': os.getcwd(), 'nice': os.nice(0),
    'limits': [resource.getrlimit(n) for n in range(16)],
    'signals': [str(signal.getsignal(n)) for n in range(1, 65)
                if n not in (32, 33)],
    'mask': sorted(map(int, signal.pthread_sigmask(0, []))),
    'timer': signal.getitimer(signal.ITIMER_REAL),
    'affinity': sorted(os.sched_getaffinity(0)),
    # of the kernel: musl's function is none
    'scheduler': ctypes.CDLL(None).syscall(
        {'x86_64': 145, 'aarch64': 120}[os.uname().machine], 0),
    'files': [n for n in range(1024) if is_open(n)],
    'environment': sorted(os.environ.items()),
    'argv': sys.argv, 'path': sys.path, 'ids': os.getresuid() + os.getresgid(),
    'groups': os.getgroups(), 'pid': os.getpid(), 'ppid': os.getppid(),
    'session': os.getsid(0) == os.getpid(), 'host': socket.gethostname(),
    'recursion': sys.getrecursionlimit(), 'gc': gc.get_threshold(),
    'locale': locale.setlocale(locale.LC_ALL),
    'modules': sorted(sys.modules), 'time zone': time.tzname,
    'home': os.listdir('/home'), 'tmp': os.listdir('/tmp'),
    'shm': os.listdir('/dev/shm'),
}
print(json.dumps(state, sort_keys=True))
"""
DISTURB = STATE + r"""
import asyncio, email
os.umask(0); os.nice(5)
for n in range(16):
    try:
        resource.setrlimit(n, (resource.getrlimit(n)[0],) * 2)
    except (OSError, ValueError):
        pass
resource.setrlimit(resource.RLIMIT_NOFILE, (10, 10))
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGUSR1, lambda *_: None)
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))
signal.setitimer(signal.ITIMER_REAL, 1000)
try:
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
except OSError:
    pass
os.environ['HOME'] = '/'; os.environ['TZ'] = 'XYZ5'; time.tzset()
sys.setrecursionlimit(50); gc.set_threshold(1)
os.chdir('/home'); open('/home/x', 'w'); open('/dev/shm/x', 'w')
os.setsid() if os.getsid(0) != os.getpid() else None
"""


def found(service, code):
    answer = service.eval(input=code)
    assert answer["returncode"] == 0, answer
    return set(json.loads(answer["stdout"].splitlines()[-1]))


def executed(service, code):
    """What a run of /v1 prints, which has a /proc."""
    answer = service.post("/v1/execute", {"code": code, "timeout_ms": 20000})
    assert answer.status == 200 and answer.json["exit_code"] == 0, answer.json
    return answer.json["stdout"]


@test
def a_run_finds_what_it_has_planted():
    assert SEEN_BY_ITSELF <= found(lonely, BOTH), found(lonely, BOTH)


@test
def what_has_a_proc_finds_nothing_there_either():
    for service in lonely, served:
        ours = json.loads(executed(service, BOTH).splitlines()[-1])
        assert SEEN_BY_ITSELF | {"/proc"} <= set(ours), ours
        for _ in range(3):
            assert executed(service, PLANT) == "planted\n"
            assert lonely.eval(input=PLANT)["stdout"] == "planted\n"
            assert executed(service, LOOK) == "[]\n"


@test
def the_next_run_finds_nothing():
    for _ in range(3):
        assert lonely.eval(input=PLANT)["stdout"] == "planted\n"
        assert found(lonely, LOOK) == set(), found(lonely, LOOK)


@test
def the_run_after_one_that_was_ended_finds_nothing():
    answer = lonely.eval(input=PLANT + "time.sleep(1000)", timeout_ms=1500)
    assert answer["returncode"] == 137, answer
    assert answer["stdout"] == "planted\n", answer
    assert found(lonely, LOOK) == set()


@test
def the_run_after_one_of_a_client_that_hung_up_finds_nothing():
    link = lonely.connect()
    link.request("POST", "/eval", json.dumps(
        {"input": PLANT + "time.sleep(1000)", "timeout_ms": 20000}),
        {"Content-Type": "application/json"})
    wait_for(lambda: lonely.get("/health").json["inline"]["cells"]["leased"])
    link.close()
    assert found(lonely, LOOK) == set()


@test
def a_simultaneous_run_finds_nothing():
    ended = []
    planter = threading.Thread(target=lambda: ended.append(served.eval(
        input=PLANT + "time.sleep(1000)", timeout_ms=4000)))
    planter.start()
    looks = 0
    while planter.is_alive():
        assert found(served, LOOK) == set()
        looks += 1
    planter.join()
    assert ended[0]["stdout"] == "planted\n", ended
    assert looks > 2, looks


@test
def two_that_plant_the_same_do_not_meet():
    answers = []
    pair = [threading.Thread(target=lambda: answers.append(served.eval(
        input=PLANT + "time.sleep(1)"))) for _ in range(2)]
    for thread in pair:
        thread.start()
    for thread in pair:
        thread.join()
    assert [answer["stdout"] for answer in answers] == ["planted\n"] * 2, \
        answers


@test
def the_next_run_begins_like_the_first():
    first = lonely.eval(input=STATE)
    assert first["returncode"] == 0, first
    for _ in range(3):
        answer = lonely.eval(input=DISTURB)
        assert answer["returncode"] == 0, answer
        answer = lonely.eval(input=STATE)
        assert answer["stdout"] == first["stdout"], (answer, first)


@test
def files_sent_for_one_run_are_not_there_in_the_next():
    lonely.eval(input="1", files=[{"path": "secret/a"}, {"path": ".b"}])
    answer = lonely.eval(input="import os\nprint(list(os.walk('.')))")
    assert answer["stdout"] == "[('.', [], [])]\n", answer


@test
def a_full_folder_is_empty_for_the_next_run():
    filling = "open('%s/full', 'wb').write(bytes(1 << 30))"
    room = ("import os\nfor n in ('/home', '/dev/shm'):\n"
            "    s = os.statvfs(n)\n    print(n, s.f_bavail, s.f_favail)")
    before = lonely.eval(input=room)["stdout"]
    assert len(before.splitlines()) == 2, before
    for folder in ("/home", "/dev/shm"):
        lonely.eval(input=filling % folder)
        assert lonely.eval(input=room)["stdout"] == before


@test
def one_that_uses_all_processes_leaves_them_to_the_next():
    lonely.eval(input="import os, time\nfor i in range(100):\n    try:\n"
                      "        if os.fork() == 0: os.setsid(); "
                      "time.sleep(1000)\n    except OSError: pass")
    answer = lonely.eval(input="import os\nn = 0\nwhile n < 10:\n"
                               "    if os.fork() == 0: os._exit(0)\n"
                               "    n += 1\nprint(n)")
    assert answer["stdout"] == "10\n", answer


try:
    run()
finally:
    try:
        lonely.close()
    finally:
        served.close()
