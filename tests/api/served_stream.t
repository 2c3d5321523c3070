#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""POST /v1/execute/stream over HTTP on real cells: live, whole, ASCII, and
over when its client hangs up."""

import json
import os
import re
import time

from interpreter import Interpreter, text_of
from served import Served, wait_for
from tap import run, test

served = Served(IL_API_CELLS="2").__enter__()
client = Interpreter(served)
MAX = 1_000_000


def gauge(name):
    """A number of /metrics."""
    text = served.get("/metrics").text
    return int(re.search("^%s (\\d+)$" % name, text, re.MULTILINE)[1])


def running():
    return gauge("inline_api_running")


def processes(mark):
    """The processes of the machine that have this in their command line."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % name, "rb") as file:
                if mark.encode() in file.read() and int(name) != os.getpid():
                    found.append(int(name))
        except OSError:
            continue
    return found


def result(events):
    """The last event, which ends a stream and comes once."""
    assert [e.name for e in events].count("result") == 1, events[-3:]
    assert events[-1].name == "result", events[-3:]
    return events[-1].data


# ---- frames ----

@test
def its_headers_are_the_contracts():
    with client.stream("1") as stream:
        assert stream.status == 200
        got = {name: stream.headers[name] for name in (
            "Content-Type", "Cache-Control", "Connection", "Content-Length")}
        assert got == {"Content-Type": "text/event-stream; charset=utf-8",
                       "Cache-Control": "no-cache",
                       "Connection": "keep-alive",
                       "Content-Length": None}, got
        result(list(stream))


@test
def frames_are_an_event_line_and_a_data_line():
    with client.stream("import os\n"
                       "_ = os.write(1, b'a\\n\\nb\\r\\nevent: x\\n')") as stream:
        body = stream.response.read()
    want = (rb'event: output\ndata: {"stream":"stdout","data":"a\\n\\nb\\r\\n'
            rb'event: x\\n"}\n\nevent: result\ndata: {"exit_code":0,'
            rb'"timed_out":false,"duration_ms":\d+,"files":\[\]}\n\n')
    assert re.fullmatch(want, body), body


@test
def no_output_is_only_a_result():
    for code in ("x = 1", "", "# nothing"):
        events = client.streamed(code)
        assert [e.name for e in events] == ["result"], events
        assert result(events)["exit_code"] == 0, events


@test
def output_and_error_are_told_apart_and_in_order():
    events = client.streamed(
        "import os, time\nfor i in range(3):\n"
        " os.write(1, b'o%d' % i); time.sleep(.05)\n"
        " os.write(2, b'e%d' % i); time.sleep(.05)")
    order = "".join(e.data["data"] for e in events[:-1])
    assert order == "o0e0o1e1o2e2", events
    assert text_of(events) == "o0o1o2", events
    assert text_of(events, "stderr") == "e0e1e2", events
    assert all(list(e.data) == ["stream", "data"] for e in events[:-1])


@test
def the_result_has_the_contracts_fields():
    events = client.streamed("open('f', 'w').write('abc'); 6 * 7")
    end = result(events)
    assert list(end) == ["exit_code", "timed_out", "duration_ms", "files"]
    assert text_of(events) == "42\n", events
    assert isinstance(end["duration_ms"], int), end
    assert [list(f) for f in end["files"]] == [["path", "kind", "file_id"]]
    assert client.made(end) == {"f": b"abc"}, end
    end = result(client.streamed("raise SystemExit(7)"))
    assert end["exit_code"] == 7 and end["files"] == [], end


@test
def a_timeout_keeps_output_and_files():
    events = client.streamed("print('a', flush=True); open('f', 'w').write("
                             "'1')\nwhile True: pass", timeout_ms=1500)
    end = result(events)
    assert end["timed_out"] is True and end["exit_code"] is None, end
    assert end["duration_ms"] >= 1500, end
    assert text_of(events) == "a\n", events
    assert client.made(end) == {"f": b"1"}, end


# ---- text ----

@test
def its_json_is_ascii():
    text = "é\u2028\u2029\x85\u202e😀\x7f\x00\x1b"
    events = client.streamed("print(%a); _ = open(%a, 'w').write('x')" % (
        text, "é\u2028😀"))
    assert text_of(events).replace("\n", "") == text, events
    for event in events:
        assert max(event.raw) < 0x80, event.raw
        assert len(event.raw.decode().splitlines()) == 3, event.raw
    assert [f["path"] for f in result(events)["files"]] == ["é\u2028😀"]
    with client.stream("1", files=[]) as stream:
        assert max(stream.response.read()) < 0x80


