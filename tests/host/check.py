#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""`make check-host`: Inline on real hosts, which are virtual machines with
Debian 12 and Debian 13.  README.md says how it is used.

For each suite: a Debian is made (once), Inline is installed on it by the steps
of the documentation (once for each commit), and then each tests/host/*.t runs
on a disk that is as after those steps.  All of it is TAP on standard output,
kept in build/host/SUITE.log.
"""

import glob
import json
import os
import re
import subprocess
import sys
import time
import traceback

from house import ENV, SUITES, House, cache, output, overlay
from install import follow, prepare
from machine import HERE, HOST, end_on_signals
from steps import production
from table import fill

# In this order; what takes longest comes last.
FIRST = ("serve", "units", "limits", "apparmor", "operator", "update", "stop",
         "package", "power")
ALONE = ("package", "power")


class Report:
    """What has been seen: TAP on standard output and in a file."""

    def __init__(self, suite):
        self.path = os.path.join(cache(), suite + ".log")
        self.file = open(self.path, "w", encoding="utf-8")
        self.results = []       # (group, passed, what)

    def line(self, text):
        """Print a line, and take it in."""
        print(text, flush=True)
        self.file.write(text + "\n")
        self.file.flush()

    def take(self, group, line):
        """A line of a test's TAP."""
        found = re.match(r"(not )?ok \d+ - (.*)", line)
        if found:
            self.results.append((group, found[1] is None, found[2]))
        self.line(line)

    def result(self, group, passed, what, comment=""):
        """A result that is no test's."""
        number = len(self.results) + 1
        self.take(group, f"{'ok' if passed else 'not ok'} {number} - {what}")
        if comment and not passed:
            for line in comment.rstrip().split("\n")[-40:]:
                self.line("# " + line)

    def failed(self):
        """What has not passed."""
        return [(group, what) for group, passed, what in self.results
                if not passed]


def install(house, report):
    """Follow the documentation on a fresh Debian; keep the disk if it holds.
    Returns whether it does.
    """
    disk = house.disk + ".new"
    payload = house.payload()
    overlay(disk, os.path.join(house.base, "base.img"), "raw")
    seen = []
    with house.machine(disk, house.installed, payload) as machine:
        begun = time.monotonic()
        machine.boot("unsafe")
        report.line(f"# booted in {time.monotonic() - begun:.0f} s")
        with house.standin(house.endpoint(machine),
                           **house.name_of(machine)) as discord:
            prepare(house, machine, discord)
            for what, passed, text, seconds in follow(house, machine):
                # The output of what passed is of interest at the end alone.
                shown = text if not passed else ""
                seen.append([passed, f"{what} ({seconds:.0f} s)", shown])
                report.result("steps", *seen[-1])
        held = len(seen) == len(production(house.commit)) and all(
            passed or " doctor" in what for passed, what, _ in seen)
        versions = machine.sh(VERSIONS) if held else ""
        machine.shut_down()
    os.unlink(payload)
    if not held:
        return False
    house.remember("steps", seen)
    house.remember("versions", versions)
    os.rename(disk, house.disk)
    return True


VERSIONS = """
. /etc/os-release
kernel=$(uname -r)
docker=$(docker version --format '{{.Server.Version}}')
systemd=$(systemctl --version | sed -n '1s/systemd \\([0-9]*\\).*/\\1/p')
apparmor=$(dpkg-query -W -f '${Version}' apparmor)
nginx=$(nginx -v 2>&1 | sed 's|.*/||')
echo "$PRETTY_NAME $(cat /etc/debian_version), Linux $kernel,\
 systemd $systemd, Docker $docker, AppArmor $apparmor, nginx $nginx"
"""


def run_test(house, report, group, running):
    """Run one tests/host/GROUP.t on the suite's machine."""
    command = [os.path.join(HERE, group + ".t")]
    environment = dict(os.environ, HOST_SUITE=house.suite,
                       HOST_COMMIT=house.commit, HOST_MACHINE=running)
    report.line(f"# {house.suite}: {group}")
    plan = done = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                          stdin=subprocess.DEVNULL, env=environment,
                          errors="replace") as process:
        for line in process.stdout:
            line = line.rstrip("\n")
            report.take(group, line)
            if re.match(r"1\.\.\d+$", line):
                plan = int(line[3:])
            done += re.match(r"(not )?ok \d+", line) is not None
    if plan == 0 or done != plan:
        report.result(group, False,
                      f"{group}: {done} of {plan} tests came to an end")


def run_tests(house, report, wanted):
    """All tests on one machine, but for those that need their own."""
    shared = [one for one in wanted if one not in ALONE]
    if shared:
        with house.fresh() as machine, house.standin() as discord:
            machine.boot()
            discord.settings(endpoint=house.endpoint(machine))
            base = f"http://{HOST}:{discord.port}/api/v10"
            machine.sh(f"sed -i 's|^IL_TUNE_DISCORD_API_BASE=.*|IL_TUNE_DISCORD_API_BASE="
                       f"{base}|' {ENV} && systemctl restart inline.target")
            running = json.dumps({"folder": machine.folder,
                                  "ports": machine.ports,
                                  "discord": discord.port})
            for group in shared:
                run_test(house, report, group, running)
    for group in wanted:
        if group in ALONE:
            run_test(house, report, group, "")


def groups(wanted):
    """The names of the tests to run, in their order."""
    there = {os.path.basename(path)[:-2]
             for path in glob.glob(os.path.join(HERE, "*.t"))}
    order = [one for one in FIRST if one in there]
    order += sorted(there - set(order))
    return [one for one in order if not wanted or one in wanted]


def check(suite, wanted):
    """Everything on one suite; returns its report."""
    report = Report(suite)
    house = House(suite, os.environ.get("COMMIT") or "HEAD")
    quick = ", packages and programs made ahead" * bool(
        os.environ.get("QUICK"))
    report.line(f"# {suite}, commit {house.commit[:7]}{quick}")
    if house.is_installed:
        for passed, what, shown in house.recall("steps"):
            report.result("steps", passed, what + ", done before", shown)
    elif not install(house, report):
        return house, report
    report.line("# " + house.recall("versions"))
    run_tests(house, report, groups(wanted))
    return house, report


def main():
    """Check the suites that are asked for; 0 when all passed."""
    end_on_signals()
    suites = [os.environ["SUITE"]] if os.environ.get("SUITE") else SUITES
    wanted = [one for one in os.environ.get("ROWS", "").split(",") if one]
    if output("git", "status", "--porcelain"):
        print("# what is not committed is not tested", flush=True)
    reports = []
    for suite in suites:
        if suite not in SUITES:
            print(f"SUITE={suite}: one of {', '.join(SUITES)}")
            return 64
        try:
            reports.append(check(suite, wanted))
        except Exception:
            traceback.print_exc(file=sys.stdout)
            print(f"not ok - {suite} came to an end", flush=True)
            return 1
    bad = [(house.suite, *one) for house, report in reports
           for one in report.failed()]
    for house, report in reports:
        print(f"# {house.suite}: {len(report.results)} results, "
              f"{len(report.failed())} failed; {report.path}")
    for one in bad:
        print("# failed: " + ", ".join(one))
    if os.environ.get("FILL"):
        fill()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
