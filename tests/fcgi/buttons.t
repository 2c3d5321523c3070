#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Buttons and editors: the row says what they are about and whose they are."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import front as f  # noqa: E402

tap = f.Tap()
OTHER = 77


def taken(front, name, body, answer, /, **columns):
    before = len(front.jobs())
    got = front.send(body)
    tap.ok(got.status == 200 and got.json == answer and
           len(front.jobs()) == before + 1, name + ": the answer", got)
    job = front.jobs()[-1]
    tap.equal({k: job[k] for k in columns}, columns, name + ": the job")
    front.finish_jobs()


def refused(front, name, body, word):
    before = len(front.jobs())
    got = front.send(body)
    tap.ok(got.status == 200 and got.type == 4 and got.private and
           word in got.text and len(front.jobs()) == before, name, got)


def check_look(front):
    view = front.add_view("look", path="data", page=3)
    taken(front, "Next", f.press("look-next:%d" % view), {"type": 6},
          kind="look", answer="deferred-update", path="data", page=4,
          view_id=view)
    taken(front, "Previous", f.press("look-prev:%d" % view), {"type": 6},
          page=2, view_id=view)
    first = front.add_view("look", page=1)
    taken(front, "Previous on the first page",
          f.press("look-prev:%d" % first), {"type": 6}, page=1)
    refused(front, "somebody else's", f.press("look-next:%d" % view, OTHER),
            "somebody else")


def check_cancel(front):
    """A job that is not over is cancelled by its owner alone."""
    front.send(f.command("py", code="1"))
    job = front.job()["id"]
    asked = front.path("cancels/%d" % job)
    os.makedirs(os.path.dirname(asked), exist_ok=True)
    refused(front, "somebody else's Cancel", f.press("cancel:%d" % job, OTHER),
            "somebody else")
    tap.ok(not os.path.exists(asked), "cancels nothing")
    os.mkfifo(asked)
    tap.equal(front.send(f.press("cancel:%d" % job)).json, {"type": 6},
              "what stands there already is not opened")
    os.unlink(asked)
    got = front.send(f.press("cancel:%d" % job))
    tap.ok(got.json == {"type": 6} and os.path.exists(asked), "Cancel", got)
    os.unlink(asked)
    got = front.send(f.command("py", code="2"))
    button = (got.data["components"] or [{}])[0]["components"][0]
    tap.equal(button["custom_id"], "cancel-other:%d" % job,
              "who sends a second command is offered it, too")
    got = front.send(f.press(button["custom_id"]))
    tap.ok(got.type == 7 and "cancelled" in got.text and
           got.data["components"] == [] and os.path.exists(asked),
           "and told that it is done", got)
    tap.equal(front.send(f.press("cancel:%d" % job)).json, {"type": 6},
              "twice is as good as once")
    front.finish_jobs()
    refused(front, "after the end", f.press("cancel:%d" % job), "over already")
    refused(front, "of no job", f.press("cancel:999999"), "over already")
    for bad in ("cancel:", "cancel:0", "cancel:-1", "cancel:x", "cancel:1x"):
        refused(front, bad, f.press(bad), "older version")


def check_delete(front, sandbox):
    view = front.add_view("delete", path=sandbox)
    got = front.send(f.press("delete-no:%d" % view))
    tap.ok(got.type == 7 and got.data["components"] == [] and got.text,
           "delete-no takes the question back", got)
    refused(front, "somebody else's delete-yes",
            f.press("delete-yes:%d" % view, OTHER), "somebody else")
    refused(front, "somebody else's delete-no",
            f.press("delete-no:%d" % view, OTHER), "somebody else")
    taken(front, "delete-yes", f.press("delete-yes:%d" % view), {"type": 6},
          kind="delete", answer="deferred-update", view_id=view)
    old = front.add_view("delete", path="0" * 32)
    refused(front, "a question about an earlier sandbox",
            f.press("delete-yes:%d" % old), "too old")


def check_editors(front):
    for legacy in (False, True):
        shape = "row" if legacy else "label"
        view = front.add_view("py", share=0)
        taken(front, "py in a " + shape, f.submit(
            "py:%d" % view, legacy=legacy, code="print(1)\n", stdin="5"),
            {"type": 5, "data": {"flags": 64}}, kind="py", has_text=1,
            text="print(1)\n", input="5", share=0, answer="deferred")
        view = front.add_view("write", path="a/b.txt")
        taken(front, "write in a " + shape, f.submit(
            "write:%d" % view, legacy=legacy, content="x"),
            {"type": 5, "data": {"flags": 64}}, kind="write", has_text=1,
            text="x", path="a/b.txt", answer="deferred")
    view = front.add_view("py", share=1)
    taken(front, "shared py", f.submit("py:%d" % view, code="1"),
          {"type": 5}, share=1, input="")
    view = front.add_view("write", path="a")
    taken(front, "an emptied file", f.submit("write:%d" % view, content=""),
          {"type": 5, "data": {"flags": 64}}, text="", has_text=1)
    view = front.add_view("py")
    refused(front, "no code", f.submit("py:%d" % view, code=" \n"), "`/il py`")
    refused(front, "somebody else's editor",
            f.submit("py:%d" % view, OTHER, code="1"), "somebody else")
    refused(front, "NUL in code", f.submit("py:%d" % view, code="a\0"), "NUL")
    refused(front, "code too long",
            f.submit("py:%d" % view, code="x" * 24001), "too long")
    refused(front, "content too long", f.submit(
        "write:%d" % front.add_view("write"), content="x" * 65537),
        "too long")


