#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Makes .github/chat.png, the README's picture of the chat page, anew.

    tests/e2e/picture.py [FILE]

A person plays a short scene in a real browser: what the picture shows is what
the programs have answered.
"""

import base64
import collections
import json
import os
import struct
import sys
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from service import ROOT, Service  # noqa: E402
from browser import Browser  # noqa: E402
from person import NEWEST, Person  # noqa: E402

WIDTH, HEIGHT, SCALE = 1000, 750, 2
COLOURS, EXACT = 256, 96
PATIENCE_SECONDS = 120
# A module of the person's, with which code can save a picture.
MODULE = """import struct
import zlib

AMBER, BLUE, GREEN = (255, 176, 80), (88, 166, 255), (110, 220, 130)
GREY = 24, 26, 30


def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack(
        '>I', zlib.crc32(kind + data))


def save(name, rows):
    data = b''.join(b'\\0' + b''.join(map(bytes, row)) for row in rows)
    with open(name, 'wb') as file:
        file.write(b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack(
            '>IIBBBBB', len(rows[0]), len(rows), 8, 2, 0, 0, 0))
            + chunk(b'IDAT', zlib.compress(data)) + chunk(b'IEND', b''))
"""
CODE = """from math import cos, exp, pi
from picture import AMBER, BLUE, GREEN, GREY, save

plot = [[GREY] * 1100 for _ in range(360)]
for damping, colour in (0.1, BLUE), (0.3, AMBER), (0.9, GREEN):
    for x in range(1100):
        y = round(170 - 150 * exp(-damping * x / 90) * cos(x / 45))
        for line in plot[y - 3:y + 4]:
            line[x] = colour
    print(f'damping {damping}: {exp(-damping * pi):4.0%} after a turn')
save('waves.png', plot)
"""
# What the browser makes of its own picture: four bytes for each dot,
# deflated.
DOTS = """(async () => {
  const answer = await fetch("data:image/png;base64,%s");
  const image = await createImageBitmap(await answer.blob());
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const data = context.getImageData(0, 0, image.width, image.height).data;
  const small = new Blob([data]).stream().pipeThrough(
    new CompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(small).arrayBuffer());
  let text = "";
  for (const byte of bytes)
    text += String.fromCharCode(byte);
  return [image.width, image.height, btoa(text)];
})()"""


def says(person, text):
    """Say it and wait for the answer."""
    before = person.newest()
    person.types(text)
    person.browser.key("Enter")
    person.waits(f"{NEWEST}.dataset.messageId !== {json.dumps(before)} && "
                 f"{NEWEST}.dataset.state !== 'thinking'", PATIENCE_SECONDS)
    person.browser.wait("!one('[data-pending]')", PATIENCE_SECONDS)


def plays(person):
    """The scene; at its end the page shows what is worth a picture."""
    says(person, "/il create")
    says(person, "/il write name:picture.py content:" + MODULE)
    says(person, "/il write name:waves.py content:" + CODE)
    says(person, "/il look waves.py")
    says(person, "/il py file:waves.py share:true")
    person.waits("last('img[data-image]').naturalWidth > 0")


def sorted_by_widest(box):
    """The colours of a box by the channel in which they differ most, and how
    far they are apart in it.
    """
    spans = [max(colour[i] for colour in box) - min(colour[i] for colour in box)
             for i in range(3)]
    widest = spans.index(max(spans))
    return sorted(box, key=lambda colour: colour[widest]), spans[widest]


def palette(counts):
    """The most frequent colours as they are.  All others are cut into as many
    boxes as there may be, always the widest one, and become the most frequent
    one of their box.  Returns the colours, and the number of each.
    """
    exact = [colour for colour, _ in counts.most_common(EXACT)]
    boxes = [sorted_by_widest(list(set(counts) - set(exact)) or exact)]
    while len(boxes) < COLOURS - len(exact):
        boxes.sort(key=lambda box: box[1])
        if boxes[-1][1] == 0:
            break
        box, _ = boxes.pop()
        boxes += [sorted_by_widest(box[:len(box) // 2]),
                  sorted_by_widest(box[len(box) // 2:])]
    boxes = [[colour] for colour in exact] + [box for box, _ in boxes]
    return ([max(box, key=counts.__getitem__) for box in boxes],
            {colour: number for number, box in enumerate(boxes)
             for colour in box})


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(
        ">I", zlib.crc32(kind + data))


def small_png(width, height, dots):
    """A PNG with a palette: a quarter of what a browser writes."""
    colours = list(zip(dots[0::4], dots[1::4], dots[2::4]))
    chosen, number = palette(collections.Counter(colours))
    rows = bytes(map(number.__getitem__, colours))
    data = b"".join(b"\0" + rows[y * width:(y + 1) * width]
                    for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(
        ">IIBBBBB", width, height, 8, 3, 0, 0, 0))
        + chunk(b"PLTE", b"".join(map(bytes, chosen)))
        + chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b""))


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(
        ROOT, ".github", "chat.png")
    with Service() as service, Browser(WIDTH, HEIGHT) as browser:
        browser.send("Emulation.setDeviceMetricsOverride", width=WIDTH,
                     height=HEIGHT, deviceScaleFactor=SCALE, mobile=False)
        person = Person(browser)
        person.opens(f"http://127.0.0.1:{service.port}/")
        plays(person)
        taken = browser.send("Page.captureScreenshot", format="png")["data"]
        browser.goto("about:blank")
        width, height, dots = browser.evaluate(DOTS % taken, PATIENCE_SECONDS)
    with open(path, "wb") as file:
        file.write(small_png(width, height, zlib.decompress(
            base64.b64decode(dots))))
    print(f"{path}: {os.path.getsize(path)} bytes")


main()
