#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The WebSocket of Piston's contract, /api/v2/connect, through nginx: input
while a run goes on, signals, each close code, and clients that are none."""

import contextlib
import json
import os
import re
import socket
import struct
import subprocess
import tempfile

from served import Served, wait_for
from service import BUILD
from tap import run, test

served = Served(IL_API_CELLS="2").__enter__()
long = Served(IL_API_CELLS="1", IL_PISTON_TIMEOUT_SECONDS="60").__enter__()
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
ECHO = "import sys\nfor line in sys.stdin: print('got', line, end='')\nprint(1)"
FOREVER = "import time\nprint('on', flush=True)\nwhile True: time.sleep(1)"


class Socket:
    """A client that says what it is told to, byte for byte."""

    def __init__(self, headers="", service=served):
        self.sock = socket.create_connection(("127.0.0.1", service.port), 60)
        self.sock.sendall((
            "GET /api/v2/connect HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" + headers +
            "\r\n").encode())
        self.data = b""
        while b"\r\n\r\n" not in self.data:
            more = self.sock.recv(65536)
            assert more, self.data
            self.data += more
        self.head, _, self.data = self.data.partition(b"\r\n\r\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def frame(self, opcode, data, fin=1, mask=True):
        head = bytes([fin << 7 | opcode])
        bit = 128 if mask else 0
        if len(data) < 126:
            head += bytes([bit | len(data)])
        elif len(data) < 65536:
            head += bytes([bit | 126]) + struct.pack(">H", len(data))
        else:
            head += bytes([bit | 127]) + struct.pack(">Q", len(data))
        if mask:
            key = b"\x01\x80\xfe\x55"
            data = key + bytes(b ^ key[i % 4] for i, b in enumerate(data))
        return head + data

    def raw(self, data):
        self.sock.sendall(data)

    def say(self, **message):
        self.raw(self.frame(TEXT, json.dumps(message).encode()))

    def init(self, code, language="python", **more):
        self.say(type="init", language=language, version="*",
                 files=[{"content": code}], **more)

    def type(self, text, **more):
        self.say(type="data", stream="stdin", data=text, **more)

    def take(self, count):
        while len(self.data) < count:
            more = self.sock.recv(65536)
            assert more, ("hung up", self.data)
            self.data += more
        got, self.data = self.data[:count], self.data[count:]
        return got

    def hear(self):
        """(opcode, data) of the next frame."""
        first, second = self.take(2)
        assert first & 0x70 == 0 and second & 0x80 == 0, (first, second)
        size = second
        if size == 126:
            size, = struct.unpack(">H", self.take(2))
        elif size == 127:
            size, = struct.unpack(">Q", self.take(8))
        assert first & 0x80, "in pieces"
        return first & 15, self.take(size)

    def message(self):
        opcode, data = self.hear()
        assert opcode == TEXT, (opcode, data)
        return json.loads(data)

    def begin(self, code, language="python", **more):
        self.init(code, language, **more)
        got = self.message()
        assert got["type"] == "runtime" and got["language"] == language, got
        assert self.message() == {"type": "stage", "stage": "run"}

    def until(self, want, stream="stdout"):
        got = ""
        while want not in got:
            message = self.message()
            assert message["type"] == "data", message
            assert message["stream"] == stream, message
            got += message["data"]
        return got

    def end(self):
        """(code, reason) of the close frame; then the connection is over."""
        opcode, data = self.hear()
        assert opcode == CLOSE, (opcode, data)
        self.raw(self.frame(CLOSE, data[:2]))
        assert self.data + self.sock.recv(65536) == b""
        return struct.unpack(">H", data[:2])[0], data[2:].decode()


def exit_of(**fields):
    return {"type": "exit", "stage": "run", "code": None, "signal": None,
            **fields}


@test
def a_conversation_is_as_the_contract_has_it():
    for language, code in (("python", ECHO),
                           ("bash", "while read -r l; do echo \"got $l\"; "
                            "done; echo 1")):
        with Socket() as it:
            assert it.head.startswith(b"HTTP/1.1 101 "), it.head
            assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in \
                it.head, it.head
            it.begin(code, language)
            for text in ("a\n", "\u00e9 b\n"):
                it.type(text)
                assert it.until(text) == "got " + text
            it.type("", eof=True)
            assert it.until("1\n") == "1\n"
            assert it.message() == exit_of(code=0)
            assert it.end() == (4999, "Job Completed")


@test
def standard_error_and_a_status_are_told():
    with Socket() as it:
        it.begin("import sys; print('no', file=sys.stderr); sys.exit(3)",
                 stdin="not looked at")
        assert it.until("no\n", "stderr") == "no\n"
        assert it.message() == exit_of(code=3)
        assert it.end() == (4999, "Job Completed")


@test
def signals_are_delivered():
    for name in ("SIGTERM", "SIGKILL", "SIGINT"):
        with Socket() as it:
            it.begin(FOREVER)
            it.until("\n")
            it.say(type="signal", signal=name)
            got = it.message()
            while got["type"] == "data":    # what SIGINT has Python say
                got = it.message()
            assert got == exit_of(signal=name), got
            assert it.end() == (4999, "Job Completed")


@test
def limits_hold():
    with Socket() as it:
        it.begin("import time; time.sleep(60)", run_timeout=200)
        assert it.message() == exit_of(signal="SIGKILL")
        assert it.end() == (4999, "Job Completed")
    with Socket() as it:
        it.begin("while True: print('x' * 1000)")
        size = 0
        got = it.message()
        while got["type"] == "data":
            size += len(got["data"])
            got = it.message()
        assert size <= 65536, size
        assert got == exit_of(signal="SIGKILL"), got
    with Socket(service=long) as it:
        it.sock.settimeout(30)          # of 60 that the run would have
        it.begin("import time; print('x' * 65536, flush=True); time.sleep(99)")
        assert len(it.until("x" * 65536)) == 65536
        assert it.message() == exit_of(signal="SIGKILL")


@test
def each_close_code_is_the_contracts():
    rows = (
        (4003, "Not yet initialized", [{"type": "data", "stream": "stdin",
                                        "data": ""}]),
        (4003, "Not yet initialized", [{"type": "signal",
                                        "signal": "SIGTERM"}]),
        (4001, "Initialization Timeout", []),
        (4001, "Initialization Timeout", [{"type": "nothing"}, {}]),
    )
    for code, reason, messages in rows:
        with Socket() as it:
            for message in messages:
                it.say(**message)
            assert it.end() == (code, reason), (code, messages)
    for code, reason, message in (
            (4000, "Already Initialized", {"type": "init"}),
            (4004, "Can only write to stdin",
             {"type": "data", "stream": "stdout", "data": "x"}),
            (4004, "Can only write to stdin", {"type": "data"}),
            (4005, "Invalid signal", {"type": "signal", "signal": "SIGX"}),
            (4005, "Invalid signal", {"type": "signal", "signal": 15}),
            (4005, "Invalid signal", {"type": "signal"})):
        with Socket(service=long) as it:
            it.sock.settimeout(30)      # of 60 that the run would have
            it.begin(FOREVER)
            it.until("\n")
            it.say(type="nothing")
            it.say(**message)
            assert it.end() == (code, reason), message


@test
def what_is_wrong_is_told_and_then_the_end():
    not_json = ("The body is no JSON: invalid token near 'nothing' at line 1, "
                "column 7")
    for data, text in (
            (b"nothing", not_json), (b'{"type":"init","language":5}', "language must be a string"),
            (b'{"type":"init"}', "language is missing"),
            (b'{"type":"init","language":"html","version":"5","files":[]}',
             "html-5 runtime is unknown"),
            (b'{"type":"init","language":"python","version":"*","files":'
             b'[{"content":"","name":"../x"}]}',
             "files[0].name leads out of the folder")):
        for opcode in (TEXT, BINARY):
            with Socket() as it:
                it.raw(it.frame(opcode, data))
                assert it.message() == {"type": "error", "message": text}, text
                assert it.end() == (4002, "Notified Error")
    with Socket() as it:
        it.begin(FOREVER)
        it.until("\n")
        it.say(type="data", stream="stdin", data=5)
        assert it.message() == {"type": "error",
                                "message": "data must be a string"}
        assert it.end() == (4002, "Notified Error")


@test
def frames_are_read_as_the_rfc_says():
    request = json.dumps({"type": "init", "language": "python",
                          "version": "*", "files": [{"content": "print(7)"}]})
    with Socket() as it:
        body = request.encode()
        it.raw(it.frame(TEXT, body[:10], fin=0))
        it.raw(it.frame(PING, b"are you there"))
        assert it.hear() == (PONG, b"are you there")
        it.raw(it.frame(PONG, b""))
        for byte in it.frame(0, body[10:40], fin=0):
            it.raw(bytes([byte]))
        it.raw(it.frame(0, body[40:]))
        assert it.message()["type"] == "runtime"
        assert it.message()["type"] == "stage"
        assert it.until("7\n") == "7\n"
        assert it.message() == exit_of(code=0)
        # what comes too late is nothing
        opcode, data = it.hear()
        with contextlib.suppress(OSError):
            it.type("late")
        assert (opcode, data[:2]) == (CLOSE, struct.pack(">H", 4999))
    with Socket() as it:
        it.raw(it.frame(CLOSE, b"\x03\xe8"))
        assert it.hear()[0] == CLOSE


@test
def what_is_no_frame_is_refused():
    plain = Socket.frame
    for data, code in (
            (plain(None, TEXT, b"{}", mask=False), 1002),
            (b"\xc1\x80\0\0\0\0", 1002), (b"\x83\x80\0\0\0\0", 1002),
            (b"\x80\x80\0\0\0\0", 1002), (b"\x09\x80\0\0\0\0", 1002),
            (b"\x89\xfe\x00\x7e\0\0\0\0", 1002),
            (b"\x81\xfe\x00\x01\0\0\0\0x", 1002),
            (b"\x81\xff" + bytes(7) + b"\x05\0\0\0\0x", 1002),
            (b"\x81\xff" + b"\xff" * 8 + bytes(4), 1002),
            (b"\x81\xff" + struct.pack(">Q", 9 << 20) + bytes(4), 1009),
            (plain(None, TEXT, b"\xff\xfe"), 1007),
            (plain(None, CLOSE, b"\x03"), 1002),
            (plain(None, CLOSE, b"\x03\xed"), 1002),
            (plain(None, CLOSE, b"\x03\xe8\xff"), 1007),
            (plain(None, TEXT, b"{", fin=0) + plain(None, TEXT, b"}"), 1002)):
        with Socket() as it:
            it.raw(data)
            assert it.end() == (code, ""), (data, code)


def running():
    return int(re.search(r"^inline_api_running (\d+)$",
                         served.get("/metrics").text, re.M).group(1))


@test
def a_client_that_hangs_up_ends_its_run():
    wait_for(lambda: running() == 0)
    for politely in (True, False):
        with Socket() as it:
            it.begin(FOREVER, run_timeout=3000)
            it.until("\n")
            if politely:
                it.raw(it.frame(CLOSE, b"\x03\xe8"))
                assert it.hear()[0] == CLOSE
        wait_for(lambda: running() == 0)
    text = served.get("/metrics").text
    gone = re.search(r'runs_total{api="connect",outcome="gone"} (\d+)', text)
    assert int(gone.group(1)) >= 2, gone
    assert 'requests_total{route="/api/v2/connect",status="101"}' in text


@test
def a_client_that_never_reads_is_bounded():
    with Socket() as it:
        it.begin("import sys\nwhile True: print('\\0' * 1000, flush=True)")
        wait_for(lambda: running() == 0)
        with Socket() as other:
            other.begin("print(8)")
            assert other.until("8\n") == "8\n"


@test
def much_is_typed_and_nothing_is_lost():
    with Socket() as it:
        it.begin("import sys, time\ntime.sleep(.3)\n"
                 "print(len(sys.stdin.read()))")
        for _ in range(40):
            it.type("x" * 20000)
        it.type("y", eof=True)
        assert it.until("\n") == "800001\n"


@test
def what_follows_the_end_of_input_is_not_typed():
    with Socket() as it:
        it.begin("import signal, sys\nsignals = [signal.SIGUSR1]\n"
                 "signal.pthread_sigmask(signal.SIG_BLOCK, signals)\n"
                 "print('on', flush=True)\nsignal.sigwait(signals)\n"
                 "print(len(sys.stdin.read()))")
        it.until("on\n")
        it.type("x" * 100000, eof=True)     # more than a pipe has room for
        it.type("late")
        it.say(type="signal", signal="SIGUSR1")
        assert it.until("\n") == "100000\n"


@test
def a_character_that_never_ends_is_told():
    with Socket() as it:
        it.begin("import os; os.write(1, b'x\\xe2\\x82')")
        assert it.until("\ufffd") == "x\ufffd"
        assert it.message() == exit_of(code=0)


@test
def tokens_are_asked_for_and_their_cells_counted():
    with tempfile.TemporaryDirectory() as folder:
        tokens = os.path.join(folder, "tokens")
        done = subprocess.run(
            [os.path.join(BUILD, "bin", "ilctl"), "token", "-f", tokens,
             "-c", "1", "add", "bob"], capture_output=True, text=True,
            check=True)
        own = "Authorization: Bearer %s\r\n" % done.stdout.split()[0]
        with Served(IL_API_CELLS="2", IL_API_TOKENS_FILE=tokens) as asked:
            def status(headers):
                with Socket(headers, asked) as it:
                    return it.head.split()[1]

            assert status("") == b"401"
            assert status("Authorization: Bearer il_x\r\n") == b"401"
            with Socket(own, asked) as it:
                it.begin("print(3)\ninput()")
                it.until("3\n")
                assert status(own) == b"429"
            wait_for(lambda: status(own) == b"101")


@test
def what_comes_with_the_request_is_typed():
    with Socket() as it:
        frames = [{"type": "init", "language": "python", "version": "*",
                   "files": [{"content": "print(len(input()), input())"}]},
                  {"type": "data", "stream": "stdin", "data": "a\n"},
                  {"type": "data", "stream": "stdin", "data": "b\n"}]
        it.raw(b"".join(it.frame(TEXT, json.dumps(message).encode())
                        for message in frames))
        assert it.message()["type"] == "runtime"
        assert it.message()["type"] == "stage"
        assert it.until("\n") == "1 b\n"
        assert it.message() == exit_of(code=0)


@test
def more_than_is_kept_is_typed_and_nothing_is_lost():
    piece, count = "x" * 65535 + "\n", 200     # of 13 MB 8 may be kept
    with Socket(service=long) as it:
        it.begin("import os, time\nsize = 0\n"
                 "while size < %d:\n size += len(os.read(0, 9000))\n"
                 " time.sleep(.0003)\nprint(size)" % (count << 16))
        it.type(piece * 100)
        for _ in range(100):
            it.type(piece)
        assert it.until("\n") == "%d\n" % (count << 16)
        assert it.message() == exit_of(code=0)


@test
def who_reads_no_input_still_gets_signals():
    with Socket() as it:
        it.begin("import os, time\nos.close(0)\nprint('on', flush=True)\n"
                 "while True: time.sleep(1)")
        it.until("\n")
        for _ in range(20):
            it.type("x" * 20000)
        it.say(type="signal", signal="SIGTERM")
        assert it.message() == exit_of(signal="SIGTERM")


@test
def one_that_cannot_accept_gives_way_to_another():
    served.leave_no_descriptor("connect.sock")
    with Socket() as it:
        it.begin("print(9)")
        assert it.until("9\n") == "9\n"


@test
def what_is_no_websocket_is_refused():
    for lines, status in (
            ("Upgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n"
             "Sec-WebSocket-Version: 8\r\n", 426),
            ("Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n", 400),
            ("Upgrade: h2c\r\n", 404), ("", 404)):
        with socket.create_connection(("127.0.0.1", served.port), 60) as link:
            link.sendall(("GET /api/v2/connect HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                          "Connection: Upgrade\r\n" + lines +
                          "\r\n").encode())
            assert link.recv(4096).split()[1] == b"%d" % status, lines
    for headers, status in (("Origin: http://example.org\r\n", b"403"),
                            ("X-Forwarded-For: 192.0.2.1\r\n", b"403")):
        with Socket(headers) as it:
            assert it.head.split()[1] == status, it.head
    with Socket("Origin: http://localhost:8080\r\n") as it:
        assert it.head.split()[1] == b"101", it.head


try:
    run()
finally:
    long.close()
    served.close()
