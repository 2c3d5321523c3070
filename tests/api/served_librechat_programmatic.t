#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs that call the client's tools: POST /librechat/exec/programmatic."""

import base64
import json
import os
import re
import select
import signal
import subprocess
import tempfile

from libre import ID, Libre, reference, refused
from served import Served, wait_for
from service import BUILD
from tap import run, test

folder = tempfile.TemporaryDirectory(prefix="inline-libre-")
path = os.path.join(folder.name, "tokens")
PATH = "/exec/programmatic"
TOOLS = [{"name": "get-weather", "description": "d", "parameters": {
    "type": "object", "properties": {"city": {}, "days": {}}}},
         {"name": "add"}]
INVALID = {"error": "Invalid continuation token"}
GONE = {"error": "Execution not found or expired"}


def add(name):
    told = subprocess.run([os.path.join(BUILD, "bin", "ilctl"), "token", "-f",
                           path, "add", name], check=True, text=True,
                          capture_output=True).stdout
    return next(word for word in told.split() if word.startswith("il_"))


key, other_key = add("first"), add("second")
served = Served(IL_API_TOKENS_FILE=path, IL_API_CELLS="2").__enter__()
libre = Libre(served, {"X-API-Key": key})
stranger = Libre(served, {"X-API-Key": other_key})


def begin(code, lang=None, **fields):
    body = {"code": code, "tools": TOOLS, **fields}
    if lang:
        body["lang"] = lang
    answer = libre.post(body, path=PATH)
    assert answer.status == 200, answer
    assert ID.fullmatch(answer.json["session_id"]), answer
    return answer.json


def go_on(told, results):
    answer = libre.post({"continuation_token": told["continuation_token"],
                         "tool_results": results}, path=PATH)
    assert answer.status == 200, answer
    assert answer.json["session_id"] == told["session_id"], answer
    return answer.json


def weather(name, given):
    """What the tools here do."""
    if name == "add":
        return given["a"] + given["b"]
    if given["city"] == "Atlantis":
        raise ValueError("no such city")
    return {"city": given["city"], "degrees": len(given["city"])}


def results_of(told, tool=weather):
    results = []
    for call in told["tool_calls"]:
        assert set(call) == {"id", "name", "input"}, call
        try:
            results.append({"call_id": call["id"], "is_error": False,
                            "result": tool(call["name"], call["input"])})
        except ValueError as error:
            results.append({"call_id": call["id"], "is_error": True,
                            "result": None, "error_message": str(error)})
    return results


def whole(code, lang=None, tool=weather, **fields):
    """The last answer, and the calls of each round."""
    told, rounds = begin(code, lang, **fields), []
    while told["status"] == "tool_call_required":
        rounds.append([(one["name"], one["input"])
                       for one in told["tool_calls"]])
        told = go_on(told, results_of(told, tool))
    return told, rounds


# ---- Python ----

@test
def a_call_is_asked_for_and_its_result_is_there():
    told = begin("print('before')\nw = await get_weather(city='Rome')\n"
                 "print(w['degrees'], type(w).__name__)")
    assert (told["status"], told["partial_stdout"]) == (
        "tool_call_required", "before\n"), told
    assert "partial_stderr" not in told and "files" not in told, told
    (call,) = told["tool_calls"]
    assert (call["name"], call["input"]) == ("get-weather", {"city": "Rome"})
    told = go_on(told, results_of(told))
    assert told == {"status": "completed", "session_id": told["session_id"],
                    "stdout": "before\n4 dict\n", "stderr": "", "files": []}


@test
def without_a_call_it_is_over_at_once():
    told, rounds = whole("print(__name__, 1)")
    assert (told["status"], told["stdout"], rounds) == (
        "completed", "__main__ 1\n", []), told


@test
def a_loop_calls_again_and_again():
    told, rounds = whole("n = 0\nfor i in range(5):\n"
                         "    n = await add(a=n, b=i)\nprint(n)")
    assert told["stdout"] == "10\n", told
    assert [one[0][1] for one in rounds] == [
        {"a": a, "b": b} for a, b in ((0, 0), (0, 1), (1, 2), (3, 3), (6, 4))]


@test
def equal_calls_have_results_of_their_own():
    numbers = iter(range(10))
    told, rounds = whole("x = [await add() for i in range(3)]\nprint(x)",
                         tool=lambda name, given: next(numbers))
    assert told["stdout"] == "[0, 1, 2]\n", told


