#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each command as a person uses it, from the signed request to the answer."""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from service import Service, wait_for  # noqa: E402
from client import File  # noqa: E402
from tap import run, test  # noqa: E402

service = Service(IL_TUNE_SPARE_CELLS="1")
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360000000000500010d0a2db40000000049454e44ae426082")


def final(command, user="alice", **options):
    """Send a command, wait for its final message and return that."""
    sent = service.discord.send_command(command, user=user, **options)
    sent.wait_final()
    return sent.original


@test
def create_says_what_is_allowed_and_when_it_expires():
    text = final("create").text()
    assert "256" in text and "MiB" in text, text
    assert "<t:" in text, text
    row = service.sql("SELECT id, expires_at - created_at FROM sandboxes")
    assert row[0][1] == 604800, row
    folder = os.path.join(service.settings["IL_BASE_DIR"], row[0][0])
    assert sorted(os.listdir(folder)) == ["packages-3.11.ext4", "workspace.ext4"]


@test
def create_twice_keeps_the_sandbox():
    before = service.sql("SELECT id FROM sandboxes")
    final("create")
    assert service.sql("SELECT id FROM sandboxes") == before


@test
def answers_are_private_unless_shared():
    assert final("py", code="print(1)").ephemeral
    assert not final("py", code="print(1)", share=True).ephemeral


@test
def py_runs_inline_code():
    message = final("py", code="print('in' + 'line')")
    assert message.content == "```\ninline\n```", message


@test
def py_takes_back_ticks_and_fences():
    assert "tick" in final("py", code="`print('ti' + 'ck')`").content
    code = "```py\nfor i in range(3):\n    print('line', i)\n```"
    assert "line 2" in final("py", code=code).content
    code = "```\r\nx = 1\r\nif x:\r\n    print('cr' + 'lf')\r\n```"
    assert "crlf" in final("py", code=code).content
    assert "bare" in final("py", code="```print('ba' + 're')```").content


@test
def py_echoes_the_last_bare_expression():
    assert "4" in final("py", code="2 + 2").content.split("```")[1]
    text = final("py", code="None").content
    assert "None" not in text, text
    code = "ast = tree = compile = exec = 5\ny = 1\nast + y"
    assert "6" in final("py", code=code).content.split("```")[1]


@test
def py_gives_standard_input():
    text = final("py", code="print(input()[::-1])", stdin="olleh").content
    assert "hello" in text, text
    assert "EOFError" in final("py", code="input()").content


@test
def tracebacks_show_the_users_lines_and_none_of_ours():
    text = final("py", code="def f():\n    return 1 / 0\n\nf()").content
    assert "return 1 / 0" in text and "ZeroDivisionError" in text, text
    assert "line 2, in f" in text and "line 4, in <module>" in text, text
    assert "cell" not in text and "run.py" not in text, text
    assert text.count("File ") == 2, text
    text = final("py", code="x = (1,\nprint(x").content
    assert "SyntaxError" in text and "^" in text, text


@test
def errors_say_what_to_change():
    for code, hint in (
            ("import socket\nsocket.getaddrinfo('example.org', 80)",
             "Code has no network here"),
            ("import socket\nsocket.create_connection(('1.1.1.1', 80))",
             "Code has no network here"),
            ("x = 1\nprint(1,\xa0x)", "Line 2 has a character that looks"),
            ("x =\u200b 1", "Line 1 has a character that looks"),
            ("print(\u201chi\u201d)", "curly quotes"),
            ("print(1)`", "a back-tick left over"),
            ("```js\nconsole.log(1)\n```", "marked `js`"),
            ("```js\nlet x = 1;\n```", "marked `js`"),
            ("if 1:\n\tx = 1\n        y = 2", "Tabs and spaces"),
            ("if 1:\n\tx = 1\n    y = 2", "Tabs and spaces")):
        text = final("py", code=code).content
        assert hint in text and "-# exit 1" in text, (code, text)
    text = final("py", code="'''py\nprint(1)\n'''").content
    assert "between quotes" in text and "exit" not in text, text


@test
def what_was_pasted_is_run():
    for code in ("Python print(6 * 7)", "python\nprint(6 * 7)",
                 "print(6 * 7)\n```", "```PY\nprint(6 * 7)\n```\n```\n1\n```",
                 ">>> print(6 * 7)\n42", "In [1]: print(6 * 7)",
                 "    x = 6\n    print(x * 7)", "x = 6\n  print(x * 7)",
                 "> ```py\n> print(6 * 7)\n> ```",
                 "\xb4\xb4\xb4py\nprint(6 * 7)\n\xb4\xb4\xb4",
                 "x = 6\\nprint(x * 7)",
                 "if 1:\n\xa0\u3000print(6 * 7)"):
        text = final("py", code=code).content
        assert "42" in text and "exit" not in text, (code, text)
    text = final("py", code="# coding: latin-1\nprint('\xe9', __import__("
                 "'linecache').getline(__file__, 2))").content
    assert "\n\xe9 " in text and "print('\xe9'" in text, text


