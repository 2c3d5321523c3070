#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The buttons under the answer of a run, with cells that do as they are told."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from house import House, says  # noqa: E402
from tap import run, test  # noqa: E402
from wire import N  # noqa: E402

house = House(IL_CHAT_IMAGES="3.11=inline:1,3.13=inline:2")


def ran(data=b"1\n", text="print(1)", **columns):
    """The message of a run that prints this."""
    house.broker.cell = says(data, **columns.pop("result", {}))
    return house.send("py", text=text, **columns).wait_final().original


def view_of(message):
    """The id of the view behind its buttons."""
    return int(message.control("py-again")["custom_id"].partition(":")[2])


def missing(module):
    """The buttons of a run that does not find a module."""
    return ran(b"Traceback (most recent call last):\nModuleNotFoundError: "
               b"No module named '" + module + b"'\n",
               result={"STATUS": 1}).buttons()


@test
def what_is_missing_can_be_installed():
    for module, package in ((b"requests", "requests"), (b"PIL", "pillow"),
                            (b"cv2", "opencv-python-headless"),
                            (b"sklearn.svm", "scikit-learn"),
                            (b"yaml", "PyYAML"), (b"bs4", "beautifulsoup4")):
        assert missing(module)[0] == "Install " + package, module
    for module in (b"_tkinter", b"tkinter", b"a b", b"-e", b"../x", b"",
                   b"x" * 65, b"\xe2\x80\xaex"):
        assert missing(module)[0] == "Re-run", module


@test
def install_is_a_run_again_by_itself():
    message = ran(b"ModuleNotFoundError: No module named 'yaml'\n",
                  result={"STATUS": 1})
    asked = []

    def both(cell):
        asked.append((cell.op, cell.parts.get(N["PART_SOURCE"])))
        says(b"" if cell.op == "PIP" else b"found\n")(cell)
    house.broker.cell = both
    house.press(message, "Install PyYAML", "py-install",
                view_id=view_of(message)).wait_final()
    message = message.refresh()
    # names of packages, while that cell is there
    assert asked[:3] == [("PIP", None), ("PACKAGES", None),
                         ("RUN", b"print(1)")], asked
    assert "found" in message.text() and "`PyYAML`" in message.text()
    assert message.buttons()[0] == "Re-run", message.buttons()


@test
def what_was_installed_is_told_where_its_run_has_gone():
    message = ran(b"ModuleNotFoundError: No module named 'yaml'\n",
                  result={"STATUS": 1})
    view = view_of(message)

    def removes(cell):
        house.sql(f"DELETE FROM views WHERE id = {view}")
        says(b"")(cell)
    house.broker.cell = removes
    house.press(message, "Install PyYAML", "py-install",
                view_id=view).wait_final()
    text = message.refresh().text()
    assert "no longer stored" in text and "`PyYAML` was installed" in text, text


@test
def what_cannot_be_installed_is_told_and_asked_again():
    message = ran(b"ModuleNotFoundError: No module named 'nope'\n",
                  result={"STATUS": 1})
    house.broker.cell = says(b"No matching distribution found for nope\n",
                             STATUS=1)
    house.press(message, "Install nope", "py-install",
                view_id=view_of(message)).wait_final()
    message = message.refresh()
    assert "Not installed" in message.text(), message
    assert message.buttons()[:2] == ["Install nope", "Re-run"], message


@test
def another_python_is_chosen_from_a_menu():
    message = ran()
    menu = message.control("py-version")
    assert [one["value"] for one in menu["options"]] == ["3.11", "3.13"]
    house.press(message, "Re-run", "py", view_id=view_of(message),
                version="3.13").wait_final()
    assert house.broker.wait_asked("LEASE")[-1]["INTERPRETER"] == b"3.13"
    menu = message.refresh().control("py-version")
    assert [one["default"] for one in menu["options"]] == [False, True]
    house.press(message, "Re-run", "py", view_id=view_of(message)).wait_final()
    assert house.broker.wait_asked("LEASE")[-1]["INTERPRETER"] == b"3.13", (
        "Re-run is with the same")


@test
def a_python_that_is_gone_leaves_the_buttons():
    message = ran()
    house.sql("UPDATE views SET version = '2.7' WHERE id = ?",
              view_of(message))
    house.press(message, "Re-run", "py", view_id=view_of(message)).wait_final(
        match="not available")
    assert message.refresh().buttons() == message.buttons()


@test
def names_of_files_are_labels_whatever_they_are():
    names = [name + b".png" for name in (
        b" ", b"\xe3\x80\x80", b"\xe2\x80\xae.txt", b"a\nb", b"a\x1bb",
        b"n" * 251, "\U0001f600".encode() * 60, b"\xff\xfe",
        b"x/" * 400 + b"y", b"a", b"sub/a")]

    def leaves(cell):
        for name in names:
            cell.send("LEFT_OUT", ("PATH", name), ("SIZE", 3),
                      ("WHY", N["LEFT_OUT_COUNT"]))
        cell.result()
    house.broker.cell = leaves
    message = house.send("py", text="1").wait_final().original
    options = message.control("py-file")["options"]
    values = [one["value"] for one in options]
    assert values == [str(n + 1) for n in range(len(options))], values
    assert all(1 <= len(one["label"]) <= 100 and one["label"].strip(
        " \u3000") for one in options), options
    kept = house.sql("SELECT CAST(files AS BLOB) FROM views WHERE id = ?",
                     view_of(message))[0][0]
    assert kept.split(b"//")[:-1] == names, kept
    house.broker.cell = lambda cell: (
        cell.file(cell.request["PATH"], b"123"),
        cell.result(TOTAL=3))
    sent = house.send("py-file", view_id=view_of(message),
                      page=values[-1]).wait_final()
    assert house.broker.wait_asked("READ")[-1]["PATH"] in names
    assert sent.original.attachments, sent.original
    house.send("py-file", view_id=view_of(message), page=25).wait_final(
        match="no longer stored")


