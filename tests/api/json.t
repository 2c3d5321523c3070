#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""JSON means what it means to CPython, and the same texts are refused, but for
NaN and the infinities, which are no JSON, numbers that C does not have, and a
NUL in a name.  Half of a surrogate pair becomes U+FFFD."""

import json
import random
import re
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


def refuse(word):
    raise ValueError(word)


def integer(text):
    number = int(text)
    return number if -2 ** 63 <= number < 2 ** 63 else refuse(text)


def real(text):
    number = float(text)
    return number if abs(number) < float("inf") else refuse(text)


def members(pairs):
    return {key if "\0" not in key else refuse(key): value
            for key, value in pairs}


def python(data):
    """What CPython reads, or None."""
    try:
        found = json.loads(
            data.removeprefix(b"\xef\xbb\xbf").decode(),
            parse_constant=refuse, parse_int=integer, parse_float=real,
            object_pairs_hook=members)
        whole = re.sub("[\ud800-\udfff]", "\ufffd",
                       json.dumps(found, ensure_ascii=False))
        return [json.loads(whole)]
    except ValueError:
        return None


def ours(data):
    """What is read when what we write is read again, or None."""
    answer = ask("json", data).decode(errors="replace")
    if answer.startswith("OK "):
        return [json.loads(answer[3:])]
    assert answer.startswith(("ERROR ", "LIMIT ")), answer
    return None


with differences("made-up texts") as same:
    for word in WORDS + TEXTS + MARKS:
        for text in (word, f"[{word}", f"[{word}]", f'{{"a":{word}}}',
                     f"{word}x", f" {word} ", f"[{word},", f"[{word},]",
                     f'{{"a":{word},', f'{{"a":{word},}}', f"{{{word}:1}}"):
            same(text, ours(text.encode()), python(text.encode()))
    for _ in range(20000):
        data = broken(value()).encode()
        same(data, ours(data), python(data))

with differences("broken bytes") as same:
    for _ in range(5000):
        data = bytearray(broken(value()).encode())
        for _ in range(rng.randrange(3)):
            data.insert(rng.randrange(len(data) + 1), rng.randrange(256))
        same(bytes(data), ours(bytes(data)), python(bytes(data)))

equal(ask("json", b'{"input": "a" "b"}').decode(),
      "ERROR '}' expected near '\"b\"' at line 1, column 17", "a fault")
equal(ask("json", b'"\xff"'), b"LIMIT it is not in UTF-8",
      "bytes that are no UTF-8")
for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
    equal(ours('{"a":1}'.encode(name)), None, f"{name} is refused")

equal(ask("json", b"[" * 1000 + b"]" * 1000), b"OK " + b"[" * 1000 +
      b"]" * 1000, "1,000 levels")
equal(ask("json", b"[" * 1001 + b"]" * 1001),
      b"LIMIT it is nested too deeply",
      "1,001 levels")
point(ask("json", b"[" * 1000000).startswith(b"LIMIT "), "a million levels")
point(ask("json", b'{"a":' * 100000).startswith(b"LIMIT "), "in objects")
point(ask("json", b"[" + b"[]," * 1000000 + b"1]").startswith(b"LIMIT there are too m"),
      "too many values")
point(ask("json", b"[" + b"1," * 900000 + b"1]").startswith(b"OK "),
      "many values")

for text in ("1", "-1", "1.5", "9223372036854775807", "0.10000000000000001"):
    equal(ask("json", text.encode()).decode(), "OK " + text, "a number")
equal(ask("json", b'["\\ud800","\\\\ud800","\\u007f"]'),
      b'OK ["\xef\xbf\xbd","\\\\ud800","\x7f"]', "half of a pair")

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
        same(text, ask("json", want.encode()).decode(), "OK " + re.sub(
            r"\\u00..", lambda found: "\\u" + found[0][2:].upper(), want))
done()