@test
def stdout_and_stderr_come_in_order():
    code = ("import sys\nfor i in range(3):\n    print('out', i)\n"
            "    print('err', i, file=sys.stderr)")
    text = final("py", code=code).content
    wanted = [f"{name} {i}" for i in range(3) for name in ("out", "err")]
    places = [text.index(word) for word in wanted]
    assert places == sorted(places), text


@test
def py_without_code_opens_an_editor():
    sent = service.discord.send_command("py", user="alice")
    sent.wait_answered()
    assert sent.view["answer_type"] == 9, sent
    done = service.discord.submit_modal(sent, {"code": "print(6 * 7)"})
    done.wait_final()
    assert "42" in done.original.content, done
    assert done.original.ephemeral


@test
def py_runs_a_file_of_the_sandbox():
    final("write", name="tool/main.py",
          content="import sys, helper\nprint(__file__, helper.x)\n1/0")
    final("write", name="tool/helper.py", content="x = 'helped'")
    text = final("py", file="tool/main.py").content
    assert "helped" in text and "/workspace/tool/main.py" in text, text
    assert "1/0" in text, text
    assert "exit 1" in text, text


@test
def long_output_is_cut_and_comes_whole_as_a_file():
    message = final("py", code="for i in range(5000): print('row', i)")
    assert len(message.content.split("\n")) == 23, message
    assert "\nrow 5\n\u2026 4981 lines left out \u2026\nrow 4987\n" \
        in message.content, message
    whole = message.attachment("output.txt").text()
    assert whole == "".join(f"row {i}\n" for i in range(5000))


@test
def output_is_what_a_terminal_would_show():
    code = ("import sys\nfor n in range(101):\n"
            "    print(f'\\r{n:3}%', end='', file=sys.stderr)\n"
            "print('\\n\\033[1;92mgreen\\033[0m \\u202eright')")
    message = final("py", code=code)
    assert message.content == ("```ansi\n100%\n\033[1;32mgreen \033[0m"
                               "\\u202eright\n```"), message


@test
def output_cannot_break_out_of_its_block():
    message = final("py", code="print('``' + '`\\n@every' + 'one\\n``' + '`')")
    assert message.content.count("```") == 2, message
    assert "@everyone" in message.content


@test
def files_of_a_run_come_back_and_images_first():
    code = ("open('b.txt', 'w').write('text')\n"
            f"open('a.png', 'wb').write(bytes.fromhex('{PNG.hex()}'))")
    message = final("py", code=code, user="alice")
    names = [one.filename for one in message.attachments]
    assert names == ["a.png", "b.txt"], names
    assert message.attachment("a.png").read() == PNG
    assert message.attachment("a.png").description == \
        "picture made by this run: a.png", message
    assert message.attachment("b.txt").description is None, message
    again = final("py", code="print(open('b.txt').read())")
    assert not again.attachments and "text" in again.content, again


@test
def pictures_come_back_and_are_no_files():
    code = ("class Picture:\n"
            f"    def _repr_png_(self): return bytes.fromhex('{PNG.hex()}')\n"
            "for i in range(12): display(Picture())\n"
            "import os; print([n for n in os.listdir() if 'picture' in n])\n"
            "await __import__('asyncio').sleep(0, 'over')")
    message = final("py", code=code)
    names = [one.filename for one in message.attachments]
    assert names == [f"picture-{i + 1}.png" for i in range(10)], names
    assert message.attachment("picture-10.png").read() == PNG
    assert "[]\n'over'\n2 more pictures are not shown" in message.content, \
        message
    assert "picture" not in final("look").content


@test
def what_is_left_out_is_named():
    code = "for i in range(14): open(f'many{i:02}.png', 'w').write('x')"
    message = final("py", code=code)
    assert len(message.attachments) == 10, message
    assert "Not attached: `many10.png`" in message.content, message
    final("rm", name="many00.png")


@test
def look_lists_directories_first_and_changes_to_them():
    final("py", code="import os\nos.makedirs('deep/er')\n"
                     "open('deep/file', 'w').write('x' * 2048)")
    text = final("look").content
    assert text.index("deep") < text.index("b.txt"), text
    text = final("look", path="deep").content
    assert "er/" in text and "2 KiB" in text, text
    assert "/workspace/deep" in final(
        "py", code="import os\nprint(os.getcwd())").content
    assert "b.txt" in final("look", path="..").content


@test
def look_shows_a_file():
    final("write", name="show.py", content="print('shown')")
    assert "print('shown')" in final("look", path="show.py").content


@test
def look_pages_by_buttons_that_outlive_the_programs():
    final("py", code="import os\nos.makedirs('pages', exist_ok=True)\n"
                     "for i in range(45):\n"
                     "    open(f'pages/f{i:02}', 'w').close()")
    message = final("look", path="pages")
    assert "f00" in message.content and "f20" not in message.content
    for program in ("il-worker", "il-fcgi"):
        service.kill(program)
    wait_for(lambda: service.pids("il-fcgi"))
    service.wait_serving()
    pressed = service.discord.press(message, "look-next")
    pressed.wait_final()
    message = message.refresh()
    assert "f20" in message.content and "f40" not in message.content, message
    pressed = service.discord.press(message, "look-next")
    pressed.wait_final()
    assert "f44" in message.refresh().content
    pressed = service.discord.press(message.refresh(), "look-prev")
    pressed.wait_final()
    assert "f20" in message.refresh().content
    final("look", path="~")


