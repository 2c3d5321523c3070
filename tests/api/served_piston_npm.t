#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""npm's client of Piston's contract, as it is published.  It does not say that
it sends JSON: so it lists the languages and is refused a run, as by the
original.  Where no registry answers, the test is skipped."""

import json
import os
import subprocess
import sys
import tempfile

from served import Served
from tap import run, test

CLIENT = "piston-client@1.0.2"
PROGRAM = """
import piston from "piston-client";
const client = piston({ server: process.argv[2] });
const runtimes = await client.runtimes();
const end = await client.execute("python", "print(6 * 7)");
console.log(JSON.stringify([runtimes.map((r) => r.language), end]));
"""

folder = tempfile.TemporaryDirectory(prefix="inline-npm-")


def install():
    """Is it there?"""
    try:
        return subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts",
             "--fetch-retries=0", CLIENT], cwd=folder.name,
            capture_output=True, timeout=120).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


if not install():
    print("1..0 # SKIP npm is not there, or its registry does not answer")
    sys.exit(0)
served = Served(IL_API_CELLS="1").__enter__()


@test
def it_lists_the_languages_and_is_told_what_it_does_wrong():
    path = os.path.join(folder.name, "client.mjs")
    with open(path, "w", encoding="ascii") as file:
        file.write(PROGRAM)
    done = subprocess.run(["node", path, "http://127.0.0.1:%d" % served.port],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done
    languages, end = json.loads(done.stdout)
    assert languages == ["python", "bash"], languages
    assert end == {"message": "requests must be of type application/json"}, end


try:
    run()
finally:
    served.close()
    folder.cleanup()
