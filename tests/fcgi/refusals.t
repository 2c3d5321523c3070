#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What can be refused at once is refused privately, kindly, and makes no job."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import front as f  # noqa: E402

tap = f.Tap()
GONE, EXPIRING, LATE, PINNED, REMOVING, RUNNING = 11, 12, 13, 14, 15, 16


def refused(front, name, body, *words):
    before = len(front.jobs())
    answer = front.send(body)
    tap.ok(answer.status == 200 and answer.type == 4 and answer.private and
           all(w in answer.text for w in words) and
           len(front.jobs()) == before, name, answer)


def check_sandboxes(front):
    refused(front, "nothing to delete", f.command("delete", user=10),
            "no sandbox", "`/il create`")
    front.query("INSERT INTO command_ids VALUES (?, 'il', 77), (1, 'il', 78)",
                int(f.APPLICATION))
    refused(front, "a command that is registered can be clicked",
            f.command("delete", user=10), "no sandbox", "</il create:77>,")
    front.query("DELETE FROM command_ids")
    front.add_sandbox(GONE, expires_in=-9, state="expired")
    front.add_sandbox(EXPIRING, expires_in=-5, state="expiring")
    front.add_sandbox(LATE, expires_in=-2)
    for user, name in ((GONE, "expired"), (EXPIRING, "expiring"),
                       (LATE, "due, and not swept yet")):
        at = front.query("SELECT expires_at FROM sandboxes WHERE user_id = ?",
                         user)[0]["expires_at"]
        refused(front, name, f.command("delete", user=user), "expired",
                "<t:%d:R>" % at, "`/il create`")
    front.add_sandbox(PINNED, expires_in=-2, pinned=1)
    tap.equal(front.send(f.command("delete", user=PINNED)).text[:19],
              "Delete your sandbox",
              "a pinned one never expires")
    front.add_sandbox(REMOVING, state="removing")
    refused(front, "being deleted", f.command("delete", user=REMOVING),
            "`/il create`")
    tap.equal(front.send(f.command("create", user=GONE)).type, 5,
              "create is taken of one whose sandbox expired")


def check_unknown(front):
    refused(front, "unknown command", f.command("", root="ilx"), "`/il`")
    refused(front, "unknown sub-command", f.command("frobnicate"), "`/il`")
    front.query("INSERT INTO command_ids VALUES (?, 'il', 77)",
                int(f.APPLICATION))
    for typed, meant in (("lok", "</il look:77>"), ("wirte", "</il write:77>"),
                         ("py3", "</il py:77>"),
                         ("pipi", "</il pip:77>")):
        refused(front, "near " + typed, f.command(typed),
                "Nearest to that: " + meant)
    front.query("DELETE FROM command_ids")
    for typed in ("x" * 3000, "zzz", "\u00e9", "`"):
        answer = front.send(f.command(typed))
        tap.ok("Nearest" not in answer.text and "`/il`" in answer.text,
               "near nothing: " + typed[:9], answer)
    refused(front, "the nearest option", f.command("py", cod="1"), "`cod`",
            "Nearest to that: `code`")
    refused(front, "an option that is near none", f.command("look", zz="1"),
            "`zz`", "its list; if")
    refused(front, "no sub-command", f.command("", root="il"), "`/il`")
    refused(front, "an unknown command of a message", f.menu(
        "Fly", content="1"), "`/il`")
    refused(front, "a person's menu", f.interaction(2, {
        "name": "Run Python", "type": 2, "target_id": "1"}), "`/il`")
    refused(front, "unknown option", f.command("py", frob="x"), "`frob`")
    refused(front, "an option's name cannot break out",
            f.command("py", **{"a`@everyone": "x"}), "`a @everyone`")
    refused(front, "an option of another type", f.command("py", code=3),
            "`code`")
    refused(front, "a file where a path belongs",
            f.command("py", file=f.File("a.py")), "`file`")
    refused(front, "a missing option", f.command("rm"), "`name`")
    refused(front, "an empty one", f.command("get", path=""), "`path`")


