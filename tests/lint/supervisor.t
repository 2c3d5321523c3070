#!/usr/bin/python3
"""libsupervisor.so fits the interpreter that loads it: one layout of what the two
share, and no call that not every C library has."""

import os
import re
import subprocess
import sys
import tempfile

from source import ROOT, check, finish

sys.path.insert(0, os.path.join(ROOT, "sandbox/cell/python"))
sys.dont_write_bytecode = True
import supervisor       # noqa: E402

# What Python calls otherwise.
IN_C = {"stdin": "in", "stdout": "out", "stderr": "err",
        "PyOS_BeforeFork": "before_fork", "PyOS_AfterFork_Parent": "in_parent",
        "PyOS_AfterFork_Child": "in_child"}
GLIBC = (2, 28)
# Looked up in musl 1.2: of one name and with one meaning in both.
MUSL = set("""
__errno_location __stack_chk_fail _exit chdir clock_gettime clone close dup2
fcntl fork fstatfs getrlimit kill madvise memchr memcpy memset mmap mount nice
openat pause pipe2 poll ppoll prctl pread read readlinkat recv recvmsg send
sendfile setns setrlimit setsid sigaction signal socketpair strlen strnlen
strspn strstr syscall unshare wait4 write""".split())


def offsets_in_c():
    """{"struct": {field: (offset, size)}} as the compiler has it."""
    structs = {"supervisor": supervisor.Shared, "supervisor_plan": supervisor.Plan,
               "supervisor_mount": supervisor.Mount}
    lines = ['#include <stdio.h>', '#include <stddef.h>',
             '#include "sandbox/cell/supervisor/shared.h"',
             "int main(void) {"]
    for name, ours in structs.items():
        lines.append('printf("%s . 0 %%zu\\n", sizeof(struct %s));'
                     % (name, name))
        for field in ours._fields_:
            there = "struct %s" % name, IN_C.get(field[0], field[0])
            lines.append('printf("%s %s %%zu %%zu\\n", offsetof(%s, %s), '
                         'sizeof(((%s *)0)->%s));'
                         % ((name, field[0]) + there + there))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "offsets")
        with open(path + ".c", "w") as file:
            file.write("\n".join(lines) + "\nreturn 0; }\n")
        subprocess.run(["cc", "-std=c17", "-I", ROOT, "-o", path, path + ".c"],
                       check=True)
        told = subprocess.run([path], stdout=subprocess.PIPE, check=True)
    return structs, [line.split() for line in
                     told.stdout.decode().splitlines()]


def layouts_that_differ():
    structs, told = offsets_in_c()
    for name, field, offset, size in told:
        ours = structs[name]
        if field == ".":
            there = 0, supervisor.ctypes.sizeof(ours)
        else:
            there = getattr(ours, field).offset, getattr(ours, field).size
        if there != (int(offset), int(size)):
            yield "struct %s: %s is at %s, of %s bytes; for Python %d, %d" % (
                name, field, offset, size, *there)


def numbers_that_differ():
    with open(os.path.join(ROOT, "sandbox/cell/supervisor/shared.h")) as file:
        header = file.read()
    roles = dict(re.findall(r"SUPERVISOR_([A-Z]+) = (-?\d+)", header))
    for name in ("DONE", "RUN", "HARVEST", "FAST"):
        if roles.get(name) != str(getattr(supervisor, name)):
            yield "SUPERVISOR_%s is %s" % (name, roles.get(name))
    folders = re.search(r"define SUPERVISOR_FOLDERS (.*)", header).group(1)
    if re.findall('"([^"]*)"', folders) != list(supervisor.FOLDERS):
        yield "folders: " + folders
    if "SUPERVISOR_WORDS_MAX %d\n" % supervisor.WORDS_MAX not in header:
        yield "SUPERVISOR_WORDS_MAX"


def symbols(*args):
    return subprocess.run(["nm", "-D", *args], stdout=subprocess.PIPE,
                          check=True).stdout.decode()


def calls_that_not_all_have():
    libc = subprocess.run(["cc", "-print-file-name=libc.so.6"], check=True,
                          stdout=subprocess.PIPE).stdout.decode().strip()
    since = {}
    for name, version in re.findall(r" [TWiB] (\w+)@@?GLIBC_([\d.]+)$",
                                    symbols(libc), re.M):
        number = tuple(map(int, version.split(".")))
        since[name] = min(number, since.get(name, number))
    # glibc has it in the dynamic linker.
    since.setdefault("__stack_chk_fail", (2, 4))
    wanted = symbols("--undefined-only", os.path.join(
        os.environ["BUILD"], "lib/cell/libsupervisor.so")).split()
    for name in wanted[1::2]:
        if "@" in name:
            yield name + ": with a version"
        elif since.get(name, (9,)) > GLIBC:
            yield name + ": not in glibc %d.%d" % GLIBC
        elif name not in MUSL:
            yield name + ": is it in musl?"


check("struct supervisor is one in C and in Python", layouts_that_differ())
check("so are the numbers", numbers_that_differ())
check("libsupervisor.so calls what each C library has", calls_that_not_all_have())
finish()
