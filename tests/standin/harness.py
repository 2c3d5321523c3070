# SPDX-License-Identifier: MIT
"""What the tests of the stand-in share: an endpoint, and one stand-in.

Each file of tests starts both, and ends them.
"""

import urllib.parse

from client import Standin
from fakeapp import FakeApp
from tap import run

DEFER = {"type": 5, "data": {"flags": 64}}
answer = {"next": DEFER}
app = FakeApp(lambda interaction: answer["next"](interaction)
              if callable(answer["next"]) else answer["next"])
# The same endpoint, by a name that no server of names knows.
NAMED = "http://endpoint.test/interactions"
discord = Standin(app.url, rate_limit=1000, connect_to="endpoint.test:80:"
                  + urllib.parse.urlsplit(app.url).netloc)


def command(reply=DEFER, *, name="py", wait=True, **options):
    """Send a command that is answered with `reply`."""
    answer["next"] = reply
    sent = discord.send_command(name, **options)
    if wait:
        sent.wait_answered()
    return sent


def token(interaction):
    """Return the token of an interaction."""
    return interaction.refresh().view["token"]


def kinds():
    """Return the kinds of the violations, and forget them."""
    return [one["kind"] for one in discord.clear_violations()]


def rejected(status, code, got):
    """Assert that a call was rejected so, and forget the violation."""
    assert (got[0], got[1]["code"]) == (status, code), got[:2]
    discord.clear_violations()
    return got[1]


def row(*buttons):
    """Return an action row."""
    return {"type": 1, "components": list(buttons)}


def button(custom_id, **more):
    """Return a button."""
    return dict({"type": 2, "style": 1, "label": custom_id,
                 "custom_id": custom_id}, **more)


def main():
    """Start what is needed, run the tests, stop it."""
    with discord:
        app.use(discord)
        try:
            run()
        finally:
            app.close()
