#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The code blocks of all documents.  What works against a running Inline is run
here, as it is written; what sets up a host is run by the tests that are named
here, and its commands are parsed, at least.  A block that nobody knows fails.
"""

import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

from clients import Clients
from served import Served
from tap import run, test

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
ILCTL = os.path.join(BUILD, "bin", "ilctl")
COMMANDS = "curl ", "echo ", "id="
URL = "http://127.0.0.1:8080/mcp"

# Documents whose blocks are commands of an administrator, and who runs them.
ELSEWHERE = {
    ".github/CONTRIBUTING.md": ("lint/examples.t", "e2e/examples.t"),
    "README.md": ("e2e/lifecycle.t", "ctl/real.t"),
    "systemd/INSTALL.md": ("host/install.py",),
    "systemd/OPERATE.md": ("host/update.t", "host/operator.t",
                           "host/package.t"),
    "systemd/container/README.md": ("container/dood.t", "container/dind.t",
                                    "container/compose.t"),
    "systemd/debian/README.md": ("package/package.t", "host/package.t"),
    "systemd/kubernetes/README.md": ("chart/rendered.t",
                                     "kubernetes/chat.t"),
    "tests/README.md": ("lint/docs.t",),
    "tests/bench/README.md": ("ctl/bench.t",),
    "tests/host/README.md": ("host/check.py",),
    "tests/kubernetes/README.md": ("kubernetes/chat.t",),
    "tests/nodes/README.md": ("nodes/check.py",),
}
# Documents whose blocks are run here.
HERE_RUN = ".github/MCP.md", "sql/README.md", "tests/standin/README.md"
DRAWING = re.compile("[\u2192\u25b6\u2500\u2502]")
SETTINGS = re.compile(r"(\[\w+\]\n)?(\w+=\S.*\n?)+")
served = Served(IL_API_CELLS="2").__enter__()
HERE_URL = "http://127.0.0.1:%d/mcp" % served.port
clients = Clients()


def blocks(path):
    """The code blocks of a document, without their indentation."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        text = file.read()
    fenced = re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S)
    text = re.sub(r"^```\w*\n.*?^```", "", text, flags=re.M | re.S)
    found = [body for _, body in fenced]
    # Below an item of a list they are indented by as much more.
    for block in re.findall(r"(?<=\n\n)(?: {4,}.*\n+)+", text):
        lines = block.rstrip("\n").split("\n")
        indent = min(len(line) - len(line.lstrip()) for line in lines if line)
        if indent in (4, 6, 7, 8):
            found.append("\n".join(line[indent:] for line in lines) + "\n")
    return found


def documents():
    found = [os.path.relpath(path, ROOT) for path in
             glob.glob(ROOT + "/**/*.md", recursive=True) +
             glob.glob(ROOT + "/.github/**/*.md", recursive=True)]
    return sorted({path for path in found
                   if not path.startswith(("build/", "il_"))})


def targets():
    with open(os.path.join(ROOT, "GNUmakefile"), encoding="utf-8") as file:
        return set(re.findall(r"^([a-z-]+):", file.read(), re.M))


def is_parsed(block):
    """Whether it is what an administrator types or writes into a file."""
    if DRAWING.search(block) or block.startswith("--- "):
        return True
    if SETTINGS.fullmatch(block):
        return True
    # "make x    what it does" is a list
    text = re.sub(r"^((?:\w+=\S+ )*make [^\n]*?) {3,}[^\n]*$", r"\1", block,
                  flags=re.M)
    text = re.sub(r"^(make check-[a-z]+)  .*$", r"\1", text, flags=re.M)
    for target in re.findall(r"^(?:\w+=\S+ )*make ([a-z-]+)", text, re.M):
        assert target in targets(), block
    for script in re.findall(r"(?<![\w/.])((?:sandbox|tests|systemd|sql)/"
                             r"[\w./-]+\.(?:sh|py|t|sql|yaml|example))", text):
        assert os.path.exists(os.path.join(ROOT, script)), script
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True,
                          text=True)
    assert done.returncode == 0, (block, done.stderr)
    return done.stderr == ""


@test
def each_block_is_known():
    for path in documents():
        for block in blocks(path):
            if DRAWING.search(block) or path in HERE_RUN:
                continue
            assert path in ELSEWHERE, (path, block)
            assert is_parsed(block), (path, block)
    for path, tests in ELSEWHERE.items():
        assert blocks(path), path
        for name in tests:
            assert os.path.exists(os.path.join(ROOT, "tests", name)), name


# ---- README.md: the HTTP APIs ----

