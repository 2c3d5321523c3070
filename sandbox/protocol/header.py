#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Make from C headers what else has to know them.

    header.py protocol.py >FILE         the numbers of frame_limits.h and frame.h,
                                        for a cell
    header.py shared.py >FILE           those of shared.h, and its structs
    header.py frame_tables.h >FILE      which kinds and tags there are, and of
                                        which type, for frame.c

A header says each number itself: an enumerator is NAME = NUMBER, a constant is
an integer expression, or texts with commas between.  The type of a tag is the
word with which its comment begins.  What cannot be read so ends the build.
Tests import this file, too.
"""

import re
import sys

COMMENT = re.compile(r"/\*.*?\*/", re.S)
ENUM = re.compile(r"\benum \w+ \{(.*?)\};", re.S)
ENUMERATOR = re.compile(r"([A-Z][A-Z0-9_]*) = (-?\d+)")
DEFINE = re.compile(r"^#define ([A-Z][A-Z0-9_]*) +(\S.*)$", re.M)
CAST = re.compile(r"\((?:int64_t|size_t)\)")
STRUCT = re.compile(r"\bstruct (\w+) \{(.*?)\};", re.S)
FIELD = re.compile(r"(const )?(struct )?(\w+) (\*?)(\w+)(?:\[(\w+)\])?")
TAG = re.compile(r"(TAG_\w+) = (\d+),\s*/\* (.*?)\*/", re.S)
TYPES = {"int": "FIELD_INT", "text": "FIELD_BYTES", "bytes": "FIELD_BYTES",
         "bytes, repeated": "FIELD_REPEATED"}


def fail(what):
    sys.exit("header.py: " + what)


def bare(text):
    """A header's text without comments."""
    return COMMENT.sub("", text)


def enumerators(text):
    """{name: number} of every enum."""
    found = {}
    for body in ENUM.findall(bare(text)):
        for part in filter(None, map(str.strip, body.split(","))):
            match = ENUMERATOR.fullmatch(part)
            if not match or match[1] in found:
                fail("no number, or a second one: " + part)
            found[match[1]] = int(match[2])
    return found


def constants(text):
    """{name: value} of every enumerator and every #define of a value."""
    found = enumerators(text)
    for name, value in DEFINE.findall(bare(text)):
        try:
            found[name] = eval(CAST.sub("", value),     # texts: a tuple
                               {"__builtins__": {}}, dict(found))
        except (SyntaxError, NameError):
            fail("#define %s %s" % (name, value))
    return found


def tag_types(text):
    """{number of a tag: one of TYPES}."""
    found = {}
    for name, number, comment in TAG.findall(text):
        match = re.match(r"(bytes, repeated|int|text|bytes)\b", comment)
        if not match:
            fail("%s: its comment does not begin with a type" % name)
        found[int(number)] = match[1]
    tags = {number for name, number in enumerators(text).items()
            if name.startswith("TAG_")}
    if set(found) != tags:
        fail("tags without a comment: %s" % sorted(tags - set(found)))
    return found


def field_type(const, struct, name, pointer, length, structs):
    """The expression for ctypes.  A pointer to bytes that may have a NUL is
    one that stands in an array."""
    if pointer and struct and name in structs:
        made = "ctypes.POINTER(%s)" % name
    elif pointer:
        made = "ctypes.c_char_p" if (const and name == "char" and
                                     not length) else "ctypes.c_void_p"
    elif struct:
        made = name
    else:
        made = "ctypes.c_" + name.replace("_t", "")
    return made + (" * " + length if length else "")


def structs(text):
    """{name: [(field, expression for ctypes)]}, in the header's order."""
    found = {}
    for name, body in STRUCT.findall(bare(text)):
        fields = []
        for line in filter(None, (" ".join(one.split())
                                  for one in body.split(";"))):
            call = re.fullmatch(r"void \(\*(\w+)\)\(void\)", line)
            match = FIELD.fullmatch(line)
            if call:
                fields.append((call[1], "ctypes.c_void_p"))
            elif match:
                const, struct, kind, pointer, field, length = match.groups()
                fields.append((field, field_type(
                    const, struct, kind, pointer, length, found)))
            else:
                fail("struct %s: %s" % (name, line))
        found[name] = fields
    return found


def module_of_constants(text):
    return ["%s = %r" % pair for pair in constants(text).items()]


def module_of_structs(text):
    lines = module_of_constants(text) + ["import ctypes"]
    for name, fields in structs(text).items():
        lines += ["class %s(ctypes.Structure):" % name, "    _fields_ = [%s]" %
                  ", ".join('("%s", %s)' % field for field in fields)]
    return lines


def tables(text):
    kinds = [number for name, number in enumerators(text).items()
             if name.startswith("FRAME_")]
    return (["static const bool known_kinds[256] = {"] +
            ["\t[%d] = true," % number for number in kinds] +
            ["};", "static const unsigned char field_types[256] = {"] +
            ["\t[%d] = %s," % (number, TYPES[name])
             for number, name in tag_types(text).items()] + ["};"])


FRAME = "sandbox/protocol/frame.h"
LIMITS = "sandbox/protocol/frame_limits.h"
SHARED = "sandbox/cell/supervisor/shared.h"
HEADERS = (LIMITS, FRAME, SHARED)
MADE = {"protocol.py": (module_of_constants, LIMITS, FRAME),
        "shared.py": (module_of_structs, SHARED),
        "frame_tables.h": (tables, FRAME)}


def read(path):
    with open(path) as file:
        return file.read()


if __name__ == "__main__":
    make, *headers = MADE[sys.argv[1]]
    print("\n".join(make("".join(map(read, headers)))))
