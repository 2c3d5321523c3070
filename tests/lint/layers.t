#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Includes point one way: fcgi -> store and lease -> base, and never back."""

import os
import re

from source import ROOT, check, files, finish, read

BASE = {"sandbox/base"}
LOCALE = {"sandbox/locale"}
PROTOCOL = BASE | {"sandbox/protocol"}
WORKER = PROTOCOL | LOCALE | {"sandbox/store", "sandbox/rest",
                              "sandbox/worker/render"}
CONTRACT = PROTOCOL | {"fcgi/contract"}
# One each; none knows another.
CONTRACTS = {"fcgi/contract/" + name for name in (
    "snekbox", "code_interpreter", "librechat", "piston", "mcp")}
MAY_INCLUDE = {
    "fcgi/server": PROTOCOL,
    "fcgi/discord": PROTOCOL | LOCALE | {"fcgi/server", "sandbox/store"},
    "fcgi/api": PROTOCOL | CONTRACT | CONTRACTS | {"fcgi/server",
                                                   "fcgi/files"},
    "fcgi/node": PROTOCOL | {"fcgi/server", "sandbox/store", "sandbox/move"},
    "fcgi/contract": PROTOCOL,
    **{room: CONTRACT for room in CONTRACTS},
    "fcgi/files": BASE,
    "sandbox/base": set(),
    "sandbox/locale": BASE,
    "sandbox/protocol": BASE,
    "sandbox/store": PROTOCOL,
    "sandbox/rest": BASE,
    "sandbox/volume": BASE,
    "sandbox/move": PROTOCOL | {"sandbox/store", "sandbox/volume"},
    "sandbox/broker": PROTOCOL | {"sandbox/volume"},
    "sandbox/cell/supervisor": PROTOCOL,
    "sandbox/mounter": PROTOCOL,
    "sandbox/worker": WORKER | {"sandbox/worker/commands"},
    "sandbox/worker/commands": WORKER | {"sandbox/worker"},
    "sandbox/worker/render": WORKER,
    "sandbox/ctl": PROTOCOL | LOCALE | {"sandbox/store", "sandbox/rest",
                                        "sandbox/volume", "sandbox/move"},
}
# Files that more folders may include than the rest of their folder.
GENERATED = {"store/commands.def": {"sandbox/store", "fcgi/discord", "fcgi/api",
                                   "sandbox/worker/commands", "sandbox/ctl"},
             "statements.h": {"sandbox/store"},
             "migrations.h": {"sandbox/store", "sandbox/ctl"},
             "translations.h": {"sandbox/locale"},
             "frame_tables.h": {"sandbox/protocol"}}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')

# Each library is included by the folders that wrap it alone.
LIBRARIES = {"sqlite3.h": {"sandbox/store"},
             "curl/curl.h": {"sandbox/rest"},
             "fcgiapp.h": {"fcgi/server"}, "fastcgi.h": {"fcgi/server"},
             "sodium.h": {"fcgi/discord", "fcgi/api", "fcgi/contract",
                          "fcgi/contract/librechat", "fcgi/files",
                          "fcgi/node", "sandbox/protocol", "sandbox/ctl",
                          "sandbox/volume", "sandbox/move"}}


def includes(pattern):
    """(path, line number, folder, what) of every include in the C files."""
    for path in files(".c", ".h", tests=False):
        for number, line in enumerate(read(path).split("\n"), 1):
            match = pattern.match(line)
            if match:
                yield path, number, os.path.dirname(path), match.group(1)


def target(name):
    """The file that a name from below fcgi/ or sandbox/ stands for."""
    for top in ("fcgi", "sandbox"):
        if os.path.exists(os.path.join(ROOT, top, name)):
            return f"{top}/{name}"
    return name


def wrong_way():
    for path, number, folder, name in includes(INCLUDE):
        where = f"{path}:{number}: {folder} must not include {name}"
        if folder not in MAY_INCLUDE:
            yield f"{path}: this folder has no place in MAY_INCLUDE"
        elif name in GENERATED:
            if folder not in GENERATED[name]:
                yield where
        elif os.path.dirname(target(name)) not in (
                MAY_INCLUDE[folder] | {folder}):
            yield where


def cycles():
    """Each .c and its .h are one unit."""
    units = {}
    for path, _, _, name in includes(INCLUDE):
        here, there = path[:-2], os.path.splitext(target(name))[0]
        if here != there:
            units.setdefault(here, set()).add(there)
    done, way = set(), []

    def follow(unit):
        if unit in way:
            yield " -> ".join(way[way.index(unit):] + [unit])
        elif unit not in done:
            way.append(unit)
            for other in sorted(units.get(unit, ())):
                yield from follow(other)
            done.add(way.pop())

    for unit in sorted(units):
        yield from follow(unit)


def wrong_library():
    pattern = re.compile(r"^\s*#\s*include\s+<([^>]+)>")
    for path, number, folder, name in includes(pattern):
        if folder not in LIBRARIES.get(name, {folder}):
            yield f"{path}:{number}: {folder} must not include <{name}>"


def brings(path, name, own):
    """The header is the file's own, or one of its folder that includes it."""
    there = target(name)
    return there == own or (
        os.path.dirname(there) == os.path.dirname(own) and os.path.exists(
            os.path.join(ROOT, there))
        and f'"{own.split("/", 1)[1]}"' in read(there))


def own_header_last():
    for path in files(".c", tests=False):
        own = path[:-1] + "h"
        if not os.path.exists(os.path.join(ROOT, own)):
            continue
        first = re.search(r"^\s*#\s*include\s+(\S+)", read(path), re.MULTILINE)
        if first and not brings(path, first.group(1).strip('"<>'), own):
            yield f"{path}: includes {first.group(1)} before its own header"


check("includes point one way", wrong_way())
check("no includes go round in a circle", cycles())
check("a library is included by its wrapper only", wrong_library())
check("a file includes its own header first", own_header_last())
finish()
