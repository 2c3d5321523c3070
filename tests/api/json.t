#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""JSON is read as CPython reads it, and refused with its words."""

import json
import random
import sys

from probe import ask, differences, done, equal, point

sys.setrecursionlimit(5000)
rng = random.Random(20261121)

WORDS = ["null", "true", "false", "NaN", "Infinity", "-Infinity", "0", "-0",
         "-", "01", "1.", "1.5", "-1.5e3", "1e400", "1E+2", "1e", "1e-", ".5",
         "12345678901234567890", "-9223372036854775808", "nul", "tru", "Nan",
         "9223372036854775808", "0.1", "1e22", "123456789.123456789", "5e-324",
         "1e16", "1e-5", "0.0001", "1234567890123456.7", "-0.0"]
TEXTS = ['""', '"a"', '"\\u00e9"', '"é"', '"\\ud83d\\ude00"', '"\\ud83d"',
         '"\\ude00\\ud83d"', '"\\ud83dx\\ude00"', '"\\ud83d\\u0041"', '"\\x"',
         '"\\u12"', '"\\u12g4"', '"\\ud83d\\u12"', '"\\ud83d\\ude0"', '"\t"',
         '"\\', '"\\u', '"\\u1234', '"abc', '"\u2028"', '"\\"\'"', '"\'"',
         '"\\u0000"', '"\U0001f600"', '"\\n\\t\\b\\f\\r\\/"', '"\x7f"',
         '"\\ud800\\ud800"', '"\\ud800é"', '"\\ud800\\é"', '"\\uéééé"',
         '"\\ud83d\\uéééé."', '"\\ud83d\\u00é0aaaaaaaa"', '"é\\q"']
MARKS = list("{}[],: \n\t\r\"\\'") + ["\ufeff", "\x0b", "\x00", "\xa0", "//"]


def value(depth=0):
    kind = rng.randrange(8 if depth < 4 else 5)
    if kind < 2:
        return rng.choice(WORDS)
    if kind < 4:
        return rng.choice(TEXTS)
    if kind == 4:
        return json.dumps("".join(chr(rng.randrange(0x250))
                                  for _ in range(rng.randrange(6))),
                          ensure_ascii=rng.random() < .5)
    blank = rng.choice(["", "", " ", "\n", "\r\n\t"])
    if kind == 5 or kind == 6:
        parts = [value(depth + 1) for _ in range(rng.randrange(4))]
        return "[" + blank + ("," + blank).join(parts) + blank + "]"
    parts = [rng.choice(['"a"', '"b"', '"a"', '"\\u0061"', '""'])
             + blank + ":" + value(depth + 1) for _ in range(rng.randrange(5))]
    return "{" + blank + ("," + blank).join(parts) + blank + "}"


def broken(text):
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
        at = rng.randrange(len(text) + 1)
        how = rng.randrange(4)
        if how == 0:
            text = text[:at]
        elif how == 1:
            text = text[:at] + rng.choice(MARKS) + text[at:]
        elif how == 2:
            text = text[:at] + text[at + rng.randrange(1, 3):]
        else:
            text = text[:at] + rng.choice(WORDS + TEXTS) + text[at:]
    return text


def python(data):
    try:
        return "OK " + repr(json.loads(data))
    except ValueError as error:
        return f"ERROR {error}"


def decoded(data):
    try:
        return python(data.decode())
    except UnicodeDecodeError as error:
        return f"ERROR {error}"


with differences("made-up texts as str") as same:
    for word in WORDS + TEXTS + MARKS:
        for text in (word, f"[{word}", f"[{word}]", f'{{"a":{word}}}',
                     f"{word}x", f" {word} ", f"[{word},", f"[{word},]",
                     f'{{"a":{word},', f'{{"a":{word},}}', f"{{{word}:1}}"):
            same(text, ask("json", text.encode()).decode(), decoded(
                text.encode()))
    for _ in range(20000):
        data = broken(value()).encode()
        same(data, ask("json", data).decode(), decoded(data))

