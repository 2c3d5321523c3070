#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each command becomes the job that it should, and is acknowledged as it should
be."""
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import front as f  # noqa: E402

tap = f.Tap()
PRIVATE = {"type": 5, "data": {"flags": 64}}


def check(front, name, body, answer=None, status=200, /, **columns):
    """Send a command and compare what the newest job says."""
    before = len(front.jobs())
    got = front.send(body)
    want = PRIVATE if answer is None else answer
    tap.ok(got.status == status and (got.json or {}) == want,
           name + ": the answer", got)
    if tap.equal(len(front.jobs()), before + 1, name + ": one job"):
        job = front.jobs()[-1]
        tap.equal({k: job[k] for k in columns}, columns, name + ": is in it")
    front.finish_jobs()


MENU = 100000000000000002   # who sends so many commands in a minute only


def check_messages(front):
    """The commands of a message's menu."""
    one, other = f.File("one.PY", 9), f.File("b.py", 5)
    check(front, "Run Python", f.menu("Run Python", content="`1`"),
          kind="message-run", text="`1`", has_text=1, attachment_url="",
          answer="deferred", view_id=0, share=0)
    check(front, "Run Python, 4,000 characters of four bytes",
          f.menu("Run Python", content="\U0001f40d" * 4000),
          text="\U0001f40d" * 4000)
    check(front, "Run Python of files in a group",
          f.menu("Run Python", guild=False, content="", attachments=[
              one.view, f.File("c.png", 100 << 20).view, other.view]),
          text="", has_text=0, attachment_size=14,
          attachment_name="one.PY\nb.py",
          attachment_url=one.view["url"] + "\n" + other.view["url"])
    book, text = f.File("a.IPYNB", 1 << 20), f.File("message.txt", 65536)
    check(front, "Run Python of a notebook", f.menu(
        "Run Python", content="", attachments=[text.view, book.view]),
          text="", attachment_name="a.IPYNB", attachment_size=1 << 20)
    check(front, "Run Python of a long paste", f.menu(
        "Run Python", content="", attachments=[text.view]),
          text="", attachment_name="message.txt", attachment_size=65536)
    for user, name in enumerate(("main", "a.py3", "a.log"), MENU + 1):
        other_name = f.File(name, 65536)
        check(front, "Run Python of " + name, f.menu(
            "Run Python", user=user, content="", attachments=[
                f.File("c.PNG", 9).view, other_name.view]),
              text="", attachment_name=name, attachment_size=65536)
        check(front, "Run Python of a text beside " + name, f.menu(
            "Run Python", user=user, content="", attachments=[
                other_name.view, text.view]),
              text="", attachment_name="message.txt")
    check(front, "Run Python of code beside a text that is too large", f.menu(
        "Run Python", content="`1`", attachments=[
            f.File("log.txt", 65537).view]), text="`1`", attachment_url="")
    check(front, "Run Python of what was forwarded", f.menu(
        "Run Python", forwarded={"content": "`2`", "attachments": [
            other.view]}), text="`2`", attachment_name="b.py")
    check(front, "Run Python of what says more than it forwards", f.menu(
        "Run Python", content="`3`", forwarded={"content": "`2`"}), text="`3`")
    rows = [{"type": 1, "components": [
        {"type": 2, "style": 2, "custom_id": "cancel:3"},
        {"type": 2, "style": 2, "custom_id": "py-try:71"}]}]
    check(front, "Run Python of an answer of ours", f.menu(
        "Run Python", content="", components=rows,
        user=MENU, application_id=f.APPLICATION), text="", view_id=71)
    for name, more in (("another application's", {"application_id": "9"}),
                       ("no application's", {})):
        check(front, "Run Python of a message that is " + name, f.menu(
            "Run Python", user=MENU, content="`4`", components=rows, **more),
              text="`4`", view_id=0)
    before = len(front.jobs())
    answer = front.send(f.menu("Edit and run", content="`1`"))
    job = front.job()
    tap.ok(len(front.jobs()) == before + 1 and
           (job["kind"], job["text"], job["answer"]) ==
           ("message-edit", "`1`", "callback"),
           "Edit and run: a worker opens the editor", job)
    [button] = answer.data["components"][0]["components"]
    tap.ok(answer.private and
           button["custom_id"] == "message-open:%d" % job["view_id"],
           "and a button does where that takes too long", answer)
    front.finish_jobs()
    front.send(f.press(button["custom_id"]))
    again = front.job()
    tap.equal((again["kind"], again["answer"], again["view_id"]),
              ("message-edit", "callback", job["view_id"]), "which is pressed")
    front.finish_jobs()