@test
def what_is_called_at_one_time_is_one_round():
    told, rounds = whole(
        "async def one(city):\n    w = await get_weather(city=city)\n"
        "    return await add(a=w['degrees'], b=1)\n"
        "print(await asyncio.gather(*map(one, ('Rome', 'Paris', 'Ur'))))")
    assert told["stdout"] == "[5, 6, 3]\n", told
    assert [len(one) for one in rounds] == [3, 3], rounds


@test
def more_calls_than_a_round_may_have_are_two_rounds():
    told, rounds = whole("x = await asyncio.gather(*[add(a=i, b=0) "
                         "for i in range(300)])\nprint(x == [*range(300)])")
    assert told["stdout"] == "True\n", told
    assert [len(one) for one in rounds] == [256, 44], rounds


@test
def what_is_called_comes_through_beside_many_files():
    for code in ("for i in range(1500):\n    open('%04d' % i, 'w').close()\n",
                 "for i in range(2):\n    with open('.%d' % i, 'wb') as f:\n"
                 "        f.truncate(50 << 20)\n"):
        told, rounds = whole(code + "print(await add(a=1, b=1))")
        assert (told["stdout"], len(rounds)) == ("2\n", 1), told["stderr"]


@test
def a_loop_of_its_own_and_arguments_by_place_work():
    told, rounds = whole("import asyncio\nasync def main():\n"
                         "    print(await get_weather('Rome', days=2))\n"
                         "asyncio.run(main())")
    assert rounds == [[("get-weather", {"city": "Rome", "days": 2})]], rounds
    assert told["stdout"] == "{'city': 'Rome', 'degrees': 4}\n", told


@test
def a_call_with_a_time_limit_is_asked_for_without_waiting_for_it():
    told, rounds = whole("w = await asyncio.wait_for(get_weather(city='Ur'), "
                         "3600)\nprint(w['degrees'])")
    assert (told["stdout"], len(rounds)) == ("2\n", 1), told


@test
def names_are_made_as_the_client_makes_them():
    tools = [{"name": name} for name in ("class", "time", "2-nd", "a.b c")]
    for code, lang in (
            ("print(await class_tool(), await time(), await _2_nd(), "
             "await ab_c())", None),
            ("echo $(class) $(time_tool) $(_2_nd) $(a_b_c)", "bash")):
        told, _ = whole(code, lang, tools=tools, tool=lambda name, given: name)
        assert told["stdout"] == "class time 2-nd a.b c\n", told


@test
def a_call_that_was_cancelled_is_not_asked_for():
    told, rounds = whole("call = asyncio.create_task(add(a=1, b=1))\n"
                         "await asyncio.sleep(0)\ncall.cancel()\n"
                         "print(await add(a=2, b=2))")
    assert (told["stdout"], len(rounds), len(rounds[0])) == ("4\n", 1, 1), \
        rounds


@test
def an_error_of_a_tool_is_raised():
    told, _ = whole("try:\n    await get_weather(city='Atlantis')\n"
                    "except Exception as e:\n    print(repr(e))")
    assert told["stdout"] == "ToolError('no such city')\n", told
    told, _ = whole("1\nawait get_weather(city='Atlantis')")
    assert (told["status"], told["error"]) == (
        "error", "Sandbox exited with code 1"), told
    assert told["stderr"].startswith("Traceback"), told
    assert told["stderr"].count("  File ") == 1, told
    assert "line 2, in <module>\n    await get_weather" in told["stderr"], told
    assert told["stderr"].endswith("\nToolError: no such city\n"), told


@test
def errors_name_the_programs_own_lines():
    told, _ = whole("def f():\n    1/0\n\nf()")
    assert told["stderr"].count("  File ") == 2, told
    assert "line 2, in f\n" in told["stderr"], told
    assert "line 4, in <module>\n" in told["stderr"], told
    told, _ = whole("x = 1\ny = (")
    assert "line 2\n" in told["stderr"], told
    assert told["stderr"].count("  File ") == 1, told
    for code in ("raise KeyboardInterrupt", "try:\n    await get_weather("
                 "city='Atlantis')\nexcept Exception as e:\n"
                 "    raise OSError from e"):
        told, _ = whole(code)
        assert told["error"] == "Sandbox exited with code 1", told
        assert "libre_helper" not in told["stderr"], told
    told, _ = whole("import sys\nsys.exit(7)")
    assert told["error"] == "Sandbox exited with code 7", told


