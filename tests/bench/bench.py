#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""make bench: every row of the table of targets, with what is measured beside
it in the same run.  README.md tells how; ROWS=a,b takes some of them.

The status is 0 whatever the figures are, 1 when anything went wrong.  With
FILL=1 and no error the table goes into README.md.
"""

import os
import platform
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import place as p  # noqa: E402
import rows_beside  # noqa: E402
import rows_cancel  # noqa: E402
import rows_contracts  # noqa: E402
import rows_cpu  # noqa: E402
import rows_discord  # noqa: E402
import rows_eval  # noqa: E402
import rows_names  # noqa: E402
import rows_people  # noqa: E402
import rows_picture  # noqa: E402
import rows_scale  # noqa: E402
import rows_size  # noqa: E402
import rows_sizes  # noqa: E402
import rows_store  # noqa: E402
import rows_work  # noqa: E402
from table import Table  # noqa: E402

ROWS = {
    "eval": rows_eval.eval_one,
    "sustained": rows_eval.eval_sustained,
    "contracts": rows_contracts.contracts,
    "cpu": rows_cpu.cpu,
    "bytes": rows_sizes.many_bytes,
    "py": rows_discord.command_warm,
    "cold": rows_discord.command_cold,
    "session": rows_discord.command_session,
    "picture": rows_picture.picture,
    "cancel": rows_cancel.cancel,
    "autocomplete": rows_names.autocomplete,
    "ping": rows_discord.ping,
    "burst": rows_discord.acknowledge,
    "loops": rows_beside.loops,
    "ended": rows_beside.ended,
    "people": rows_people.people,
    "rest": rows_scale.after_rest,
    "memory": rows_size.sizes,
    "start": rows_scale.start_up,
    "store": rows_store.store_rows,
    "work": rows_work.work,
}


def first_line(path, pattern):
    with open(path) as file:
        found = re.search(pattern, file.read(), re.MULTILINE)
    return found[1].strip() if found else "?"


def commit():
    done = subprocess.run(["git", "-C", p.ROOT, "describe", "--always",
                           "--dirty"], capture_output=True, text=True)
    return done.stdout.strip() or "no commit"


def machine():
    """What the figures depend on, in lines."""
    load = " ".join("%.2f" % value for value in os.getloadavg())
    engine = p.docker("version", "--format", "{{.Server.Version}}").strip()
    inside = p.docker("run", "--rm", "--network", "none", p.IMAGE, "python3",
                      "-c", "import sys; print(sys.version.split()[0])")
    return [
        "%s, commit %s" % (time.strftime("%Y-%m-%d %H:%M"), commit()),
        "%s, %d cores, Linux %s" % (
            first_line("/proc/cpuinfo", r"^model name\s*: (.*)"),
            len(os.sched_getaffinity(0)), platform.release()),
        "Docker %s, image %s with Python %s; load average before: %s" % (
            engine, p.IMAGE, inside.strip(), load),
    ]


def chosen(words):
    names = words or [name for name in
                      os.environ.get("ROWS", "").split(",") if name]
    unknown = [name for name in names if name not in ROWS]
    if unknown:
        sys.exit("there are no rows %s; there are: %s" % (
            " ".join(unknown), " ".join(ROWS)))
    if names and os.environ.get("FILL"):
        sys.exit("FILL=1 takes all rows")
    return names or list(ROWS)


BEGIN, END = "<!-- make bench FILL=1 begins -->\n", "<!-- it ends -->\n"


def fill(text):
    """Put text between the marks of README.md."""
    path = os.path.join(p.ROOT, "tests/bench/README.md")
    with open(path, encoding="utf-8") as file:
        before, begin, rest = file.read().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise p.Failed("%s has lost its marks" % path)
    with open(path, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + text + END + after)


def beside(place):
    if place.root is None:
        return "bare interpreter: the host's own /usr/bin/python3"
    return "bare interpreter: the image's own %s, in a chroot" % place.python()


def measure(names):
    """Print all rows; returns False when one could not be measured."""
    table, good, started = Table(), True, time.monotonic()
    with p.Place() as place:
        about = [*machine(), beside(place)]
        print("\n".join(about) + "\n", flush=True)
        table.start()
        for name in names:
            try:
                ROWS[name](place, table)
            except (p.Failed, AssertionError, OSError,
                    subprocess.SubprocessError) as error:
                good = False
                table.add(name, "FAILED")
                table.note("%s: %s" % (type(error).__name__, error))
        took = time.monotonic() - started
        print("\nall of it: %.0f s, in which the load generator had %.1f %% of"
              " a core" % (took, 100 * place.generator_cpu /
                           max(place.generator_wall, 0.001)))
    if good and os.environ.get("FILL"):
        head = "".join("- " + line + "\n" for line in about) + "\n"
        fill(head + table.markdown())
    return good


def main():
    signal.signal(signal.SIGTERM, p.interrupt)
    signal.signal(signal.SIGINT, p.interrupt)
    try:
        sys.exit(0 if measure(chosen(sys.argv[1:])) else 1)
    except KeyboardInterrupt:
        sys.exit("interrupted")


if __name__ == "__main__":
    main()
