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

service = Service(IL_TUNE_SPARE_CELLS="1", IL_QUOTA="16m", IL_USER_RATE="10000")
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
import os, shutil, socket, subprocess
os.chdir(os.path.expanduser('~'))
for name in set(os.listdir()) - {'.site-packages', 'lost+found'}:
    if os.path.islink(name) or not os.path.isdir(name):
        os.unlink(name)
    else:
        subprocess.run(['chmod', '-R', 'u+rwx', name])
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
    text = service.run(LEFT)
    assert "Traceback" not in text and "exit" not in text, text


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


# What becomes of a current directory, and what people do then.
GONE = {
    "removed": "shutil.rmtree(here)",
    "a file": "shutil.rmtree(here); open(here, 'w').close()",
    "a link": "shutil.rmtree(here); os.symlink('/etc', here)",
    "locked": "os.chmod(here, 0)",
}


def lose(how):
    """Be in ~/sub/deep, which goes while code runs there."""
    begin()
    text = final("look", path="sub/deep").text()
    assert "You are in `~/sub/deep` now." in text, text
    text = service.run("import os, shutil; here = os.getcwd(); " + GONE[how])
    assert "Traceback" not in text and "exit" not in text, text


@test
def code_runs_in_the_nearest_directory_that_is_there():
    for how in GONE:
        lose(how)
        text = service.run("import os; print('here', os.getcwd())")
        assert "here /workspace/sub\n" in text, (how, text)
        assert ("`~/sub/deep` is gone or closed: you are in `~/sub` now."
                in text), text
        text = service.run("import os; print('here', os.getcwd())")
        assert "here /workspace/sub\n" in text and "in `~/sub`" in text, text
        assert "is gone" not in text, "said once"
        lose(how)
        text = final("look").text()
        assert text.startswith("`~/sub`") and "is gone" in text, text
        lose(how)
        service.say("session start")
        assert "here /workspace/sub\n" in service.run(
            "import os; print('here', os.getcwd())", keep=True)
        lose(how)
        service.say("session stop")


@test
def files_are_run_and_shown_from_there_and_never_removed():
    begin()
    final("write", name="sub/x.py", content="print('found' * 2)")
    final("write", name="sub/deep/x.py", content="")
    for command, option, want in (("py", "file", "foundfound"),
                                  ("look", "path", "print("),
                                  ("get", "path", "~/sub/x.py")):
        final("look", path="~/sub/deep")
        service.run("import os, shutil; shutil.rmtree(os.getcwd())")
        text = final(command, **{option: "x.py"}).text()
        assert want in text and "is gone" in text, (command, text)
        if command == "py":     # by then it is somewhere else
            service.run("import os; os.makedirs('deep', exist_ok=True)")
            final("look", path="~/sub/deep")
            service.run("import os, shutil; shutil.rmtree(os.getcwd())")
            text = final("py", file="x.py", timeit=True).text()
            assert "per loop" in text and "is gone" in text, text
        service.run("import os; os.mkdir('deep'); open('deep/x.py', 'w')")
    final("look", path="~/sub/deep")
    service.run("import os, shutil; shutil.rmtree(os.getcwd())")
    text = final("rm", name="x.py").text()
    assert "`~/sub/deep/x.py` does not exist" in text and "is gone" in text
    assert "x.py" in final("look").text()


@test
def files_are_written_there_but_replace_none():
    ways = (("write", {"name": "w.py", "content": "1"}),
            ("put", {"file": File("w.py", "1")}),
            ("put", {"file": File("x", "1"), "path": "w.py"}))
    for how in set(GONE) - {"removed"}:     # a removed one is made anew
        for command, options in ways:
            lose(how)
            text = final(command, **options).text()
            assert "Saved `~/sub/w.py`" in text, (how, command, text)
            assert ("`~/sub/deep` is gone or closed: you are in `~/sub` now."
                    in text), text
            text = final("look").text()
            assert "w.py" in text and "is gone" not in text, text
            lose(how)
            final("write", name="~/sub/w.py", content="mine")
            text = final(command, **options).text()
            assert "Saved" not in text and "is gone" in text, (how, text)
            assert "mine" in final("look", path="~/sub/w.py").text(), how
            assert "Saved `~/sub/w.py`" in final(command, **options).text()
        lose(how)
        final("write", name="~/sub/x.py", content="mine")
        text = final("rm", name="x.py").text()
        assert "Removed" not in text and "is gone" in text, (how, text)
        assert "mine" in final("look", path="~/sub/x.py").text(), how


