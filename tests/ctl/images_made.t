#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What is in our own images, those that are here: `make image` makes them."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "standin"))
from tap import Skip, run, test  # noqa: E402

DOCKER = os.environ.get("DOCKER_BINARY", "docker")
LIBRARIES = """numpy pandas scipy.stats matplotlib.pyplot seaborn
    matplotlib_venn sympy networkx sklearn.ensemble skimage.io xgboost cv2
    openpyxl PIL.Image pypdf pdfplumber fpdf docx pptx pydantic requests bs4
    lxml.etree""".split()
TOOLS = ("printf 'ab1\\nab\\n' | grep -oP 'b(?=\\d)'; cd /tmp; echo 12 >f; "
         "find . -type f -printf '%P %s\\n'; sed --version | head -n 1; "
         "awk --version | cut -c 1-3 | head -n 1; tar --version | head -n 1; "
         "[[ a == a ]] && echo bash")


def is_here(name):
    """Is that image of ours there?  If not, the test says so."""
    here = subprocess.run([DOCKER, "image", "inspect", "inline-python:" + name],
                          capture_output=True).returncode == 0
    if not here:
        print(f"# skipped: no image here ('make image NAME={name}' makes it)")
    return here


def prints(name, *command):
    done = subprocess.run(
        [DOCKER, "run", "--rm", "--network", "none", "--env", "HOME=/tmp",
         "inline-python:" + name, *command], capture_output=True, text=True,
        timeout=600)
    assert done.returncode == 0, (name, done)
    return done.stdout


@test
def each_has_bash_and_gnus_tools():
    for name in "3.11", "3.13", "3.14":
        if is_here(name):
            told = prints(name, "bash", "-c", TOOLS).split("\n")
            assert told[:2] == ["b", "f 3"], (name, told)
            assert "GNU" in told[2] and told[3] == "GNU", (name, told)
            assert "GNU" in told[4] and told[5] == "bash", (name, told)


@test
def each_has_the_python_of_its_name_and_pip():
    for name in "3.11", "3.13", "3.14":
        if is_here(name):
            assert prints(name, "python3", "-V").startswith(
                f"Python {name}."), name
            assert f"python {name})" in prints(name, "pip", "--version"), name


@test
def the_scientific_ones_import_what_models_expect():
    for name in "3.11-scientific", "3.13-scientific":
        if is_here(name):
            assert prints(name, "python3", "-W", "ignore", "-c",
                          "import " + ", ".join(LIBRARIES)) == ""


# Ideographs of both scripts, kana, hangul; a warning is an error.
TITLES = """
import warnings
import matplotlib.pyplot as plt
warnings.simplefilter("error", UserWarning)
for title in "\u65e5\u672c\u8a9e \u3072\u3089\u30ab\u30ca", \\
        "\u4e2d\u6587\u6807\u9898 \u7e41\u9ad4", "\ud55c\uad6d\uc5b4":
    for ending in "png", "svg", "pdf":
        plt.figure()
        plt.title(title)
        plt.savefig("/tmp/figure." + ending)
print("drawn")
"""


@test
def the_scientific_ones_draw_chinese_japanese_and_korean():
    here = [name for name in ("3.11-scientific", "3.13-scientific")
            if is_here(name)]
    if not here:
        raise Skip("no scientific image")
    for name in here:
        assert prints(name, "python3", "-c", TITLES) == "drawn\n", name


run()
