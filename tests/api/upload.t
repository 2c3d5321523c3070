#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Uploads: multipart forms as browsers, curl and requests send them, and as
nobody should."""

import json
import random
import urllib.parse

from probe import ask, differences, done, equal, point

TYPE = "multipart/form-data; boundary=x"
D = b"Content-Disposition: form-data; "
FILE = D + b'name="file"; filename="a"'
END = b"\r\n--x--\r\n"


def part(head, data=b"abc", end=END):
    return b"--x\r\n" + head + b"\r\n\r\n" + data + end


def answer(body, content_type=TYPE):
    return ask("upload", content_type.encode() + b"\n" + body)


def took(name, data=b"abc"):
    name = name.encode()
    return b"name %d %s\ndata %d %s\n" % (len(name), name, len(data), data)


def detail(status, text):
    return f"{status} ".encode() + json.dumps(
        {"detail": text}, ensure_ascii=False, separators=(",", ":")).encode()


MISSING = (b'422 {"detail":[{"type":"missing","loc":["body","file"],"msg":'
           b'"file is missing: send a form with a file of that name",'
           b'"input":null}]}')
INVALID = detail(400, "Invalid multipart data.")
NO_NAME = detail(400, 'The Content-Disposition header field "name" must be '
                 "provided.")
NO_BOUNDARY = detail(400, "Missing boundary in multipart.")


for parameters, want in (
        (b'name="file"; filename="a.txt"', took("a.txt")),
        (b"name=file; filename=a.txt", took("a.txt")),
        (b'name="file" ; filename = "a b" ', took("a b")),
        (b'NAME="file"; FileName="a"', took("a")),
        (b'name="file"; filename=""', took("unnamed")),
        (b'name="file"; filename="a\\"b\\\\c"', took('a"b\\c')),
        (b'name="file"; filename="a;b=c"', took("a;b=c")),
        (b'name="file"; filename="a%22b"', took("a%22b")),
        (b'name="file"; filename="a/../b"', took("a/../b")),
        (b'name="file"; filename="C:\\x\\y.txt"', took("y.txt")),
        (b'name="file"; filename="\\\\\\\\host\\\\y"', took("y")),
        ('name="file"; filename="é😀"'.encode(), took("é😀")),
        (b'name="file"; filename="\xe9"', took("é")),
        (b'name="file"; filename="\x1b\x7f"', took("\x1b\x7f")),
        (b"name=\"file\"; filename=\"x\"; filename*=UTF-8''y", took("x")),
        (b"name=\"file\"; filename*=UTF-8''a%C3%A9%0D%0A", took("aé\r\n")),
        (b"name=\"file\"; filename*=iso-8859-1'en'%e9", took("é")),
        (b"name=\"file\"; filename*=UTF-8''%FF", MISSING),
        (b"name=\"file\"; filename*=UTF-8''a%00", MISSING),
        (b"name=\"file\"; filename*=x''a", MISSING),
        (b'name="file"; filename="' + b"n" * 8000 + b'"', took("n" * 8000)),
        (b'name="file"; filename="' + b"n" * 10000 + b'"', INVALID),
        (b'name="file"; filename="a\0b"', INVALID),
        (b'name="file"; filename="a\nb"', INVALID),
        (b'name="file"; filename="a\rb"', INVALID),
        (b'name="file"; filename="a\r\nb"', INVALID),
        (b'name="file"; filename="a', MISSING),
        (b'name="other"; filename="a"', MISSING),
        (b'name="file"', MISSING),
        (b'name="other"', MISSING),
        (b'filename="a"', NO_NAME),
        (b"", NO_NAME)):
    equal(answer(part(D + parameters)), want, f"{parameters[:50]!r}")

for body, want, name in (
        (part(b"content-disposition:attachment;name=file;filename=a"),
         took("a"), "another disposition"),
        (part(b"X: y"), NO_NAME, "no disposition"),
        (b"--x\r\n\r\nabc" + END, NO_NAME, "no head"),
        (part(b"X-1: \xff\r\n" + FILE + b"\r\nContent-Type: text/plain"),
         took("a"), "more fields"),
        (part(FILE + b"\r\nbad header"), INVALID, "no colon"),
        (part(FILE + b"\r\n: v"), INVALID, "no name"),
        (part(FILE + b"\r\nX(: 1"), INVALID, "no token"),
        (part(FILE + b"\r\nX: " + b"y" * 9000), INVALID, "a long field"),
        (part(FILE + b"\r\n" + b"X: y\r\n" * 2000 + b"X: y"), INVALID,
         "many fields"),
        (b"\r\n\r\n" + part(FILE), took("a"), "empty lines before"),
        (b"preamble\r\n" + part(FILE) + b"epilogue", took("a"), "around it"),
        (part(FILE, b""), took("a", b""), "an empty file"),
        (part(FILE, end=b"\r\n--x--"), took("a"), "no last line end"),
        (part(FILE, end=b""), INVALID, "cut in the data"),
        (part(FILE, end=b"\r\n--x"), INVALID, "cut in the delimiter"),
        (part(FILE, end=b"\r\n--x-"), INVALID, "cut in its end"),
        (part(FILE, end=b"\r\n--x\r\n"), INVALID, "cut before a head"),
        (part(FILE, end=b"\r\n--x\r\n" + D), INVALID, "cut in a head"),
        (part(FILE, b"1\r\n--xy\r\n--\r\n--x-\r\r\n-"),
         took("a", b"1\r\n--xy\r\n--\r\n--x-\r\r\n-"), "almost delimiters"),
        (part(FILE, b"one", b"\r\n--x \t\r\n") + part(
            D + b'name="file"; filename="b"', b"two")[5:], took("b", b"two"),
         "the last one counts"),
        (part(FILE, b"one", b"\r\n") + part(D + b'name="file"', b"two"),
         MISSING, "even a text"),
        (part(D + b'name="file"', b"one", b"\r\n") + part(FILE, b"two"),
         took("a", b"two"), "or a file"),
        (part(D + b'name="file"', b'\xff"\r\n'),
         MISSING, "any text"),
        (b"--x\n" + FILE + b"\n\nabc\n--x--\n", INVALID, "bare line feeds"),
        (b"", MISSING, "nothing"), (b"--x--\r\n", MISSING, "no part"),
        (b"\r\n", MISSING, "a line end"),
        (b"garbage", INVALID, "garbage"), (b"--y\r\n\r\n", INVALID, "others'"),
        (part(FILE, b"z" * (3 << 20)), took("a", b"z" * (3 << 20)),
         "the largest"),
        (part(FILE, b"z" * (3 << 20) + b"z"),
         detail(413, "File size exceeds maximum of 3 MB"), "too large"),
        (part(FILE, b"z" * (4 << 20), b"\r\n") + part(FILE, b"z"),
         took("a", b"z"), "one of them too large"),
        (part(FILE, b"z" * (4 << 20), b""), INVALID, "too large and cut"),
        (part(D + b"name=f", b"z" * ((1 << 20) + 1)),
         detail(400, "Part exceeded maximum size of 1024KB."), "a long text"),
        (part(D + b"name=f", b"", b"\r\n") * 1001,
         detail(400, "Too many fields. Maximum number of fields is 1000."),
         "many texts"),
        (part(D + b'name=f;filename=""', b"", b"\r\n") * 10000,
         detail(400, "Too many files. Maximum number of files is 1000."),
         "10,000 files"),
        (part(D + b"name=f", b"", b"\r\n") * 1000 + part(FILE), took("a"),
         "just not too many")):
    equal(answer(body)[:400], want[:400], name)

for content_type, want in (
        ("multipart/form-data", NO_BOUNDARY),
        ("multipart/form-data; boundary=", NO_BOUNDARY),
        ('multipart/form-data; boundary=""', NO_BOUNDARY),
        ("multipart/form-data; boundary=" + "y" * 201, NO_BOUNDARY),
        ('Multipart/Form-Data; charset=utf-8; Boundary="x"', took("a")),
        ("multipart/mixed; boundary=x", MISSING), ("text/plain", MISSING),
        ("-", MISSING), ("", MISSING)):
    equal(answer(part(FILE), content_type), want, f"type {content_type[:60]}")

rng = random.Random(20261121)
with differences("any data, in pieces of any length") as same:
    bits = [b"\r", b"\n", b"\r\n", b"-", b"--", b"\r\n--x", b"\r\n--", b"x",
            b"\0", b"\xff", b"abc", b" "]
    for _ in range(20000):
        data = b"".join(rng.choice(bits) for _ in range(rng.randrange(12)))
        body = part(FILE, data)
        # as the standard says: up to the first delimiter
        rest = b"\r\n" + data + END
        at = 0
        while True:
            at = rest.index(b"\r\n--x", at)
            tail = rest[at + 5:].lstrip(b" ")
            if tail.startswith(b"\r\n") or rest[at + 5:].startswith(b"--"):
                break
            at += 1
        got = answer(body)
        if rest[at + 5:].startswith(b"--") and at >= 2:
            same(data, got, took("a", data[:at - 2]))

with differences("the header of a download") as same:
    for _ in range(3000):
        name = "".join(rng.choice('aZ9 .-_"\\;%\'\r\n\t\0é€😀\u202e/')
                       for _ in range(rng.randrange(1, 12))).split("\0")[0]
        got = ask("disposition", name.encode()).decode("ascii")
        plain = "".join(c if " " <= c <= "~" and c not in '"\\' else "_"
                        for c in name)
        want = f'attachment; filename="{plain}"'
        if plain != name:
            want += "; filename*=UTF-8''" + urllib.parse.quote(
                name, safe="!#$&+-.^_`|~")
        same(name, got, want)
equal(ask("disposition", b"report.txt"), b'attachment; filename="report.txt"',
      "a plain name")
point(b"\n" not in ask("disposition", b"a\r\nX: y"), "no other header")
done()
