#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""People move between nodes that have engines and disks of their own: a fourth
node gets its quarter and nobody else; a node that loses its power or its cable in
the middle loses nobody; an old disk that comes back takes nobody back."""

import glob
import os
import re
import shutil
import signal
import stat
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hosts import enter, wait_for  # noqa: E402

enter()
from load import DEADLINE, Load, Verdict, figure  # noqa: E402
from node import Nodes  # noqa: E402
from slots import SLOTS, settled_owner, slot_of  # noqa: E402
from tap import run, test  # noqa: E402

MOVES = "is just moving to another host"
DIFFER = "do not agree yet"
MIB = 10
MAKE = ("import hashlib, os\ndata = os.urandom(%d << 20)\n"
        "open('data', 'wb').write(data)\n"
        "print(hashlib.md5(data).hexdigest())" % MIB)
READ = ("import hashlib\n"
        "print(hashlib.md5(open('data', 'rb').read()).hexdigest())")
SLOW = "16mbit"     # MIB take some seconds
names = "n1", "n2", "n3", "n4"
sums = {}           # {user: the hash of what is in the sandbox}


def ask(user, text, front=None):
    """What a run has printed."""
    one = nodes.discord.send_command("py", user=user, code=text,
                                     order=front.front if front else None)
    return one.wait_final().messages[0].content


def somebody(home, moves):
    """A new person of a node with a sandbox, who the fourth node will have or
    will not.
    """
    while True:
        user = home.person()
        goes = settled_owner(slot_of(user), names) == "n4"
        if goes == moves:
            break
    sums[user] = re.search("[0-9a-f]{32}", ask(user, MAKE))[0]
    return user


def is_whole(user):
    """Their files are found, whoever is asked for them."""
    for front in nodes:
        said = ask(user, READ, front)
        assert sums[user] in said, (user, front.name, said)


def homes(user):
    """The nodes that have a sandbox of a person: in the database, on the disk.
    """
    rows = [(node.name, key) for node in nodes for key, in node.sql(
        "SELECT id FROM sandboxes WHERE state = 'active' AND "
        f"user_id = {user}")]
    return [name for name, _ in rows], [
        node.name for node in nodes for _, key in rows if os.path.isdir(
            os.path.join(node.host.folder, "lib/inline/sandboxes", key))]


def is_at(user, name):
    wait_for(lambda: homes(user) == ([name], [name]), 60,
             what=lambda: f"{user} at {name} alone: {homes(user)}")


def drafts(node):
    """Files without a name, of arrivals that are under way."""
    found = []
    folder = os.path.join(node.host.folder, "lib/inline/sandboxes")
    for path in glob.glob("/proc/[0-9]*/fd/*"):
        try:
            with open(path.rpartition("/fd/")[0] + "/comm") as comm:
                status = os.stat(path)
                if comm.read() == "il-node\n" and status.st_nlink == 0 and \
                        stat.S_ISREG(status.st_mode) and \
                        status.st_dev == os.stat(folder).st_dev:
                    found.append(path)
        except OSError:
            pass    # it has just ended
    return found


def start_move(user, source, target):
    return subprocess.Popen(
        source.host.words("/srv/inline/bin/ilctl", "nodes", "move",
                          str(slot_of(user)), "--to", target.name),
        env=source.host.environment(source.settings()),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True)


def move(user, source, target):
    """Until it ends well; all nodes get the new table.  What a sender without
    power has begun keeps its place until nginx gives it up, for a minute.
    """
    said = ["nothing"]

    def is_done():
        moving = start_move(user, source, target)
        said.append(moving.communicate(timeout=120)[0])
        return moving.returncode == 0

    wait_for(is_done, 90, pause=2, what=lambda: said[-1])
    share(source)


def table(node):
    """The text of a node's table."""
    with open(os.path.join(node.host.folder, "lib/inline/shared/table")) as of:
        return of.read()


def share(source):
    """The table of one node is everybody's."""
    for node in nodes:
        node.share("table", table(source))


@test
def a_fourth_node_gets_its_quarter_under_load():
    status, said = nodes[0].ilctl("nodes", "plan", "--add", "n4")
    assert status == 0, said
    plan = dict(re.findall(r"on (\S+):\s+ilctl nodes move (\S+) --to n4",
                           said))
    load.begin()
    for node in nodes.nodes[:3]:
        status, said = node.ilctl("nodes", "move", plan[node.name], "--to",
                                  "n4")
        assert status == 0, said
        figure(f"{node.name}: " + said.splitlines()[0])
        share(node)
    load.wait_acknowledged(len(load.people))
    slots = {slot for line in slot_lines() for slot in slots_of(line)}
    wanted = {slot for slot in range(SLOTS)
              if settled_owner(slot, names) == "n4"}
    figure(f"{len(slots)} of {SLOTS} slots have moved")
    assert slots == wanted and abs(len(slots) - SLOTS / 4) < SLOTS / 16
    for user in movers:
        is_at(user, "n4")


