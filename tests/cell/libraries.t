#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The real matplotlib, Pillow and pandas in a person's run.  They come from the
public package index, as its pip gets them; without that there is no test."""

import os
import shutil
import struct
import subprocess
import sys
import tempfile

from driver import DOCKER, IMAGE, Cell
from tap import run, test

WANTED = "matplotlib", "pillow", "pandas"
WANT = {"collect_files": 10, "collect_bytes": 8 << 20,
        "collect_total": 20 << 20, "echo": 1, "name": "main.py",
        "wall_ms": 60000, "merge": 1}
PLOT = "import matplotlib.pyplot as plt\n"
PILLOW = "from PIL import Image\n"


def install(folder):
    """Wheels for the image's Python; why not, or None."""
    with Cell() as cell, cell.lease() as lease:
        told = lease.run("import sysconfig\nprint(sysconfig.get_config_var("
                         "'SOABI'), *__import__('sys').version_info[:2])")
    abi, *version = told.stdout.decode().split()
    musl = "musl" in abi
    platforms = ["%s_%s" % (name, os.uname().machine) for name in (
        ("musllinux_1_1", "musllinux_1_2") if musl else
        ("manylinux2014", "manylinux_2_27", "manylinux_2_28"))]
    done = subprocess.run(
        [sys.executable, "-I", "-m", "pip", "install", "--quiet", "--target",
         folder, "--only-binary=:all:", "--implementation", "cp",
         "--python-version", ".".join(version), "--retries", "1",
         *("--platform=" + name for name in platforms), *WANTED],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd="/")
    if done.returncode:
        return done.stderr.strip().splitlines()[-1][:200]
    subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
    # The image may lack a library of C's: that is found without a cell.
    done = subprocess.run(
        [DOCKER, "run", "--rm", "--network", "none", "-v", folder + ":/p:ro",
         "--env", "PYTHONPATH=/p", "--entrypoint", "python3", IMAGE, "-B", "-c",
         "import matplotlib.pyplot, PIL.Image, pandas"],
        stdin=subprocess.DEVNULL, capture_output=True)
    return done.returncode and "they do not load in this image"


def show(source, at=None, **fields):
    with (at or cell).lease() as lease:
        told = lease.run(source, **{**WANT, **fields})
    assert (at or cell).idle()
    return told


def sizes(told):
    """Of the pictures that have come: [(width, height)]."""
    found = []
    for kind, fields in told.frames:
        if kind == "FILE" and fields.get("DISPLAYED"):
            data = told.files[fields["PATH"]]
            assert data.startswith(b"\x89PNG\r\n\x1a\n"), fields
            found.append(struct.unpack(">II", data[16:24]))
    return found


def draws(source, count, output=b"", status=0):
    told = show(source)
    assert told.status == status and told.output == output, (source, told)
    found = sizes(told)
    assert len(found) == count == len(told.files), (source, told)
    return found


@test
def figures_that_are_shown():
    size, = draws(PLOT + "plt.plot([1, 2, 3])\nplt.title('t')\nplt.show()", 1)
    assert 400 < size[0] < 700 and 300 < size[1] < 600, size
    draws(PLOT + "for i in 1, 2:\n  plt.plot([i])\n  plt.show()", 2)
    draws(PLOT + "fig, ax = plt.subplots()\nfig", 1)
    draws(PLOT + "fig, ax = plt.subplots()\ndisplay(fig)", 1)
    draws(PLOT + "fig, ax = plt.subplots()\nfig.show()", 1)
    draws("from matplotlib.figure import Figure\nFigure()", 1)
    draws("import matplotlib\nmatplotlib.use('Agg')\n" + PLOT +
          "plt.plot([1])\nplt.show()", 1)
    draws("%matplotlib inline\n" + PLOT + "plt.plot([1])\nNone", 1)


@test
def figures_that_are_left_open():
    draws(PLOT + "plt.plot([1]);\nNone", 1)
    draws(PLOT + "plt.plot([1])\nplt.close()", 0)
    told = show(PLOT + "plt.plot([1])\nplt.savefig('saved.png')")
    assert list(told.files) == [b"saved.png"] and not sizes(told), told
    show("import os\nos.unlink('saved.png')")
    draws(PLOT + "plt.plot([1])\n1 / 0", 1, status=1, output=(
        b"Traceback (most recent call last):\n"
        b'  File "/code/main.py", line 3, in <module>\n'
        b"    1 / 0\n    ~~^~~\nZeroDivisionError: division by zero\n"))


@test
def forty_figures():
    told = show(PLOT + "plt.rcParams['figure.max_open_warning'] = 0\n"
                "for i in range(40):\n  plt.figure(figsize=(1, 1))\n"
                "  plt.text(0, 0, i)\nplt.show()")
    assert len(sizes(told)) == 10 and told.status == 0, told
    assert told.output == (b"30 more pictures are not shown: an answer has 10"
                           b" at most.\n"), told


