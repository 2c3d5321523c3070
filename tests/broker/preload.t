#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""IL_PRELOAD: which cells have imported what, and who gets them."""
import json

from brokerlib import *
from fake import Fake

# Of what "auto" stands for, the first four.
NUMPY, PANDAS, MATPLOTLIB, PIL = 1, 2, 4, 8
APART = 1 << 32
# An image with two of them that import at once and one that ends its cell.
PACKAGES = """
import os, sys
top = sys.path[-1]
for name, text in (("numpy", ""), ("pandas", ""),
                   ("PIL", "import os; os._exit(1)")):
    os.mkdir(top + "/" + name)
    for part in "__init__.py", "Image.py":
        with open("%s/%s/%s" % (top, name, part), "w") as file:
            file.write(text)
"""
LIST = """
import sys
print(*(name for name in ("numpy", "pandas") if name in sys.modules))
"""


def named():
    code = "import sys; print('colorsys' in sys.modules)"

    def take(imports):
        asked = b.lease_api(imports=imports)
        return asked, asked.run_api(code)[1], asked.fields["COLD"]

    with Broker(IL_API_CELLS="3", IL_TUNE_API_WARM="1", IL_PRELOAD="colorsys") as b:
        b.wait_status(CELLS=2, STARTING=0)
        one, *told = take(0)
        is_(told, [b"False\n", 0], "who needs no module has a cell without")
        b.wait_status(CELLS=3, STARTING=0)
        two, *told = take(1)
        is_(told, [b"True\n", 0], "who does has one that has it")
        three, *told = take(1)
        is_(told, [b"False\n", 0], "or what there is")
        two.close()
        b.wait_status(LEASED=2)
        four, *told = take(0)
        is_(told, [b"True\n", 0], "and so has everybody")
        for asked in one, three, four:
            asked.close()
    fake = Fake(run="slow 2")
    with Broker(IL_API_CELLS="3", IL_TUNE_API_WARM="1", IL_PRELOAD="colorsys",
                **fake.settings) as b:
        b.wait_status(STARTING=2)
        asked = [b.ask_api(), b.ask_api()]
        b.wait_status(STARTING=3)
        ok(True, "who comes waits for none that has much to import first")
        is_([one.answer()[0] for one in asked], ["GRANTED"] * 2,
            "but takes what is there")
    fake.close()
    with Broker(IL_API_CELLS="1", IL_TUNE_API_WARM="1", IL_PRELOAD="colorsys") as b:
        b.wait_status(CELLS=1, STARTING=0)
        is_(take(0)[1:], (b"True\n", 0), "of one cell it is that one")
    with Broker(IL_TUNE_API_WARM="0", IL_PRELOAD="colorsys") as b:
        is_([take(n)[1] for n in (1, 0)], [b"True\n", b"False\n"],
            "where none is kept ready each has what it needs")


