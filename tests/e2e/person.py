# SPDX-License-Identifier: MIT
"""A person in front of the chat page, who types, clicks and reads.

    alice = Person(browser)
    alice.says("/il py print(1)")
    assert "1" in alice.reads()
"""

import json

NEWEST = "last('.message')"
# What a run that is under way has.
NOT_RUNNING = f"!{NEWEST}.querySelector('[data-label=Cancel]')"


class Person:
    """Whoever sits at this browser; `is_now` makes it another one."""

    def __init__(self, browser):
        self.browser = browser

    def visits(self, address):
        """Open the page and wait until it hears of what happens."""
        self.browser.goto(address)
        self.browser.wait("text('#link') === 'live'")

    def is_now(self, user):
        """Be somebody else, who sees what that one sees."""
        self.browser.evaluate("one('#link').dataset.state = 'changing'")
        self.browser.choose("#user", user)
        self.browser.wait("one('#link').dataset.state === 'live'")

    def reads_in(self, locale):
        """Have a client of another language."""
        self.browser.choose("#language", locale)

    # Saying something

    def types(self, text):
        """Put text into the line."""
        self.browser.type("#composer", text)

    def answered(self, act):
        """Do what makes a new message, and wait until that is whole."""
        before = self.newest()
        act()
        self.waits(f"{NEWEST}.dataset.messageId !== {json.dumps(before)} && "
                   f"{NEWEST}.dataset.state !== 'thinking' && {NOT_RUNNING}")
        self.browser.wait("!one('[data-pending]')")

    def sends(self):
        """Send the line as it is, whatever the list above it offers, and
        wait for the answer.
        """
        self.answered(lambda: self.browser.click("#send"))

    def says(self, text):
        """Type a line, send it and wait for the answer."""
        self.types(text)
        self.sends()

    def writes(self, text):
        """Write a message to the others, and wait until it is there."""
        before = self.newest()
        self.types(text)
        self.browser.click("#send")
        self.waits(f"{NEWEST}.dataset.messageId !== {json.dumps(before)}")

    def asks_for_editor(self, text):
        """Send a line that opens an editor instead of an answer."""
        self.types(text)
        self.browser.click("#send")
        self.waits("one('#modal').open")

    def submits(self, becomes=None, **fields):
        """Fill the editor in and send it; wait for the answer, or for a
        change of the newest message.
        """
        for name, value in fields.items():
            self.browser.type(f"[data-field={name}]", value)
        self._clicks("#modal-submit", becomes)
        self.waits("!one('#modal').open")

    def fields(self):
        """What the editor that is open holds, by the names of its fields."""
        return self.browser.evaluate(
            "Object.fromEntries(all('#modal [data-field]').map("
            "(n) => [n.dataset.field, n.value]))")

    def begins(self, text):
        """Send a line that starts something long; wait for its button."""
        self.types(text)
        self.browser.click("#send")
        self.waits(f"!({NOT_RUNNING})")

    def presses(self, label, becomes=None):
        """Press a button of the newest message; wait for a change of it, or
        for another message.
        """
        self._clicks(f".message:last-child [data-label={json.dumps(label)}]",
                     becomes)

    def opens(self, label):
        """Press a button of the newest message that opens an editor."""
        self.presses(label, "one('#modal').open")

    def opens_menu(self):
        """Open the menu of the newest message."""
        self.browser.right_click(".message:last-child .body")
        self.waits("one('#menu')")

    def picks(self, action, becomes=None):
        """Choose in the menu that is open."""
        self._clicks(f"#menu [data-action={json.dumps(action)}]", becomes)

    def chooses(self, name, value, becomes=None):
        """Choose from a list in the newest message."""
        selector = f".message:last-child select[data-custom-id^='{name}:']"
        act = lambda: self.browser.choose(selector, value)
        self._does(act, becomes)

    def _clicks(self, selector, becomes):
        self._does(lambda: self.browser.click(selector), becomes)

    def _does(self, act, becomes):
        if becomes is None:
            self.answered(act)
            return
        act()
        self.waits(becomes)
        self.browser.wait("!one('.busy')")

    def keeps(self, name):
        """Download a file of the newest message: its (name, bytes)."""
        return self.browser.download(
            f".message:last-child a[data-download='{name}']")

    # Reading

    def waits(self, condition, timeout=60):
        """Wait until something is true of the page."""
        return self.browser.wait(condition, timeout)

    def newest(self):
        """The id of the newest message; "" without one."""
        return self.browser.evaluate(f"{NEWEST}?.dataset.messageId || ''")

    def reads(self):
        """The text of the newest message, as it is shown."""
        return self.browser.evaluate(f"{NEWEST}.innerText")

    def reads_block(self):
        """The text of the code block of the newest message."""
        return self.sees("pre", "innerText")

    def sees(self, selector, what="outerHTML"):
        """Something of an element of the newest message; None without it."""
        return self.browser.evaluate(
            f"{NEWEST}.querySelector({json.dumps(selector)})?.{what} ?? null")
