# SPDX-License-Identifier: MIT
"""Frames of sandbox/protocol/frame.h, for tests that stand in for a program or a
cell.  Names are the header's without FRAME_ and TAG_.
"""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "sandbox", "protocol"))
import header           # noqa: E402  (needs the path above)

_text = "".join(header.read(os.path.join(ROOT, path))
                for path in (header.LIMITS, header.FRAME))
N = header.constants(_text)
_enumerators = header.enumerators(_text)
KINDS = {number: name[6:] for name, number in _enumerators.items()
         if name.startswith("FRAME_")}
TAGS = {number: name[4:] for name, number in _enumerators.items()
        if name.startswith("TAG_")}
TYPES = {TAGS[tag]: kind for tag, kind in header.tag_types(_text).items()}


def pack(kind, *fields):
    """A frame of (tag, int or str or bytes) pairs; None is left out."""
    packet = bytearray([N["FRAME_" + kind]])
    for tag, value in fields:
        if value is None:
            continue
        if isinstance(value, int):
            value = int(value).to_bytes(8, "little", signed=True)
        value = os.fsencode(value)
        packet += bytes([N["TAG_" + tag]]) + len(value).to_bytes(4, "little")
        packet += value
    return bytes(packet)


def unpack(packet):
    """(kind, {tag: int, or bytes, or a list where it may be repeated})."""
    fields, at = {}, 1
    while at < len(packet):
        tag = TAGS[packet[at]]
        size = int.from_bytes(packet[at + 1:at + 5], "little")
        data = packet[at + 5:at + 5 + size]
        at += 5 + size
        assert len(data) == size and (
            tag not in fields or TYPES[tag] == "bytes, repeated"), packet
        if TYPES[tag] == "bytes, repeated":
            fields.setdefault(tag, []).append(data)
        elif TYPES[tag] == "int":
            assert size == 8, tag
            fields[tag] = int.from_bytes(data, "little", signed=True)
        else:
            fields[tag] = data
    return KINDS[packet[0]], fields


def refusal_name(fields):
    """Of a REFUSED: "BUSY" and so on."""
    return next((name[8:] for name, number in N.items()
                 if name.startswith("REFUSAL_") and number == fields["CODE"]),
                str(fields["CODE"]))
