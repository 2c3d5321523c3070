#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Names of files, on every route: what an answer tells is also taken, when it
comes back unchanged."""

import base64

from libre import Libre, reference
from mcp_client import Mcp
from served import Served
from tap import run, test

served = Served(IL_API_CELLS="2").__enter__()
libre = Libre(served)
mcp = Mcp(served)

NAMES = [name.encode() for name in (
    "output\\result.csv", "C:\\x\\y.txt", "\\\\host\\share", "a\nb.txt",
    "a\r\nb", "tab\t.txt", "\x01", "\x1b[31m", "\x7f", " lead", "trail ",
    "...", "-rf", "~", "#?&=;", "a:b", "$(id) `id`", "'\".txt", "<b>", "%FE",
    "a%20b", "100%", "график.png", "\u56fe.png", "\U0001f600.png",
    "e\u0301", "\u00e9", "\u2028", "\ufeffx", "\u202egnp.exe", "\ufffd",
    "n" * 255, "\u0436" * 127, "main.py", "d/e\\f/g", "d/\n/\u0436",
    "/".join(["p" * 100] * 9))] + [
    b"\xff.txt", b"\xfe.txt", b"\xff" * 200, b"50%\xff", b"a\xc3(",
    b"d\xff/x.txt", b"/".join([b"\xfe" * 120] * 7),
    # Two names that look the same once a byte is told as %FF, or is cut.
    b"a\xff", b"a%FF", b"a%ff", b"a%25FF", b"a%2525FF", b"M%FCller", b"%",
    b"d%FF/x.txt", b"d%25FF/\xff", b"50%25/\xff", b"\xff" * 199 + b"a",
    b"/".join([b"\xfe" * 120] * 6 + [b"\xfd" * 120])]
# Of these /eval's contract says that they are left out or refused, or that the
# whole answer is null.
EVAL = [name for name in NAMES if not name.startswith(b".") and
        b"\n" not in name and not (set(name) & {0xff, 0xfe, 0xfd}) and
        b"\xc3(" not in name]
WRITE = """
import os
for number, name in enumerate(%r):
    if b"/" in name:
        os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, "w") as file:
        file.write("<%%d>" %% number)
"""
READ = """
for name in %a:
    with open(name) as file:
        print(file.read(), end="")
"""


def numbers(names=NAMES):
    return "".join("<%d>" % i for i in range(len(names)))


def ordered(told):
    """Names by what the files hold: {name: content} of all."""
    assert sorted(told.values()) == sorted(
        b"<%d>" % i for i in range(len(told))), told
    return [name for name, _ in sorted(
        told.items(), key=lambda item: int(item[1][1:-1]))]


@test
def on_eval():
    files = served.eval(input=WRITE % EVAL)["files"]
    names = ordered({file["path"]: base64.b64decode(file["content"])
                     for file in files})
    assert names == [name.decode() for name in EVAL], names
    answer = served.eval(input=READ % names, files=files)
    assert answer["stdout"] == numbers(EVAL), answer


@test
def on_execute():
    files = served.execute(WRITE % NAMES)["files"]
    told = {file["path"]: served.get("/v1/files/" + file["file_id"]).body
            for file in files}
    assert len(told) == len(NAMES), files
    answer = served.execute(READ % ordered(told), files=[
        {"path": file["path"], "file_id": file["file_id"]} for file in files])
    assert answer["stdout"] == numbers(), answer


@test
def on_librechat():
    told = libre.exec(WRITE % NAMES)
    names = ordered(libre.made(told))
    assert len(names) == len(NAMES), told
    # Without another word: its client sends the list as it was.
    for hint in None, "a", "a":
        more = {} if hint is None else {"runtime_session_hint": hint}
        again = libre.exec(READ % names, files=told["files"], **more)
        assert (again["stdout"], again["stderr"]) == (numbers(), ""), again
        assert sorted(file["name"] for file in again["files"]) == (
            sorted(names)), again
    # What has expired is uploaded anew, by the name that it had.
    for name in names:
        if "\r" in name or "\n" in name:
            continue  # no form can say so
        sent = name.replace("\\", "\\\\").replace('"', '\\"')
        session, file_id = libre.put(sent, b"x")
        probe = libre.get("/sessions/%s/objects/%s" % (session, file_id)).json
        assert probe["originalFilename"] == name, (name, probe)
        assert libre.exec("print(open(%a).read())" % name, files=[
            reference(name, session, file_id)])["stdout"] == "x\n", name


@test
def on_mcp():
    files = mcp.tool("run_python", code=WRITE % NAMES)
    files = files["structuredContent"]["files"]
    assert len(files) == len(NAMES), files
    told = {}
    for file in files:
        content, = mcp.result(mcp.legacy("resources/read", {
            "uri": file["uri"]}))["contents"]
        told[file["path"]] = content["text"].encode() if (
            "text" in content) else base64.b64decode(content["blob"])
    names = ordered(told)
    data = mcp.tool("run_python", code="import os\nos.chdir('in')\n"
                    "print(len([f for _, _, g in os.walk('.') for f in g]))",
                    files=[{"path": "in/" + file["path"],
                            "file_id": file["uri"].split("/")[3]}
                           for file in files])["structuredContent"]
    assert data["stdout"] == "%d\n" % len(names), data


def listed(session, folder=None):
    """All files of a session, as list_files tells of them."""
    more = {} if folder is None else {"path": folder}
    found = []
    for entry in mcp.tool("list_files", session=session,
                          **more)["structuredContent"]["files"]:
        if entry["kind"] == "folder":
            found += listed(session, entry["path"])
        else:
            found.append(entry["path"])
    return found


@test
def on_mcp_in_a_session():
    with mcp.session() as session:
        # The text of one is too long for a name.
        all_names = NAMES + [b"a" * 252 + b"%FF", b"a" * 252 + b"\xff"]
        data = mcp.tool("run_python", session=session, code=WRITE % all_names)
        data = data["structuredContent"]
        made = [file["path"] for file in data["files"]]
        names = listed(session)
        assert sorted(names) == sorted(made), (names, made)
        assert len(names) == len(all_names), names
        told = {}
        for name in names:
            part = mcp.tool("read_file", session=session, path=name)
            told[name] = part["structuredContent"]["text"].encode()
        for name in ordered(told):
            mcp.tool("write_file", session=session, path=name, text="new")
            part = mcp.tool("read_file", session=session, path=name)
            assert part["structuredContent"]["text"] == "new", name
        assert sorted(listed(session)) == sorted(names), names


try:
    run()
finally:
    served.close()
