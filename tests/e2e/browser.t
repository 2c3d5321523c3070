#!/usr/bin/python3
"""All commands in a real browser, on the chat page of the whole service.

With SCREENSHOTS=folder it leaves pictures there, to be looked at.
"""

import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from package_index import Index, network  # noqa: E402
from service import Service  # noqa: E402
from browser import Browser, find_browser  # noqa: E402
from tap import run, test  # noqa: E402

if find_browser() is None:
    print("1..0 # SKIP no chromium")
    sys.exit(0)

browser = Browser(1280, 900)
PICTURES = os.environ.get("SCREENSHOTS")
FINAL = "[data-message-id][data-state=final]"
seen = [""]
PNG = ("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
       "0000000d49444154789c6360000000000500010d0a2db40000000049454e44ae"
       "426082")


def say(line):
    """Type a line and send it; sees() then looks at what comes after it."""
    browser.wait("!one('#modal[open]')")
    seen[0] = browser.evaluate(f"last('{FINAL}')?.dataset.messageId ?? ''")
    browser.type("#composer", line)
    browser.key("Enter")


def sees(text, seconds=30):
    """Wait until the answer shows this."""
    browser.wait(f"last('{FINAL}')?.dataset.messageId > '{seen[0]}' && "
                 f"text('{FINAL}').includes({json.dumps(text)})", seconds)


def picture(name):
    """Leave a screenshot, if wanted."""
    if PICTURES:
        browser.screenshot(os.path.join(PICTURES, f"e2e-{name}.png"))


@test
def create_and_py():
    say("/il create")
    sees("256 MiB")
    say("/il py print('hel' + 'lo')")
    sees("hello")
    sees("exit 0")


@test
def an_image_is_shown_inline():
    say(f"/il py open('dot.png', 'wb').write(bytes.fromhex('{PNG}'))")
    browser.wait("last('img[data-image=\"dot.png\"]')?.complete && "
                 "last('img[data-image=\"dot.png\"]').naturalWidth === 1", 30)
    picture("image")


@test
def py_in_the_editor():
    say("/il py")
    browser.type("#modal [data-field=code]", "for i in range(3):\n"
                 "    print('row', i)")
    picture("editor")
    browser.click("#modal-submit")
    sees("row 2")


@test
def write_look_rm():
    say("/il write name:notes.txt content:written here")
    sees("notes.txt")
    say("/il write name:notes.txt")
    browser.wait("one('#modal [data-field=content]').value === "
                 "'written here'")
    browser.type("#modal [data-field=content]", "changed here")
    browser.click("#modal-submit")
    sees("notes.txt")
    say("/il look path:notes.txt")
    sees("changed here")
    say("/il rm name:notes.txt")
    sees("notes.txt")
    say("/il look path:notes.txt")
    sees("does not exist")


@test
def look_turns_pages_by_buttons():
    say("/il py for i in range(30): open(f'p{i:02}', 'w').close()")
    sees("exit 0")
    say("/il look")
    sees("page 1 of 2")
    browser.click("button[data-custom-id^=look-next]")
    sees("page 2 of 2")
    picture("pages")


@test
def put_and_get():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "up.csv")
        with open(path, "w") as file:
            file.write("a,b\n1,2\n")
        browser.type("#composer", "/il put ")
        browser.wait("one('[data-option=file]')")
        browser.evaluate("one('#picker').click = () => {}")
        browser.click("[data-option=file]")
        browser.set_files("#picker", path)
        browser.wait("text('[data-option=file]').includes('up.csv')")
        browser.click("#send")
        sees("up.csv")
    say("/il get path:up.csv")
    browser.wait("last('a[data-download=\"up.csv\"]')", 30)
    name, data = browser.download('a[data-download="up.csv"]')
    assert (name, data) == ("up.csv", b"a,b\n1,2\n"), (name, data)


@test
def pip_shows_its_log():
    say("/il pip demo")
    sees("Installed demo", 60)
    picture("pip")
    say("/il py import demo; demo.word")
    sees("'packaged'")


@test
def health():
    say("/health")
    sees("Docker: reachable")
    picture("health")


@test
def delete_asks_first():
    say("/il delete")
    browser.click("button[data-custom-id^=delete-yes]")
    sees("deleted")
    say("/il py 1")
    sees("/il create")


@test
def nothing_went_wrong_in_the_page():
    assert not browser.problems, browser.problems
    service.assert_kept_discords_rules()


NETWORK = f"inline-e2e-{os.getpid()}"
with tempfile.TemporaryDirectory(prefix="inline-e2e-") as place, \
        network(NETWORK) as gateway, Index(place, gateway) as index, \
        Service(IL_PIP_INDEX_URL=index.url, IL_PIP_CA_BUNDLE=index.ca,
                IL_PIP_NETWORK=NETWORK) as service, browser:
    index.add_wheel("demo", "1.0", {"demo.py": "word = 'packaged'"})
    browser.goto(f"http://127.0.0.1:{service.port}/")
    browser.wait("one('#link').dataset.state === 'live'")
    run()