@test
def an_early_return_is_an_end():
    told, _ = whole("async def f():\n    nonlocal n\n    n = await add(a=1, "
                    "b=n)\nn = 2\nawait f()\nprint(n)\nif n == 3:\n"
                    "    return\nprint('no')")
    assert (told["status"], told["stdout"]) == ("completed", "3\n"), told
    told, _ = whole("if True:\n    1/0\n    return")
    assert "line 2, in <module>\n    1/0\n" in told["stderr"], told
    assert told["stderr"].count("  File ") == 1, told


@test
def files_go_in_in_each_round_and_come_out_at_the_end():
    session, file_id = libre.put("in.txt", b"12")
    told, rounds = whole(
        "n = int(open('in.txt').read())\nopen('a', 'w').write('a')\n"
        "n = await add(a=n, b=1)\nopen('out', 'w').write(str(n))",
        files=[reference("in.txt", session, file_id)])
    assert told["status"] == "completed", told
    assert libre.made(told) == {"a": b"a", "out": b"13"}, told
    assert {one["name"] for one in told["files"]} == {"a", "out", "in.txt"}
    kept = libre.get("/files/" + told["session_id"]).json
    assert len(kept) == 2, kept


# ---- bash ----

@test
def bash_has_a_function_for_each():
    told, rounds = whole(
        ": &\nwait \"$!\"\nset -eu\nw=$(get_weather '{\"city\": \"Rome\"}')\n"
        "echo \"$w\"\nn=$(add '{\"a\":1,\"b\":2}')\necho \"n $n\"\npwd", "bash")
    assert told["status"] == "completed", told
    assert told["stdout"] == '{"city":"Rome","degrees":4}\nn 3\n/mnt/data\n', \
        told
    assert told["stderr"] == "" and told["files"] == [], told
    assert rounds == [[("get-weather", {"city": "Rome"})],
                      [("add", {"a": 1, "b": 2})]], rounds


@test
def bash_is_told_of_errors():
    told, _ = whole("get_weather '{\"city\": \"Atlantis\"}' || echo no $?\n"
                    "get_weather '{' || echo no $?", "bash")
    assert told["stdout"] == "no 1\nno 1\n", told
    assert "get-weather: no such city\n" in told["stderr"], told
    assert "its argument must be JSON" in told["stderr"], told


@test
def results_are_text_or_one_line_of_json():
    for result, text in ((" {\n\"a\": 1}", '{"a":1}'), ("3.10", "3.10"),
                         ("[x", "[x"), (None, "null"), ("half\ud83d", "half\ufffd"),
                         (["é"], '["é"]')):
        told, _ = whole("add", "bash", tool=lambda name, given: result)
        assert told["stdout"] == text + "\n", told


@test
def a_call_from_a_shell_below_ends_the_whole_round():
    code = "export -f add\nPATH=/none\n$BASH -c add\necho after"
    told = begin(code, "bash")
    assert told["status"] == "tool_call_required", told
    assert "partial_stdout" not in told, told
    told = go_on(told, results_of(told, lambda name, given: 7))
    assert told["stdout"] == "7\nafter\n", told


@test
def equal_calls_of_bash_have_results_of_their_own():
    numbers = iter(range(10))
    told, rounds = whole("add\nadd '{}'\nadd", "bash",
                         tool=lambda name, given: next(numbers))
    assert (told["stdout"], len(rounds)) == ("0\n1\n2\n", 3), told


# ---- what a run may not do ----

FORGE = ("import glob\n"
         "open(glob.glob('.!tools*')[0] + '/calls.json', 'w').write(%s)")


@test
def a_tool_that_was_not_registered_is_told():
    told = begin(FORGE % repr('[{"name": "rm", "input": {}}]'))
    assert (told["status"], told["error"]) == (
        "error", "Sandbox requested an unregistered tool: rm"), told
    assert told["stdout"] == "" and "continuation_token" not in told, told


@test
def a_list_that_makes_no_sense_is_an_error():
    one = '{"name": "add", "input": {}}'
    for text in ("''", "'['", "'{}'", "'[]'", "'[1]'", "'[{\"name\": 1}]'",
                 "'[{\"name\": \"add\"}]'", "'[' * 2000",
                 "'[%s]' % ','.join(['" + one + "'] * 257)",
                 "'[" + one + "]' + ' ' * (1 << 20)"):
        told = begin(FORGE % text)
        assert (told["status"], told.get("error")) == (
            "error", "Execution failed or timed out"), (text, told)
        assert "cannot be read" in told["stderr"], told
    told = begin(FORGE.replace("write", "truncate") % (101 << 20))
    assert "cannot be read" in told["stderr"], told


