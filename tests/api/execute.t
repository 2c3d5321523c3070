#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The code-interpreter's requests: what is refused, and what is run.

execute.json holds what FastAPI 0.165 and pydantic 2.14 answer for the models of
the contract: route, content type, body, and "RUN" or the status (422 for types
with +json, which no client sends).
"""

import json
import os

from probe import ask, differences, done, equal, point

JSON = "application/json"


def answer(body, command="execute", content_type=JSON):
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    return ask(command, content_type.encode() + b"\n" + body).decode()


def detail(status, text):
    return f"{status} " + json.dumps({"detail": text}, ensure_ascii=False,
                                     separators=(",", ":"))


def told(*pairs):
    """A RUN: texts with their lengths, numbers without."""
    out = "RUN\n"
    for name, value in pairs:
        if isinstance(value, str):
            out += f"{name} {len(value.encode())} {value}\n"
        else:
            out += f"{name} {value}\n"
    return out


with open(os.path.join(os.path.dirname(__file__), "execute.json"),
          encoding="ascii") as file:
    golden = json.load(file)
with differences("statuses as FastAPI and pydantic answer") as same:
    for command, content_type, body, want in golden:
        got = answer(body.encode("latin-1"), command, content_type or "-")
        if want == "RUN" and "exceeds maximum of 60000 ms" in got:
            continue
        same((command, content_type, body),
             got[:3], want)

def error(kind, where, message, given=None):
    return "422 " + json.dumps({"detail": [{
        "type": kind, "loc": ["body", *where], "msg": message,
        "input": given}]}, separators=(",", ":"))


equal(answer(b""), error("missing", [], "The body is empty"), "an empty body")
for command in ("execute", "session"):
    equal(answer(b"null", command),
          error("model_attributes_type", [], "The body must be an object"),
          "null")
equal(answer({"code": "x", "timeout_ms": 60001}),
      detail(422, "timeout_ms exceeds maximum of 60000 ms"), "too long")
equal(answer({"code": "x", "timeout_ms": 10 ** 18}),
      detail(422, "timeout_ms exceeds maximum of 60000 ms"), "far too long")
equal(answer({"cmd": "x", "timeout_ms": 60001}, "bash"),
      detail(422, "timeout_ms exceeds maximum of 60000 ms"), "bash too long")
equal(answer({"cmd": "a\0b"}, "bash"),
      detail(422, "cmd must not contain a NUL character."), "NUL in bash")
BAD_BODY = "There was an error parsing the body: "
equal(answer(b"[" * 5000), detail(400, BAD_BODY + "it is nested too deeply"),
      "deep JSON")
equal(answer('{"code":"x"}'.encode("utf-16")),
      detail(400, BAD_BODY + "it is not in UTF-8"), "UTF-16")
equal(answer(b'{"code":NaN}'), error(
    "json_invalid", [], "The body is no JSON: invalid token near 'NaN' at "
    "line 1, column 11"), "NaN")
equal(answer({"code": "x", "files": [{"path": "a", "file_id": "b"}, {}]}),
      error("missing", ["files", 1, "path"], "files[1].path is missing", {}),
      "the place of a fault")
point(answer({"code": "x", "files": [{"x": "y" * 100000}]}).endswith(
    '"input":null}]}'), "what is too long is not repeated")

TWO = (("timeout", 2000), ("echo", 1))
equal(answer(b'{"code":"\\ud800"}'), told(("code", "\ufffd"), *TWO),
      "a lone surrogate")
equal(answer({"code": ""}), told(("code", ""), *TWO), "the defaults")
equal(answer({"code": "é\0", "stdin": "x\0", "timeout_ms": 60000,
              "last_line_interactive": False, "other": 1}),
      told(("code", "é\0"), ("stdin", "x\0"), ("timeout", 60000), ("echo", 0)),
      "all of it")
equal(answer({"code": "", "stdin": None}), told(("code", ""), *TWO), "null")
equal(answer({"code": "", "stdin": ""}),
      told(("code", ""), ("stdin", ""), *TWO), "an empty stdin")
equal(answer({}, "session"), told(("ttl", 900)), "a session")
equal(answer({"ttl_seconds": 86400}, "session"), told(("ttl", 86400)), "a day")
equal(answer({"cmd": "ls"}, "bash"),
      told(("cmd", "ls"), ("timeout", 30000)), "bash")


def files(*paths, command="execute"):
    body = {"code": "", "files": [{"path": p, "file_id": "i'd"}
                                  for p in paths]}
    text = answer(body, command)
    head = told(("code", ""), *TWO) if command == "execute" else \
        told(("ttl", 900))
    return text.removeprefix(head)


def staged(*pairs):
    out = told()
    for given, path in pairs:
        out += told(("path", path), (
            "missing", json.dumps({"detail": f"File with ID 'i'd' not found "
                                   f"for path '{given}'."},
                                  ensure_ascii=False, separators=(",", ":"))
        ))[4:]
    return out[4:]


def message(text):
    return told(("message", text))[4:]


RELATIVE = "File paths must be relative."
UP = "File paths must not contain '..'."
EMPTY = "File path must not be empty."
MAIN = "File path '__main__.py' is reserved for the execution entrypoint."
equal(files("a", "./b//c/", "a"), staged(("a", "a"), ("./b//c/", "b/c"),
                                         ("a", "a")), "paths")
equal(files("a\\b", ".env", "é\n", "x/__main__.py", "...", "..a"),
      staged(*((p, p) for p in ("a\\b", ".env", "é\n", "x/__main__.py", "...",
                                "..a"))), "any name")
for path, want in (("/a", RELATIVE), ("//", RELATIVE), ("/..", RELATIVE),
                   ("..", UP), ("a/../b", UP), ("", EMPTY), (".", EMPTY),
                   ("././/", EMPTY), ("__main__.py", MAIN),
                   ("./__main__.py", MAIN),
                   ("a\0", "File paths must not contain a NUL character."),
                   ("a" * 256, "File path is too long."),
                   ("/".join(["b" * 200] * 6), "File path is too long.")):
    equal(files(path), message(want), f"path {path[:20]!r}")
equal(files("a", "/b", ".."), message(RELATIVE), "the first wrong one")
equal(files("a", "a/b"), message("File path lies below another file."),
      "a file as a folder")
equal(files("a/b/c", "a/b"), message("File path is the folder of another "
                                     "file."), "a folder as a file")
equal(files("__main__.py", command="session"),
      staged(("__main__.py", "__main__.py")), "a session has no main")
done()
