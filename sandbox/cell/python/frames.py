"""The protocol of sandbox/protocol/frame.h, as far as a cell speaks it.

The numbers are those of the header; tests/cell/frames.t compares them.
Nothing is imported here: whatever the cell loads, every run pays for.
"""

FRAME_MAX = 65536
FRAME_CHUNK = 32768

FRAME_SERVE = 16
FRAME_READY = 17
FRAME_IDLE = 18
FRAME_REQUEST = 32
FRAME_BYTES = 33
FRAME_INPUT = 34
FRAME_GO = 35
FRAME_ENOUGH = 36
FRAME_STARTED = 48
FRAME_OUTPUT = 49
FRAME_ENTRY = 50
FRAME_FILE = 51
FRAME_LEFT_OUT = 52
FRAME_RESULT = 53

TAG_CODE = 4
TAG_TEXT = 5
TAG_PYTHON = 10
TAG_ISOLATION = 12
TAG_RETIRE = 13
TAG_ACCESS = 14
TAG_OP = 16
TAG_PATH = 17
TAG_CWD = 18
TAG_NAME = 19
TAG_ARG = 20
TAG_ECHO = 21
TAG_MERGE = 22
TAG_WALL_MS = 23
TAG_OUTPUT_MAX = 24
TAG_COLLECT_FILES = 25
TAG_COLLECT_BYTES = 26
TAG_COLLECT_TOTAL = 27
TAG_OFFSET = 28
TAG_COUNT = 29
TAG_MAX_BYTES = 30
TAG_RECURSIVE = 31
TAG_INDEX_URL = 32
TAG_SDIST = 33
TAG_CA = 34
TAG_CUT = 35
TAG_FOLDER = 36
TAG_ENV = 37
TAG_PLAIN = 38
TAG_LIMIT_MEMORY = 39
TAG_LIMIT_PROCESSES = 40
TAG_LIMIT_FILES = 41
TAG_LIMIT_CPU = 42
TAG_OUTPUT_MODE = 43
TAG_COLLECT_HOW = 44
TAG_COLLECT_MS = 45
TAG_MODE = 46
TAG_ALWAYS = 47
TAG_PART = 48
TAG_DATA = 49
TAG_STREAM = 50
TAG_KIND = 51
TAG_SIZE = 52
TAG_MTIME = 53
TAG_WHY = 54
TAG_REASON = 64
TAG_STATUS = 65
TAG_SIGNAL = 66
TAG_WALL_US = 67
TAG_CPU_US = 68
TAG_MAX_RSS = 69
TAG_USED_BYTES = 70
TAG_USED_FILES = 71
TAG_TOTAL = 72
TAG_DISK_FULL = 73

ACCESS_WRITE = 1
ACCESS_TIDY = 2
ACCESS_READ = 3

OP_RUN = 1
OP_LIST = 2
OP_READ = 3
OP_WRITE = 4
OP_REMOVE = 5
OP_PIP = 6
OP_STAT = 7
OP_STAGE = 8
OP_BASH = 9

ISOLATION_CELL = 1
ISOLATION_RUN = 2

OUTPUT_END = 0
OUTPUT_DRAIN = 1

COLLECT_BYTES = 1
COLLECT_MTIME = 2
COLLECT_NO_DOT = 4
COLLECT_NO_UNDERSCORE = 8
COLLECT_LINKS = 16

PART_SOURCE = 1
PART_STDIN = 2
PART_CONTENT = 3
PART_ARGS = 4

ENTRY_FILE = 1
ENTRY_DIRECTORY = 2
ENTRY_LINK = 3
ENTRY_OTHER = 4

LEFT_OUT_COUNT = 1
LEFT_OUT_SIZE = 2
LEFT_OUT_TOTAL = 3
LEFT_OUT_UNREADABLE = 4
LEFT_OUT_TIME = 5
LEFT_OUT_PATH = 6

REASON_EXIT = 1
REASON_SIGNAL = 2
REASON_TIME = 3
REASON_MEMORY = 4
REASON_OUTPUT = 5
REASON_ERROR = 6

ERROR_NOT_INSIDE = 1
ERROR_NOT_FOUND = 2
ERROR_IS_DIRECTORY = 3
ERROR_NOT_DIRECTORY = 4
ERROR_TOO_LARGE = 5
ERROR_NO_SPACE = 6
ERROR_NOT_EMPTY = 7
ERROR_NOT_REGULAR = 8
ERROR_PERMISSION = 9
ERROR_REQUEST = 10
ERROR_FAILED = 11
ERROR_READ_ONLY = 12


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
    """What comes before the bytes of a field."""
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
        """What FRAME_RESULT says about it."""
        return ((TAG_REASON, REASON_ERROR), (TAG_CODE, self.code),
                (TAG_TEXT, self.text.encode("utf-8", "replace")[:200]),
                (TAG_SIZE, self.size), (TAG_PATH, self.path))