@test
def twenty_rounds_are_enough():
    told, rounds = whole("i = 0\nwhile True:\n    print(i)\n"
                         "    i += 1\n    await add(a=i, b=0)")
    assert len(rounds) == 20, len(rounds)
    assert (told["status"], told["error"]) == (
        "error", "Execution failed or timed out"), told
    assert "20 rounds" in told["stderr"], told


@test
def limits_are_told_in_the_clients_words():
    told, _ = whole("while True: pass", timeout=500)
    assert (told["status"], told["error"]) == ("error", "Time limit exceeded")
    assert "[sandbox] Time limit exceeded" in told["stderr"], told
    for stream in ("stdout", "stderr"):
        told, _ = whole("import sys\nsys.%s.write('x' * (1 << 20 | 1))"
                        % stream)
        assert (told["status"], told["error"]) == (
            "error", stream + " length exceeded"), told["error"]
    told, _ = whole("import os\nopen('a', 'w').write('a')\n"
                    "os.kill(os.getpid(), 9)")
    assert told["error"] in ("Execution failed or timed out",
                             "Out of memory"), told
    assert libre.get("/files/" + told["session_id"]).json == []


# ---- requests ----

@test
def a_request_that_lacks_something_is_refused():
    for body, text in (
            ({}, "Missing required field: code"),
            ({"code": "1"}, "Missing required field: tools (must be a "
                            "non-empty array)"),
            ({"code": "1", "tools": []}, "Missing required field: tools "
                                         "(must be a non-empty array)"),
            ({"code": "1", "tools": TOOLS * 51},
             "tools must have at most 100 items"),
            ({"code": "1", "tools": [{"name": "-"}]},
             "tools[].name must be a name that can be called"),
            ({"code": 1, "tools": TOOLS}, "code must be a string"),
            ({"code": "1\0", "tools": TOOLS, "lang": "bash"},
             "code must not contain a NUL character"),
            ({"code": "1", "tools": TOOLS, "lang": "rs"},
             "Unsupported language: rs")):
        refused(libre.post(body, path=PATH), 400, {"error": text})


@test
def a_token_that_is_not_ours_is_refused():
    token = begin("await add(a=1, b=1)")["continuation_token"]
    raw = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    raw[-1] ^= 1
    forged = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    for bad in ("", "x", 1, {}, "é", token[:-8], token + "A", token + "!", forged,
                "A" * 100, "A" * (2 << 20)):
        refused(libre.post({"continuation_token": bad}, path=PATH), 400,
                INVALID)
    refused(stranger.post({"continuation_token": token, "tool_results": []},
                          path=PATH), 404, GONE)
    refused(libre.post({"continuation_token": token, "tool_results": 1},
                       path=PATH), 400,
            {"error": "tool_results must be an array"})


@test
def a_call_without_a_result_is_asked_for_again():
    told = begin("print(await add(a=1, b=1))")
    again = go_on(told, [{"call_id": "x", "result": 1, "is_error": False}])
    assert again["status"] == "tool_call_required", again
    told = go_on(again, results_of(again))
    assert told["stdout"] == "2\n", told
    told = begin("print(await asyncio.gather(add(a=1, b=1), add(a=2, b=2)))")
    told = go_on(told, results_of(told)[1:])
    assert [one["input"]["a"] for one in told["tool_calls"]] == [1], told
    assert go_on(told, results_of(told))["stdout"] == "[2, 4]\n"


@test
def what_does_not_fit_into_a_token_is_too_large():
    large = {"error": "The state of this program is too large"}
    refused(libre.post({"code": "#" * (1 << 20), "tools": TOOLS}, path=PATH),
            413, large)
    refused(libre.post({"code": "#" * 600000 + "\nawait add(a='x' * 600000)",
                        "tools": TOOLS}, path=PATH), 413, large)
    told = begin("await add(a=1, b=1)")
    refused(libre.post({
        "continuation_token": told["continuation_token"], "tool_results": [
            {"call_id": told["tool_calls"][0]["id"], "is_error": False,
             "result": "x" * (1 << 20)}]}, path=PATH), 413, large)


@test
def it_asks_who_comes_and_is_counted():
    body = {"code": "1", "tools": TOOLS}
    answer = Libre(served).post(body, path=PATH)
    assert answer.status == 401, answer
    text = served.get("/metrics", Authorization="Bearer " + key).text
    assert 'inline_api_requests_total{route="/librechat/exec/programmatic",' \
        'status="200"}' in text


