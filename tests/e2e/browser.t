#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Each command in a real browser, typed and clicked by people.

With SCREENSHOTS=folder it leaves pictures there, to be looked at.  The window
has BROWSER_SIZE, 1280x800 (browser_small.t: a phone's).
"""

import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from package_index import Index, network  # noqa: E402
from service import DOCKER, IMAGE, Service  # noqa: E402
from browser import Browser, find_browser  # noqa: E402
from person import NEWEST, Person  # noqa: E402
from tap import run, test  # noqa: E402

if find_browser() is None:
    print("1..0 # SKIP no chromium")
    sys.exit(0)

PICTURES = os.environ.get("SCREENSHOTS")
WIDTH, HEIGHT = map(int, os.environ.get("BROWSER_SIZE", "1280x800").split("x"))
NEWER = "inline-python:3.13"
TWO = subprocess.run([DOCKER, "image", "inspect", NEWER], capture_output=True,
                     check=False).returncode == 0
IMAGES = f"3.11={IMAGE},3.13={NEWER}" if TWO else None
LIVE = """```py
import time
for n in range(101):
    bar = '#' * (n // 4)
    print(f'\\rtraining {n:3}% {bar:25}', end='')
    time.sleep(.2)
```"""
SNIPPET = """```py
a, b = 0, 1
for _ in range(12):
    a, b = b, a + b
    print(a, end=' ')
```"""
PLOT = """```py
from math import cos, exp
from plot import plot

def swing(x):
    return exp(-x / 9) * cos(x)

plot(swing, lambda x: exp(-x / 9))
for turn in range(4):
    print(f'turn {turn}: {swing(turn * 6.283):5.1%}')
with open('notes.txt', 'w') as file:
    file.write('drawn')
```"""


folder = tempfile.TemporaryDirectory(prefix="inline-e2e-")
NETWORK = f"inline-e2e-{os.getpid()}"


def picture(name):
    """Leave a picture, if wished."""
    if PICTURES:
        size = "" if WIDTH > HEIGHT else "-small"
        browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
        browser.screenshot(os.path.join(PICTURES, f"{name}{size}.png"))


def upload(name, text):
    """Make a file to be uploaded; returns its path."""
    path = os.path.join(folder.name, name)
    with open(path, "w") as file:
        file.write(text)
    return path


def answer(text):
    """Say something; returns what is answered, as it is shown."""
    person.says(text)
    return person.reads()


@test
def the_first_command_makes_a_sandbox():
    text = answer("/py print('Hello, world')")
    assert person.reads_block() == "Hello, world", text
    assert "A sandbox of your own was made" in text, text
    assert "Only you can see this" in text, text
    picture("first")


@test
def help_shows_examples_and_each_button_runs_one():
    text = answer("/il help")
    assert "sum(range(101))" in text and "/il look" in text, text
    picture("help")
    person.presses("1")
    assert person.reads_block() == "5050"


@test
def create_is_found_in_the_palette():
    person.types("/il ")
    person.waits("all('#palette [role=option]').length > 9")
    picture("palette")
    person.types("/il cr")
    person.waits("all('#palette [role=option]').length === 1")
    browser.key("Tab")
    person.sends()
    text = person.reads()
    assert "You have a sandbox already" in text, text
    assert "256 MiB in 10,000 files" in text and "in 7 days" in text, text


@test
def a_fresh_sandbox_is_empty():
    text = answer("/il look")
    assert "~ is empty." in text, text
    assert "0 B of 256 MiB used, 0 of 10,000 files" in text, text


@test
def health_says_that_all_is_well():
    text = answer("/health")
    assert "All is well." in text and "Problem" not in text, text
    assert "Docker: reachable" in text and "Python 3." in text, text


@test
def code_in_one_line_runs():
    text = answer("/il py print('in' + 'line')")
    assert person.reads_block() == "inline", text
    assert "exit" not in text and " ms" not in text, text
    person.says("/il py 2 + 2")
    assert person.reads_block() == "4"
    text = answer("/il py None")
    assert "No output." in text and person.reads_block() is None, text


@test
def code_in_a_fence_is_typed_line_by_line():
    person.types("/il py ```py")
    for line in ("for i in range(3):", "    print('line', i)", "```"):
        browser.key("Enter")
        browser.send("Input.insertText", text=line)
    person.sends()
    assert person.reads_block() == "line 0\nline 1\nline 2"


@test
def a_traceback_shows_ones_own_lines():
    person.says("/il py def f():\n    return 1 / 0\n\nf()")
    block = person.reads_block()
    assert "line 2, in f\n    return 1 / 0" in block, block
    assert "ZeroDivisionError" in block and block.count("File") == 2, block
    assert "exit 1" in person.reads()


@test
def the_editor_opens_and_can_be_closed():
    person.asks_for_editor("/il py")
    browser.click("#modal-cancel")
    person.waits("!one('#modal').open")
    person.asks_for_editor("/il py")
    picture("editor")
    person.submits(code="print(input())\nprint('typed')", stdin="given")
    assert person.reads_block() == "given\ntyped"


@test
def standard_input_is_an_option():
    person.types("/il py code:print(input()[::-1]) stdin:olleh")
    person.waits("one('[data-option=stdin]').dataset.value === 'olleh'")
    person.sends()
    assert person.reads_block() == "hello"


@test
def py_is_short_and_takes_an_attachment():
    person.types("/py ")
    browser.pick_files("[data-option=attachment]",
                       upload("hello.py", "print('hello from', __name__)"))
    person.waits("text('[data-option=attachment]').includes('hello.py')")
    person.sends()
    assert person.reads_block() == "hello from __main__"


@test
def put_takes_a_file_from_the_picker():
    person.types("/il put ")
    browser.pick_files("[data-option=file]",
                       os.path.join(os.path.dirname(__file__), "plot.py"))
    person.waits("text('[data-option=file]').includes('plot.py')")
    person.sends()
    assert "Saved ~/plot.py: 1" in person.reads()


@test
def an_image_is_shown_and_files_are_beside_it():
    person.says("/il py " + PLOT)
    person.waits("last('img[data-image=\"plot.png\"]').naturalWidth === 720")
    assert person.sees("a[data-download='notes.txt']")
    text = person.reads()
    assert "turn 3:" in text and "exit" not in text, text
    assert "No output." not in text, text
    picture("image")


@test
def output_is_drawn_as_a_terminal_draws_it():
    person.says("/il py for n in range(101): print(f'\\r{n}% \\033[1;92m"
                "{n * chr(9608):.20}\\033[0m', end='\\u200b')")
    block = person.reads_block()
    assert block == "100% " + 20 * chr(9608) + "\\u200b", block
    assert person.sees("pre .ansi-bold.ansi-32", "innerText") == 20 * chr(9608)
    picture("colours")


@test
def long_output_comes_as_a_file_too():
    person.says("/il py for i in range(5000): print('row', i)")
    block = person.reads_block()
    assert "row 0\n" in block and "row 4999" in block, block
    assert "left out" in block and "row 2500\n" not in block, block
    name, data = person.keeps("output.txt")
    assert name == "output.txt"
    assert data == "".join(f"row {i}\n" for i in range(5000)).encode()


@test
def a_long_run_is_shown_live_looked_beside_and_cancelled():
    person.begins("/il py " + LIVE)
    person.waits("text('pre').includes('%')")
    live = person.newest()
    assert "plot.png" in answer("/il look")
    picture("live")
    browser.click(f"[data-message-id='{live}'] [data-label=Cancel]")
    shown = f"one('[data-message-id=\"{live}\"]')"
    person.waits(f"{shown}.innerText.includes('cancelled')")
    assert "%" in browser.evaluate(shown + ".querySelector('pre').innerText")


@test
def code_is_measured():
    text = answer("/il py code:sorted(range(1000)) timeit:true")
    assert "per loop" in text, text
    picture("timeit")


if TWO:
    @test
    def another_python_runs_it():
        which = "import sys; sys.version_info[:2]"
        person.says(f"/il py code:{which} version:3.13")
        assert person.reads_block() == "(3, 13)"
        assert "Python 3.13" in person.reads()
        person.chooses("py-version", "3.11", "text('pre') === '(3, 11)'")


@test
def variables_stay_while_a_session_is_on():
    assert "you run nothing for 15 minutes" in answer("/il session start")
    person.says("/il py import math; radius = 3")
    person.says("/il py math.pi * radius ** 2")
    assert person.reads_block().startswith("28.27"), person.reads()
    text = answer("/il session status")
    assert "variables" in text, text
    picture("session")
    assert "is over" in answer("/il session stop")
    person.says("/il py code:kept = 1 keep:true")
    person.says("/il py kept")
    assert person.reads_block() == "1"


@test
def an_answer_is_run_again():
    person.says("/il py open('n', 'a').write('x'); open('n').read()")
    assert person.reads_block() == "'x'"
    person.presses("Re-run", "text('pre') === \"'xx'\"")
    picture("re-run")


@test
def an_answer_is_edited():
    person.opens("Edit")
    assert "open('n')" in person.fields()["code"], person.fields()
    person.submits(code="import os\nos.unlink('n')\nprint('tidied', 'up')")
    assert person.reads_block() == "tidied up"


@test
def input_that_was_missing_is_given():
    text = answer("/il py name = input('Who? ')\nprint('Hello,', name)")
    assert "EOFError" in text and "there was none" in text, text
    picture("input")
    person.opens("Give input")
    person.submits("text('pre').includes('Hello, Ada')", stdin="Ada")
    assert not person.sees("[data-label='Give input']")


@test
def all_of_a_long_output_is_read_page_by_page():
    person.says("/il py for n in range(300): print('line', n)")
    person.presses("Full output")
    assert "page 1 of" in person.reads(), person.reads()
    person.presses("Next", f"{NEWEST}.innerText.includes('page 2 of')")


@test
def one_of_many_files_is_fetched():
    person.says("/il py for n in range(12): open(f'f{n:02}', 'w').write('x')")
    picture("files")
    assert "12 new or changed files" in person.reads(), person.reads()
    person.presses("Get all of ~ as zip")
    assert person.sees("[data-download='files.zip']"), person.reads()
    person.says("/il py import os\nfor n in range(12): os.unlink(f'f{n:02}')")


@test
def code_of_any_message_is_run():
    person.is_now("bob")
    person.writes("What does this print?\n" + SNIPPET)
    person.is_now("alice")
    person.opens_menu()
    picture("menu")
    person.picks("Run Python")
    assert person.reads_block().startswith("1 1 2 3 5 8"), person.reads()
    picture("menu-run")


@test
def code_of_any_message_is_opened_in_the_editor():
    person.is_now("bob")
    person.writes("And `'a' + 'b'`?")
    person.is_now("alice")
    person.opens_menu()
    person.picks("Edit and run", "one('#modal').open")
    assert person.fields()["code"] == "'a' + 'b'", person.fields()
    person.submits(code="'a' + 'c'")
    assert person.reads_block() == "'ac'"


@test
def a_file_is_written_looked_at_and_run():
    assert "Saved ~/tool/main.py" in answer(
        "/il write tool/main.py content:print('tool', __file__)")
    person.says("/il look tool/main.py")
    assert person.reads_block() == "print('tool', __file__)"
    assert person.sees("pre", "dataset.lang") == "py"
    person.says("/il py file:tool/main.py")
    assert person.reads_block() == "tool /workspace/tool/main.py"


@test
def the_editor_holds_what_the_file_holds():
    person.asks_for_editor("/il write tool/main.py")
    assert browser.evaluate("one('[data-field=content]').value") == (
        "print('tool', __file__)")
    person.submits(content="print('edited')\n")
    assert "Saved ~/tool/main.py" in person.reads()
    person.says("/il py file:tool/main.py")
    assert person.reads_block() == "edited"


@test
def look_goes_into_a_directory_and_back():
    text = answer("/il look")
    assert "~: 4 entries" in text and "5 of 10,000 files" in text, text
    assert person.reads_block().split("\n")[0].endswith("tool/"), text
    picture("look")
    assert "~/tool: 1 entry" in answer("/il look tool")
    person.says("/il py import os; print(os.getcwd())")
    assert person.reads_block() == "/workspace/tool"
    assert "~: 4 entries" in answer("/il look ~")


@test
def look_turns_pages():
    person.says("/il py import os; os.mkdir('many')\n"
                "for i in range(45): open(f'many/f{i:02}', 'w').close()")
    text = answer("/il look many")
    assert "45 entries, page 1 of 3" in text, text
    assert person.sees("[data-label=Previous]", "disabled")
    person.presses("Next", "text('pre').includes('f20')")
    assert "page 2 of 3" in person.reads()
    person.presses("Next", "text('pre').includes('f44')")
    assert person.sees("[data-label=Next]", "disabled")
    picture("pages")
    person.presses("Previous", "text('pre').includes('f39')")
    assert "page 2 of 3" in person.reads()
    person.says("/il look ~")


@test
def rm_asks_for_more_with_a_directory():
    text = answer("/il rm many")
    assert "is a directory" in text and "recursive:True" in text, text
    person.types("/il rm many")
    browser.click("[data-option=recursive]")
    person.sends()
    assert "Removed ~/many." in person.reads()
    assert "does not exist" in answer("/il rm many")


@test
def get_gives_a_file_to_keep():
    text = answer("/il get notes.txt")
    assert "~/notes.txt: 5 B" in text, text
    assert person.keeps("notes.txt") == ("notes.txt", b"drawn")


def installs(packages):
    """Have pip install; returns the text in the end, not that of the log."""
    person.says("/il pip " + packages)
    person.waits(f"/Installed|Not installed/.test({NEWEST}.innerText)")
    return person.reads()


@test
def a_module_that_is_missing_is_installed_by_a_button():
    person.says("/il py import demo\ndemo.word")
    picture("missing")
    person.presses("Install demo", "text('pre').includes(\"'packaged'\")")
    assert "demo was installed first" in person.reads(), person.reads()
    picture("installed")


@test
def pip_installs_what_python_then_imports():
    text = installs("demo")
    assert "Installed demo" in text and person.reads_block() is None, text
    assert ".site-packages/" in answer("/il look")


@test
def packages_are_listed_and_removed():
    text = answer("/il packages list")
    assert "1 package" in text and "demo 1.0" in text, text
    picture("packages")
    person.types("/il packages remove name:d")
    person.waits("one('#palette [data-choice=demo]')")
    browser.click("#palette [data-choice=demo]")
    person.sends()
    assert "Removed the package demo" in person.reads(), person.reads()


@test
def names_are_completed():
    person.types("/il look path:")
    person.waits("one('#palette [data-choice=\"plot.py\"]')")
    picture("complete")
    person.types("/il look path:tool/")
    person.waits("all('#palette [role=option]').length === 1")
    browser.click("#palette [data-choice='tool/main.py']")
    person.sends()
    assert "main.py" in person.reads() and "edited" in person.reads_block()


@test
def pip_says_why_nothing_was_installed():
    text = installs("'six>=1' no-such-package")
    assert "Not installed: six>=1, no-such-package." in text, text
    assert "There is no project six." in text, text
    assert "Nearest" not in text and person.keeps("pip.log"), text
    text = answer("/il pip --upgrade")
    assert "--upgrade is not a requirement" in text, text
    picture("pip-fails")


@test
def a_shared_answer_is_seen_by_others_and_nothing_else():
    person.says("/il py " + SNIPPET)
    person.presses("Share")
    assert "Only you can see this" not in person.reads()
    person.is_now("bob")
    person.waits("text('.message').includes('Shared by @Alice')")
    assert "range(12)" in person.reads() and "1 1 2 3 5 8" in person.reads()
    shown = browser.shown()
    assert "Only you can see this" not in shown, shown
    picture("shared")


@test
def somebody_else_tries_it_in_a_sandbox_of_their_own():
    person.opens("Try it yourself")
    assert "range(12)" in person.fields()["code"], person.fields()
    person.submits()
    text = person.reads()
    assert "1 1 2 3 5 8" in text and "was made for this" in text, text
    assert "~ is empty." in answer("/il look")


@test
def a_shared_answer_is_deleted_by_its_owner():
    person.is_now("alice")
    person.says("/il py code:'for' + ' all' share:true")
    shared = person.newest()
    person.presses("Remove", f"!one('[data-message-id=\"{shared}\"]')")


@test
def all_of_it_in_another_language():
    person.reads_in("de")
    person.types("/il ")
    person.waits("one('#palette [role=option]')")
    picture("german-palette")
    text = answer("/il py print(1 / 0)")
    assert "Bearbeiten" in text, text
    picture("german")
    person.reads_in("en-US")


@test
def in_a_direct_message_it_is_the_same_sandbox():
    browser.click("[data-channel=dm]")
    assert "plot.png" in answer("/il look")
    browser.click("[data-channel=guild]")


@test
def delete_asks_and_keeps_or_deletes():
    text = answer("/il delete")
    assert "cannot be undone" in text, text
    person.presses("Keep it", "text('.message').includes('Nothing was')")
    assert not person.sees("button[data-custom-id]")
    assert "plot.png" in answer("/il look")
    person.says("/il delete")
    picture("delete")
    person.presses("Delete everything",
                   "text('.message').includes('all its files are deleted')")
    assert not person.sees("button[data-custom-id]")
    assert "was made for this" in answer("/il look")


@test
def all_of_it_fits_the_screen():
    wide = browser.evaluate(
        "all('#messages .body *').filter(n => "
        f"n.getBoundingClientRect().right > {WIDTH}).map(n => n.outerHTML)")
    assert wide == [], wide
    assert browser.evaluate("document.documentElement.scrollWidth") <= WIDTH


@test
def neither_page_nor_discord_has_a_complaint():
    assert browser.problems == [], browser.problems
    service.assert_kept_discords_rules()


@test
def after_ctrl_c_the_page_says_so_and_later_shows_all_again():
    person.says("/il create")
    person.says("/il look")
    before = person.newest(), person.reads()
    service.stop(signal.SIGINT)
    person.waits("!one('#gone').hidden && "
                 "text('#gone').includes('The service has gone')")
    picture("gone")
    service.start()
    person.waits("one('#link').dataset.state === 'live'")
    assert browser.evaluate("one('#gone').hidden")
    assert (person.newest(), person.reads()) == before
    assert "~ is empty." in answer("/il look")


@test
def time_is_limited_and_that_is_said():
    service.stop()
    service.settings["IL_TIMEOUT_SECONDS"] = "3"
    service.start()
    person.waits("one('#link').dataset.state === 'live'")
    text = answer("/il py while True: pass")
    assert "stopped at the time limit of 3 s" in text, text
    picture("time")


with folder, network(NETWORK) as gateway, \
        Index(folder.name, gateway) as index, \
        Service(IL_CHAT_IMAGES=IMAGES, IL_PIP_NETWORK=NETWORK,
                IL_PIP_INDEX_URL=index.url, IL_PIP_CA_BUNDLE=index.ca
                ) as service, \
        Browser(WIDTH, HEIGHT) as browser:
    person = Person(browser)
    index.add_wheel("demo", "1.0", {"demo.py": "word = 'packaged'"})
    person.visits(f"http://127.0.0.1:{service.port}/")
    run()