@test
def who_removes_where_they_are_is_above_it():
    begin()
    final("look", path="sub/deep")
    text = final("rm", name="~/sub", recursive=True).text()
    assert "Removed `~/sub`" in text and "You are in `~` now." in text, text
    text = service.run("import os; print('here', os.getcwd())")
    assert "here /workspace\n" in text and "gone" not in text, text
    begin()
    final("look", path="sub/deep")
    text = final("rm", name=".").text()
    assert "Removed `~/sub/deep`" in text and "in `~/sub` now" in text, text


@test
def no_text_takes_no_path_for_the_sandbox_or_names_what_has_just_failed():
    for how in GONE:
        for command, options in (("py", {"code": "1"}), ("look", {}),
                                 ("look", {"path": "x"}),
                                 ("get", {"path": "x"}),
                                 ("rm", {"name": "x"}),
                                 ("write", {"name": "x/y", "content": "1"}),
                                 ("py", {"file": "x.py"})):
            lose(how)
            text = final(command, **options).text()
            assert "Your sandbox" not in text, (how, command, text)
            assert f"`/il {command}`" not in text, (how, command, text)


@test
def look_says_where_one_is_and_has_a_button_back():
    begin()
    message = final("look", path="sub")
    assert "You are in `~/sub` now." in message.text(), message
    assert message.buttons() == ["Back to ~"], message
    for command, options in (("py", {"code": "1"}), ("look", {}),
                             ("write", {"name": "w", "content": "x"}),
                             ("get", {"path": "w"}), ("rm", {"name": "w"}),
                             ("py", {"code": "1/0"}),
                             ("rm", {"name": "missing"}),
                             ("packages list", {}),
                             ("session status", {})):
        text = final(command, **options).text()
        assert "in `~/sub`" in text.splitlines()[-1], (command, text)
    assert "-# exit 1 · in `~/sub`" in service.run("1/0")
    plain = final("look")
    assert plain.buttons() == ["Back to ~"], plain
    assert "now" not in plain.text(), "it has not moved"
    assert final("look", path="sub").buttons() == ["Look at ~/sub"]
    message = pressed(message, "Back to ~").refresh()
    text = message.text()
    assert "You are in `~` now." in text and "`~/sub`" not in text, text
    assert message.buttons() == ["Back to ~/sub"], message
    assert "in `~" not in service.run("1")
    message = pressed(message, "Back to ~/sub").refresh()
    assert "You are in `~/sub` now." in message.text(), message


@test
def what_does_not_exist_is_looked_for_at_the_top():
    begin()
    final("write", name="x.py", content="print('top' * 2, input())")
    final("look", path="sub")
    message = final("py", file="x.py", stdin="in" * 3)
    assert "`~/sub/x.py` does not exist." in message.text(), message
    assert "There is `~/x.py`, though." in message.text(), message
    pressed(message, "Run ~/x.py")
    assert "toptop ininin" in message.refresh().text(), message.refresh()
    message = final("get", path="x.py")
    pressed(message, "Get ~/x.py")
    assert message.refresh().attachment("x.py").text().startswith("print")
    message = final("look", path="x.py")
    assert message.buttons() == ["Look at ~/x.py", "Look at ~/sub"], message
    pressed(message, "Look at ~/x.py")
    assert "print('top'" in message.refresh().text()
    text = final("rm", name="x.py").text()
    assert "There is `~/x.py`, though." in text, text
    text = final("rm", name="nowhere").text()
    assert "though" not in text, text
    begin()
    assert "though" not in final("rm", name="nowhere").text()


@test
def nothing_broke_discords_rules():
    service.assert_kept_discords_rules()


with service:
    run()
