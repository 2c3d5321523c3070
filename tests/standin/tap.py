# SPDX-License-Identifier: MIT
"""Test functions that print TAP.

    @test
    def two_and_two_are_four(): assert 2 + 2 == 4

    run()
"""

import sys
import traceback

_tests = []


class Skip(Exception):
    """Raised by a test that cannot be run here; it says why."""


def test(function):
    """Register a test; its name, read as words, is its description."""
    _tests.append(function)
    return function


def run():
    """Run all tests in order; exits with 1 when one has failed."""
    print(f"1..{len(_tests)}", flush=True)
    failed = 0
    for number, function in enumerate(_tests, 1):
        name = function.__name__.replace("_", " ")
        try:
            function()
            print(f"ok {number} - {name}", flush=True)
        except Skip as reason:
            print(f"ok {number} # SKIP {reason}", flush=True)
        except Exception:
            failed += 1
            print(f"not ok {number} - {name}", flush=True)
            for line in traceback.format_exc().splitlines():
                print(f"# {line}", flush=True)
    sys.exit(1 if failed else 0)
