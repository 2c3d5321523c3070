#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each number of the protocol is written once, in C, and what header.py makes of
the headers is what the compiler reads in them."""

import os
import re
import runpy
import subprocess
import sys
import tempfile

from source import ROOT, check, files, finish, read

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "sandbox/protocol"))
import header       # noqa: E402

CELL = os.path.join(os.environ["BUILD"], "lib/cell")


def compiled(lines):
    """What a C program with these lines in its main() prints."""
    text = ["#include <stdio.h>", "#include <stddef.h>"]
    text += ['#include "%s"' % path for path in header.HEADERS]
    text += ["int main(void) {", *lines, "return 0; }"]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "asked")
        with open(path + ".c", "w") as file:
            file.write("\n".join(text) + "\n")
        subprocess.run(["cc", "-std=c17", "-I", ROOT, "-I", ROOT + "/sandbox",
                        "-o", path, path + ".c"], check=True)
        told = subprocess.run([path], stdout=subprocess.PIPE, check=True)
    return told.stdout.decode().split("\n")


def made(name):
    """The names of a module that was made."""
    return {key: value for key, value in runpy.run_path(
        os.path.join(CELL, name)).items() if not key.startswith("__")}


def numbers_that_differ():
    ours = {**made("protocol.py"), **made("shared.py")}
    ours = {name: value for name, value in ours.items()
            if isinstance(value, int)}
    if len(ours) < 150:
        yield "only %d numbers" % len(ours)
    told = compiled('printf("%%s %%lld\\n", "%s", (long long)%s);'
                    % (name, name) for name in ours)
    for name, value in filter(None, map(str.split, told)):
        if ours[name] != int(value):
            yield "%s is %s; for Python %d" % (name, value, ours[name])
    for path in header.HEADERS:
        for name in re.findall(r"^\s*#?(?:define )?([A-Z]\w+) =? ?[(\d-]",
                               header.bare(read(path)), re.M):
            if name not in ours:
                yield "%s: %s is not in Python" % (path, name)


def layouts_that_differ():
    module = made("shared.py")
    structs = {name: value for name, value in module.items()
               if hasattr(value, "_fields_")}
    lines = ['printf("%s . 0 %%zu\\n", sizeof(struct %s));' % (name, name)
             for name in structs]
    lines += ['printf("%s %s %%zu %%zu\\n", offsetof(struct %s, %s), '
              'sizeof(((struct %s *)0)->%s));' % ((name, field[0]) * 3)
              for name, struct in structs.items() for field in struct._fields_]
    if len(lines) < 40:
        yield "only %d fields" % len(lines)
    for name, field, *there in filter(None, map(str.split, compiled(lines))):
        struct = structs[name]
        ours = ((0, module["ctypes"].sizeof(struct)) if field == "." else
                (getattr(struct, field).offset, getattr(struct, field).size))
        if ours != tuple(map(int, there)):
            yield "struct %s: %s is at %s, of %s bytes; for Python %d, %d" % (
                name, field, *there, *ours)


def numbers_written_twice():
    """An assignment or a #define elsewhere with a name of the protocol."""
    names = set()
    for path in header.HEADERS:
        names |= set(header.constants(read(path)))
    pattern = re.compile(r"^\s*(?:#\s*define\s+)?([A-Z][A-Z0-9_]*)\b[^=\n(]*?"
                         r"(?:=\s*)?\(?-?\d", re.M)
    for path in files(".c", ".h", ".py", ".t"):
        if path in header.HEADERS:
            continue
        for match in pattern.finditer(read(path)):
            if match[1] in names:
                yield "%s: %s has its number in a header" % (path, match[1])


def usual_environments_that_differ():
    """Those of POST /eval and /v1/execute, which a cell has ready."""
    for path, name in (("fcgi/api/eval.c", r"REHEARSED = \(b.*?,\n"),
                       ("fcgi/api/run.c", r"BESIDE_IT = \(")):
        words = re.search(r"environment\[\] = \{(.*?)NULL", read(path),
                          re.S)[1]
        theirs = "".join(word + "\\0"
                         for word in re.findall(r'"(.*?)"', words))
        ours = re.search("^" + name + r"(.*?)\)\n", read(
            "sandbox/cell/python/api.py"), re.S | re.M)[1]
        if "".join(re.findall(r'b"(.*?)"', ours)) != theirs:
            yield "api.py, %s: %s has %s" % (name, path, theirs)


check("a number is the same for C and for Python", numbers_that_differ())
check("so is the layout of a struct", layouts_that_differ())
check("no number of the protocol is written twice", numbers_written_twice())
check("the environments of most runs are those that are ready",
      usual_environments_that_differ())
finish()
