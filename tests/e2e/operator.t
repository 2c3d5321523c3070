#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The operator's tools on the running system: the queries of sql/admin typed at
the sqlite3 shell, and ilctl beside it."""

import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from service import ROOT, Service, wait_for  # noqa: E402
from tap import run, test  # noqa: E402

service = Service(IL_TUNE_SPARE_CELLS="1")


def query(name, **values):
    """Run one of sql/admin at the shell; returns what it shows."""
    command = ["sqlite3"]
    for key, value in values.items():
        command += ["-cmd", f".param set :{key} {value}"]
    with open(os.path.join(ROOT, "sql", "admin", name + ".sql")) as text:
        done = subprocess.run(command + [service.database], stdin=text,
                              capture_output=True, text=True, timeout=30)
    assert not done.stderr, done.stderr
    return done.stdout


def user_id(name):
    """Return Discord's number for a person."""
    sent = service.discord.send_command("health", user=name)
    return int(sent.wait_final().view["user"])


@test
def pinned_is_kept_and_expired_now_is_swept():
    service.create("bob")
    alice, bob = user_id("alice"), user_id("bob")
    code, out, errors = service.ilctl("usage")
    assert code == 0 and str(alice) in out, (out, errors)
    query("pin", user=alice)
    service.sql("UPDATE sandboxes SET expires_at = unixepoch() - 5 "
                "WHERE user_id = ?", alice)
    query("expire-now", user=bob)
    folder = service.settings["IL_BASE_DIR"]
    wait_for(lambda: len([name for name in os.listdir(folder)
                          if not name.startswith(".")]) == 1)
    assert "expired" in service.run("1", user="bob")
    assert "kept" in service.run("print('ke' + 'pt')")


@test
def a_longer_life_is_given():
    alice = user_id("alice")
    query("pin", user=alice, pinned=0)
    before = service.sql("SELECT expires_at FROM sandboxes WHERE user_id = ?",
                         alice)[0][0]
    query("extend", user=alice, days=30)
    after = service.sql("SELECT expires_at FROM sandboxes WHERE user_id = ?",
                        alice)[0][0]
    assert after - before >= 30 * 86400, (before, after)
    assert str(alice) in query("expiring", days=100)


@test
def queries_and_commands_do_not_stop_each_other():
    failures = []

    def ask():
        for _ in range(10):
            try:
                for name in ("abuse", "expiring", "expired"):
                    query(name)
                query("extend", user=1)
            except AssertionError as error:
                failures.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    while asking.is_alive():
        assert "done" in service.run("print('do' + 'ne')")
    asking.join()
    assert not failures, failures
    code, out, errors = service.ilctl("slow")
    assert code == 0 and "exit 0" in out, (out, errors)


@test
def ilctl_shows_what_is_there():
    code, out, errors = service.ilctl("sandboxes")
    assert code == 0 and str(user_id("alice")) in out, (out, errors)
    code, out, errors = service.ilctl("jobs")
    assert code == 0 and "exit 0" in out, (out, errors)
    code, out, errors = service.ilctl("migrate")
    assert code == 0, (out, errors)


@test
def the_self_test_signs_as_discord_does():
    key = os.path.join(service.settings["IL_STATE_DIR"], "standin.key")
    assert os.path.exists(key), os.listdir(service.settings["IL_STATE_DIR"])
    code, out, errors = service.ilctl(
        "selftest", f"http://127.0.0.1:{service.port}/interactions")
    assert code == 0, (code, out, errors)


@test
def doctor_finds_nothing_wrong_with_what_runs():
    code, out, errors = service.ilctl("doctor")
    assert code == 0 and "Nothing is wrong." in out, (code, out, errors)
    assert "engine: answers" in out and "il-sandboxd: " in out, out


@test
def nor_does_it_take_anything_from_the_nginx_that_runs():
    folder = os.path.join(service.settings["IL_STATE_DIR"], "nginx")
    for name in "body", "fastcgi", "proxy":
        assert os.stat(os.path.join(folder, name)).st_uid == \
            os.stat(folder).st_uid, name


@test
def doctor_looks_for_the_image_that_is_in_use():
    code, out, errors = service.ilctl("doctor", SANDBOX_IMAGE="no/such:image")
    assert code == 0 and "no/such" not in out, (code, out, errors)


@test
def nothing_broke_discords_rules():
    service.assert_kept_discords_rules(ignore=("endpoint",))


with service:
    service.create()
    run()