with differences("broken bytes") as same:
    for _ in range(5000):
        data = bytearray(broken(value()).encode())
        for _ in range(rng.randrange(3)):
            data.insert(rng.randrange(len(data) + 1), rng.randrange(256))
        same(bytes(data), ask("json", bytes(data)).decode(), decoded(data))

with differences("what json.loads() takes as bytes") as same:
    for _ in range(5000):
        data = broken(value()).encode()
        if rng.random() < .2:
            data = b"\xef\xbb\xbf" + data
        if rng.random() < .2:
            data = data.replace(b'"', b'"\xed\xa0\xbd', 1)
        if b"\0" not in data[:2]:
            same(data, ask("json-bytes", data).decode(), python(data))
for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
    point(ask("json-bytes", '{"a":1}'.encode(name)).startswith(b"ERROR "),
          f"{name} is refused")

with differences("numbers") as same:
    for _ in range(20000):
        how = rng.randrange(3)
        if how == 0:
            number = rng.uniform(-1, 1) * 10 ** rng.randrange(-320, 309)
        elif how == 1:
            number = rng.randrange(-10 ** 6, 10 ** 6) / 10 ** rng.randrange(9)
        else:
            number = rng.randrange(-2 ** 70, 2 ** 70)
        text = repr(number)
        same(text, ask("json", text.encode()).decode(), "OK " + text)
    for digits in (4299, 4300, 4301, 5000):
        for sign in ("", "-"):
            text = sign + "1" * digits
            same(digits, ask("json", text.encode()).decode(), python(text))

with differences("equal names, of many") as same:
    for count in (1, 2, 3, 100, 5000):
        parts = [f'"{rng.randrange(count)}":{i}' for i in range(count)]
        text = "{" + ",".join(parts) + "}"
        same(count, ask("json", text.encode()).decode(), python(text))

equal(ask("json", b"[" * 1000 + b"]" * 1000), b"OK " + b"[" * 1000 +
      b"]" * 1000, "1,000 levels")
equal(ask("json", b"[" * 1001 + b"]" * 1001),
      b"LIMIT Nested too deeply: line 1 column 1001 (char 1000)",
      "1,001 levels")
point(ask("json", b"[" * 1000000).startswith(b"LIMIT "), "a million levels")
point(ask("json", b'{"a":' * 100000).startswith(b"LIMIT "), "in objects")
point(ask("json", b"[" + b"[]," * 1000000 + b"1]").startswith(b"LIMIT Too m"),
      "too many values")
point(ask("json", b"[" + b"1," * 900000 + b"1]").startswith(b"OK "),
      "many values")

with differences("written again") as same:
    for _ in range(3000):
        text = value()
        try:
            tree = json.loads(text)
            want = json.dumps(tree, ensure_ascii=False, allow_nan=False,
                              separators=(",", ":"))
            want.encode()
        except ValueError:
            continue
        same(text, ask("dump", text.encode()).decode(), "OK " + want)
equal(ask("dump", b'["\\ud800",NaN,-Infinity]'),
      b'OK ["\\ud800",null,null]', "what JSON has no text for")

with differences("in ASCII") as same:
    for _ in range(2000):
        text = "".join(chr(rng.choice([rng.randrange(128), rng.randrange(
            0xd800), rng.randrange(0xe000, 0x110000)]))
            for _ in range(rng.randrange(20)))
        want = json.dumps(text).replace("\x7f", "\\u007f")
        same(text, ask("ascii", text.encode()).decode(), want)
with differences("one character among many that stand for themselves") as same:
    for code in (*range(160), 0x20ac, 0x1f600):
        text = "x" * rng.randrange(20) + chr(code) + "~" * rng.randrange(20)
        want = json.dumps(text).replace("\x7f", "\\u007f")
        same(text, ask("ascii", text.encode()).decode(), want)
        want = json.dumps(text, ensure_ascii=False)
        same(text, ask("dump", want.encode()).decode(), "OK " + want)
done()
