#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""/eval: what is refused, with which words, and what is run.

eval.json holds what Falcon 4.1.0 and jsonschema 4.25.1 answer for snekbox's
schema: content type, body, and "RUN" or the status (other than the
original's for forms, and for types of JSON in capitals or with a star).
"""

import base64
import io
import json
import os
import random

from probe import ask, differences, done, equal, point


def answer(body, content_type="-"):
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    return ask("eval", content_type.encode() + b"\n" + body).decode()


def fields(text):
    """The lines of a RUN, as (name, bytes)."""
    data = text.encode().removeprefix(b"RUN\n")
    found = []
    while data:
        name, rest = data.split(b" ", 1)
        if name == b"timeout":
            found.append((name.decode(), rest.split(b"\n", 1)[0]))
            data = rest.split(b"\n", 1)[1]
            continue
        length, rest = rest.split(b" ", 1)
        found.append((name.decode(), rest[:int(length)]))
        data = rest[int(length) + 1:]
    return found


def run(body):
    text = answer(body)
    return fields(text) if text.startswith("RUN\n") else text


def refused(title, description=None, status=400):
    body = {"title": title}
    if description is not None:
        body["description"] = description
    return f"{status} {json.dumps(body, ensure_ascii=False)}"


with open(os.path.join(os.path.dirname(__file__), "eval.json"),
          encoding="ascii") as file:
    golden = json.load(file)
with differences("statuses as Falcon and jsonschema answer") as same:
    for content_type, body, want in golden:
        got = answer(body.encode("latin-1"), content_type or "-")
        if want == "RUN" and got.startswith("KNOWN "):
            continue
        same((content_type, body), got[:3], want)

INVALID = "Request data failed validation"
FILE = "Request file is invalid"
for body, want in (
        (b'{"input": "x" "y"}', refused(
            "Invalid JSON", "The body is no JSON: '}' expected near '\"y\"' "
            "at line 1, column 17")),
        (b"", refused("Invalid JSON", "The body is empty: send its "
                      "Content-Length with it.")),
        ({"stuff": "foo"}, refused(INVALID, "{'stuff': 'foo'} is not valid "
                                   "under any of the given schemas")),
        ({"input": 400}, refused(INVALID, "400 is not of type 'string'")),
        ({"args": None}, refused(INVALID, "null is not of type 'array'")),
        (b"[]", refused(INVALID, "[] is not of type 'object'")),
        ({"input": "", "files": [{"content": ""}]},
         refused(INVALID, "files[0].path is missing")),
        ({"input": "", "files": [{"path": "/etc/x"}]},
         refused(INVALID, "files[0].path does not match what is allowed: it "
                 "must be relative, without line feeds and without \\0.")),
        ({"input": "", "files": [{"path": "a/../../x"}]},
         refused(FILE, "File path 'a/../../x' may not traverse beyond root")),
        ({"input": "", "files": [{"path": "a\0b"}]},
         refused(FILE, "File path 'a' may not traverse beyond root")),
        ({"input": "", "files": [{"path": "a", "content": "a"}]},
         refused(FILE, "Invalid base64 encoding for file 'a'")),
        ({"input": "", "executable_path": "/nowhere"},
         refused("executable_path does not exist")),
        ({"input": "", "executable_path": "/snekbin/python/3.12/bin/python"},
         refused("executable_path does not exist")),
        ({"input": "", "executable_path": "/" + "a" * 10000},
         refused("executable_path does not exist")),
        ({"input": "", "executable_path":
          "/snekbin/python/3.13/bin/python\0"},
         refused("executable_path does not exist")),
        ({"input": "", "executable_path": "snekbin/python/3.13/bin/python"},
         refused("executable_path does not exist")),
        ({"input": "", "executable_path": "/etc/hostname"},
         refused("executable_path does not exist")),
        ({"input": "", "executable_path": "/snekbin/python/3.13/bin"},
         refused("executable_path does not exist")),
        ({"input": "", "executable_path": "/"},
         refused("executable_path does not exist")),
        ({"input": "", "stdin": 5}, refused(INVALID,
                                            "5 is not of type 'string'")),
        ({"input": "", "timeout_ms": 0},
         refused(INVALID, "timeout_ms must be an integer from 1 to "
                 "60000")),
        ({"input": "", "timeout_ms": -10 ** 18},
         refused(INVALID, "timeout_ms must be an integer from 1 to "
                 "60000")),
        ({"input": "", "timeout_ms": 60001},
         refused(INVALID, "timeout_ms must be an integer from 1 to "
                 "60000")),
        ({"input": "", "timeout_ms": True},
         refused(INVALID, "true is not of type 'integer'"))):
    equal(answer(body), want, f"{str(body)[:60]!r}")
point(answer(b"[" * 100000).startswith('400 {"title": "Invalid JSON"'),
      "deep JSON is the client's fault")
equal(answer({"input": ""}, "application/xml"),
      refused("415 Unsupported Media Type",
              "application/xml is an unsupported media type.", 415), "XML")
equal(answer({"input": ""}, "APPLICATION/JSON")[:4], "RUN\n", "capitals")
equal(answer({"input": ""}, "multipart/form-data; boundary=x")[:4], "415 ",
      "multipart")
equal(answer({"x": "\x7f" * 3000000}), refused(
    INVALID, "The value is not valid under any of the given schemas"),
      "a long value is not shown")

DEFAULT = [("interpreter", b"default"), ("timeout", b"0")]


def args(*texts):
    return [("arg", text.encode()) for text in texts] + DEFAULT


equal(run({"input": "print(1)"}), args("-c", "print(1)"), "input alone")
equal(run({"args": ["-c", "1"]}), args("-c", "1"), "args alone")
equal(run({"args": []}), DEFAULT, "no argument")
equal(run({"args": ["", "", "a", ""]}), args("a", ""), "leading empty ones")
equal(run({"input": "x", "args": [""]}), args("x"), "input is a file's name")
equal(run({"input": "x", "args": []}), args("x"), "so it is here")
equal(run({"input": ""}), args("-c", ""), "empty input")
equal(run(b'{"input":"a","input":"b"}'), args("-c", "b"), "the last counts")
equal(run({"input": "x" * 200000}), args("-c", "x" * 200000), "a long one")
equal(run({"input": "1", "stdin": "a\0é", "timeout_ms": 60000})[2:],
      [("interpreter", b"default"), ("stdin", "a\0é".encode()),
       ("timeout", b"60000")], "the extras")
for path, want in (("", "default"), ("/snekbin/python/default/bin/python",
                                     "default"),
                   ("/snekbin/python/3.13/bin/python", "3.13"),
                   ("/snekbin/python/3.11/bin/python3.11", "3.11"),
                   ("/snekbin//python/./x/../3.13/bin/python3/", "3.13")):
    equal(run({"input": "", "executable_path": path})[2:3],
          [("interpreter", want.encode())], f"interpreter {path!r}")

for build, want in (("3.13t", "3.13"), ("3.11j", "3.11"), ("3.13", None),
                    ("3.13tj", None), ("3.13x", None), ("3.1", "3.11"),
                    ("3.14t", "3.13"), ("3.15", "3.13"), ("3.12", "3.13"),
                    ("3.10.0", "3.11"), ("2.7", None), ("4", None),
                    ("3.x", None), ("", None), ("defaultt", None),
                    ("t", None)):
    body = json.dumps({"input": "", "executable_path":
                       f"/snekbin/python/{build}/bin/python"}).encode()
    text = ask("eval_fallback", b"-\n" + body).decode()
    if want is not None:
        equal(fields(text)[2:4], [("interpreter", want.encode()),
                                  ("stands-in", b"")], f"a build: {build}")
    else:
        point("stands-in" not in text, f"no build: {build}")
    if build != "3.13":
        equal(answer(body), refused("executable_path does not exist"),
              f"{build} is not there, and nothing stands in for it")

for bad in ("\0", "a\0b"):
    equal(answer({"args": ["a", bad]}), "KNOWN ValueError: embedded null byte",
          f"an argument {bad!r}")


def files(*paths):
    """What becomes of files of these paths, each with its index in it."""
    return run({"args": [], "files": [
        {"path": path, "content": base64.b64encode(b"%d" % i).decode()}
        for i, path in enumerate(paths)]})


def staged(*names):
    out = []
    for i, name in enumerate(names):
        kind, _, path = name.partition(":")
        out += [(kind, path.encode()), ("content", b"%d" % i)]
    return out + DEFAULT


def failed(error, path):
    return f"KNOWN {error}: Failed to create file '{path}'."


equal(files("a", "b/c", "a"), staged("path:a", "path:b/c", "path:a"), "files")
equal(files("./a//b/", "x/../y", "../home/z"),
      staged("path:a/b", "odd:y", "odd:z"), "other ways to write a path")
equal(files("é\u2028\n", "a\\b"), staged("path:é\u2028\n", "path:a\\b"),
      "any name")
equal(run({"args": [], "files": [{"path": "a"}]}),
      [("path", b"a"), ("content", b"")] + DEFAULT, "no content")
equal(files(""), failed("IsADirectoryError", ""), "an empty path")
equal(files("a/.."), failed("IsADirectoryError", "a/.."), "/home itself")
equal(files("a", "a/b"), failed("FileExistsError", "a/b"), "a file as folder")
equal(files("a", "a/b/c"), failed("NotADirectoryError", "a/b/c"), "further up")
equal(files("a/b", "a"), failed("IsADirectoryError", "a"), "a folder as file")
equal(files("a" * 256), failed("OSError", "a" * 256), "a long name")
equal(files("a" * 255), staged("path:" + "a" * 255), "the longest name")
deep = "/".join(["a" * 200] * 6)
equal(files(deep), failed("OSError", deep), "a long path")
point(answer({"args": [], "files": [{"path": f"{i}/{i}"} for i in range(11000)]
              }).startswith("KNOWN OSError: "), "too many files and folders")
equal(answer({"args": ["\0"], "files": [{"path": ""}]}),
      failed("IsADirectoryError", ""), "files come before arguments")


MOST = 1000000


def consume(data):
    """Strict UTF-8 up to the bound, which may cut a character."""
    full = len(data) >= MOST
    try:
        text = io.TextIOWrapper(io.BytesIO(
            data[:MOST].decode(errors="strict" if not full else "ignore")
            .encode()), encoding="utf-8").read()
    except UnicodeDecodeError:
        return "INVALID "
    return ("FULL " if full else "OPEN ") + text


rng = random.Random(20261121)
with differences("output") as same:
    for text in ("", "a\r\nb\rc\r\r\n\n\r", "é\0", "\r", "\n", "x" * 20000):
        same(text, ask("output", text.encode()).decode(), consume(
            text.encode()))
    for data in (b"\xff", b"a\xe2\x82", b"\xe2\x82", b"\xed\xa0\x80",
                 b"\xff" + b"a" * MOST):
        same(data[:9], ask("output", data).decode(), "INVALID ")
    for letter in "aé€😀":
        most = MOST // len(letter.encode())
        for count in (most - 1, most, most + 1, most + 2, 2 * most):
            data = (letter * count).encode()
            same((letter, count), ask("output", data).decode(), consume(data))
    for _ in range(300):
        text = "".join(rng.choice("a\r\né€😀") for _ in range(30)) * \
            rng.randrange(3000)
        same(text[:50], ask("output", text.encode()).decode(),
             consume(text.encode()))

done()