class Packages:
    """The image of these tests, and in it some packages."""

    def __enter__(self):
        self.name = "inline-test:3.11-packages-%d" % os.getpid()
        name = "packages-%d" % os.getpid()
        self.docker("run", "--name", name, "--network", "none",
                    "--entrypoint", "python3", IMAGE, "-I", "-c", PACKAGES)
        try:
            self.docker("commit", name, self.name)
        finally:
            self.docker("rm", "-f", name)
        return self

    def __exit__(self, *_):
        self.docker("rmi", "-f", self.name)

    @staticmethod
    def docker(*words):
        subprocess.run([DOCKER, *words], check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def listed(b, mask):
    """What is imported in the cell that such a program gets."""
    lease = b.lease_api(imports=mask)
    told = lease.run_api(LIST)[1].decode().split()
    lease.close()
    return told


def wait_listed(b, mask, wanted):
    end = time.monotonic() + PATIENCE
    while (told := listed(b, mask)) != wanted:
        if time.monotonic() > end:
            return told
        time.sleep(0.05)
    return told


def imports(b):
    """What the cells that are there were to import, those that were to."""
    told = []
    for one in b.containers():
        done = subprocess.run([DOCKER, "inspect", "--format",
                               "{{json .Config.Env}}", one],
                              stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False)
        for entry in json.loads(done.stdout.strip() or "[]"):
            if entry.startswith("IL_CELL_PRELOAD="):
                told.append(entry.partition("=")[2])
    return told


def wait_imports(b, wanted):
    end = time.monotonic() + PATIENCE
    while (told := set(imports(b))) != wanted and time.monotonic() < end:
        time.sleep(0.05)
    return told


def chosen(image):
    with Broker(IL_API_CELLS="4", IL_TUNE_API_WARM="1", IL_TUNE_WARM_SECONDS="600",
                SANDBOX_IMAGE=image) as b:
        b.wait_status(CELLS=1, STARTING=0)
        is_(listed(b, NUMPY), [], "who comes first imports for himself")
        b.wait_status(STARTING=0, LEASED=0)
        is_(imports(b), [], "and no cell is made for one")
        is_(wait_listed(b, NUMPY, ["numpy"]), ["numpy"], "but for two")
        is_(listed(b, 0), [], "others have one without")
        is_(wait_listed(b, NUMPY | PANDAS, ["numpy", "pandas"]),
            ["numpy", "pandas"], "what comes to be used is there, too")
        is_(wait_imports(b, {"numpy,pandas"}), {"numpy,pandas"},
            "in place of the one before")
        for _ in range(2):
            listed(b, MATPLOTLIB)
        tried = "numpy,pandas,matplotlib.pyplot"
        is_(wait_imports(b, {tried, "numpy,pandas"}), {tried, "numpy,pandas"},
            "what the image has not is tried")
        b.wait_status(STARTING=0)
        before = imports(b).count(tried)
        for _ in range(3):
            listed(b, MATPLOTLIB)
        b.wait_status(STARTING=0, LEASED=0)
        is_([listed(b, PANDAS), imports(b).count(tried)],
            [["numpy", "pandas"], before], "but not again and again")
        leases = [b.lease_api(imports=APART) for _ in range(4)]
        is_([lease.run_api(LIST)[1] for lease in leases], [b"\n"] * 4,
            "who brings modules of his own never meets them")


def fatal(image):
    with Broker(IL_API_CELLS="4", IL_TUNE_API_WARM="1", SANDBOX_IMAGE=image) as b:
        b.wait_status(CELLS=1, STARTING=0)
        for _ in range(2):
            listed(b, PIL)
        b.wait_log("the cell died at its start")
        leases = [b.lease_api() for _ in range(3)]
        is_([lease.run_api("print(1)")[1] for lease in leases], [b"1\n"] * 3,
            "an import that ends the cell keeps nobody from a start")
        ok("in a row have failed" not in b.logged(), "and is told of nobody")


def rested(image):
    with Broker(IL_API_CELLS="4", IL_TUNE_API_WARM="1", IL_TUNE_WARM_SECONDS="2",
                SANDBOX_IMAGE=image) as b:
        b.wait_status(CELLS=1, STARTING=0)
        for _ in range(2):
            listed(b, NUMPY)
        is_(wait_imports(b, {"numpy"}), {"numpy"}, "it is there")
        is_(wait_imports(b, set()), set(), "and goes when nobody needs it any more")
        b.wait_status(CELLS=1, STARTING=0)
        is_(listed(b, 0), [], "and another one stays")


def only(image):
    with Broker(IL_API_CELLS="1", IL_TUNE_API_WARM="1", SANDBOX_IMAGE=image) as b:
        b.wait_status(CELLS=1, STARTING=0)
        is_([listed(b, NUMPY) for _ in range(3)], [[]] * 3,
            "where there is one cell it is for all")


def auto():
    with Packages() as packages:
        chosen(packages.name)
        fatal(packages.name)
        rested(packages.name)
        only(packages.name)


main(named, auto)
