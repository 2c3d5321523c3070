#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Base64 and broken UTF-8 are what CPython makes of them."""

import base64
import random
import re

from probe import ask, differences, done, equal

rng = random.Random(20261121)

def python(text):
    """What CPython decodes once blanks are gone, there is one alphabet, and the
    padding is right."""
    plain = "".join(text.split()).replace("-", "+").replace("_", "/")
    if len(plain) % 4 != 0 or not re.fullmatch("[A-Za-z0-9+/]*=?=?", plain):
        return b"ERROR"
    return b"OK " + base64.b64decode(plain)


with differences("base64 decoded") as same:
    letters = "AQaz09+/=== !-_\n\té"
    for text in ("", "=", "==", "A", "A=", "AA=", "AA==", "AA=A=", "AAA",
                 "AAA=", "AAAA=", "AAAA", "AA=\n=", "AAAAé", "AA==é", "A===",
                 "AA===", "AAAA\r\nAA ==", "-_-_"):
        same(text, ask("base64", text.encode()), python(text))
    for _ in range(3000):
        text = base64.b64encode(rng.randbytes(rng.randrange(200))).decode()
        same(text, ask("base64", text.encode()), python(text))
        text = text.rstrip("=")
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(letters) + text[at:]
        text += "=" * (-len(text) % 4)
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
