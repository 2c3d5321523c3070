#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What is registered with Discord is what il-fcgi knows: every command and
option that ilctl registers, with values of the greatest length."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import front as f  # noqa: E402

STRING, INTEGER, BOOLEAN, ATTACHMENT, SUB_COMMAND = 3, 4, 5, 11, 1
MENU = 3        # a type of commands
tap = f.Tap()


GROUP = 2


def value(option):
    if option["type"] == ATTACHMENT:
        return f.File()
    if option.get("choices"):
        return option["choices"][0]["value"]
    return {STRING: "x" * option.get("max_length", 6000), BOOLEAN: True,
            INTEGER: option.get("min_value", 1)}[option["type"]]


def check(front, root, sub, rules):
    """Each option alone with the required ones; all of them are known."""
    required = {o["name"]: value(o) for o in rules if o.get("required")}
    for option in rules or [None]:
        values = dict(required)
        if option is not None:
            values[option["name"]] = value(option)
        answer = front.send(f.command(sub, root=root, **values))
        name = option["name"] if option else "no options"
        if root == "health" or (sub, name) in (
                ("delete", "no options"), ("help", "no options"),
                ("write", "name")) or (
                "py" in (root, sub) and
                name not in ("code", "file", "attachment")):
            # how it is, a question, and the editor (which takes 4,000 of stdin's 6,000;
            # for want of a worker one of them has become a button)
            good = answer.type in (4, 9) and "do not know" not in answer.text
        else:
            good = answer.status == 200 and answer.type == 5
        tap.ok(good, "/%s %s: %s" % (root, sub, name), answer)
        front.finish_jobs()


with f.Front(IL_USER_RATE="1000") as front:
    front.add_sandbox()
    commands = json.loads(subprocess.run(
        [os.path.join(f.BUILD, "bin", "ilctl"), "commands"],
        env=front.environment, stdout=subprocess.PIPE, check=True).stdout)
    for command in commands:
        if command["type"] == MENU:
            answer = front.send(f.menu(command["name"], content="1"))
            tap.ok(front.jobs() and front.job()["text"] == "1",
                   command["name"], answer)
            front.finish_jobs()
            continue
        subs = []
        for one in command.get("options", []):
            if one["type"] == SUB_COMMAND:
                subs.append(one)
            if one["type"] == GROUP:
                subs += [dict(sub, name=one["name"] + "/" + sub["name"])
                         for sub in one["options"]]
        for sub in subs:
            check(front, command["name"], sub["name"], sub.get("options", []))
        if not subs:
            check(front, command["name"], "", command.get("options", []))
    tap.equal(front.complaints, [], "every answer is as Discord wants it")
tap.done()
