#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the operator has said holds with the next command: who is blocked is
told so, limits are kept, a banner stands below all answers."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import front as f  # noqa: E402

tap = f.Tap()
GUILD = 300000000000000001


def rule(front, subject, number=0, **columns):
    """Say something; without columns, take it back."""
    front.query("DELETE FROM rules WHERE subject = ? AND id = ?", subject,
                number)
    if columns:
        front.query(
            "INSERT INTO rules (subject, id, changed_at, %s) VALUES (?, ?, 1,"
            " %s)" % (", ".join(columns), ", ".join("?" * len(columns))),
            subject, number, *columns.values())


def refused(front, name, body, *words):
    before = len(front.jobs())
    answer = front.send(body)
    tap.ok(answer.status == 200 and answer.type == 4 and answer.private and
           all(w in answer.text for w in words) and
           len(front.jobs()) == before, name, answer)


def taken(front, name, user, **more):
    answer = front.send(f.command("py", code="1", user=user, **more))
    tap.equal(answer.type, 5, name)


def check_blocked(front):
    rule(front, "user", 7, blocked=1, reason="three\n``` @everyone")
    refused(front, "who is blocked is told why", f.command("py", code="1",
                                                           user=7),
            "does not let you use it", "\n> three ''' @everyone")
    refused(front, "help too", f.command("help", user=7), "let you")
    refused(front, "and buttons", f.press("look:1", user=7), "let you")
    refused(front, "in their language", f.command(
        "py", code="1", user=7, extra={"locale": "de"}), "Wer diese App")
    taken(front, "others are not", 8)
    rule(front, "user", 7)
    taken(front, "who is not blocked any more goes on", 7)
    rule(front, "guild", GUILD, blocked=1)
    refused(front, "a server is blocked", f.command("py", code="1", user=9),
            "in this server")
    taken(front, "its people are not, elsewhere", 9, guild=False)
    rule(front, "guild", GUILD)
    rule(front, "service", blocked=1, reason="back at six")
    refused(front, "all is paused", f.command("health", user=10),
            "maintenance", "back at six")
    tap.equal(front.send(f.interaction(1, None)).type, 1,
              "PINGs are answered all the same")
    rule(front, "service")


def check_limits(front):
    rule(front, "user", 20, rate=1)
    taken(front, "one a minute", 20)
    front.query("UPDATE jobs SET state = 'delivered', token = '', text = ''"
                " WHERE user_id = 20")
    refused(front, "and not two", f.command("py", code="1", user=20),
            "a lot of commands")
    front.query("DELETE FROM jobs")
    rule(front, "guild", GUILD, rate=1)
    taken(front, "a server has one, too", 21)
    refused(front, "whoever sends it", f.command("py", code="1", user=22),
            "from this server")
    rule(front, "guild", GUILD)
    rule(front, "service", jobs=1)
    refused(front, "all have one at a time", f.command("py", code="1", user=23),
            "long queue")
    rule(front, "service")
    tap.equal(front.query("SELECT guild_id FROM jobs")[0]["guild_id"], GUILD,
              "where a job came from is kept")


def check_banner(front):
    rule(front, "service", banner="until *six* `")
    answer = front.send(f.command("help", user=30))
    tap.ok(answer.text.endswith("\n> until *six* '") and
           "Examples" in answer.text, "a banner is below", answer)
    tap.ok(front.send(f.command("py", code="1", user=30)).type == 5,
           "what is no message has none")
    answer = front.send(f.command("lok", user=30))
    tap.ok(answer.text.endswith("until *six* '"), "refusals have it", answer)
    for locale in ("de", "fr", "ru", "ja", "es-419", "pt-BR", "zh-CN"):
        rule(front, "service", banner="x" * 300)
        answer = front.send(f.command("help", user=30,
                                      extra={"locale": locale}))
        tap.ok(answer.text.endswith("xxx") and len(answer.text) <= 2000,
               "the longest has room: " + locale, len(answer.text))
    rule(front, "service")


with f.Front() as front:
    check_blocked(front)
    check_limits(front)
    check_banner(front)
    tap.equal(front.complaints, [], "Discord would take all of it")
tap.done()
