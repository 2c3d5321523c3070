#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""libsupervisor.so calls nothing that not every C library has: it is loaded in any
image."""

import os
import re
import subprocess

from source import check, finish

GLIBC = (2, 28)
# Looked up in musl 1.2: of one name and with one meaning in both.
MUSL = set("""
__errno_location __stack_chk_fail _exit access chdir clock_gettime clone close
dup2 environ fchdir fchmod fcntl fork fstatfs futimens kill madvise memchr memcmp memcpy memset mmap
mount nice openat pause pipe2 poll ppoll prctl pread read readlinkat recv
recvmsg send sendfile sendmsg setns setsid sigaction signal snprintf socketpair strcmp strlen
strncmp strrchr strspn strstr syscall unlinkat unshare wait4 write""".split())


def symbols(*args):
    return subprocess.run(["nm", "-D", *args], stdout=subprocess.PIPE,
                          check=True).stdout.decode()


def calls_that_not_all_have():
    libc = subprocess.run(["cc", "-print-file-name=libc.so.6"], check=True,
                          stdout=subprocess.PIPE).stdout.decode().strip()
    since = {}
    for name, version in re.findall(r" [TWiBV] (\w+)@@?GLIBC_([\d.]+)$",
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


check("libsupervisor.so calls what each C library has", calls_that_not_all_have())
finish()
