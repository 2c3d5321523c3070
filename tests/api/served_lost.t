#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A cell that is lost in mid-run is told as that, and is not taken for a run
that used up its memory; a run that does is not taken for a lost cell.
"""

import json
import os
import re
import shlex

from served import JSON, Served, has_process, wait_for
from greedy import TAKES_THE_CELL
from service import docker
from tap import run, test

served = Served(IL_API_CELLS="1", IL_API_MEMORY="128m").__enter__()
MARK = "inline-lost-%d" % os.getpid()
LOOP = ("import os, sys\nos.execv(sys.executable, [sys.executable, '-c', "
        "'while 1: pass', %r])" % MARK)


def runs():
    """Is the code running?  What is lost before it is run again."""
    return has_process(MARK)


def lose(path, body):
    """The answer to a request whose container is killed meanwhile."""
    wait_for(lambda: not runs())
    link = served.connect()
    link.request("POST", path, json.dumps(body), JSON)
    wait_for(runs)
    docker("kill", *served.containers(everything=False), check=False)
    response = link.getresponse()
    answer = response.status, response.headers, response.read().decode()
    link.close()
    return answer


def is_in_the_log(reference):
    assert re.fullmatch("[0-9a-f]{16}", reference), reference
    served.wait_logged("lost its cell reference=%s .*cell=\\w" % reference)


def lost():
    found = re.findall(r'^inline_api_runs_total.*outcome="lost"} (\d+)$',
                       served.get("/metrics").text, re.M)
    return sum(map(int, found))


@test
def eval_says_500_and_names_a_reference():
    before = lost()
    status, headers, text = lose("/eval", {"input": LOOP,
                                           "timeout_ms": 60000})
    assert (status, text) == (500, '{"title": "500 Internal Server Error"}'), \
        (status, text)
    assert headers["Content-Type"] == "application/json", headers
    is_in_the_log(headers["Inline-Reference"])
    wait_for(lambda: lost() == before + 1)
    assert served.eval(input="print(1)")["stdout"] == "1\n"


@test
def execute_says_500_and_names_a_reference():
    status, headers, text = lose("/v1/execute", {"code": LOOP,
                                                 "timeout_ms": 60000})
    assert (status, text) == (500, "Internal Server Error"), (status, text)
    assert headers["Content-Type"] == "text/plain; charset=utf-8", headers
    is_in_the_log(headers["Inline-Reference"])
    assert served.execute("6 * 7")["stdout"] == "42\n"


@test
def a_stream_ends_in_an_error_with_the_reference():
    status, _, text = lose("/v1/execute/stream", {"code": LOOP,
                                                  "timeout_ms": 60000})
    assert status == 200, status
    last = text.rstrip().split("\n\n")[-1]
    found = re.fullmatch('event: error\ndata: {"message":"Internal Server '
                         'Error, reference ([0-9a-f]+)"}', last)
    assert found and "event: result" not in text, text
    is_in_the_log(found[1])


@test
def a_command_says_500_and_its_session_is_gone():
    session = served.post("/v1/sessions", {}).json["session_id"]
    path = "/v1/sessions/%s/bash" % session
    status, headers, text = lose(path, {"cmd": 'exec python3 -c "%s"' % LOOP,
                                        "timeout_ms": 60000})
    assert (status, text) == (500, "Internal Server Error"), (status, text)
    is_in_the_log(headers["Inline-Reference"])
    wait_for(lambda: served.post(path, {"cmd": "true"}).status == 404)


MEMORY = {
    "of one process": "x = []\nwhile 1: x.append(b'x' * 1000000)",
    "of many": "import os\nfor i in range(30): os.fork()\nx = []\n"
               "while 1: x.append(b'x' * 1000000)",
    "of files and of a process":
        "for d in '/tmp', '.', '/dev/shm':\n"
        "  for i in range(1000):\n"
        "    try: open(d + '/%d' % i, 'wb').write(bytes(1000000))\n"
        "    except OSError: break\n"
        "x = []\nwhile 1: x.append(b'x' * 100000)",
    "of mapped files": "import mmap\nx = []\nwhile 1:\n"
                       "  x.append(mmap.mmap(-1, 10 << 20))\n"
                       "  x[-1].write(b'x' * (10 << 20))",
}


@test
def memory_that_is_used_up_is_no_lost_cell():
    before = lost()
    for name, code in MEMORY.items():
        answer = served.execute(code, timeout_ms=20000)
        # Python may have been told before the kernel acted: MemoryError.
        assert answer["exit_code"] in (1, 137), (name, answer)
        session = served.post("/v1/sessions", {}).json["session_id"]
        answer = served.post("/v1/sessions/%s/bash" % session, {
            "cmd": "exec python3 -c '%s'" % code.replace("'", "'\\''"),
            "timeout_ms": 20000})
        assert answer.status == 200, (name, answer)
        assert answer.json["exit_code"] in (1, 137), (name, answer)
        served.request("DELETE", "/v1/sessions/" + session)
    answer = served.eval(input=MEMORY["of mapped files"], timeout_ms=20000)
    assert answer["returncode"] in (1, 137), answer
    assert lost() == before


def went_away(service):
    with open(service.log) as file:
        return file.read().count("out of memory cell=")


@test
def memory_that_takes_the_cell_of_a_session_is_told():
    before = lost(), went_away(served)
    session = served.post("/v1/sessions", {}).json["session_id"]
    path = "/v1/sessions/%s/bash" % session
    answer = served.post(path, {"cmd": "exec python3 -c " + shlex.quote(TAKES_THE_CELL),
                                "timeout_ms": 20000})
    assert answer.status == 200, answer
    assert (answer.json["exit_code"], answer.json["timed_out"],
            answer.json["stdout"]) == (137, False, "before\n"), answer
    wait_for(lambda: went_away(served) == before[1] + 1)
    assert lost() == before[0]
    wait_for(lambda: served.post(path, {"cmd": "true"}).status == 404)


@test
def memory_that_takes_the_cell_of_one_run_is_told():
    with Served(IL_API_CELLS="1", IL_API_MEMORY="128m",
                IL_API_ISOLATION="cell") as apart:
        answer = apart.execute(TAKES_THE_CELL, timeout_ms=20000)
        assert (answer["exit_code"], answer["stdout"]) == (137, "before\n"), (
            answer)
        answer = apart.eval(input=TAKES_THE_CELL, timeout_ms=20000)
        assert (answer["returncode"], answer["stdout"]) == (
            137, "before\n"), answer
        answer = apart.post("/v1/execute/stream", {
            "code": TAKES_THE_CELL, "timeout_ms": 20000})
        assert "event: result" in answer.text, answer
        wait_for(lambda: went_away(apart) == 3)
        assert "outcome=\"lost\"} 0" in apart.get("/metrics").text


try:
    run()
finally:
    served.close()