@test
def a_character_may_come_in_pieces():
    events = client.streamed(
        "import os, time\nfor byte in 'é€😀'.encode():\n"
        " os.write(1, bytes([byte])); os.write(2, bytes([byte]))\n"
        " time.sleep(.02)")
    assert text_of(events) == "é€😀", events
    assert text_of(events, "stderr") == "é€😀", events
    assert all(e.data["data"] for e in events[:-1]), "an empty event"


@test
def bad_bytes_are_replaced_as_python_does():
    for data in (b"a\xffb", b"\xe2\x82", b"\xe2\x82a", b"\xf0\x9f\x98",
                 b"\xed\xa0\x80", b"\xc0\x80", b"\x80\x80"):
        events = client.streamed("import os\nos.write(1, %r)\nNone" % data)
        assert text_of(events) == data.decode("utf-8", "replace"), (
            data, events)


# ---- bounds ----

@test
def each_stream_is_silent_after_its_bound():
    events = client.streamed(
        "import sys; sys.stdout.write('o' * 3_000_000); sys.stdout.flush()\n"
        "_ = sys.stderr.write('e' * 1_000_001); print('late')")
    assert text_of(events) == "o" * MAX, len(text_of(events))
    assert text_of(events, "stderr") == "e" * MAX
    assert result(events)["exit_code"] == 0, events[-1]


@test
def whoever_reads_slowly_gets_all_of_it():
    with client.stream("import sys; _ = sys.stdout.write('\\x01' * 999_999); "
                       "_ = sys.stderr.write('\\x02' * 999_999)",
                       timeout_ms=20000) as stream:
        first = next(iter(stream))
        assert first.name == "output", first
        wait_for(lambda: served.get("/health").status == 200)
        time.sleep(6)  # longer than anybody waits for a peer that stalls
        events = [first, *stream]
    assert text_of(events) == "\x01" * 999_999, len(text_of(events))
    assert text_of(events, "stderr") == "\x02" * 999_999
    assert result(events)["exit_code"] == 0, events[-1]


# ---- live ----

def ends_with_its_client(mark):
    """Within a second, unless the machine is busy: it says how long it took.
    By itself it would go on for a minute.
    """
    started = time.monotonic()
    wait_for(lambda: not processes(mark))
    print("# ended after %.2f s" % (time.monotonic() - started))


@test
def the_first_byte_leaves_while_the_code_runs():
    mark = "sleep\x00%d.25" % (100000 + os.getpid())
    code = ("import subprocess\nprint('here', end='', flush=True)\n"
            "subprocess.run(%r)" % mark.split("\x00"))
    with client.stream(code, timeout_ms=60000) as stream:
        first = next(iter(stream))
        assert first.data == {"stream": "stdout", "data": "here"}, first
        assert running() == 1
        wait_for(lambda: processes(mark))
        assert running() == 1
    ends_with_its_client(mark)
    wait_for(lambda: not running())
    assert served.execute("1")["stdout"] == "1\n"


@test
def the_head_leaves_before_any_output():
    with client.stream("import time; time.sleep(60)",
                       timeout_ms=60000) as stream:
        assert stream.status == 200
        assert running() == 1
    wait_for(lambda: not running())


@test
def hanging_up_in_a_flood_of_output_ends_the_run():
    mark = "yes\x00%d-flood" % os.getpid()
    with client.stream("import subprocess; subprocess.run(%r)" %
                       mark.split("\x00"), timeout_ms=60000) as stream:
        assert next(iter(stream)).name == "output"
        wait_for(lambda: processes(mark))
    ends_with_its_client(mark)


@test
def old_clients_of_one_answer_hang_up_as_well():
    mark = "sleep\x00%d.5" % (100000 + os.getpid())
    link = served.connect()
    link.request("POST", "/v1/execute", json.dumps(
        {"code": "import subprocess; subprocess.run(%r)" % mark.split("\x00"),
         "timeout_ms": 60000}), {"Content-Type": "application/json"})
    wait_for(lambda: processes(mark))
    link.close()
    ends_with_its_client(mark)


try:
    run()
finally:
    served.close()
