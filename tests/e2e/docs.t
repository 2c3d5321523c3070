#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The page of the HTTP APIs in a real browser: read, and each thing tried.

With SCREENSHOTS=folder it leaves pictures there, to be looked at.
"""

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from service import BUILD, Service  # noqa: E402
from browser import Browser, find_browser  # noqa: E402
from tap import run, test  # noqa: E402

if find_browser() is None:
    print("1..0 # SKIP no chromium")
    sys.exit(0)

PICTURES = os.environ.get("SCREENSHOTS")
SIZES = (1280, 800), (390, 844)
# What a shell, curl and a browser would each like to interpret.
HARD = """print('''it's "$HOME" `id` \\\\n !! $(id) @x <b>&amp;</b> %20 é 🐍''')
print("<img src=x onerror=alert(1)><script>alert(2)</script>")"""
PLOT = """import struct, zlib
def chunk(kind, data):
    return (struct.pack('>I', len(data)) + kind + data
            + struct.pack('>I', zlib.crc32(kind + data)))
open('plot.png', 'wb').write(
    b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack(
        '>IIBBBBB', 300, 100, 8, 2, 0, 0, 0))
    + chunk(b'IDAT', zlib.compress((b'\\0' + b'\\x30\\x90\\xd0' * 300) * 100))
    + chunk(b'IEND', b''))
open("it's.txt", 'w').write('kept')"""


class Watched(Browser):
    """A browser that notes what it asks for."""

    def start(self):
        self.asked = []
        super().start()
        self.send("Network.enable")

    def _notice(self, message):
        if message.get("method") == "Network.requestWillBeSent":
            self.asked.append(message["params"]["request"]["url"])
        super()._notice(message)


def picture(name):
    """Leave a picture, if wished."""
    if PICTURES:
        browser.screenshot(os.path.join(PICTURES, name + ".png"))


def opens(name):
    """Open an operation's form."""
    if not browser.evaluate(f"one('#{name} .try').open"):
        browser.click(f"#{name} .try > summary")
    browser.wait(f"one('#{name} .try').open")


def fills(name, body):
    """Put another body into it."""
    opens(name)
    browser.type(f"#{name} textarea",
                 body if isinstance(body, str) else json.dumps(body))


def sends(name, status):
    """Send it; returns the body that is shown when all of it is there."""
    browser.click(f"#{name} .buttons :first-child")
    browser.wait(f"text('#{name} .status').startsWith('{status}') && "
                 f"one('#{name} .stop').hidden")
    return browser.evaluate(
        f"one('#{name} .answer .body')?.textContent ?? null")


def command(name):
    return browser.evaluate(f"one('#{name} .command').textContent")


def runs(name):
    """Run the command as it is shown, with sh; returns what it prints."""
    done = subprocess.run(["sh", "-c", command(name)], capture_output=True,
                          text=True, timeout=60, cwd=folder.name)
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout


def steady(text):
    """JSON without what differs from run to run."""
    value = json.loads(text)
    for key in ("duration_ms", "file_id", "session_id", "expires_at"):
        value.pop(key, None)
    return value


def gives_token(value):
    browser.type(".access input", value)


@test
def without_a_token_it_is_said_what_is_missing():
    opens("eval")
    assert steady(sends("eval", 401)) == {"title": "401 Unauthorized"}
    assert "there was none that is known" in browser.evaluate(
        "text('#eval .answer p:nth-of-type(2)')")
    assert steady(runs("eval")) == {"title": "401 Unauthorized"}
    browser.problems.clear()  # the browser's own line about the 401


@test
def the_example_runs_and_the_command_gives_the_same():
    gives_token(token)
    want = {"stdout": "Hello\n", "returncode": 0, "files": []}
    opens("eval")
    assert steady(sends("eval", 200)) == want
    assert steady(runs("eval")) == want
    shown = browser.evaluate("text('#eval .status')")
    assert shown.startswith("200 OK · ") and " ms · 5" in shown, shown
    assert "content-type: application/json" in browser.evaluate(
        "text('#eval .headers')")
    picture("answer")


@test
def what_a_shell_would_interpret_arrives_as_it_is():
    fills("eval", {"input": HARD, "stdin": "\n'\\''\n"})
    shown = sends("eval", 200)
    assert '`id` \\n !! $(id) @x <b>&amp;</b> %20 é 🐍' in json.loads(
        shown)["stdout"], shown
    assert steady(runs("eval")) == json.loads(shown)