@test
def a_program_goes_on_after_a_restart():
    told = begin("print(await add(a=1, b=1))")
    served.stop()
    served.start()
    told = go_on(told, results_of(told))
    assert told["stdout"] == "2\n", told


EARLY = 200, {"cancelled": True, "running": False}


def cancel(who, body):
    answer = who.post(body, path=PATH + "/cancel")
    return answer.status, answer.json


def call(name, body):
    return served.post("/librechat" + PATH, body, {
        "X-API-Key": key, "X-LibreChat-Code-Request-ID": name})


@test
def a_call_is_ended_by_its_id():
    """Also where nobody closes its connection."""
    called = {"X-LibreChat-Code-Request-ID":
              "1b4e28ba-2fa1-41d2-883f-0016d3cca427"}
    said = {"request_id": called["X-LibreChat-Code-Request-ID"]}
    link = served.connect()

    link.request("POST", "/librechat" + PATH, json.dumps({
        "code": "import time\ntime.sleep(50)", "timeout": 60000,
        "tools": TOOLS}), {"Content-Type": "application/json",
                           "X-API-Key": key, **called})
    running = "inline_api_running 1\n"
    wait_for(lambda: running in served.get(
        "/metrics", Authorization="Bearer " + key).text)
    assert cancel(stranger, said) == EARLY
    assert cancel(libre, {"request_id": "another"}) == EARLY
    assert not select.select([link.sock], [], [], 1)[0]
    assert cancel(libre, said) == (200, {"cancelled": True, "running": True})
    answer = link.getresponse()
    assert answer.status == 409 and json.loads(answer.read()) == {
        "error": "The execution was cancelled"}, answer.status
    wait_for(lambda: running not in served.get(
        "/metrics", Authorization="Bearer " + key).text)
    assert cancel(libre, said) == EARLY
    for body in b"[]", {}, {"request_id": 1}, {"request_id": "x" * 129}:
        assert cancel(libre, body) == (400, {
            "error": "Missing required field: request_id"}), body
    link.close()


@test
def a_call_that_its_cancel_overtook_does_not_begin():
    """Nor does a later round of it."""
    body = {"code": "print(6 * 7)", "tools": TOOLS}
    assert cancel(libre, {"request_id": "overtaken"}) == EARLY
    for _ in range(2):
        answer = call("overtaken", body)
        assert answer.status == 409 and answer.json == {
            "error": "The execution was cancelled"}, answer
    for name in "not-overtaken", "x" * 128, "x" * 129, "../../x", "":
        answer = call(name, body)
        assert answer.json["stdout"] == "42\n", (name, answer)
    assert cancel(libre, {"request_id": "not-overtaken"}) == EARLY


@test
def whoever_cancels_much_takes_no_cancel_of_others_away():
    """Of a sender's own cancels the oldest one is forgotten."""
    assert cancel(libre, {"request_id": "theirs"}) == EARLY
    assert cancel(libre, {"request_id": "0"}) == EARLY
    for number in range(256 + 1):
        assert cancel(stranger, {"request_id": str(number)}) == EARLY
    body = {"code": "print(6 * 7)", "tools": TOOLS}
    assert call("theirs", body).status == 409
    for name, status in ("0", 200), ("1", 409), ("256", 409):
        answer = served.post("/librechat" + PATH, body, {
            "X-API-Key": other_key, "X-LibreChat-Code-Request-ID": name})
        assert answer.status == status, (name, answer)


@test
def a_killed_process_has_no_call():
    called = {"X-LibreChat-Code-Request-ID": "killed", "X-API-Key": key}
    link = served.connect()
    link.request("POST", "/librechat" + PATH, json.dumps({
        "code": "import time\ntime.sleep(50)", "timeout": 60000,
        "tools": TOOLS}), {"Content-Type": "application/json", **called})
    wait_for(lambda: "inline_api_running 1\n" in served.get(
        "/metrics", Authorization="Bearer " + key).text)
    for pid in served.serving("run.sock"):
        os.kill(pid, signal.SIGKILL)
    assert link.getresponse().status == 502
    link.close()
    wait_for(lambda: call("next", {
        "code": "print(1)", "tools": TOOLS}).status == 200)
    assert cancel(libre, {"request_id": "killed"}) == EARLY


try:
    run()
finally:
    served.close()
    folder.cleanup()
