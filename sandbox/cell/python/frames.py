# SPDX-License-Identifier: MIT
"""Frames of the protocol of sandbox/protocol/frame.h, as a cell reads and writes
them.  protocol.py is made from that header when building: all of its numbers.
Nothing else is imported here: whatever the cell loads, every run pays for.
"""

from protocol import *


class ProtocolError(Exception):
    """The peer sent something that is not a frame, or not one for now."""


class Frame:
    """One received frame: its kind, and its fields by tag."""

    __slots__ = ("kind", "fields")

    def __init__(self, packet):
        """Take a packet apart.  ProtocolError if it is not a frame."""
        if not packet:
            raise ProtocolError("empty packet")
        self.kind = packet[0]
        self.fields = fields = {}
        at, end = 1, len(packet)
        while at < end:
            start = at + 5
            stop = start + int.from_bytes(packet[at + 1:start], "little")
            if start > end or stop > end:
                raise ProtocolError("a field runs out of the packet")
            tag = packet[at]
            if tag in fields and tag not in (TAG_ARG, TAG_ENV):
                raise ProtocolError("tag %d twice" % tag)
            fields.setdefault(tag, []).append(packet[start:stop])
            at = stop

    def number(self, tag, default=0):
        """The integer under tag; default when there is none."""
        if tag not in self.fields:
            return default
        data = self.fields[tag][0]
        if len(data) != 8:
            raise ProtocolError("tag %d is no integer" % tag)
        return int.from_bytes(data, "little", signed=True)

    def data(self, tag, default=None):
        """The bytes under tag; default when there are none."""
        return self.fields[tag][0] if tag in self.fields else default

    def every(self, tag):
        """All values of a repeated tag, in order."""
        return self.fields.get(tag, [])


def frame(kind, *fields):
    """A packet of kind with (tag, int or bytes) fields; None is left out."""
    packet = bytearray((kind,))
    for tag, value in fields:
        if value is None:
            continue
        if isinstance(value, int):
            value = value.to_bytes(8, "little", signed=True)
        packet.append(tag)
        packet += len(value).to_bytes(4, "little")
        packet += value
    return bytes(packet)


def head_of(tag, length):
    """The head of a field."""
    return bytes((tag,)) + length.to_bytes(4, "little")


class Failure(Exception):
    """A request cannot be met: code is one of ERROR_*, text is for a log."""

    def __init__(self, code, text, size=None):
        Exception.__init__(self, code, text)
        self.code = code
        self.text = text
        self.size = size
        self.path = None        # of the staged file that it is about

    def fields(self):
        """The fields of its FRAME_RESULT."""
        return ((TAG_REASON, REASON_ERROR), (TAG_CODE, self.code),
                (TAG_TEXT, self.text.encode("utf-8", "replace")[:200]),
                (TAG_SIZE, self.size), (TAG_PATH, self.path))
