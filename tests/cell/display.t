#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a person's run displays comes back as pictures, without a file in the
workspace; whatever the run does with them, it is content, and bounded."""

from apidriver import ApiCell
from driver import N, Cell
from tap import run, test

WANT = {"collect_files": 10, "collect_bytes": 1 << 20, "collect_total": 4 << 20,
        "echo": 1, "name": "main.py"}
PNG = ("class P:\n"
       "  def __init__(self, data=b'png'): self.data = data\n"
       "  def _repr_png_(self): return self.data\n")


def show(source, **fields):
    return lease.run(source, **{**WANT, **fields})


def displayed(told):
    """[(name, bytes or why it was left out)]: those of pictures."""
    return [(fields["PATH"].decode(),
             fields.get("WHY") or told.files[fields["PATH"]])
            for kind, fields in told.frames
            if kind in ("FILE", "LEFT_OUT") and fields.get("DISPLAYED")]


@test
def a_picture_comes_back_and_is_no_file():
    told = show(PNG + "import os\ndisplay(P())\nprint(os.listdir())\nP(b'2')")
    assert displayed(told) == [("picture-1.png", b"png"),
                               ("picture-2.png", b"2")], told
    assert (told.output, told.total) == (b"[]\n", 0), told
    assert lease.ask("LIST", path="", count=9).entries == []


@test
def what_is_none_is_shown_as_text():
    told = show("display(1, 'x', None)\n"
                "class Q:\n"
                "  def __repr__(self): return 'q'\n"
                "  def _repr_png_(self): return None\n"
                "class R(Q):\n"
                "  def _repr_png_(self): raise NotImplementedError\n"
                "class S(Q):\n"
                "  _repr_png_ = 3\n"
                "display(Q(), R(), S(), Q, '\\ud800'); Q()")
    assert told.output == (b"1\n'x'\nNone\nq\nq\nq\n<class '__main__.Q'>\n"
                           b"'\\ud800'\nq\n"), told
    assert displayed(told) == []


@test
def a_jpeg_is_one_and_bytes_may_come_with_more():
    told = show("class J:\n  def _repr_jpeg_(self): return b'jpg', {}\nJ()")
    assert displayed(told) == [("picture-1.jpg", b"jpg")], told


@test
def what_fails_shows_the_users_lines_alone():
    told = show("class P:\n  def _repr_png_(self): 1 / 0\n\nP()")
    assert told.status == 1 and b"/run/" not in told.stderr, told
    assert b'line 4, in <module>\n' in told.stderr, told
    assert b'line 2, in _repr_png_\n' in told.stderr, told


@test
def ten_are_shown_and_the_rest_is_said():
    told = show(PNG + "for i in range(1000): display(P(b'%d' % i))")
    assert displayed(told) == [("picture-%d.png" % (i + 1), b"%d" % i)
                               for i in range(10)], told
    assert told.stderr == (b"990 more pictures are not shown: an answer has 10"
                           b" at most.\n"), told


@test
def they_go_before_files_and_share_their_limits():
    told = show(PNG + "for i in range(11): open('f%d' % i, 'w').write('x')\n"
                "for i in range(9): display(P(b'x'))\n"
                "display(P(bytes(2 << 20)))")
    assert [name for name, _ in displayed(told)] == [
        "picture-%d.png" % (i + 1) for i in range(10)], told
    assert displayed(told)[9][1] == N.LEFT_OUT_SIZE, told
    assert b"f0" in told.files and told.left_out[b"f1"] == \
        N.LEFT_OUT_COUNT, told
    assert told.total == 11 and len(told.left_out) == 11, told
    show("import os\nfor n in os.listdir(): os.unlink(n)")


@test
def all_ten_places_are_taken_and_files_are_still_named():
    told = show(PNG + "open('f', 'w').write('x')\n"
                "for i in range(10): display(P(b'x'))")
    assert len(displayed(told)) == 10, told
    assert told.left_out == {b"f": N.LEFT_OUT_COUNT} and told.total == 1, told
    show("import os\nos.unlink('f')")


@test
def none_comes_that_was_not_asked_for():
    told = show(PNG + "P()", collect_files=0)
    assert told.files == {} and told.total is None, told


@test
def none_of_the_run_before():
    lease.ask("WRITE", path="f.py", content=b"print(1)")
    for second in {"source": "2"}, {"path": "f.py"}:
        assert len(displayed(show(PNG + "P()"))) == 1
        told = lease.run(**{**WANT, **second})
        assert told.status == 0 and told.files == {}, told
    lease.ask("REMOVE", path="f.py")


@test
def those_of_a_file_that_runs_come_too():
    lease.ask("WRITE", path="f.py", content=PNG.encode() + b"display(P())")
    told = lease.run(path="f.py", **WANT)
    assert displayed(told) == [("picture-1.png", b"png")], told
    lease.ask("REMOVE", path="f.py")


@test
def they_come_whatever_the_end():
    for end, reason in (("while True: pass", N.REASON_TIME),
                        ("while True: print('x')", N.REASON_OUTPUT),
                        ("import os; os._exit(3)", N.REASON_EXIT),
                        ("import os; os.kill(os.getpid(), 9)",
                         N.REASON_SIGNAL)):
        told = show(PNG + "display(P())\n" + end, output_max=9999,
                    wall_ms=3000 if reason == N.REASON_TIME else 60000)
        assert told.reason == reason, told
        assert displayed(told) == [("picture-1.png", b"png")], told


@test
def forked_processes_count_together():
    told = show(PNG + "import os\nchildren = []\n"
                "for i in range(4):\n"
                "  pid = os.fork()\n"
                "  if not pid:\n"
                "    for j in range(2): display(P(b'child'))\n"
                "    os._exit(0)\n"
                "  children.append(pid)\n"
                "for pid in children: os.waitpid(pid, 0)\n"
                "display(P())")
    names = [name for name, _ in displayed(told)]
    assert names == ["picture-%d.png" % (i + 1) for i in range(9)], told


@test
def no_more_than_there_is_room_for():
    told = show(PNG + "display(P(bytes(21 << 20)))\ndisplay(P())")
    assert told.stderr == (b"Picture 1 is too large: it is not shown.\n"), told
    assert displayed(told) == [("picture-2.png", b"png")], told
    told = show(PNG + "for i in range(20):\n"
                "  try: open('/code/%d' % i, 'w').close()\n"
                "  except OSError: pass\n"
                "display(P())")
    assert told.stderr == (b"Picture 1 has no place (No space left on device):"
                           b" it is not shown.\n"), told
    assert displayed(told) == [] and told.status == 0, told


# ---- hostile ----

@test
def a_size_that_is_a_lie():
    told = show(PNG + "class B(bytes): __len__ = lambda self: 1\n"
                "display(P(B(21 << 20)))\ndisplay(P())")
    assert displayed(told) == [("picture-2.png", b"png")], told
    assert told.stderr == (b"Picture 1 has no place (No space left on device):"
                           b" it is not shown.\n"), told


@test
def a_program_may_take_the_name():
    told = show("def display(x): print('mine', x)\ndisplay(1)\n"
                "import builtins, sys\nbuiltins.display = None\n"
                "sys.displayhook = lambda x: print('hook', x)\n2")
    assert told.output == b"mine 1\nhook 2\n", told
    assert show("display(3)").output == b"3\n"


@test
def what_is_no_regular_file_is_not_sent():
    told = show("import os, socket\n"
                "os.mkfifo('/code/picture-1.png')\n"
                "os.symlink('/etc/passwd', '/code/picture-2.png')\n"
                "os.symlink('/code/picture-1.png', '/code/picture-3.png')\n"
                "os.mkdir('/code/picture-4.png')\n"
                "socket.socket(socket.AF_UNIX).bind('/code/picture-5.png')\n"
                "open('/code/picture-6.png', 'w').write('6')\n"
                "open('/code/other', 'w').write('7')")
    assert displayed(told) == [("picture-6.png", b"6")], told
    assert told.status == 0 and not told.left_out, told
    assert show("1").files == {}


@test
def names_and_sizes_of_any_kind():
    told = show("import os\nfor n in b'\\xff', b'\\n@everyone.png', b'x' * 240:\n"
                "  open(b'/code/picture-' + n, 'w').write('x')\n"
                "open('/code/picture-1', 'w').truncate(1 << 40)\n"
                "open('/code/picture-', 'w').close()")
    found = dict((fields["PATH"], fields.get("WHY"))
                 for kind, fields in told.frames
                 if kind in ("FILE", "LEFT_OUT"))
    assert found == {b"picture-\xff": None, b"picture-\n@everyone.png": None,
                     b"picture-" + b"x" * 240: None, b"picture-": None,
                     b"picture-1": N.LEFT_OUT_SIZE}, told


@test
def who_goes_on_writing_after_the_end():
    told = show("import os\n"
                "fd = os.open('/code/picture-1.png', os.O_RDWR | os.O_CREAT)\n"
                "for i in range(5):\n"
                "  if not os.fork():\n"
                "    os.setsid()\n"
                "    while True: os.ftruncate(fd, os.urandom(1)[0] * 99)\n"
                "os.write(fd, b'x')")
    assert told.reason == N.REASON_EXIT and told.status == 0, told
    assert [name for name, _ in displayed(told)] == ["picture-1.png"], told
    assert show("2").files == {}


@test
def a_folder_that_is_locked():
    told = show(PNG + "import os\ndisplay(P())\nos.chmod('/code', 0)")
    assert told.reason == N.REASON_EXIT and told.status == 0, told
    told = show(PNG + "import os\nopen('f', 'w').write('f')\ndisplay(P())\n"
                "os.chmod('/code', 0)")
    assert told.files == {b"picture-1.png": b"png", b"f": b"f"}, told
    lease.ask("REMOVE", path="f")
    assert show("2").output == b"2\n"
    assert displayed(show(PNG + "P()")) == [("picture-1.png", b"png")]


@test
def libraries_of_another_kind_stay_as_they_are():
    lease.ask("WRITE", path="matplotlib/__init__.py", content=b"x = 1")
    lease.ask("WRITE", path="matplotlib/figure.py", content=b"Figure = 3")
    lease.ask("WRITE", path="matplotlib/backend_bases.py", content=b"")
    lease.ask("WRITE", path="pandas.py", content=(
        b"def set_option(*_): raise SystemError\nx = 2"))
    lease.ask("WRITE", path="PIL/__init__.py", content=b"")
    lease.ask("WRITE", path="PIL/ImageShow.py", content=b"1 / 0")
    assert b"display" in show("__import__('sys').meta_path").output
    told = show("import matplotlib.backend_bases, matplotlib.figure, pandas\n"
                "print(matplotlib.x, pandas.x, pandas.__loader__)\n"
                "class C: __repr__ = lambda self: 'c'\n"
                "try: import PIL.ImageShow\n"
                "except ZeroDivisionError: print('its own')\n"
                "C()")
    assert told.status == 0 and told.stderr == b"", told
    lines = told.output.split(b"\n")
    assert lines[0].startswith(b"1 2 <_frozen_importlib_external.SourceFile")
    assert lines[1:] == [b"its own", b"c", b""], told
    for name in "matplotlib", "PIL":
        lease.ask("REMOVE", path=name, recursive=1)
    lease.ask("REMOVE", path="pandas.py")


# ---- elsewhere ----

@test
def an_apis_run_knows_nothing_of_it():
    with ApiCell() as api:
        told = api.eval(["-c", "import sys\ntry: display\n"
                         "except NameError: print('none')\n"
                         "print(sys.displayhook is sys.__displayhook__,"
                         " 'display' in repr(sys.meta_path))"])
        assert told.stdout == b"none\nTrue False\n", told


with Cell() as cell:
    with cell.lease() as lease:
        run()