def slot_lines():
    return [line for line in table(nodes[0]).splitlines()
            if line.startswith("slots ")]


def slots_of(line):
    """The numbers in a line of a table."""
    for part in line.split()[1].split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


@test
def settled_it_needs_no_lines_and_nobody_moves():
    nodes.settled = list(names)
    for node in nodes:
        node.share("table", nodes.table())
    load.wait_acknowledged(2 * len(load.people))
    load.end()
    for user in movers:
        is_at(user, "n4")
        is_whole(user)
    for user, node in stayers.items():
        is_at(user, node.name)
        is_whole(user)


@test
def who_moved_was_told_so_and_who_stayed_noticed_nothing():
    verdict = Verdict(load, nodes)
    words = [one for mark, one in load.sent.items()
             if mark not in verdict.known]
    for one in words:
        assert one.view["user"] in map(str, movers), one
        assert MOVES in str(one.answer) or DIFFER in str(one.answer), one
    figure(f"{len(words)} of {len(load.sent)} were told that they move")
    verdict.assert_in_database()
    verdict.assert_told_once("results")


def broken_off(user, source, target, fault, mend):
    """A move in whose middle something is done; then it is done again."""
    nodes.hub.slow(target.name, SLOW)
    moving = start_move(user, source, target)
    wait_for(lambda: drafts(target) or moving.poll() is not None, 30,
             what="its beginning")
    fault()
    said = moving.communicate(timeout=120)[0]
    mend()
    nodes.hub.slow(target.name, None)
    assert moving.returncode != 0, said
    # whatever is known by now: nobody else is served meanwhile, nor an old copy
    said = ask(user, READ)
    assert sums[user] in said or MOVES in said, said
    move(user, source, target)
    is_at(user, target.name)
    is_whole(user)
    assert not drafts(target)


def power(node):
    node.boot()
    node.start()


@test
def a_receiver_that_loses_its_power_is_asked_again():
    broken_off(traveller, nodes[0], nodes[1], nodes[1].host.cut,
               lambda: power(nodes[1]))


@test
def a_receiver_that_is_cut_off_is_asked_again():
    broken_off(traveller, nodes[1], nodes[2],
               lambda: nodes.hub.link("n3", False),
               lambda: nodes.hub.link("n3", True))


@test
def a_sender_that_loses_its_power_goes_on():
    broken_off(traveller, nodes[2], nodes[0], nodes[2].host.cut,
               lambda: power(nodes[2]))


@test
def brokers_that_are_killed_do_not_matter():
    def kill():
        for node in nodes[0], nodes[1]:
            assert node.host.kill("il-sandboxd", signal.SIGKILL) > 0

    nodes.hub.slow("n2", SLOW)
    moving = start_move(traveller, nodes[0], nodes[1])
    wait_for(lambda: drafts(nodes[1]), 30, what="its beginning")
    kill()
    said = moving.communicate(timeout=120)[0]
    nodes.hub.slow("n2", None)
    if moving.returncode != 0:
        figure("with killed brokers: " + said.strip())
        move(traveller, nodes[0], nodes[1])
    share(nodes[0])
    is_at(traveller, "n2")
    is_whole(traveller)


@test
def an_old_disk_that_comes_back_takes_nobody_back():
    """n2's disk is from before the move, the table is not."""
    nodes[1].stop()
    folder = os.path.join(nodes[1].host.folder, "lib/inline")
    shutil.copytree(folder, folder + ".old")
    nodes[1].start()
    move(traveller, nodes[1], nodes[2])
    ask(traveller, "open('/workspace/newer', 'w').write('newer')")
    nodes[1].host.cut()
    shutil.copytree(folder + "/shared", folder + ".old/shared",
                    dirs_exist_ok=True)
    shutil.rmtree(folder)
    os.rename(folder + ".old", folder)
    power(nodes[1])
    assert "n2" in homes(traveller)[0], "the disk is not from before"
    for front in nodes:     # it may not have looked at its table yet
        wait_for(lambda: "newer" in ask(
            traveller, "print(open('/workspace/newer').read())", front), 10,
            pause=1, what=f"the newer files by {front.name}")
    is_whole(traveller)


@test
def nothing_ran_twice():
    for node in nodes:
        node.stop()
    marks = [mark for node in nodes for mark in node.marks()]
    Verdict(load, nodes).assert_ran_once(marks)
    nodes.discord.assert_no_violations()


with Nodes(4, joining=1, IL_WORKERS="2", IL_CELLS="4",
           IL_TUNE_WARM_CELLS="3") as nodes:
    stayers = {somebody(node, False): node for node in nodes.nodes[:3]}
    movers = [somebody(node, True) for node in nodes.nodes[:3]]
    traveller = somebody(nodes[0], False)
    nodes.discord.settings(deadline=DEADLINE)
    load = Load(nodes.discord, dict.fromkeys([*stayers, *movers]))
    run()
