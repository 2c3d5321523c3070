#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Clients of Piston's contract, as they are published: each does its usual
work.  Where the package registry does not answer, there is nothing to try."""

import os
import subprocess
import sys
import tempfile

from served import Served
from tap import run, test

CLIENTS = {"ultra-piston": "1.0.1", "aiopyston": "1.2.1",
           "websockets": "15.0.1"}
folder = tempfile.TemporaryDirectory()
PYTHON = os.path.join(folder.name, "bin", "python")


def install():
    """Why they are not there, or None."""
    for words in ([sys.executable, "-m", "venv", folder.name],
                  [PYTHON, "-m", "pip", "install", "-q", "--retries", "0",
                   "--disable-pip-version-check",
                   *("%s==%s" % pair for pair in CLIENTS.items())]):
        try:
            done = subprocess.run(words, capture_output=True, text=True,
                                  timeout=120)
        except subprocess.TimeoutExpired:
            return "the registry is too slow"
        if done.returncode != 0:
            return (done.stderr.strip() or "no output").splitlines()[-1]
    return None


trouble = install()
if trouble:
    print("1..0 # SKIP %s" % trouble)
    sys.exit(0)
served = Served(IL_API_CELLS="2").__enter__()


def client(program):
    """What it prints, with URL being where the service is."""
    done = subprocess.run([PYTHON, "-c", "URL = 'http://127.0.0.1:%d/api/v2/'\n"
                           % served.port + program], capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done
    return done.stdout


@test
def ultra_piston_runs_code():
    assert client("""
from ultra_piston import File, PistonClient
it = PistonClient(base_url=URL)
print([r.language for r in it.get_runtimes()])
print([p.language for p in it.get_packages()])
end = it.post_execute("python", "*", File(content="print(6 * 7)"))
print(repr(end.run.output), end.run.code, end.run.signal)
""") == "['python', 'bash']\n['python', 'bash']\n'42\\n' 0 None\n"


@test
def aiopyston_runs_code():
    assert client("""
import asyncio
from pyston import File, PystonClient
async def main():
    it = PystonClient(base_url=URL)
    print(sorted(r.language for r in await it.runtimes()))
    end = await it.execute("python", [File("print(6 * 7)")])
    print(repr(end.run_stage.output), end.run_stage.code)
    await it.close_session()
asyncio.run(main())
""") == "['bash', 'python']\n'42\\n' 0\n"


@test
def websockets_speaks_to_a_run():
    assert client("""
import json
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
with connect(URL.replace("http", "ws") + "connect") as it:
    it.send(json.dumps({"type": "init", "language": "python",
                        "version": "*", "files": [{"content":
                        "print('hello', input())"}]}))
    it.send(json.dumps({"type": "data", "stream": "stdin",
                        "data": "you\\n"}))
    text = ""
    try:
        for message in map(json.loads, it):
            text += message.get("data", "")
            if message["type"] == "exit":
                print(text, message["code"])
    except ConnectionClosed as error:
        print(error.rcvd.code, error.rcvd.reason)
""") == "hello you\n 0\n4999 Job Completed\n"


try:
    run()
finally:
    served.close()
    folder.cleanup()
