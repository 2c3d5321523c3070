#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A sandbox of one node runs on another: real cells on both, on the engine."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "broker")]
import snapshotlib  # noqa: E402
from snapshotlib import Snapshotter, run, test, wait_for  # noqa: E402
from brokerlib import Broker, sandbox_id  # noqa: E402

snapshotlib.MEMORY = None   # loop devices want a disk


class Node:
    """A broker and an il-snapshot with the same folders."""

    def __init__(self, store=None):
        self.snapshots = Snapshotter(store, start=False)
        self.broker = Broker(folder=self.snapshots.folder,
                             IL_WARM_SECONDS="1", IL_CELLS="2")
        self.snapshots.start()

    def run(self, n, source):
        with self.broker.lease(n) as lease:
            result, output = lease.run(source)
        assert result["REASON"] == 1, (result, output)
        return output


home = Node()
away = Node(home.snapshots.store)


def saved(count):
    wait_for(lambda: home.snapshots.told()["saved"] >= count, "a snapshot")
    home.snapshots.wait_saved()


@test
def what_a_cell_has_written_is_saved_when_it_has_ended():
    assert home.broker.create(1) == "GRANTED"
    home.run(1, "open('f', 'w').write('kept' * 10000)\n"
                "import os; os.mkdir('d'); os.symlink('/etc/passwd', 'd/l')")
    home.broker.wait_no_container()
    saved(1)
    wait_for(lambda: len(home.snapshots.blocks(1)) > 3)


@test
def a_command_that_comes_while_it_is_saved_is_not_refused():
    longest = 0
    for number in range(6):
        assert home.run(1, "import os\nopen('g', 'wb').write("
                           "os.urandom(9000000))") == b""
        home.broker.wait_no_container()
        wait_for(lambda: home.snapshots.children(), "its beginning")
        asked = home.broker.ask_lease(1)
        assert asked.answer()[0] == "GRANTED", asked.fields
        longest = max(longest, asked.ms)
        asked.close()
    print(f"# the longest of 6 starts while it was saved: {longest:.0f} ms")
    home.broker.wait_no_container()
    wait_for(lambda: not home.snapshots.told()["waiting"])


@test
def what_it_has_now_is_what_another_node_gets():
    # both before one is used: then there is a snapshot of that one instead
    assert away.snapshots.restore(1, 2) and away.snapshots.restore(1, 3)
    code = ("import hashlib; print(hashlib.sha256(open('g', 'rb').read())"
            ".hexdigest())")
    assert away.run(3, code) == home.run(1, code)


@test
def another_node_goes_on_with_it_as_a_user_of_its_own():
    for n in (5, 6):
        assert away.broker.create(n) == "GRANTED"
    source = ("import os\n"
              "s = os.stat('f')\n"
              "print(open('f').read() == 'kept' * 10000, s.st_uid == "
              "os.getuid() == os.stat('.').st_uid, os.readlink('d/l'))\n"
              "open('f', 'a').write('more'); open('d/g', 'w').close()\n")
    assert away.run(2, source) == b"True True /etc/passwd\n"
    assert "belongs to uid=" in away.broker.logged()
    there = away.run(5, "import os; print(os.getuid())")
    assert away.run(2, "import os; print(os.getuid())") != there
    assert away.run(2, "print(open('f').read()[-8:])") == b"keptmore\n"


@test
def removed_and_forgotten_nothing_of_it_is_left():
    home.broker.wait_no_container()
    assert home.broker.remove(1) == "GRANTED"
    assert home.snapshots.forget(1) is None
    assert sandbox_id(1) not in os.listdir(home.snapshots.store)
    assert away.snapshots.restore(1, 4) is None
    assert away.broker.refusal(4) == "NO_WORKSPACE"


@test
def a_restored_one_is_removed_as_any_other():
    away.broker.wait_no_container()
    for n in (2, 3):
        assert away.broker.remove(n) == "GRANTED"
    left = [n for n in away.broker.folders() if not n.startswith(".")]
    assert left == [sandbox_id(5), sandbox_id(6)], left


try:
    run()
finally:
    for node in (home, away):
        node.broker.close()