def check_help(front):
    """It makes no job, also beside a run, and its buttons do."""
    front.send(f.command("py", code="1", user=9))
    before = len(front.jobs())
    answer = front.send(f.command("help", user=9))
    front.finish_jobs()
    buttons = [b["custom_id"] for b in answer.data["components"][0]
               ["components"]]
    tap.ok(answer.type == 4 and answer.private and
           len(front.jobs()) == before and len(answer.text) <= 2000 and
           all("`/il %s`" % word in answer.text
               for word in ("create", "look", "pip", "help")) and
           "`/health`" in answer.text and "**Run Python**" in answer.text and
           buttons == ["example:%d" % n for n in range(1, 6)],
           "help: all commands, and examples", answer)
    check(front, "an example", f.press("example:1"), kind="py", view_id=0,
          text="sum(range(101))", has_text=1, answer="deferred", user_id=f.USER)
    check(front, "with an input", f.press("example:2"), input="olleh")
    check(front, "measured", f.press("example:4"), timeit=1)
    check(front, "of another command", f.press("example:5"), kind="look")
    for number in (0, 6, 1 << 62):
        answer = front.send(f.press("example:%d" % number))
        tap.ok(answer.type == 4 and "older version" in answer.text,
               "there is no example %d" % number, answer)


with f.Front() as front:
    check_help(front)
    for sub, values in (("py", {"code": "1"}), ("look", {}),
                        ("write", {"name": "a", "content": "b"}),
                        ("rm", {"name": "a"}), ("pip", {"packages": "a"}),
                        ("get", {"path": "a"}), ("put", {"file": f.File()})):
        check(front, sub + " of somebody who has no sandbox",
              f.command(sub, user=4, **values), kind=sub, user_id=4)
    front.add_sandbox()
    check(front, "create", f.command("create", user=5), kind="create",
          user_id=5, answer="deferred")
    body = f.command("py", code="print(1)\nprint(2)")
    check(front, "py", body, kind="py", state="queued", text="print(1)\n"
          "print(2)", has_text=1, path="", input="", share=0,
          answer="deferred", user_id=f.USER, locale="en-US",
          interaction_id=int(body["id"]), token=body["token"],
          application_id=int(f.APPLICATION), attachment_limit=20971520,
          may_attach=1, view_id=0)
    check(front, "py with all options", f.command(
        "py", code="print(input())", stdin="h\u00e9\n", share=False),
        text="print(input())", input="h\u00e9\n", share=0)
    check(front, "py file", f.command("py", file="a/b.py"), kind="py",
          path="a/b.py", text="", has_text=0)
    check(front, "py share", f.command("py", code="1", share=True),
          {"type": 5}, share=1)
    check(front, "py, 6,000 code points of four bytes",
          f.command("py", code="\U0001f40d" * 6000),
          text="\U0001f40d" * 6000)
    check(front, "look", f.command("look"), kind="look", path="", page=1)
    check(front, "look path page", f.command("look", path="..", page=3),
          path="..", page=3)
    check(front, "write", f.command("write", name="a.txt", content="x"),
          kind="write", path="a.txt", text="x", has_text=1)
    check(front, "rm", f.command("rm", name="a", recursive=True), kind="rm",
          path="a", recursive=1)
    check(front, "pip", f.command("pip", packages="numpy 'pandas<3'"),
          kind="pip", text="numpy 'pandas<3'")
    check(front, "get", f.command("get", path="plot.png"), kind="get",
          path="plot.png")
    upload = f.File("data.csv", 99)
    check(front, "put", f.command("put", file=upload, path="in/"),
          kind="put", path="in/", attachment_name="data.csv",
          attachment_size=99, attachment_url=upload.view["url"])
    script = f.File("a.py", 9)
    check(front, "py attachment", f.command("py", attachment=script),
          kind="py", has_text=0, attachment_name="a.py", attachment_size=9,
          attachment_url=script.view["url"])
    check(front, "/py", f.command("", root="py", code="1", version="3.13",
                                  timeit=True, keep=True),
          kind="py", text="1", version="3.13", timeit=1, keep=1)
    check_messages(front)
    before = len(front.query("SELECT id FROM jobs"))
    for words in (f.command("", root="health", user=6),
                  f.command("health", user=6)):
        answer = front.send(words)
        tap.ok(answer.type == 4 and answer.private and
               "All is well." in answer.text and
               "\nDocker: reachable (asked " in answer.text and
               "\nWorkers: 1, of which 1 respond" in answer.text and
               "\nDatabase: answers" in answer.text and
               "0 running" in answer.text, "health is said at once",
               answer.text)
    tap.equal(len(front.query("SELECT id FROM jobs")), before,
              "and makes no job")
    check(front, "in a direct message", f.command("look", guild=False),
          kind="look", user_id=f.USER)
    check(front, "where files may not be attached", f.command(
        "look", extra={"app_permissions": "2048",
                       "attachment_size_limit": None}),
        may_attach=0, attachment_limit=10 << 20)

    answer = front.send(f.command("delete"))
    view = front.query("SELECT * FROM views ORDER BY id DESC")[0]
    tap.ok(answer.type == 4 and answer.private and [
        b["custom_id"] for b in answer.data["components"][0]["components"]
    ] == ["delete-yes:%d" % view["id"], "delete-no:%d" % view["id"]],
        "delete asks first", answer)
    tap.equal(front.job()["kind"] == "delete", False, "and does nothing yet")

    answer = front.send(f.command("py", share=True, stdin="5\n6"))
    view = front.query("SELECT * FROM views ORDER BY id DESC")[0]
    inputs = [c["component"] for c in answer.data["components"]]
    tap.ok(answer.type == 9 and
           answer.data["custom_id"] == "py:%d" % view["id"] and
           [i["custom_id"] for i in inputs] == ["code", "stdin"] and
           inputs[1]["value"] == "5\n6" and inputs[0]["max_length"] == 4000,
           "py without code opens an editor", answer)
    tap.equal((view["kind"], view["share"], view["user_id"]),
              ("py", 1, f.USER), "whose row knows what was asked for")

    answer = front.send(f.interaction(4, {"name": "il", "type": 1, "options": [
        {"name": "look", "type": 1, "options": [
            {"name": "path", "type": 3, "value": "d", "focused": True}]}]}))
    tap.equal(answer.json, {"type": 8, "data": {"choices": []}},
              "autocomplete has no suggestions yet")
    # Nobody is there any more: no "thinking…" that nobody ends.
    front.others.end()
    time.sleep(0.3)     # for 0.2 s it believes what it has seen
    front.finish_jobs()
    front.query("INSERT INTO views (user_id, kind, path, created_ms)"
                " VALUES (%d, 'look', 'a', %d)"
                % (77, time.time() * 1000))
    view = front.query("SELECT max(id) AS id FROM views")[0]["id"]
    for private, words in ((True, f.command("py", code="1", user=77)),
                           (False, f.command("py", code="1", share=True,
                                      user=77))):
        answer = front.send(words)
        tap.ok(answer.type == 4 and answer.private == private and
               "Something on our side" in answer.text and
               "`%d`" % front.job(77)["id"] in answer.text,
               "without il-sandboxd and a worker they are told", answer)
        tap.equal(front.job(77)["state"], "queued", "and it is kept")
        front.finish_jobs()
    answer = front.send(f.press("look-next:%d" % view, 77))
    tap.equal(answer.json, {"type": 6},
              "no notice takes the place of the message that was pressed")
    front.finish_jobs()
    tap.ok("Docker: unknown, il-sandboxd is not running" in
           (text := front.send(f.command("", root="health", user=6)).text) and
           "**Problem** · Workers: 0" in text, "/health says why", text)
    tap.equal(front.complaints, [], "every answer is as Discord wants it")
tap.done()
