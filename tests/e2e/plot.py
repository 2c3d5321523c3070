# SPDX-License-Identifier: MIT
"""Draws curves into plot.png, for a Python without matplotlib: a module that
the browser test's people upload.

    from plot import plot
    plot(math.sin, math.cos, until=12)
"""

import struct
import zlib

WIDTH, HEIGHT, THICK = 720, 240, 2
INKS = (88, 166, 255), (255, 176, 80), (110, 220, 130)
PAPER, AXIS = (24, 26, 30), (70, 74, 82)


def chunk(kind, data):
    """A part of a PNG file."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(
        ">I", zlib.crc32(kind + data))


def plot(*functions, until=30):
    """Draw functions from 0 to `until`; their values are from -1 to 1."""
    rows = [[PAPER] * WIDTH for _ in range(HEIGHT)]
    rows[HEIGHT // 2] = [AXIS] * WIDTH
    for ink, function in zip(INKS, functions):
        before = None
        for x in range(WIDTH):
            value = function(x * until / WIDTH)
            y = round(HEIGHT / 2 - value * (HEIGHT / 2 - 3 * THICK))
            top, bottom = sorted((y, y if before is None else before))
            for row in rows[top - THICK:bottom + THICK + 1]:
                row[x] = ink
            before = y
    data = b"".join(b"\0" + b"".join(map(bytes, row)) for row in rows)
    with open("plot.png", "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(
            ">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b""))