def check_values(front):
    refused(front, "code too long", f.command("py", code="x" * 24001),
            "`code`", "too long")
    refused(front, "content too long",
            f.command("write", name="a", content="x" * 65537), "too long")
    refused(front, "packages too long", f.command("pip", packages="x" * 2001),
            "too long")
    refused(front, "stdin too long for the editor",
            f.command("py", stdin="x" * 4001), "too long")
    refused(front, "NUL in code", f.command("py", code="a\0b"), "NUL")
    refused(front, "path too long", f.command("get", path="x" * 1025),
            "not inside your sandbox")
    refused(front, "NUL in a path", f.command("get", path="a\0b"),
            "not inside your sandbox")
    refused(front, "code and file", f.command("py", code="1", file="a.py"),
            "not more")
    refused(front, "code and attachment", f.command(
        "py", code="1", attachment=f.File("a.py")), "not more")
    refused(front, "an upload too large to be run", f.command(
        "py", attachment=f.File("a.py", size=65537)), "`a.py`", "64 KiB")
    refused(front, "page 0", f.command("look", page=0), "`page`")
    refused(front, "page -1", f.command("look", page=-1), "`page`")
    lost = f.command("put", file=f.File())
    del lost["data"]["resolved"]
    refused(front, "an attachment that did not come", lost, "Attach it again")
    refused(front, "an attachment's address too long", f.command(
        "put", file=f.File(url="https://x/" + "y" * 2048)), "too long")
    refused(front, "an attachment's name too long", f.command(
        "put", file=f.File(name="y" * 256)), "too long")


def check_messages(front):
    large = f.File("a.py", size=100 << 20)
    for name in ("Run Python", "Edit and run"):
        def wrong(what, word, name=name, **message):
            refused(front, name + " of " + what, f.menu(name, **message), word)

        gone = f.menu(name, content="1")
        del gone["data"]["resolved"]
        refused(front, name + " of a deleted message", gone,
                "not there any more")
        wrong("an empty one", "no text", content="")
        wrong("blanks", "no text", content=" \n\t")
        wrong("one with an embed alone", "only an embed", content="",
              embeds=[{"title": "print(1)"}])
        wrong("one with a picture", "no file attached to it", content="",
              attachments=[f.File("a.png").view])
        wrong("4,001 characters", "4,000", content="x" * 4001)
        wrong("a NUL", "NUL", content="`a\0b`")
        wrong("a file of 100 MB", "`a.py` is too large", content="`1`",
              attachments=[large.view])
        wrong("files that are too large together", "`f4.py` is too large",
              content="", attachments=[f.File("f%d.py" % i, 60000).view
                                       for i in range(10)])
        wrong("a text of more than 64 KiB", "`a.txt` is too large",
              content="", attachments=[f.File("a.txt", 65537).view])
        wrong("a notebook of more than 1 MiB", "a notebook 1 MiB",
              content="", attachments=[f.File("a.ipynb", (1 << 20) + 1).view])
        wrong("eleven files", "more than ten", content="",
              attachments=[f.File("f%d.py" % i, 1).view for i in range(11)])
        wrong("a file with a name of two lines", "too long", content="",
              attachments=[f.File("a\nb.py", 1).view])


def check_queue(front):
    front.add_sandbox(RUNNING)
    tap.equal(front.send(f.command("py", user=RUNNING, code="1")).type, 5,
              "a first command is taken")
    refused(front, "a second one meanwhile",
            f.command("py", user=RUNNING, code="2"), "still running")
    tap.equal(front.send(f.command("", root="health", user=RUNNING)).type, 4,
              "health is answered meanwhile")
    front.finish_jobs()
    for _ in range(4):
        front.send(f.command("look", user=RUNNING))
        front.finish_jobs()
    refused(front, "too many in a minute", f.command("look", user=RUNNING),
            "minute")
    front.query("UPDATE jobs SET received_ms = received_ms - 61000")
    for user in range(30, 33):
        front.add_sandbox(user)
        front.send(f.command("look", user=user))
    front.add_sandbox(33)
    refused(front, "the queue is full", f.command("look", user=33), "queue")


with f.Front(IL_TUNE_QUEUE_MAX="3", IL_USER_RATE="5") as front:
    front.add_sandbox()
    check_sandboxes(front)
    front.finish_jobs()
    check_unknown(front)
    check_values(front)
    check_messages(front)
    check_queue(front)
    tap.equal(front.complaints, [], "every answer is as Discord wants it")
tap.done()
