#!/usr/bin/python3
"""Includes point one way: fcgi -> store and lease -> base, and never back."""

import os
import re

from source import ROOT, check, files, finish, read

MAY_INCLUDE = {
    "fcgi": {"fcgi/api", "sandbox/store", "sandbox/lease", "sandbox/base"},
    "fcgi/api": {"sandbox/lease", "sandbox/base"},
    "sandbox/base": set(),
    "sandbox/store": {"sandbox/base"},
    "sandbox/lease": {"sandbox/base"},
    "sandbox/rest": {"sandbox/base"},
    "sandbox/broker": {"sandbox/base"},
    "sandbox/keeper": {"sandbox/base"},
    "sandbox/worker": {"sandbox/base", "sandbox/store", "sandbox/lease",
                       "sandbox/rest"},
    "sandbox/ctl": {"sandbox/base", "sandbox/store", "sandbox/lease",
                    "sandbox/rest"},
}
GENERATED = {"statements.h": {"sandbox/store"},
             "migrations.h": {"sandbox/store", "sandbox/ctl"}}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')

# Only who wraps a library may include it.  ilctl tests endpoints by itself: it
# must see what a stranger sees, not what the client that it tests would make of
# it.
LIBRARIES = {"sqlite3.h": {"sandbox/store"},
             "curl/curl.h": {"sandbox/rest", "sandbox/ctl"},
             "fcgiapp.h": {"fcgi"},
             "sodium.h": {"fcgi", "fcgi/api", "sandbox/base", "sandbox/ctl"}}


def includes(pattern):
    """(path, line number, folder, what) of every include in the C files."""
    for path in files(".c", ".h", tests=False):
        for number, line in enumerate(read(path).split("\n"), 1):
            match = pattern.match(line)
            if match:
                yield path, number, os.path.dirname(path), match.group(1)


def wrong_way():
    for path, number, folder, name in includes(INCLUDE):
        where = f"{path}:{number}: {folder} must not include {name}"
        if folder not in MAY_INCLUDE:
            yield f"{path}: this folder has no place in MAY_INCLUDE"
        elif name in GENERATED:
            if folder not in GENERATED[name]:
                yield where
        else:
            target = os.path.normpath(os.path.join(folder, name))
            if os.path.dirname(target) not in MAY_INCLUDE[folder] | {folder}:
                yield where


def wrong_library():
    pattern = re.compile(r"^\s*#\s*include\s+<([^>]+)>")
    for path, number, folder, name in includes(pattern):
        if folder not in LIBRARIES.get(name, {folder}):
            yield f"{path}:{number}: {folder} must not include <{name}>"


def brings(path, name, own):
    """The header is the file's own, or one of its folder that includes it."""
    beside = os.path.join(os.path.dirname(path), name)
    return name == own or ("/" not in name and os.path.exists(
        os.path.join(ROOT, beside)) and f'"{own}"' in read(beside))


def own_header_last():
    for path in files(".c", tests=False):
        own = os.path.splitext(os.path.basename(path))[0] + ".h"
        if not os.path.exists(os.path.join(ROOT, path[:-1] + "h")):
            continue
        first = re.search(r"^\s*#\s*include\s+(\S+)", read(path), re.MULTILINE)
        if first and not brings(path, first.group(1).strip('"<>'), own):
            yield f"{path}: includes {first.group(1)} before its own header"


check("includes point one way", wrong_way())
check("a library is included by its wrapper only", wrong_library())
check("a file includes its own header first", own_header_last())
finish()
