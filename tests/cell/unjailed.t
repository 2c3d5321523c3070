#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An api cell where runs cannot have namespaces: one run, and no loss of what
the others hold."""

import json
import os
import tempfile

from apidriver import ApiCell
from driver import SOURCE, USER, N, wait_until
from tap import run, test

PROFILES = os.path.dirname(SOURCE)

WAYS = {
    "told so": {"isolation": 1},
    "no user namespaces": {"seccomp": "seccomp.json"},
}
# Docker 20.10 answers EPERM, a later one what the profile says.
REASONS = {"told so": ("asked for",),
           "no user namespaces": ("unshare: EPERM", "unshare: ENOSYS")}


@test
def it_serves_one_run():
    for name, options in WAYS.items():
        with ApiCell(**options) as cell:
            assert cell.ready[1]["ISOLATION"] == N.ISOLATION_CELL, name
            assert cell.ready[1]["TEXT"] in REASONS[name], cell.ready
            told = cell.eval(["-c", "import os; print(os.getpid() > 1, "
                              "os.listdir('/home'))"])
            assert told.output == b"True []\n", (name, told)
            assert told.idle == {"RETIRE": 1}, (name, told.idle)
            try:
                cell.eval(["-c", "print(1)"], wait=False)
                assert False, name + ": a second run"
            except (EOFError, OSError):
                pass


@test
def so_does_one_that_cannot_be_kept_from_other_folders():
    """A run is told nothing of it, so the cell finds out before."""
    with open(PROFILES + "/seccomp-api.json", encoding="utf-8") as file:
        profile = json.load(file)
    profile["syscalls"] = [
        rule for rule in profile["syscalls"]
        if not rule.get("comment", "").startswith("what a run is not to write")]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(profile, file)
        file.flush()
        with ApiCell(seccomp=os.path.relpath(file.name, PROFILES)) as cell:
            assert cell.ready[1]["ISOLATION"] == N.ISOLATION_CELL, cell.ready
            assert cell.ready[1]["TEXT"].startswith("mount read-only /"), (
                cell.ready)


@test
def the_filter_is_there_all_the_same():
    for name, options in WAYS.items():
        with ApiCell(**options) as cell:
            told = cell.eval(["-c", """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
print(libc.unshare(0x10000000), ctypes.get_errno() == errno.EPERM)
print(libc.mount(b'tmpfs', b'/tmp', b'tmpfs', ctypes.c_ulong(6), None),
      ctypes.get_errno() == errno.EPERM)
head = (ctypes.c_uint32 * 2)(0x20080522, 0)
data = (ctypes.c_uint32 * 6)()
libc.capget(head, data); print(sum(data))
"""])
            assert told.output == b"-1 True\n-1 True\n0\n", (name, told)


@test
def a_run_can_be_interrupted():
    code = "import signal\nprint(signal.getsignal(2) is " \
           "signal.default_int_handler)"
    for args in ([], ["script"]):
        with ApiCell(isolation=1) as cell:
            told = (cell.eval(["script.py"], inputs=[("script.py",
                                                      code.encode())])
                    if args else cell.eval(["-c", code]))
            assert told.output == b"True\n", told


@test
def requests_are_met_as_elsewhere():
    with ApiCell(isolation=1) as cell:
        told = cell.run("import os\nopen('new', 'w').write('x')\n"
                        "open('old').read()", inputs=[("old", b"o")])
        assert told.stdout == b"'o'\n" and told.files == {b"new": b"x"}, told
    with ApiCell(isolation=1) as cell:
        told = cell.run("import os\nopen('new', 'w').write('x')\n"
                        "os.chmod('new', 0)\nos.chmod('.', 0)")
        assert told.files == {b"new": b"x"}, told
    with ApiCell(isolation=1) as cell:
        told = cell.eval(["-c", "while True: pass"], wall_ms=300)
        assert told.reason == N.REASON_TIME and told.idle == {"RETIRE": 1}


@test
def it_goes_when_the_broker_does():
    with ApiCell(isolation=1) as cell:
        cell.eval(["-c", "print(1)"])
        cell.control.close()
        wait_until(lambda: not cell.is_running())


@test
def every_writable_folder_is_made_anew():
    with ApiCell(options=["--tmpfs", "/kept:uid=%d,size=1m" % USER,
                          "--tmpfs", "/a b:uid=%d,size=1m" % USER]) as cell:
        assert cell.ready[1]["ISOLATION"] == N.ISOLATION_RUN
        for _ in range(2):
            told = cell.eval(["-c", "import os\nfor p in '/kept', '/a b':\n"
                              "  print(os.listdir(p)); open(p + '/x', 'w')"])
            assert told.output == b"[]\n[]\n", told


run()