@test
def a_hundred_megapixels():
    said = (b"Picture 1 has 10000 x 10000 pixels, more than 16 million: it is"
            b" not shown.\n")
    draws(PLOT + "plt.figure(figsize=(100, 100), dpi=100)\nplt.show()", 0, said)
    draws(PILLOW + "Image.new('L', (10000, 10000)).show()", 0, said)
    size, = draws(PLOT + "plt.figure(figsize=(50, 50), dpi=78)\n"
                  "plt.axes([0, 0, 1, 1]).plot([1])\nplt.show()", 1)
    assert 15000000 < size[0] * size[1] <= 16000000, size
    draws(PLOT + "plt.rcParams['savefig.dpi'] = 5000\nplt.plot([1])\nplt.show()",
          1)
    size, = draws(PLOT + "plt.plot([1])\nplt.text(50, 1, 'far away')\n"
                  "plt.show()", 1)
    assert size[0] < 1400, size


@test
def more_bytes_than_there_is_room_for():
    draws(PILLOW + "import os\nImage.frombytes('RGB', (2700, 2700),"
          " os.urandom(2700 * 2700 * 3)).show()", 0,
          b"Picture 1 is too large: it is not shown.\n")


@test
def images_of_all_modes():
    found = draws(PILLOW + "for mode in ('1', 'L', 'LA', 'P', 'PA', 'RGB',"
                  " 'RGBA', 'CMYK', 'I', 'F'):\n"
                  "  Image.new(mode, (7, 5)).show()", 10)
    assert set(found) == {(7, 5)}, found
    assert draws(PILLOW + "Image.new('RGB', (3, 4))", 1) == [(3, 4)]
    assert draws(PILLOW + "display(Image.new('RGB', (3, 4)))", 1) == [(3, 4)]


@test
def what_cannot_be_drawn():
    bad = PLOT + "plt.title('$\\\\nothing{$')\n"
    told = show(bad + "plt.show()\n")
    assert told.status == 1 and b"/run/" not in told.output, told
    assert b"line 3, in <module>" in told.output, told
    assert b"Traceback" in told.output and not told.files, told
    told = show(bad + "None")
    assert told.status == 0 and not told.files, told
    assert told.output.startswith(b"A figure cannot be drawn: "), told


@test
def nothing_is_written_to_the_workspace():
    told = show(PLOT + "import os\nplt.plot([1])\nplt.show()\n"
                "print(os.listdir('/workspace'), os.listdir('/tmp'))")
    assert told.output == b"['.site-packages'] ['matplotlib']\n", told
    assert show("import os\nos.listdir('/tmp')").output == b"[]\n"


@test
def the_images_list_of_fonts_is_used():
    made = show(PLOT + "import os, shutil\nfolder = '/tmp/matplotlib'\n"
                "for n in os.listdir(folder):\n"
                "  shutil.copy(os.path.join(folder, n), n)").files
    assert len(made) == 1, made
    with tempfile.TemporaryDirectory() as fonts:
        for name, data in made.items():
            with open(os.path.join(fonts, os.fsdecode(name)), "wb") as file:
                file.write(data)
        os.chmod(fonts, 0o755)
        with Cell(options=MOUNT + [
                "-v", fonts + ":/usr/share/inline/matplotlib:ro"]) as other:
            told = show(PLOT + "import os\nplt.plot([1])\nplt.show()\n"
                        "f = '/tmp/matplotlib/'\n"
                        "[os.readlink(f + n) for n in os.listdir(f)]", other)
            assert told.output == (
                b"['/usr/share/inline/matplotlib/%s']\n" % list(made)[0]), told
            assert len(sizes(told)) == 1, told


@test
def a_table_fits():
    for text in "frame", "print(frame)", "display(frame)":
        told = show("import pandas\nframe = pandas.DataFrame({'column %d' % i:"
                    " range(100) for i in range(40)})\n" + text)
        lines = told.output.decode().splitlines()
        assert max(map(len, lines)) <= 80 and len(lines) == 14, told
        assert lines[0].split()[:2] == ["column", "0"], told
        assert lines[-1] == "[100 rows x 40 columns]", told
    told = show("import pandas\npandas.set_option('display.max_columns', 40,"
                " 'display.width', 1000)\n"
                "pandas.DataFrame({i: [i] for i in range(40)})")
    assert b"39" in told.output, told


@test
def a_plot_of_a_table():
    told = show("import pandas\npandas.DataFrame({'a': [1, 2]}).plot()")
    assert told.status == 0 and len(sizes(told)) == 1, told


@test
def nothing_of_theirs_is_imported_for_others():
    told = show("import sys\n[n for n in ('matplotlib', 'PIL', 'pandas', 'numpy',"
                " 'asyncio', 'timeit', 'weakref') if n in sys.modules]")
    assert told.output == b"[]\n", told


place = tempfile.mkdtemp(prefix="inline-libraries-")
try:
    os.chmod(place, 0o755)
    why = install(place)
    if why:
        print("1..0 # SKIP no packages: " + why)
        sys.exit(0)
    MOUNT = ["-v", place + ":/workspace/.site-packages:ro"]
    with Cell(options=MOUNT) as cell:
        run()
finally:
    shutil.rmtree(place)
