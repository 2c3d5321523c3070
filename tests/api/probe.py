# SPDX-License-Identifier: MIT
"""The pure functions of fcgi/api, through the program probe_api; and TAP.

    ask("json", b"{}")              # b"OK {}"
    with differences("numbers") as same:
        same(b"input", got, want)   # any number of times: one test point
    done()
"""

import contextlib
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
_program = subprocess.Popen([os.path.join(BUILD, "tests", "probe_api")],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
_points = 0
_failed = 0


def ask(command, data):
    """What the probe makes of the data: bytes."""
    _program.stdin.write(b"%s %d\n" % (command.encode(), len(data)) + data)
    _program.stdin.flush()
    line = _program.stdout.readline()
    if not line:
        raise SystemExit("Bail out! the probe died of %r" % data[:200])
    return _program.stdout.read(int(line))


def point(good, name):
    """One test point."""
    global _points, _failed
    _points += 1
    _failed += 0 if good else 1
    print(f"{'' if good else 'not '}ok {_points} - {name}", flush=True)
    return good


def equal(got, want, name):
    """One test point: the two are the same."""
    if not point(got == want, name):
        print(f"# got  {got!r}\n# want {want!r}", flush=True)


@contextlib.contextmanager
def differences(name):
    """One test point over many comparisons; the first five that differ are
    shown."""
    found = []
    count = 0

    def same(given, got, want):
        nonlocal count
        count += 1
        if got != want:
            found.append((given, got, want))

    yield same
    point(not found and count > 0, f"{name} ({count} compared)")
    for given, got, want in found[:5]:
        print(f"# of   {given!r}\n# got  {got!r}\n# want {want!r}", flush=True)


def done():
    """Print the plan and exit."""
    _program.stdin.close()
    if not point(_program.wait() == 0, "the probe ended well"):
        pass
    print(f"1..{_points}")
    sys.exit(1 if _failed else 0)
