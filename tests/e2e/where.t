#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Where somebody is and what they have: the current directory, names that are
none, and no mistake of theirs that is told as our fault."""

import itertools
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from service import Service  # noqa: E402
from client import File  # noqa: E402
from tap import run, test  # noqa: E402

service = Service(IL_SPARE_CELLS="1", IL_QUOTA="16m", IL_USER_RATE="10000")
OURS = "our fault", "(reference", "Sandbox error"
# Names that people type, and what a program may have left under them.
ODD = (".", "..", "~", "./", "~/", "/", "//", "./.", "~/.", "...", " ", "~x",
       "sub", "sub/", "sub/.", "sub/..", "missing", "missing/x", "file",
       "file/", "file/x", "link", "out", "fifo", "sock", "locked",
       "locked/x", "lost+found", "lost+found/x", ".site-packages",
       ".site-packages/", ".site-packages/x", ".site-packages/x/y", "x" * 255,
       "x" * 256, "y/" * 500, "-rf", "*", "a\nb", "\u202e", "`",
       "\U0001f40d" * 60)
PROGRAMS = (
    "import os; os.chmod('/workspace', 0)",
    "import os; os.kill(os.getpid(), 9)",
    "import os; os.kill(os.getppid(), 9)",
    "import os; os.kill(-1, 9)",
    "import os; os.closerange(0, 99)",
    "import os; os.abort()",
    "import sys; sys.exit('\\udc80' * 9)",
    "print('\\udc80\\0\\x1b[')",
    "import sys; sys.setrecursionlimit(10 ** 9)\n(f := lambda: f())()",
    "open('big', 'wb').write(bytes(99 << 20))",
    "open('/tmp/big', 'wb').write(bytes(999 << 20))",
    "for i in range(99999): open(f'many{i}', 'w')",
    "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))",
    "import os\nwhile True: os.fork()",
    "x" * 5000,
    "(" * 5000,
)
LEFT = """
import os, shutil, socket
os.chdir(os.path.expanduser('~'))
for name in set(os.listdir()) - {'.site-packages', 'lost+found'}:
    if os.path.islink(name) or not os.path.isdir(name):
        os.unlink(name)
    else:
        os.chmod(name, 0o700)
        shutil.rmtree(name)
os.makedirs('sub/deep'); open('file', 'w').write('x')
os.symlink('file', 'link'); os.symlink('/etc', 'out')
os.mkfifo('fifo'); socket.socket(socket.AF_UNIX).bind('sock')
os.mkdir('locked', 0)
"""


def final(command, user="alice", **options):
    """Send a command, wait for its final message and return that."""
    sent = service.discord.send_command(command, user=user, **options)
    sent.wait_answered()
    if sent.view["answer_type"] == 9:   # an editor
        return None
    sent.wait_final()
    return sent.original


def begin():
    """At the top, with all that is in LEFT."""
    final("look", path="~")
    service.run(LEFT)


def pressed(message, button):
    """Press a button; returns what came of it when that is final."""
    sent = service.discord.press(message, button)
    sent.wait_final(timeout=60)
    return sent.original


def told_as_ours(command, **options):
    """What is said of it, if it is told as a fault of ours."""
    message = final(command, **options)
    text = message.text() if message else ""
    return [(command, options, text)] if any(
        word in text for word in OURS) else []


@test
def no_mistake_is_told_as_our_fault():
    service.create()
    found = []
    for path in ODD:
        begin()
        for command, option in (("look", "path"), ("get", "path"),
                                ("py", "file"), ("write", "name"),
                                ("rm", "name")):
            found += told_as_ours(command, **{option: path})
        found += told_as_ours("write", name=path, content="x")
        found += told_as_ours("put", file=File("f.txt", "x"), path=path)
        begin()
        found += told_as_ours("rm", name=path, recursive=True)
    for code in PROGRAMS:
        begin()
        found += told_as_ours("py", code=code)
        found += told_as_ours("look")
    for name in ("", ".", "..", "-r", "a/b", "x" * 100, "a b", "x>=1", "`"):
        found += told_as_ours("pip", packages=name)
        found += told_as_ours("packages remove", name=name)
    for command in ("py", "pip", "packages list", "packages remove"):
        options = {"py": {"code": "1"}, "pip": {"packages": "x"},
                   "packages remove": {"name": "x"}}.get(command, {})
        found += told_as_ours(command, version="2.7", **options)
    assert not found, found


@test
def the_sandbox_itself_stays():
    begin()
    for name, recursive in itertools.product(
            (".", "~", "./", "..", "sub/..", "~/."), (False, True)):
        text = final("rm", name=name, recursive=recursive).text()
        assert "`/il delete`" in text and "stays" in text, (name, text)
    assert "file" in final("look").text()


@test
def a_directory_is_no_name_for_a_file():
    begin()
    for name in ("new/", ".", "~", "sub/.", "sub/"):
        for options in ({}, {"content": "x"}):
            text = final("write", name=name, **options).text()
            assert "name of a directory" in text, (name, text)
    assert "new" not in final("look").text()


@test
def a_page_that_is_not_there_is_told():
    begin()
    service.run("import os\nos.mkdir('sub/pages')\n"
                "for i in range(45): open(f'sub/pages/{i}', 'w').close()")
    text = final("look", path="~/sub/pages", page=9).text()
    assert "page 3 of 3. There is no page 9." in text, text
    text = final("look", path="~/sub/pages", page=3).text()
    assert "There is no" not in text, text
    assert "is empty. There is no page 2." in final(
        "look", path="~/sub/deep", page=2).text()


@test
def nothing_broke_discords_rules():
    service.assert_kept_discords_rules()


with service:
    run()