@test
def the_answer_is_text_and_no_markup():
    assert "<img src=x onerror=alert(1)>" in browser.evaluate(
        "text('#eval .answer .body')")
    assert browser.evaluate(
        "all('.answer img, .answer script, .answer b').length") == 0
    fills("eval", "@/etc/passwd")
    note = browser.evaluate("text('#eval .note')")
    assert note.startswith("This is not JSON"), note
    assert json.loads(sends("eval", 400)) == json.loads(runs("eval"))
    browser.problems.clear()  # the browser's own line about the 400


@test
def numbers_are_shown_as_they_were_sent():
    made = browser.evaluate("""(async () => {
      const own = window.fetch;
      window.fetch = async () => new Response(
        '{"n":12345678901234567890,"e":1.50E+3,"s":"\\\\u00e9 \\\\"[","o":{},' +
        '"a":[1,[]]}', { headers: { "content-type": "application/json" } });
      one('#health form').requestSubmit();
      await new Promise((done) => setTimeout(done, 50));
      window.fetch = own;
      return one('#health .answer .body').textContent;
    })()""")
    assert made == """{
  "n": 12345678901234567890,
  "e": 1.50E+3,
  "s": "\\u00e9 \\"[",
  "o": {},
  "a": [
    1,
    []
  ]
}""", made


@test
def a_header_can_be_chosen():
    fills("execute", {"code": "6 * 7"})
    browser.choose("#execute select", "1")
    browser.wait("text('#execute .command').includes('Inline-Extras: 1')")
    assert json.loads(sends("execute", 200))["reason"] == "exit"
    assert json.loads(runs("execute"))["reason"] == "exit"
    browser.choose("#execute select", "")


@test
def a_stream_is_shown_as_it_comes():
    fills("execute_stream", {"code": "import time\nprint('first')\n"
                             "time.sleep(1.5)\nprint('last')",
                             "timeout_ms": 9000})
    browser.click("#execute_stream .buttons :first-child")
    browser.wait("text('#execute_stream .body').includes('first') && "
                 "!text('#execute_stream .body').includes('last')")
    browser.wait("text('#execute_stream .body').includes('event: result')")
    browser.wait("one('#execute_stream .stop').hidden")
    assert "event: result" in runs("execute_stream")


@test
def a_run_can_be_stopped():
    fills("execute_stream", {"code": "import time\nprint('first')\n"
                             "time.sleep(60)", "timeout_ms": 60000})
    browser.click("#execute_stream .buttons :first-child")
    browser.wait("text('#execute_stream .body').includes('first')")
    browser.click("#execute_stream .stop")
    browser.wait("text('#execute_stream .status') === 'Stopped.'")
    assert browser.evaluate(
        "document.activeElement === "
        "one('#execute_stream .buttons :first-child')")


@test
def a_picture_that_a_run_made_is_shown():
    fills("eval", {"input": PLOT})
    sends("eval", 200)
    browser.wait("one('#eval figure img').naturalWidth === 300")
    name, data = browser.download("#eval a[download=\"it's.txt\"]")
    assert (name, data) == ("it's.txt", b"kept"), name
    fills("execute", {"code": PLOT})
    sends("execute", 200)
    browser.click("#execute [aria-label='Fetch plot.png']")
    browser.wait("one('#execute figure img')?.naturalWidth === 300")
    picture("image")


@test
def a_file_goes_up_and_comes_back():
    path = os.path.join(folder.name, "a \"b\"; 'c',d.csv")
    with open(path, "w") as file:
        file.write("1,2\n")
    opens("upload_file")
    browser.set_files("#upload_file input", path)
    browser.wait("text('#upload_file .command').includes('.csv')")
    made = json.loads(sends("upload_file", 201))
    assert steady(runs("upload_file")) == steady(json.dumps(made))
    opens("download_file")
    assert browser.evaluate("one('#download_file input').value") == \
        made["file_id"]
    assert sends("download_file", 200) == "1,2\n"
    assert runs("download_file") == "1,2\n"
    opens("delete_file")
    assert sends("delete_file", 204) is None
    browser.problems.clear()


@test
def a_session_is_begun_used_and_ended():
    opens("create_session")
    made = json.loads(sends("create_session", 201))
    fills("session_bash", {"cmd": "echo \"it's $((6 * 7))\""})
    answer = json.loads(sends("session_bash", 200))
    assert answer["stdout"] == "it's 42\n", answer
    assert made["session_id"] in command("session_bash")
    assert steady(runs("session_bash")) == steady(json.dumps(answer))
    opens("delete_session")
    assert "-X DELETE" in command("delete_session")
    assert runs("delete_session") == ""
    assert "not found" in sends("delete_session", 404)
    browser.problems.clear()  # the browser's own line about the 404