@test
def a_file_that_would_be_refused_is_not_offered():
    def leaves(cell):
        for why in ("SIZE", "TOTAL", "UNREADABLE", "TIME", "KIND", "GONE"):
            cell.send("LEFT_OUT", ("PATH", why + ".png"), ("SIZE", 99 << 20),
                      ("WHY", N["LEFT_OUT_" + why]))
        cell.result()
    house.broker.cell = leaves
    message = house.send("py", text="1").wait_final().original
    assert "`SIZE.png` (99 MiB, too large)" in message.text(), message
    labels = [one["label"] for one in message.control("py-file")["options"]]
    assert labels == ["TOTAL.png", "TIME.png"], labels


@test
def what_nobody_sees_of_the_code_is_not_lost():
    message = ran(text="```py\nprint(1)\n```", input="5")
    assert house.sql("SELECT text, input, output FROM views WHERE id = ?",
                     view_of(message)) == [("print(1)\n", "5", "1\n")]
    long = "#" * 5000
    message = ran(text=long)
    sent = house.send("py-edit", view_id=view_of(message)).wait_final()
    assert "longer than the 4,000" in sent.original.text(), sent.original
    assert sent.original.attachments[0].read().decode().strip() == long
    big = b"y" * 40000 + b"\n" + b"z" * 60000
    message = ran(big)
    kept = house.sql("SELECT output FROM views WHERE id = ?",
                     view_of(message))[0][0]
    assert len(kept) <= 65536 and kept.endswith("z" * 100), len(kept)


@test
def a_share_that_is_broken_off_is_not_said_to_be_done():
    sent = house.send("py-share", view_id=view_of(ran()))
    sent.wait_final(match="Shared by")
    assert house.sql("SELECT 1 FROM jobs WHERE interaction_id = ? AND "
                     "started_ms IS NOT NULL", int(sent.id))


@test
def what_is_tried_leaves_no_row():
    for timeit, how in (0, 1), (1, 2):
        view = house.sql(
            "INSERT INTO views (user_id, kind, text, input, version, share, "
            "timeit, created_ms) VALUES (1, 'py', 'x = 1', '5', '3.13', 1, ?, "
            "1) RETURNING id", timeit)[0][0]
        sent = house.begin("py-try", kind_of_answer="callback", view_id=view)
        modal = sent.wait_answered(timeout=60).view["modal"]
        assert modal["custom_id"] == f"py-tried:{how}:3.13", modal
        assert [part["component"]["value"] for part in modal["components"]] \
            == ["x = 1", "5"], modal
        assert house.sql("SELECT max(id) FROM views") == [(view,)]


@test
def what_was_pruned_is_told():
    for kind in ("py", "py-edit", "py-give", "py-share", "py-output",
                 "py-file", "py-install"):
        house.send(kind, view_id=999999).wait_final(match="no longer stored")
    other = house.sql("INSERT INTO views (user_id, kind, text, created_ms) "
                      "VALUES (1, 'py', 'secret', 1) RETURNING id")[0][0]
    for kind in ("py", "py-edit", "py-try", "py-share", "py-output"):
        sent = house.send(kind, view_id=other).wait_final(
            match="no longer stored")
        assert "secret" not in sent.original.text()
    house.send("py-remove", view_id=other).wait_deleted()
    assert house.sql("SELECT 1 FROM views WHERE id = ?", other)


@test
def what_is_old_is_pruned():
    message = ran()
    view = view_of(message)
    days = 24 * 3600 * 1000
    house.sql("UPDATE views SET created_ms = created_ms - ? WHERE id = ?",
              31 * days, view)
    house.stop()
    house.start()
    house.wait_sql("SELECT count(*) FROM views WHERE id = ?", view,
                   want=[(0,)])


@test
def where_it_cannot_be_deleted_it_says_so():
    message = ran()
    house.discord.fault("status", "delete", status=403, code=50013)
    house.press(message, "Remove", "py-remove",
                view_id=view_of(message)).wait_final(match="is removed")
    assert not message.refresh().buttons()
    house.discord.clear_faults()


@test
def one_failure_does_not_keep_it():
    """Nor where other calls have one try, as without a first response."""
    message = ran()
    house.discord.fault("status", "delete", status=500)
    house.press(message, "Remove", "py-remove", view_id=view_of(message),
                held_by=7).wait_deleted()
    house.discord.clear_faults()


@test
def nothing_broke_discords_rules():
    house.discord.assert_no_violations()


def main():
    """Run them in one house."""
    with house:
        house.sandbox("alice")
        run()


main()