@test
def write_makes_parents_and_overwrites():
    final("write", name="new/dir/f.txt", content="one")
    final("write", name="new/dir/f.txt", content="two")
    assert "two" in final("look", path="new/dir/f.txt").content


@test
def write_without_content_opens_an_editor_with_the_file():
    final("write", name="edit.txt", content="before")
    sent = service.discord.send_command("write", name="edit.txt",
                                        user="alice")
    sent.wait_answered()
    assert sent.refresh().modal, sent
    assert "before" in str(sent.modal), sent.modal
    done = service.discord.submit_modal(sent, {"content": "after"})
    done.wait_final()
    assert "after" in final("look", path="edit.txt").content


@test
def rm_deletes_files_and_directories_only_when_told():
    final("write", name="gone/f", content="x")
    text = final("rm", name="gone").content
    assert "recursive" in text, text
    final("rm", name="gone", recursive=True)
    assert "no" in final("look", path="gone").content.lower()


@test
def get_sends_a_file():
    final("write", name="take.bin", content="take me")
    message = final("get", path="take.bin")
    assert message.attachment("take.bin").text() == "take me"


@test
def put_stores_an_attachment():
    final("put", file=File("data set.csv", "a,b\n1,2\n"), path="in/data.csv")
    text = final("py", code="print(open('in/data.csv').read())").content
    assert "1,2" in text, text
    final("put", file=File("plain.txt", "plain"))
    assert "plain" in final("look", path="plain.txt").content


NAMES = """
    график.png 图.png 😀.png café.txt naïve.csv ünïcödé.json Ελλάδα.md हिन्दी.txt
    ไทย.csv עברית.txt العربية.log 日本語.tar.gz 한국어.py emoji👍🏽.txt 👨‍👩‍👧.png ©.svg
    plain.txt UPPER.TXT no_ending noending.é 1e1000 2024 0.5 a.b.c a-b_c.d
    -dash.txt _under.txt .hidden ..dots ...txt a.. x_ #hash.txt 100%.csv
    a+b=c.txt (copy).txt [1].txt {a}.txt it's.txt "q".txt a`b.txt ~x.txt
    back\\slash.txt a,b.csv a;b.txt a&b.txt <tag>.html $HOME.txt !.txt
    """.split() + ["two words.txt", "a  b.txt", "x" * 200 + ".long"]


@test
def a_name_is_the_same_on_its_way_in_and_out():
    for name in NAMES:
        final("put", file=File(name, name))
        message = final("get", path=name)
        assert len(message.attachments) == 1, (name, message)
        one = message.attachments[0]
        assert (one.title or one.filename, one.text()) == (name, name), name
        ending = os.path.splitext(name)[1]
        if ending.isascii() and ending[1:].isalnum():
            assert one.filename.endswith(ending), (name, one.filename)
    # as they are in the sandbox, where a name that is a path is no name
    there = final("py",
                  code="import os; print(sorted(os.listdir()))").content
    assert repr("график.png") in there, there
    final("put", file=File("../up.txt", "x"))
    assert "up.txt" in final("look", path="up.txt").content


@test
def health_says_how_it_is():
    text = final("health").content
    for word in ("Docker: reachable", "Python 3.", "Queue: 0 waiting",
                 "Database: answers", "Clock: "):
        assert word in text, (word, text)
    # that of this person, and the spare one unless it was begun just now
    assert re.search("Sandboxes: [12] started", text), text


@test
def delete_asks_once_and_deletes_everything():
    final("create", user="bob")
    folder = service.settings["IL_BASE_DIR"]
    before = len(os.listdir(folder))
    asked = service.discord.send_command("delete", user="bob")
    asked.wait_answered()
    kept = service.discord.press(asked.original, "delete-no")
    kept.wait_answered()
    assert service.sql("SELECT count(*) FROM sandboxes") == [(2,)]
    asked = service.discord.send_command("delete", user="bob")
    asked.wait_answered()
    gone = service.discord.press(asked.original, "delete-yes")
    gone.wait_final()
    message = asked.refresh().original
    assert not message.buttons(), message
    assert service.sql("SELECT count(*) FROM sandboxes") == [(1,)]
    assert len(os.listdir(folder)) == before - 1
    assert "create" in final("py", code="1", user="bob").content


@test
def nothing_broke_discords_rules():
    service.assert_kept_discords_rules()


@test
def nothing_is_left_after_the_end():
    state = service.settings["IL_STATE_DIR"]
    assert service.stop() == 0
    assert not service.left_over(), service.left_over()
    sockets = [name for name in os.listdir(state) if name.endswith(".sock")]
    assert not sockets, sockets


with service:
    run()
