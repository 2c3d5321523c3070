#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""repr(), base64 and broken UTF-8 are what CPython makes of them."""

import base64
import random
import unicodedata

from probe import ask, differences, done, equal, point

rng = random.Random(20261121)

if unicodedata.unidata_version == "14.0.0":
    want = "".join("1" if chr(code).isprintable() else "0"
                   for code in range(0x110000))
    point(ask("printable", b"").decode() == want, "what is printable")
else:
    point(True, "what is printable # SKIP another Unicode")


def python(text):
    try:
        return b"OK " + base64.b64decode(text)
    except ValueError:
        return b"ERROR"


with differences("base64 decoded") as same:
    letters = "AQaz09+/=== !-_\n\té"
    for text in ("", "=", "==", "A", "A=", "AA=", "AA==", "AA=A=", "AAA",
                 "AAA=", "AAAA=", "AAAA", "AA==AA", "AA=\n=", "AAAAé", "AA==é"):
        same(text, ask("base64", text.encode()), python(text))
    for _ in range(20000):
        text = "".join(rng.choice(letters) for _ in range(rng.randrange(12)))
        same(text, ask("base64", text.encode()), python(text))
    for _ in range(3000):
        text = base64.b64encode(rng.randbytes(rng.randrange(200))).decode()
        for _ in range(rng.randrange(3)):
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice(letters) + text[at:]
        same(text, ask("base64", text.encode()), python(text))
with differences("base64 encoded") as same:
    for length in range(200):
        data = rng.randbytes(length)
        same(data, ask("unbase64", data), base64.b64encode(data))

with differences("UTF-8 in pieces, decoded with replacement") as same:
    pieces = [b"a", "é".encode(), "€".encode(), "😀".encode(), b"\xff",
              b"\xe2\x82", b"\xf0\x9f", b"\xf0", b"\xed\xa0\x80", b"\xc0\x80",
              b"\xe0\x80", b"\xf4\x90", b"\x80", b"\xf0\x9f\x98"]
    for _ in range(20000):
        data = b"".join(rng.choice(pieces) for _ in range(rng.randrange(8)))
        same(data, ask("replace", data).decode(),
             data.decode("utf-8", "replace"))
    for _ in range(5000):
        data = rng.randbytes(rng.randrange(12))
        same(data, ask("replace", data).decode(),
             data.decode("utf-8", "replace"))
done()