DEFERRED = {"type": 5, "data": {"flags": 64}}
UPDATE = {"type": 6}


def check_runs(front):
    """The buttons under the answer of a run."""
    view = front.add_view("py", path="a.py")
    taken(front, "Re-run", f.press("py-again:%d" % view), UPDATE, kind="py",
          view_id=view, path="a.py", has_text=0, text="", alone=1)
    taken(front, "Remove", f.press("py-remove:%d" % view), UPDATE,
          kind="py-remove", alone=0)
    taken(front, "Install", f.press("py-install:%d" % view), UPDATE,
          kind="py-install", alone=1)
    taken(front, "Full output", f.press("py-output:%d" % view), DEFERRED,
          kind="py-output", page=1)
    taken(front, "the next page", f.press("py-output-next:%d" % view), UPDATE,
          kind="py-output", page=2)
    taken(front, "Share", f.press("py-share:%d" % view), {"type": 5},
          kind="py-share", share=1)
    taken(front, "input", f.submit("py-input:%d" % view, stdin="5"), UPDATE,
          kind="py", input="5", has_text=0, view_id=view)
    for name in ("edit", "give"):
        got = front.send(f.press("py-%s:%d" % (name, view)))
        button = got.data["components"][0]["components"][0]["custom_id"]
        tap.equal((button, front.job()["kind"], front.job()["answer"]),
                  ("py-%s:%d" % (name, view), "py-" + name, "callback"),
                  name + " is opened by a worker, or asked for again")
        front.finish_jobs()
    for name in ("again", "edit", "give", "try", "share", "remove", "output",
                 "output-next", "install"):
        refused(front, "somebody else's " + name,
                f.press("py-%s:%d" % (name, view), OTHER), "somebody else")
        refused(front, "what is gone: " + name,
                f.press("py-%s:999999" % name), "no longer stored")
    shared = front.add_view("py", share=1)
    got = front.send(f.press("py-try:%d" % shared, OTHER))
    tap.equal((got.type, front.job(OTHER)["kind"]), (4, "py-try"),
              "what is shared, everybody may try")
    front.finish_jobs()
    for number, timeit in (1, 0), (2, 1):
        taken(front, "what is tried",
              f.submit("py-tried:%d:3.13" % number, code="1"), DEFERRED,
              kind="py", text="1", version="3.13", timeit=timeit, view_id=0)
    taken(front, "with the usual Python", f.submit("py-tried:1:", code="1"),
          DEFERRED, kind="py", version="", timeit=0)
    for custom_id in ("py-tried:1", "py-tried:3:", "py-tried::3.13",
                      "py-tried:1:" + "x" * 33, "py:%d:" % view):
        refused(front, "an editor " + custom_id,
                f.submit(custom_id, code="1"), "older version")
    refused(front, "and nothing else", f.press("py-again:%d" % shared, OTHER),
            "somebody else")


def check_menus(front):
    view = front.add_view("py")
    taken(front, "another Python", f.choose("py-version:%d" % view, "3.13"),
          UPDATE, kind="py", version="3.13", view_id=view)
    taken(front, "another file", f.choose("py-file:%d" % view, "25"),
          DEFERRED, kind="py-file", page=25, view_id=view)
    for name, values in (("py-version", ("3.12",)), ("py-version", ("",)),
                         ("py-version", ("3.13\0",)), ("py-version", ()),
                         ("py-version", ("3.13", "3.11")),
                         ("py-file", ("0",)), ("py-file", ("26",)),
                         ("py-file", ("a.txt",)), ("py-file", ("1 ",)),
                         ("py-file", ("x" * 5000,)), ("py-file", ())):
        refused(front, "%s %r" % (name, values)[:60],
                f.choose("%s:%d" % (name, view), *values), "cannot be chosen")
    refused(front, "somebody else's menu",
            f.choose("py-file:%d" % view, "1", user=OTHER), "somebody else")
    refused(front, "a menu as a button", f.press("py-file:%d" % view),
            "older version")
    refused(front, "a button as a menu", f.choose("py-again:%d" % view, "1"),
            "older version")
    for what, values in (("26 values", ["1"] * 26), ("a number", [1]),
                         ("no list", None)):
        body = f.choose("py-file:%d" % view)
        body["data"]["values"] = values
        tap.equal(front.send(body).status, 400, "a menu with " + what)


