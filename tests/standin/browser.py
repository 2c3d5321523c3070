# SPDX-License-Identifier: MIT
"""Drives a headless Chromium, to test the chat page as a person uses it.

    with Browser(1280, 800) as browser:
        browser.goto("http://127.0.0.1:9000/")
        browser.type("#composer", "/il py print(1)")
        browser.key("Enter")
        browser.wait("text('[data-state=final]').includes('1')")

The DevTools protocol is spoken over two pipes, so nothing listens anywhere.
Waiting is done in the page by a MutationObserver.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
         "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--disable-extensions",
         "--no-default-browser-check", "--force-color-profile=srgb",
         "--hide-scrollbars", "--remote-debugging-pipe")
AWAITED = ("Page.fileChooserOpened", "Browser.downloadWillBegin",
           "Browser.downloadProgress")
KEYS = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38,
        "Backspace": 8, "End": 35, "Home": 36}
HELPERS = """
window.one = (s) => document.querySelector(s);
window.all = (s) => [...document.querySelectorAll(s)];
window.last = (s) => all(s).pop() || null;
window.text = (s) => (last(s) ? last(s).innerText : "");
"""


class BrowserError(Exception):
    """The browser did not do as told."""


def find_browser():
    """Return the path of a Chromium, or None."""
    for name in NAMES:
        path = shutil.which(name)
        if path:
            return path
    return None


class Browser:
    """One page of one browser."""

    def __init__(self, width=1280, height=800):
        self.size = (width, height)
        self.problems = []
        self._number = 0
        self._session = None
        self._pending = b""
        self._events = []

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        """Start the browser with an empty profile."""
        self._folder = tempfile.mkdtemp(prefix="inline-browser-")
        to_read, self._out = os.pipe()
        self._in, to_write = os.pipe()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20)
                for fd in (to_read, to_write)]
        os.close(to_read)
        os.close(to_write)

        def place():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [find_browser(), *FLAGS, f"--user-data-dir={self._folder}",
             f"--window-size={self.size[0]},{self.size[1]}", "about:blank"],
            pass_fds=(3, 4), preexec_fn=place, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=dict(os.environ, HOME=self._folder))
        for descriptor in high:
            os.close(descriptor)
        target = self.send("Target.createTarget", url="about:blank")
        self._session = self.send("Target.attachToTarget", flatten=True,
                                  targetId=target["targetId"])["sessionId"]
        for domain in ("Page", "Runtime", "Log", "DOM"):
            self.send(domain + ".enable")
        self.send("Page.addScriptToEvaluateOnNewDocument", source=HELPERS)
        self.resize(*self.size)

    def stop(self):
        """End the browser and remove its profile."""
        try:
            session, self._session = self._session, None
            del session
            self.send("Browser.close", timeout=20)
        except (BrowserError, OSError):
            pass
        os.close(self._out)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self._in)
        shutil.rmtree(self._folder, ignore_errors=True)

    # The protocol

    def send(self, method, timeout=60, **parameters):
        """Call a method of the protocol; returns its result."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data):]
        end = time.monotonic() + timeout
        while True:
            answer = self._next(end)
            if answer.get("id") == number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                return answer["result"]
            self._notice(answer)

    def _next(self, end):
        while b"\0" not in self._pending:
            left = end - time.monotonic()
            ready = left > 0 and select.select([self._in], [], [], left)[0]
            piece = os.read(self._in, 1 << 20) if ready else b""
            if not piece:
                raise BrowserError("no answer from the browser")
            self._pending += piece
        message, self._pending = self._pending.split(b"\0", 1)
        return json.loads(message)

    def _notice(self, message):
        """Keep what the page's console complains about."""
        method, given = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = given["exceptionDetails"]
            about = details.get("exception", {}).get("description")
            self.problems.append(about or details["text"])
        elif method == "Runtime.consoleAPICalled":
            if given["type"] in ("error", "assert"):
                self.problems.append(" ".join(
                    str(one.get("value", one.get("description")))
                    for one in given["args"]))
        elif method == "Log.entryAdded":
            entry = given["entry"]
            if entry["level"] == "error":
                self.problems.append(
                    f"{entry['text']} {entry.get('url', '')}")
        elif method in AWAITED:
            self._events.append((method, given))

    def _await(self, method, timeout=60):
        """Wait for an event of AWAITED, and forget those before it."""
        end = time.monotonic() + timeout
        while True:
            while self._events:
                name, given = self._events.pop(0)
                if name == method:
                    return given
            self._notice(self._next(end))

    # What a person does

    def resize(self, width, height):
        """Change the size of the window."""
        self.size = (width, height)
        self.send("Emulation.setDeviceMetricsOverride", width=width,
                  height=height, deviceScaleFactor=1, mobile=width < 700)

    def goto(self, url):
        """Open an address and wait until it is loaded."""
        self.send("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && "
                  f"location.href.startsWith({json.dumps(url)})")

    def evaluate(self, script, timeout=60):
        """Evaluate JavaScript in the page; returns its JSON value."""
        made = self.send("Runtime.evaluate", timeout, expression=script,
                         awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in made:
            details = made["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get(
                "description", details["text"]))
        return made["result"].get("value")

    def wait(self, condition, timeout=60):
        """Wait until a JavaScript expression is true; returns its value.

        In it, one(selector) and all(selector) find elements, and
        text(selector) is the text of the last one found.
        """
        script = HELPERS + """new Promise((done, fail) => {
          const test = () => { try { return (%s); }
                               catch { return false; } };
          let observer = null;
          const look = () => {
            const value = test();
            if (!value) return;
            observer.disconnect();
            clearTimeout(timer);
            done(typeof value === "object" ? true : value);
          };
          observer = new MutationObserver(look);
          observer.observe(document, { subtree: true, childList: true,
            attributes: true, characterData: true });
          document.addEventListener("readystatechange", look);
          document.addEventListener("load", look, true);
          document.addEventListener("scroll", look, true);
          const timer = setTimeout(() => {
            observer.disconnect(); done("\\u0000timeout"); }, %d);
          look();
        })""" % (condition, timeout * 1000)
        end = time.monotonic() + timeout
        while True:
            try:
                value = self.evaluate(script, timeout + 10)
            except BrowserError as error:
                # The page that was asked is gone: ask the one after it.
                if time.monotonic() < end and "navigat" in str(error):
                    continue
                raise
            if value == "\0timeout":
                raise AssertionError(f"not within {timeout} s: {condition}; "
                                     f"the page shows: {self.shown()}")
            return value

    def shown(self):
        """Return the text that the page shows."""
        return self.evaluate("document.body.innerText")

    def click(self, selector, timeout=60):
        """Click in the middle of the last element found.

        While the page moves, or something lies above the element, a click
        would go elsewhere: then look again, as a person does.
        """
        end = time.monotonic() + timeout
        self.wait(f"last({json.dumps(selector)})", timeout)
        while not self._click_once(json.dumps(selector)):
            if time.monotonic() > end:
                raise AssertionError(f"cannot be clicked: {selector}; "
                                     f"the page shows: {self.shown()}")

    def _click_once(self, selector):
        at = self.evaluate("""(async () => {
          last(%s)?.scrollIntoView({ block: "center" });
          const frame = () => new Promise(requestAnimationFrame);
          await frame();
          await frame();
          const node = last(%s);
          if (!node) return null;
          const r = node.getBoundingClientRect();
          const at = [r.x + r.width / 2, r.y + r.height / 2];
          if (!node.contains(document.elementFromPoint(...at))) return null;
          window.clicked = false;
          document.addEventListener("click", (event) => {
            window.clicked = node.contains(event.target);
          }, { capture: true, once: true });
          return at;
        })()""" % (selector, selector))
        if at is None:
            return False
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1],
                      button="none" if kind == "mouseMoved" else "left",
                      clickCount=0 if kind == "mouseMoved" else 1)
        return self.evaluate("window.clicked")

    def middle(self, selector):
        """Bring the last element found into sight; returns its middle."""
        self.wait(f"last({json.dumps(selector)})")
        return self.evaluate("""(() => {
          const node = last(%s);
          node.scrollIntoView({ block: "center" });
          const r = node.getBoundingClientRect();
          return { x: r.x + r.width / 2, y: r.y + r.height / 2 };
        })()""" % json.dumps(selector))

    def right_click(self, selector):
        """Click with the right button."""
        at = self.middle(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, button="right",
                      clickCount=1, **at)

    def touch(self, selector):
        """Put a finger on an element; `lift` takes it away."""
        self.send("Input.dispatchTouchEvent", type="touchStart",
                  touchPoints=[self.middle(selector)])

    def lift(self):
        """Take the finger away."""
        self.send("Input.dispatchTouchEvent", type="touchEnd",
                  touchPoints=[])

    def type(self, selector, text):
        """Replace what an input holds, as by typing."""
        self.wait(f"last({json.dumps(selector)})")
        self.evaluate(f"last({json.dumps(selector)}).focus();"
                      f"last({json.dumps(selector)}).select()")
        self.send("Input.insertText", text=text)

    def key(self, name, shift=False):
        """Press one key."""
        common = {"key": name, "code": name, "modifiers": 8 if shift else 0,
                  "windowsVirtualKeyCode": KEYS[name]}
        if name == "Enter":
            common["text"] = "\r"
        self.send("Input.dispatchKeyEvent", type="keyDown", **common)
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def choose(self, selector, value):
        """Choose an entry of a select element."""
        self.wait(f"last({json.dumps(selector)})")
        self.evaluate("""(() => {
          const node = last(%s);
          node.value = %s;
          node.dispatchEvent(new Event("change", { bubbles: true }));
        })()""" % (json.dumps(selector), json.dumps(value)))

    def set_files(self, selector, *paths):
        """Choose files in a file input."""
        root = self.send("DOM.getDocument")["root"]["nodeId"]
        node = self.send("DOM.querySelector", nodeId=root,
                         selector=selector)["nodeId"]
        self.send("DOM.setFileInputFiles", nodeId=node, files=list(paths))

    def pick_files(self, selector, *paths):
        """Click what opens the file chooser, and choose files there."""
        self.send("Page.setInterceptFileChooserDialog", enabled=True)
        self.click(selector)
        chooser = self._await("Page.fileChooserOpened")
        self.send("DOM.setFileInputFiles", files=list(paths),
                  backendNodeId=chooser["backendNodeId"])
        self.send("Page.setInterceptFileChooserDialog", enabled=False)

    def download(self, selector):
        """Click a download link; returns the file's (name, bytes)."""
        self.send("Browser.setDownloadBehavior", behavior="allowAndName",
                  downloadPath=self._folder, eventsEnabled=True)
        self.click(selector)
        begun = self._await("Browser.downloadWillBegin")
        state = "inProgress"
        while state == "inProgress":
            state = self._await("Browser.downloadProgress")["state"]
        if state != "completed":
            raise BrowserError(f"the download was {state}")
        path = os.path.join(self._folder, begun["guid"])
        with open(path, "rb") as file:
            data = file.read()
        os.unlink(path)
        return begun["suggestedFilename"], data

    def screenshot(self, path):
        """Write a picture of the window to a PNG file."""
        made = self.send("Page.captureScreenshot", format="png")
        with open(path, "wb") as file:
            file.write(base64.b64decode(made["data"]))
