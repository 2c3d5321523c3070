#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""api.py api.conf.in routes.def: print api.conf.

`@EACH LIST@ … @END@` stands once for each member of a list below.  A line that
begins with @MARK@ stays only for a member that has this mark.  @WORD@ is a
member's value, and a line @NAME@ the text of `@DEFINE NAME@ … @END@`.
"""

import re
import sys

ROUTE = re.compile(r'^ROUTE\("(.*?)",\s*"(\w+)",\s*"(.*?)",[^)]*?(\w+)\)', re.M)
WAITING = "Too many requests are waiting, or Inline is starting"
ENDED = "$inline_ended"
# How nginx writes a refusal to a contract's clients.
SHAPES = {
    "snekbox": ("eval", '{"title": "%s"}'),
    "code-interpreter": ("v1", '{"detail":"%s"}'),
    "mcp": ("mcp", '$inline_rpc_begin"%s"}}'),
    "piston": ("piston", '{"message":"%s"}'),
    "librechat": ("librechat", '{"error":"%s"}'),
}
ROOTS = {"v1": "/v1", "piston": "/api/v2", "librechat": "/librechat"}
TOO_LARGE = {"v1": "File size exceeds maximum of 100 MB",
             "librechat": "File size limit exceeded"}
# Headers that only nodes send; those of a client are dropped.
HIDDEN = "BY FOREIGN MOVED NODE NODE_KEY OWNER TOOK USER".split()
LOST = {"v1": "$inline_gone", "librechat": "File not found", "mcp": ""}
# Its WebSocket, where il-api speaks HTTP, is no route of FastCGI.
WEBSOCKET = "piston", "GET", "/api/v2/connect", "connect"
# Column `class` of routes.def: socket, largest body, marks.
CLASSES = {
    "run": ("run", "128m", ["LARGE"]),
    "stream": ("run", "128m", ["LARGE", "STREAM"]),
    "session": ("session", "128m", ["LARGE"]),
    "mcp": ("mcp", "16m", ["LARGE", "STREAM"]),
    "upload": ("files", "101m", ["LARGE", "UPLOAD"]),
    "file": ("files", "16k", ["SMALL"]),
    "connect": ("connect", "1k", ["SMALL", "CONNECT"]),
}
OPEN = {"page": ["PAGE"], "metrics": ["METRICS"]}


def shape(name, form):
    """The words of a contract's refusals."""
    words = {"FORBIDDEN": "$inline_reason", "ERROR": "$inline_reason",
             "ENDED": ENDED, "WAITING": WAITING,
             "LARGE": TOO_LARGE.get(name, ""), "LOST": LOST.get(name, "")}
    if name == "eval":
        words.update({"FORBIDDEN": '403 Forbidden", "description": '
                      '"$inline_reason', "ERROR": "$status $inline_reason",
                      "ENDED": "502 Bad Gateway",
                      "WAITING": "503 Service Unavailable"})
    return {"SHAPE": name, "ROOT": ROOTS.get(name),
            "TYPE": '""' if name == "eval" else "application/json",
            "BUSY": "429" if name == "piston" else "503",
            **{word: form % text for word, text in words.items()}}


def marks(name):
    return {name.upper(), *["TOO_LARGE"] * (name in TOO_LARGE),
            *["GONE"] * bool(LOST.get(name))}


def where(paths, cls, contract):
    """A location of these paths.  The class `file` has all that is below its
    routes, and our own routes may end in a slash."""
    end = "" if cls == "file" else "/?$" if contract in ("", "mcp") else "$"
    if len(paths) == 1 and end == "$" and "{" not in paths[0]:
        return "= " + paths[0]
    return "~ ^(%s)%s" % ("|".join(dict.fromkeys(
        path.split("{")[0] if cls == "file" else
        re.sub(r"\{\w+\}", "[^/]+", path.replace(".", r"\."))
        for path in paths)), end)


def lists(routes):
    """{list: [(words, marks) of a member]}."""
    groups = {}
    for contract, method, path, cls in routes:
        groups.setdefault((contract, cls), []).append((method, path))
    found = {"OPEN": [], "GATED": [], "REST": [], "SHAPE": [], "NODE": []}
    for (contract, cls), members in groups.items():
        paths = list(dict.fromkeys(path for _, path in members))
        words = {"WHERE": where(paths, cls, contract)}
        if cls in OPEN:
            found["OPEN"].append((words, set(OPEN[cls])))
        elif cls in CLASSES:
            socket, body, has = CLASSES[cls]
            name = SHAPES[contract][0]
            # A reader is bounded where nginx knows that a GET reads a file.
            get = socket == "files" and any(m == "GET" for m, _ in members)
            found["GATED"].append((
                {**words, "SHAPE": name, "NAME": f"{name}_{cls}",
                 "BODY": body, "SOCKET": socket,
                 "CLIENT": "64" if cls == "connect" else "512"},
                {*has, *["GET"] * get, *["NOW"] * (cls != "connect")}))
        elif cls != "rest":
            sys.exit(f"{paths[0]}: no class {cls}")
    for name, form in SHAPES.values():
        member = shape(name, form), marks(name)
        found["SHAPE"].append(member)
        found["REST"] += [member] * (name in ROOTS)
        found["NODE"] += [member] * (name in LOST)
    return found


def fill(text, words, has):
    lines = []
    for line in text.splitlines(True):
        while mark := re.match(r"(\t*)@([A-Z_]+)@ ", line):
            line = mark[1] + line[mark.end():] if mark[2] in has else ""
        lines.append(line)
    return re.sub("@([A-Z]+)@", lambda m: words[m[1]], "".join(lines))


def main():
    text, routes = (open(path).read() for path in sys.argv[1:])
    pieces = {"HIDDEN": "".join(
        f'fastcgi_param HTTP_INLINE_{name} "" if_not_empty;\n'
        for name in HIDDEN)}
    block = r"^@%s (\w+)@\n(.*?)^@END@\n"

    def define(match):
        pieces[match[1]] = match[2]
        return ""

    text = re.sub(block % "DEFINE", define, text, flags=re.M | re.S)
    text = re.sub(r"^(\t*)@(%s)@\n" % "|".join(pieces), lambda m: re.sub(
        "^", m[1], pieces[m[2]].rstrip("\n"), flags=re.M) + "\n", text,
        flags=re.M)
    members = lists([*ROUTE.findall(routes), WEBSOCKET])
    text = re.sub(block % "EACH", lambda m: "".join(
        fill(m[2], *member) for member in members[m[1]]), text,
        flags=re.M | re.S)
    print("# Made of api.conf.in by api.py: changes belong there.\n" + text,
          end="")


main()