def examples():
    """Return [(commands, what they are to print, "\u2026" for anything)]."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        section = file.read().split("## From programs", 1)[1].split("\n## ")[0]
    found = []
    for block in re.findall(r"(?:^    .*\n)+", section, re.M):
        lines = block.replace("\n    ", "\n")[4:].splitlines()
        commands = [line for line in lines if line.startswith(COMMANDS)]
        if commands:
            found.append(("\n".join(commands),
                          "\n".join(lines[len(commands):]).strip()))
    return found


@test
def the_examples_do_what_they_say():
    found = examples()
    assert len(found) == 3, found
    for command, want in found:
        here = command.replace("localhost:8080", "127.0.0.1:%d" % served.port)
        assert here != command, command
        done = subprocess.run(["sh", "-c", here], capture_output=True,
                              text=True, timeout=60)
        pattern = re.escape(want).replace("\\\n", "\n").replace("\u2026", ".*")
        assert done.returncode == 0 and re.fullmatch(
            pattern, done.stdout.strip(), re.S), (command, done.stdout)


@test
def a_token_is_made_as_it_says():
    command, = [block for block in blocks("README.md") if "token -f" in block]
    command = command.split(" && ")[0]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["sh", "-ec", command.replace("build/bin/ilctl", ILCTL)],
            cwd=folder, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and "il_" in done.stdout, done


# ---- .github/MCP.md ----

def is_served(url):
    """The address that a client is to be told is one that answers."""
    assert url == URL, url
    answer = served.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"},
                         {"Accept": "application/json, text/event-stream"})
    assert answer.json["result"] == {}, answer


def use_bridge(command, args, env=None):
    """Start the bridge as the document says, for a client that starts its
    servers, and ask through it."""
    assert (command, args[0]) == ("npx", "-y"), (command, args)
    folder = clients.node_with(args[1], "remote")
    words = [arg.replace(URL, HERE_URL) for arg in args[2:]]
    assert HERE_URL in words, args
    with subprocess.Popen(
            [os.path.join(folder, "node_modules", ".bin", "mcp-remote"),
             *words], text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, **(env or {}),
                 "MCP_REMOTE_CONFIG_DIR": folder}) as program:
        try:
            program.stdin.write(json.dumps(
                {"jsonrpc": "2.0", "id": 1, "method": "initialize",
                 "params": {"protocolVersion": "2025-11-25",
                            "capabilities": {},
                            "clientInfo": {"name": "t", "version": "1"}}})
                + "\n")
            program.stdin.flush()
            answer = json.loads(program.stdout.readline())
        finally:
            program.stdin.close()
            program.terminate()
    assert answer["result"]["serverInfo"]["name"] == "inline", answer


def mcp_blocks(word):
    return [block for block in blocks(".github/MCP.md") if word in block]


@test
def the_settings_of_mcp_clients():
    seen = bridges = 0
    for block in blocks(".github/MCP.md"):
        if block.startswith("claude "):
            assert re.match(r"claude mcp add --transport http \w+ ", block)
            is_served(block.split()[-1])
        elif block.startswith("{"):
            servers, = json.loads(block).values()
            if "command" in servers["inline"]:
                bridges += 1
            else:
                is_served(servers["inline"]["url"])
        elif block.startswith("["):
            is_served(tomllib.loads(block)["mcp_servers"]["inline"]["url"])
        else:
            assert block.startswith("import "), block
            continue
        seen += 1
    assert (seen, bridges) == (6, 2), (seen, bridges)


@test
def the_bridge_for_clients_that_start_their_servers():
    for block in mcp_blocks('"command"'):
        servers = json.loads(block.replace("il_\u2026", "il_0"))
        use_bridge(**servers["mcpServers"]["inline"])


def run_program_with(requirement, name):
    program, = mcp_blocks("import ")
    python = clients.python_with(requirement, name)
    done = subprocess.run(
        [python, "-c", program.replace(URL, HERE_URL)], capture_output=True,
        text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.startswith("42\n"), done


@test
def the_program_with_the_package_of_the_first_generation():
    run_program_with("mcp<2", "mcp1")


@test
def the_program_with_the_package_of_the_second():
    run_program_with("mcp>=2,<3", "mcp2")


# ---- sql/README.md ----

@test
def the_operators_queries():
    commands, = blocks("sql/README.md")
    if shutil.which("sqlite3") is None:
        from tap import Skip
        raise Skip("there is no sqlite3")
    with tempfile.TemporaryDirectory() as folder:
        database = os.path.join(folder, "inline.db")
        settings = dict(served.settings, IL_DATABASE=database)
        with open(os.path.join(folder, "env"), "w", encoding="utf-8") as file:
            file.writelines("%s=%s\n" % item for item in settings.items())
        subprocess.run([ILCTL, "-e", file.name, "migrate"], check=True,
                       capture_output=True, timeout=60)
        done = subprocess.run(
            ["sh", "-ec", commands.replace("DATABASE", database)], cwd=ROOT,
            capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and done.stderr == "", done


# ---- tests/standin/README.md ----

@test
def the_stand_in_and_its_client():
    shell, program = sorted(blocks("tests/standin/README.md"),
                            key=lambda block: "import" in block)
    begin, ask = [line for line in re.split(r"\n(?=\S)", shell.strip())]
    standin = os.path.join(ROOT, "tests", "standin")
    with tempfile.TemporaryDirectory() as folder:
        for command in (ask, begin + " --help"):
            done = subprocess.run(
                ["sh", "-ec", command.replace("standin.py", os.path.join(
                    standin, "standin.py"), 1)], cwd=folder,
                capture_output=True, text=True, timeout=60)
            assert done.returncode == 0 and done.stdout, done
    line = re.search(r"^with Standin\(.*\) as discord:$", program, re.M)
    program = program.replace(line[0], "with given as discord:")
    exec(compile(program, "tests/standin/README.md", "exec"),  # noqa: S102
         {"given": contextlib.nullcontext(served.discord)})


try:
    run()
finally:
    served.close()
    clients.close()