def check_share(front):
    """Where we may not post, nothing is shared."""
    view = front.add_view("py")
    share = "py-share:%d" % view
    member = f.press(share)["member"]
    for name, extra in (
            ("we may not send", {"app_permissions": str(1 << 15)}),
            ("nor in a thread", {"app_permissions": str(1 << 11),
                                 "channel": {"type": 11}}),
            ("nor may apps that people bring along", {
                "authorizing_integration_owners": {"1": str(f.USER)},
                "member": {**member, "permissions": str(1 << 11)}})):
        refused(front, name, {**f.press(share), **extra}, "may not post")
    body = {**f.press(share), "app_permissions": str(1 << 38),
            "channel": {"type": 11}}
    tap.equal(front.send(body).json, {"type": 5}, "in a thread that lets us")
    front.finish_jobs()


def check_rate():
    """Editors are as many as commands may be."""
    with f.Front(IL_USER_RATE="3") as front:
        front.add_sandbox()
        for _ in range(3):
            tap.equal(front.send(f.command("py")).type, 9, "an editor")
        refused(front, "one more in a minute", f.command("py"), "a lot of")
        refused(front, "of any kind", f.command("write", name="a"), "a lot of")
        front.query("UPDATE views SET created_ms = created_ms - 61000")
        tap.equal(front.send(f.command("py")).type, 9, "and after it")


def check_bounds(front):
    """What a person may have is bounded, whoever inserts it."""
    user = 78
    front.add_sandbox(user)
    for _ in range(510):
        front.add_view("py", user)
    tap.equal(front.query("SELECT count(*) AS n FROM views WHERE user_id = ?",
                          user)[0]["n"], 500, "the newest 500 rows are kept")
    for size in (4194304, 1):
        front.query("INSERT INTO views (user_id, kind, bytes, created_ms)"
                    " VALUES (?, 'py', ?, 0)", user, size)
    tap.equal([row["bytes"] for row in front.query(
        "SELECT bytes FROM views WHERE user_id = ?", user)], [1],
        "and the newest 4 MiB")
    front.send(f.command("py", user=user))
    tap.equal(len(front.query("SELECT id FROM views WHERE user_id = ?",
                              user)), 2, "an editor's row is one of them")


def check_forget(front):
    user = 79
    refused(front, "nobody has anything", f.command("delete", user=user),
            "no sandbox")
    front.add_view("py", user)
    got = front.send(f.command("delete", user=user))
    button = got.data["components"][0]["components"][0]["custom_id"]
    tap.ok("the code that is kept" in got.text, "what is kept is asked about", got)
    got = front.send(f.press(button, user))
    tap.equal((got.json, front.job(user)["kind"]), (UPDATE, "delete"),
              "and deleted, without a sandbox")
    front.finish_jobs()


def check_gone(front):
    look = front.add_view("look")
    refused(front, "a row that is gone", f.press("look-next:999999"),
            "too old")
    refused(front, "a row of another kind", f.press("delete-yes:%d" % look),
            "too old")
    refused(front, "a row of a kind that nobody knows",
            f.press("look-next:%d" % front.add_view("newer")), "too old")
    for custom_id in ("look-next", "look-next:", "look-next:0", "look-next:-1",
                      "look-next:1x", "look-next: 1", ":1", "", "other:1",
                      "look-next:99999999999999999999", "LOOK-NEXT:1"):
        refused(front, "custom_id '%s'" % custom_id, f.press(custom_id),
                "older version")
    refused(front, "an editor's name on a button", f.press("py:%d" % look),
            "older version")
    refused(front, "a button's name on an editor",
            f.submit("look-next:%d" % look, code="1"), "older version")


with f.Front(IL_USER_RATE="1000",
             IL_CHAT_IMAGES="3.11=a:1,3.13=a:2") as front:
    sandbox = front.add_sandbox()
    front.add_sandbox(OTHER)
    check_look(front)
    check_cancel(front)
    check_delete(front, sandbox)
    check_editors(front)
    check_gone(front)
    check_runs(front)
    check_menus(front)
    check_share(front)
    check_bounds(front)
    check_forget(front)

    view = front.add_view("look", page=1)
    front.process.terminate()
    front.process.wait(60)
    front.start()
    taken(front, "after a restart", f.press("look-next:%d" % view),
          {"type": 6}, page=2)
    front.query("UPDATE sandboxes SET state = 'expired'")
    taken(front, "when the sandbox has expired",
          f.press("look-next:%d" % view), {"type": 6}, page=2)
    front.query("DELETE FROM sandboxes")
    taken(front, "when there is no sandbox",
          f.submit("py:%d" % front.add_view("py"), code="1"),
          {"type": 5, "data": {"flags": 64}}, text="1")
    tap.equal(front.complaints, [], "every answer is as Discord wants it")
check_rate()
tap.done()
