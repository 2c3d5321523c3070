#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""LibreChat's own client, as it is published, against the real service.  The
package comes from npm once, into BUILD/npm; where no registry answers, the test
is skipped."""

import json
import os
import subprocess
import sys
import tempfile

from libre import Libre, reference
from served import HERE, Served
from service import BUILD
from tap import run, test

PACKAGE = "@librechat/agents"
VERSION = "3.1.63"      # the last with an API key; Node 20 is enough for it
ASK_SECONDS = 60
INSTALL_SECONDS = 300


def skip(why):
    print("1..0 # SKIP " + why)
    sys.exit(0)


def npm(seconds, folder, *words):
    """Whether it went well."""
    try:
        return subprocess.run(["npm", *words, "--loglevel=error"], cwd=folder,
                              capture_output=True, timeout=seconds
                              ).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def install():
    """The folder with the package."""
    folder = os.path.join(BUILD, "npm", VERSION)
    name = f"{PACKAGE}@{VERSION}"
    if os.path.exists(os.path.join(folder, "whole")):
        return folder
    os.makedirs(folder, exist_ok=True)
    if not npm(ASK_SECONDS, folder, "view", name, "version"):
        skip("npm is not there, or its registry does not answer")
    if not npm(INSTALL_SECONDS, folder, "install", "--no-audit", "--no-fund",
               "--ignore-scripts", "--omit=dev", "--omit=optional", name):
        skip("the package cannot be installed")
    with open(os.path.join(folder, "whole"), "w", encoding="ascii"):
        return folder


package = install()
tokens = tempfile.TemporaryDirectory(prefix="inline-libre-")
path = os.path.join(tokens.name, "tokens")
key = next(word for word in subprocess.run(
    [os.path.join(BUILD, "bin", "ilctl"), "token", "-f", path, "add", "first"],
    check=True, text=True, capture_output=True).stdout.split()
           if word.startswith("il_"))
served = Served(IL_API_TOKENS_FILE=path, IL_API_CELLS="1").__enter__()
libre = Libre(served, {"X-API-Key": key})


client = subprocess.Popen(
    ["node", os.path.join(HERE, "librechat_client.cjs"), package],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={
        **os.environ, "LIBRECHAT_CODE_API_KEY": key,
        "LIBRECHAT_CODE_BASEURL":
        "http://127.0.0.1:%d/librechat" % served.port})


def ask(code, lang="py", tool_call=None, api_key=None, **args):
    """What the client gives to the model, and keeps for itself."""
    client.stdin.write(json.dumps({
        "args": {**({"lang": lang} if lang else {}), "code": code, **args}, "apiKey": api_key,
        "toolCall": tool_call or {}}) + "\n")
    client.stdin.flush()
    line = client.stdout.readline()
    assert line, "the client has ended"
    return json.loads(line)


@test
def a_program_runs():
    told = ask("print(6 * 7)")
    assert told.get("content") == "stdout:\n42", told
    assert len(told["artifact"]["session_id"]) == 21, told


@test
def errors_reach_the_model():
    told = ask("1/0")
    assert "ZeroDivisionError: division by zero" in told["content"], told
    told = ask("echo out; echo err >&2; exit 3", "bash", args=["a"])
    assert told["content"] == "stdout:\nout\n\nstderr:\nerr", told


@test
def files_of_a_run_are_in_the_next():
    first = ask("open('/mnt/data/plot.png', 'wb').write(b'\\x89PNG')")
    assert "/mnt/data/plot.png | " in first["content"], first
    (plot,) = first["artifact"]["files"]
    assert libre.download(first["artifact"]["session_id"], plot["id"]
                          ).body == b"\x89PNG"
    session, file_id = libre.put("data.csv", b"1,2")
    told = ask("import os; print(sorted(os.listdir('/mnt/data')))", tool_call={
        "_injected_files": [reference("data.csv", session, file_id), plot]})
    assert "['__main__.py', 'data.csv', 'plot.png']" in told["content"], told


@test
def a_session_is_listed_where_no_files_are_given():
    first = ask("open('a.tar.gz', 'w').write('x')")
    told = ask("ls; cat a.tar.gz", "bash", tool_call={
        "session_id": first["artifact"]["session_id"]})
    assert "stdout:\na.tar.gz\nx" in told["content"], told


@test
def a_program_calls_tools():
    told = ask("import asyncio\nx = await add_up(numbers=[1, 2])\n"
               "print(x, await asyncio.gather(add_up(numbers=[x]), "
               "add_up(numbers=[4])))", lang=None)
    assert told.get("content") == "stdout:\n3 [3, 4]", told
    told = ask("try:\n    await fail()\nexcept Exception as e:\n"
               "    print(e)", lang=None)
    assert told.get("content") == "stdout:\nit is broken", told
    told = ask("await add_up(numbers=[])\n1/0", lang=None)
    assert "ZeroDivisionError: division by zero" in told["error"], told


@test
def refusals_are_told():
    assert "status: 400" in ask("fn main() {}", "rs")["error"]
    assert "status: 401" in ask("1", api_key="il_" + "0" * 64)["error"]


try:
    run()
finally:
    client.stdin.close()
    client.wait()
    served.close()
    tokens.cleanup()
