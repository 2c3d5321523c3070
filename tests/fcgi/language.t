#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What il-fcgi says at once is in the language of who asked."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import front as f  # noqa: E402

ENGLISH = "You have no sandbox yet"
GERMAN = "Du hast noch keine Sandbox"
tap = f.Tap()


def asked(locale, sub="delete", **values):
    body = f.command(sub, **values)
    body["locale"] = locale
    return {k: v for k, v in body.items() if v is not None}


with f.Front() as front:
    for locale, words in {
            "de": GERMAN, "fr": "Tu n'as pas encore", "ja": "まだサンドボックス",
            "es-ES": "Aún no tienes", "es-419": "Aún no tienes",
            "pt-BR": "Você ainda não", "zh-CN": "你还没有沙盒",
            "ru": "У тебя ещё нет", "en-US": ENGLISH, "en-GB": ENGLISH}.items():
        got = front.send(asked(locale))
        tap.ok(words in got.text, locale, got)

    for name, locale in {
            "unknown": "xx", "none": None, "empty": "", "upper case": "DE",
            "too long": "de" * 5000, "a path": "../../../etc/passwd",
            "a format": "%s%n%n", "a NUL": "de\0",
            "a number": 7, "a list": ["de"], "control": "de\n"}.items():
        got = front.send(asked(locale))
        tap.ok(got.status == 400 or (got.status == 200 and
                                     ENGLISH in got.text), name, got)
    tap.ok(front.alive(), "the front lives on")

    # one after the other in the same process: nothing stays
    for locale, words in (("de", GERMAN), ("xx", ENGLISH)) * 3:
        tap.ok(words in front.send(asked(locale)).text, "in turn: " + locale)

    front.add_sandbox()
    got = front.send(asked("de", "py"))
    title = got.data["title"]
    tap.equal(title, "Python ausführen", "an editor's title")
    got = front.send(asked("ru", "rm"))
    tap.ok("`имя`" in got.text, "an option has its localised name", got)
    got = front.send(asked("ja", "delete"))
    labels = [one["label"] for one in got.data["components"][0]["components"]]
    tap.equal(labels, ["すべて削除", "残す"], "labels of buttons")
    tap.equal(front.complaints, [], "every answer is as Discord wants it")
tap.done()
