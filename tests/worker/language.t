#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""What il-worker says is in the language of the job."""

import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__))))

from house import House, fails, says  # noqa: E402
from tap import run, test  # noqa: E402

house = House(IL_TIMEOUT_SECONDS="1.0")


def told(part, locale, kind="py", **columns):
    """Assert that the answer to a command in this language has this part."""
    sent = house.send(kind, locale=locale, **{"text": "1", **columns})
    sent.wait_final(match=part, timeout=60)


@test
def each_job_is_answered_in_its_language():
    house.broker.cell = says(b"")
    told("Keine Ausgabe.", "de")
    told("Нет вывода.", "ru")
    told("没有输出。", "zh-CN")
    told("No output.", "en-US")
    told("No output.", "xx")
    told("No output.", "")


@test
def numbers_have_the_right_form():
    house.broker.cell = says(b"\n".join(b"%d" % n for n in range(40)))
    told("пропущена 21 строка", "ru")
    house.broker.cell = says(b"\n".join(b"%d" % n for n in range(41)))
    told("пропущено 22 строки", "ru")
    told("22 Zeilen ausgelassen", "de")


@test
def errors_are_said_in_it_too():
    house.broker.cell = fails("NOT_FOUND")
    told("`~/x` gibt es nicht.", "de", "look", path="x")
    told("`~/x` は存在しません。", "ja", "look", path="x")
    told("n'existe pas.", "fr", "look", path="x")


@test
def a_recovered_job_is_told_in_its_own_language():
    def hangs(cell):
        cell.send("STARTED")
        cell.wait_hang_up()

    house.broker.cell = hangs
    before = len([1 for name, _ in house.broker.asked if name == "RUN"])
    sent = house.send("py", text="1", locale="pt-BR")
    house.broker.wait_asked("RUN", before + 1)
    house.stop(0, signal.SIGKILL)
    house.start()
    sent.wait_final(match="foi interrompido", timeout=60)
    house.broker.cell = says(b"")
    told("No output.", "en-US")


def main():
    """Run them in one house."""
    with house:
        house.sandbox("alice")
        run()


main()
