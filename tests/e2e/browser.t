#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Each command in a real browser, typed and clicked by people.

With SCREENSHOTS=folder it leaves pictures there, to be looked at.  The window
has BROWSER_SIZE, 1280x800 (browser_small.t: a phone's).
"""

import os
import signal
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from package_index import Index, network  # noqa: E402
from service import Service  # noqa: E402
from browser import Browser, find_browser  # noqa: E402
from person import NEWEST, Person  # noqa: E402
from tap import run, test  # noqa: E402

if find_browser() is None:
    print("1..0 # SKIP no chromium")
    sys.exit(0)

PICTURES = os.environ.get("SCREENSHOTS")
WIDTH, HEIGHT = map(int, os.environ.get("BROWSER_SIZE", "1280x800").split("x"))
PLOT = """```py
import struct, zlib

def chunk(kind, data):
    check = zlib.crc32(kind + data)
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', check)

rows = b''.join(
    b'\\0' + b''.join(bytes((x * 255 // 360, y * 255 // 180, 160))
                     for x in range(360)) for y in range(180))
with open('plot.png', 'wb') as file:
    file.write(b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack(
        '>IIBBBBB', 360, 180, 8, 2, 0, 0, 0))
        + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))
with open('notes.txt', 'w') as file:
    file.write('drawn')
```"""


folder = tempfile.TemporaryDirectory(prefix="inline-e2e-")
NETWORK = f"inline-e2e-{os.getpid()}"


def picture(name):
    """Leave a picture, if wished."""
    if PICTURES:
        size = "" if WIDTH > HEIGHT else "-small"
        browser.screenshot(os.path.join(PICTURES, f"{name}{size}.png"))


def answer(text):
    """Say something; returns what is answered, as it is shown."""
    person.says(text)
    return person.reads()


@test
def without_a_sandbox_one_is_told_what_to_do():
    assert "/il create" in answer("/il delete")


@test
def create_is_found_in_the_palette():
    person.types("/il cr")
    person.waits("all('#palette [role=option]').length === 1")
    browser.key("Tab")
    person.sends()
    text = person.reads()
    assert "Your sandbox is ready" in text, text
    assert "256 MiB in 10,000 files" in text and "in 7 days" in text, text
    assert "Only you can see this" in text, text


@test
def a_fresh_sandbox_is_empty():
    text = answer("/il look")
    assert "~ is empty." in text, text
    assert "0 B of 256 MiB used, 0 of 10,000 files" in text, text
    picture("create")


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
def an_image_is_shown_and_files_are_beside_it():
    person.says("/il py " + PLOT)
    person.waits("last('img[data-image=\"plot.png\"]').naturalWidth === 360")
    assert person.sees("a[data-download='notes.txt']")
    text = person.reads()
    assert "exit" not in text and "No output." not in text, text
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
def time_is_limited_and_that_is_said():
    text = answer("/il py while True: pass")
    assert "stopped at the time limit of 3 s" in text, text


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
    assert "~: 3 entries" in text and "4 of 10,000 files" in text, text
    assert person.reads_block().split("\n")[0].endswith("tool/"), text
    picture("look")
    assert "~/tool: 1 entry" in answer("/il look tool")
    person.says("/il py import os; print(os.getcwd())")
    assert person.reads_block() == "/workspace/tool"
    assert "~: 3 entries" in answer("/il look ~")


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


@test
def put_takes_a_file_from_the_picker():
    path = os.path.join(folder.name, "data.csv")
    with open(path, "w") as file:
        file.write("a,b\n1,2\n")
    person.types("/il put ")
    browser.pick_files("[data-option=file]", path)
    person.waits("text('[data-option=file]').includes('data.csv')")
    person.sends()
    assert "Saved ~/data.csv: 8 B" in person.reads()
    person.says("/il py print(open('data.csv').read())")
    assert "1,2" in person.reads_block()


def installs(packages):
    """Have pip install; returns the text in the end, not that of the log."""
    person.says("/il pip " + packages)
    person.waits(f"/Installed|Not installed/.test({NEWEST}.innerText)")
    return person.reads()


@test
def pip_installs_what_python_then_imports():
    text = installs("demo")
    assert "Installed demo." in text and person.reads_block() is None, text
    picture("pip")
    person.says("/il py import demo; demo.word")
    assert person.reads_block() == "'packaged'"
    assert ".site-packages/" in answer("/il look")


@test
def pip_says_why_nothing_was_installed():
    text = installs("'six>=1' no-such-package")
    assert "Not installed: six>=1, no-such-package." in text, text
    assert "There is no six>=1" in text and person.keeps("pip.log"), text
    text = answer("/il pip --upgrade")
    assert "--upgrade is not a requirement" in text, text
    picture("pip-fails")


@test
def a_shared_answer_is_seen_by_others_and_nothing_else():
    person.says("/il py code:print('for', 'all') share:true")
    assert "Only you can see this" not in person.reads()
    person.is_now("bob")
    assert person.reads_block() == "for all"
    shown = browser.shown()
    assert "Only you can see this" not in shown, shown
    assert browser.evaluate("all('.message').length") == 1


@test
def somebody_else_has_a_sandbox_of_their_own():
    assert "/il create" in answer("/il look")
    assert "is ready" in answer("/il create")
    assert "~ is empty." in answer("/il look")
    person.is_now("alice")
    assert "plot.png" in answer("/il look")


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


with folder, network(NETWORK) as gateway, \
        Index(folder.name, gateway) as index, \
        Service(IL_TIMEOUT_SECONDS="3", IL_PIP_NETWORK=NETWORK,
                IL_PIP_INDEX_URL=index.url, IL_PIP_CA_BUNDLE=index.ca
                ) as service, \
        Browser(WIDTH, HEIGHT) as browser:
    person = Person(browser)
    index.add_wheel("demo", "1.0", {"demo.py": "word = 'packaged'"})
    person.opens(f"http://127.0.0.1:{service.port}/")
    run()