@test
def it_works_without_a_mouse():
    browser.evaluate("one('#versions .try > summary').focus()")
    browser.key("Enter")
    browser.wait("one('#versions .try').open")
    browser.key("Tab")
    assert browser.evaluate(
        "document.activeElement === one('#versions .buttons :first-child')")
    browser.key("Enter")
    browser.wait("text('#versions .status').startsWith('200')")


@test
def every_field_has_a_name_and_every_id_is_there():
    nameless = browser.evaluate(
        "all('input, select, textarea, button').filter(n => "
        "!(n.labels?.[0]?.textContent || n.textContent || n.ariaLabel))"
        ".map(n => n.outerHTML)")
    assert nameless == [], nameless
    dead = browser.evaluate("all('a[href^=\"#\"]').filter(a => "
                            "!one(a.getAttribute('href'))).length")
    assert dead == 0


@test
def no_answer_is_told():
    browser.send("Network.emulateNetworkConditions", offline=True, latency=0,
                 downloadThroughput=-1, uploadThroughput=-1)
    browser.click("#versions .buttons :first-child")
    browser.wait("text('#versions .status').startsWith('No answer')")
    browser.send("Network.emulateNetworkConditions", offline=False, latency=0,
                 downloadThroughput=-1, uploadThroughput=-1)
    browser.problems.clear()  # the browser's own line about it


@test
def it_fits_both_sizes_in_light_and_dark():
    for form in browser.evaluate("all('section').map(n => n.id)"):
        opens(form)
    browser.evaluate("all('details').forEach(n => { n.open = true; })")
    for width, height in SIZES:
        browser.resize(width, height)
        browser.wait(f"innerWidth === {width}")
        wide = browser.evaluate(
            "all('body *').filter(n => n.getBoundingClientRect().right > "
            "innerWidth && !n.matches('.skip')).map(n => n.outerHTML)")
        assert wide == [], wide[:3]
        assert browser.evaluate(
            "document.documentElement.scrollWidth") <= width
        for colours in ("light", "dark"):
            browser.send("Emulation.setEmulatedMedia", features=[
                {"name": "prefers-color-scheme", "value": colours}])
            for part in ("", "#eval", "#execute", "#upload_file"):
                browser.evaluate(f"(one('{part}' || 'body'))"
                                 ".scrollIntoView(true)")
                picture(f"{width}-{colours}{part.replace('#', '-')}")


@test
def nothing_is_loaded_from_elsewhere_and_nothing_complains():
    home = f"http://127.0.0.1:{service.port}/"
    strange = [url for url in browser.asked if not url.startswith(
        (home, f"blob:{home}", "data:,"))]
    assert browser.asked and strange == [], strange
    assert browser.problems == [], browser.problems


@test
def its_policy_stops_a_strange_script_style_and_picture():
    """As hostile text would be, were it ever taken for markup."""
    stopped = browser.evaluate("""(async () => {
      const seen = [];
      document.addEventListener("securitypolicyviolation", (event) => {
        seen.push(event.effectiveDirective); });
      const add = (name, given) => document.body.append(
        Object.assign(document.createElement(name), given));
      add("style", { textContent: "body { color: red }" });
      add("img", { src: "/health" });
      try { document.body.innerHTML = "<b>x</b>"; } catch { }
      await fetch("http://localhost:9/").catch(() => 0);
      await new Promise((done) => setTimeout(done, 200));
      return seen.sort().join(" ");
    })()""")
    assert stopped == ("connect-src img-src require-trusted-types-for "
                       "style-src-elem"), stopped


folder = tempfile.TemporaryDirectory(prefix="inline-e2e-")
with folder:
    tokens = os.path.join(folder.name, "tokens")
    made = subprocess.run(
        [os.path.join(BUILD, "bin", "ilctl"), "token", "-f", tokens, "add",
         "alice"], capture_output=True, text=True, check=True).stdout
    token = next(word for word in made.split() if word.startswith("il_"))
    with Service(IL_API_TOKENS_FILE=tokens, IL_API_CELLS="2") as service, \
            Watched(*SIZES[0]) as browser:
        browser.goto(f"http://127.0.0.1:{service.port}/docs")
        run()
