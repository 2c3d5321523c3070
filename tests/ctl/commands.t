#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The sub-commands of ilctl that end: exit codes, and what they print."""

import contextlib
import http.server
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from house import House, ROOT, free_port  # noqa: E402
from client import Standin  # noqa: E402
from fakeapp import FakeApp  # noqa: E402
from tap import run, test  # noqa: E402
from wire import N, pack, unpack  # noqa: E402

SUBSET = os.path.join(ROOT, "..", "shared", "discord", "openapi-subset.json")


class Broker:
    """Answers requests to remove a workspace; `refuse` are ids it refuses."""

    def __init__(self, state, refuse=()):
        self.removed = []
        self.refuse = refuse
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        folder = os.path.join(state, "broker", "ctl")
        os.makedirs(folder, exist_ok=True)
        self._listener.bind(os.path.join(folder, "lease.sock"))
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                client = self._listener.accept()[0]
            except OSError:
                return
            with client:
                kind, fields = unpack(client.recv(65536))
                assert kind == "REMOVE"
                client.send(self._answer(fields["SANDBOX"].decode()))

    def _answer(self, sandbox):
        if sandbox in self.refuse:
            return pack("REFUSED", ("CODE", N["REFUSAL_DISK"]),
                        ("TEXT", "the disk sleeps"))
        self.removed.append(sandbox)
        return pack("GRANTED")

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def database(house):
    """A connection to the house's migrated database."""
    assert house.ilctl("migrate")[0] == 0
    return sqlite3.connect(os.path.join(house.state, "inline.db"), timeout=10)


def add_sandbox(db, letter, user, expires, state="active", pinned=0):
    """Insert a sandbox whose id is one letter, 32 times."""
    db.execute("INSERT INTO sandboxes (id, user_id, state, created_at, used_at,"
               " expires_at, pinned, used_bytes) VALUES (?, ?, ?, 1, 1, ?, ?,"
               " 1536)", (letter * 32, user, state, expires, pinned))
    db.commit()


def add_job(db, number, user, received, finished, told, outcome="exit 0",
            state="delivered"):
    """Insert a job; times are milliseconds."""
    db.execute("INSERT INTO jobs (interaction_id, application_id, user_id,"
               " kind, state, answer, token, received_ms, attachment_limit,"
               " may_attach, outcome, finished_ms, told_ms) VALUES (?, 1, ?,"
               " 'py', ?, 'deferred', '', ?, 0, 1, ?, ?, ?)",
               (number + 1, user, state, received, outcome, finished, told))
    db.commit()


@test
def a_wrong_command_line_is_64():
    with House() as house:
        for line in ([], ["nonsense"], ["-x"], ["migrate", "x"],
                     ["jobs", "-n", "0"], ["jobs", "-z"], ["selftest"],
                     ["selftest", "ftp://x/"], ["register", "--guild", "x"],
                     ["expire", "x"], ["doctor", "x"], ["status", "x"]):
            code, out, errors = house.ilctl(*line)
            assert code == 64 and "usage" in errors and out == "", line
        for line in ["-h"], ["help"]:
            code, out, _ = house.ilctl(*line)
            assert code == 0 and "doctor" in out and "token" in out, out


@test
def a_wrong_setting_is_78_and_one_line():
    with House() as house:
        for command in "migrate", "sandboxes", "jobs", "expire", "status":
            code, _, errors = house.ilctl(command, IL_TUNE_PIDS="many")
            assert code == 78 and errors.count("\n") == 1, errors
            assert "IL_TUNE_PIDS" in errors, errors


@test
def migrate_makes_the_database_and_may_be_run_again():
    with House() as house:
        code, out, _ = house.ilctl("migrate")
        assert code == 0 and " migrations applied" in out, out
        code, out, _ = house.ilctl("migrate")
        assert code == 0 and "0 migrations" in out, out
        mode = os.stat(os.path.join(house.state, "inline.db")).st_mode
        assert mode & 0o777 == 0o660, oct(mode)


@test
def without_a_database_it_says_what_to_do():
    with House() as house:
        for command in "sandboxes", "jobs", "expire":
            code, _, errors = house.ilctl(command)
            assert code == 78 and "ilctl migrate" in errors, errors


@test
def sandboxes_and_jobs_are_listed():
    with House() as house:
        db = database(house)
        add_sandbox(db, "a", 123456789012345678, 1000000000)
        add_sandbox(db, "b", 2, 2000000000, pinned=1)
        out = house.ilctl("sandboxes")[1]
        assert "a" * 32 in out and "123456789012345678" in out, out
        assert "2001-09-09 01:46" in out and "1.5 KiB" in out, out
        assert "never" in out, out
        for i in range(3):
            add_job(db, i, i + 1, 1000, None, 1234, f"exit {i}",
                    "queued" if i == 1 else "delivered")
        out = house.ilctl("jobs")[1].splitlines()
        assert len(out) == 4 and "exit 2" in out[1], out
        assert "234 ms" in out[1], out
        out = house.ilctl("jobs", "-n", "1")[1].splitlines()
        assert len(out) == 2, out
        out = house.ilctl("jobs", "-u")[1].splitlines()
        assert len(out) == 2 and "queued" in out[1], out


@test
def a_statement_that_fails_is_an_error_with_its_text_and_no_json():
    for table in ("sandboxes", "jobs"):
        with House() as house:
            db = database(house)
            db.execute(f"ALTER TABLE {table} RENAME TO gone")
            db.commit()
            for line in ("user", "5", "show"), (table,):
                code, out, errors = house.ilctl(*line, "--json")
                assert code == 1 and out == "", (line, code, out, errors)
                assert f"no such table: {table}" in errors, (line, errors)


@test
def what_reads_speaks_json():
    with House() as house:
        db = database(house)
        user = 123456789012345678
        add_sandbox(db, "a", user, 1000000000)
        add_sandbox(db, "b", 2, 2000000000, pinned=1)
        now = int(time.time() * 1000)
        for i in range(20):
            add_job(db, i, user, now - 1000, now - 950, now - 900 + i)
        tokens = os.path.join(house.folder, "tokens")
        assert house.ilctl("token", "-f", tokens, "-c", "3", "add", "x")[0] == 0

        def tell(code, *line):
            got, out, errors = house.ilctl(*line)
            assert got == code and out.count("\n") == 1, (line, out, errors)
            return json.loads(out)

        one, two = tell(0, "sandboxes", "--json")
        assert (one["user"], one["bytes"], one["expires_at"]) == \
            (str(user), 1536, 1000000000), one
        assert two["expires_at"] == 0, two
        jobs = tell(0, "jobs", "--json", "-n", "3")
        assert len(jobs) == 3 and jobs[0]["took_ms"] == 119, jobs
        assert tell(0, "jobs", "-u", "--json") == []
        assert tell(0, "abuse", "-u", str(user), "--json")[0]["guild"] == "0"
        assert tell(0, "usage", "--json")[0]["commands"] == 20
        assert tell(0, "slow", "--json") == [
            {"kind": "py", "state": "delivered", "outcome": "exit 0",
             "jobs": 20, "ran_mean_ms": 50, "told_p50_ms": 109,
             "told_p95_ms": 118, "told_max_ms": 119}]
        # What another program said is made safe to show.
        db.execute("UPDATE jobs SET outcome = CAST(X'1b5b33316dff41' AS TEXT)")
        db.commit()
        said = tell(0, "jobs", "-n", "1", "--json")[0]["outcome"]
        assert "A" in said and "\x1b" not in said, said
        db.execute("UPDATE jobs SET outcome = 'exit 0'")
        db.commit()
        said = tell(0, "user", str(user), "--json")
        assert said["sandboxes"][0]["id"] == "a" * 32 and \
            said["jobs"][0]["jobs"] == 20, said
        assert house.ilctl("guild", "5", "block", "so", "it is")[0] == 0
        said = tell(0, "guild", "5", "show", "--json")
        assert said["blocked"] is True and said["reason"] == "so it is", said
        assert tell(0, "service", "--json")["sandboxes"] == []
        assert tell(0, "token", "-f", tokens, "list", "--json")[0]["cells"] == 3
        assert {"name": "IL_MEMORY", "default": "256m"}.items() <= \
            next(row for row in tell(0, "config", "--json")
                 if row["name"] == "IL_MEMORY").items()
        said = tell(1, "status", "--json")
        assert said["healthy"] is False and said["jobs"]["queued"] == 0 and \
            "nothing runs" in said["text"], said
        said = tell(1, "doctor", "--json")
        bad = [one for one in said["checks"] if one["result"] == "FAIL"]
        assert len(bad) == said["failed"] > 0 and any(
            "make run" in one["mend"] for one in bad), said
        for line in (["migrate"], ["guild", "5", "unblock"], ["expire"],
                     ["packages", "add", "x"],
                     ["token", "-f", tokens, "revoke", "x"]):
            assert house.ilctl(*line, "--json")[0] == 64, line


@test
def usage_and_slow_tell_of_the_time_that_is_named():
    with House() as house:
        db = database(house)
        now = int(time.time() * 1000)
        add_sandbox(db, "a", 7, 2000000000)
        add_sandbox(db, "b", 8, 2000000000)
        db.execute("UPDATE sandboxes SET used_bytes = 9000 WHERE user_id = 8")
        for i, hours in enumerate((0, 2, 48, 9 * 24)):
            ms = now - hours * 3600000
            add_job(db, i, 7, ms, ms + 50, ms + 100 + i)
        add_job(db, 9, 8, now, None, None, state="queued", outcome="")
        # Two users without a sandbox, of whom one was here long ago.
        for i, user, hours in ((20, 9, 2), (21, 9, 3), (22, 10, 8 * 24)):
            ms = now - hours * 3600000
            add_job(db, i, user, ms, ms + 50, ms + 90)
        lines = house.ilctl("usage")[1].splitlines()
        assert [line.split()[0] for line in lines] == [
            "USER", "8", "7", "9"], lines
        assert lines[3].split()[1:] == ["0", "B", "0", "2"], lines
        assert json.loads(house.ilctl("usage", "--json")[1])[2] == {
            "user": "9", "sandbox": "", "bytes": 0, "files": 0, "commands": 2,
            "used_at": 0, "expires_at": -1}
        assert " 8.7 KiB " in lines[1] and lines[2].split()[5] == "3", lines
        assert len(house.ilctl("usage", "-n", "1")[1].splitlines()) == 2
        assert house.ilctl("usage", "-s", "3h")[1].splitlines()[2].split()[5] \
            == "2"
        lines = house.ilctl("slow")[1].splitlines()
        assert lines[0].startswith("KIND") and len(lines) == 3, lines
        assert re.search(r"^py +delivered +1 +50 ms +100 ms +100 ms +100 ms  "
                         "exit 0$", lines[1]), lines
        assert re.search(r"^py +queued +1 *$", lines[2]), lines
        assert " 7 " in house.ilctl("slow", "-s", "30d")[1].splitlines()[1]
        for line in (["usage", "-s", "7"], ["slow", "-s", "x"], ["slow", "1"],
                     ["usage", "-n", "0"]):
            assert house.ilctl(*line)[0] == 64, line


@test
def expire_removes_what_is_due_and_nothing_else():
    with House() as house:
        db = database(house)
        now = int(time.time())
        add_sandbox(db, "a", 1, now - 10)
        add_sandbox(db, "b", 2, now + 1000)
        add_sandbox(db, "c", 3, now - 10, pinned=1)
        add_sandbox(db, "d", 4, now - 10, state="removing")
        broker = Broker(house.state)
        code, out, errors = house.ilctl("expire")
        broker.close()
        assert code == 0 and "2 removed" in out, (out, errors)
        assert sorted(broker.removed) == ["a" * 32, "d" * 32]
        rows = dict(db.execute("SELECT user_id, state FROM sandboxes"))
        assert rows == {1: "expired", 2: "active", 3: "active"}, rows


@test
def expire_goes_on_after_one_that_cannot_be_removed():
    with House() as house:
        db = database(house)
        for i, letter in enumerate("abc"):
            add_sandbox(db, letter, i + 1, 10 + i)
        broker = Broker(house.state, refuse=["a" * 32])
        code, out, errors = house.ilctl("expire")
        assert code == 1 and "2 removed, 1 left" in out, out
        assert "the disk sleeps" in errors, errors
        broker.refuse = ()
        code, out, _ = house.ilctl("expire")
        broker.close()
        assert code == 0 and "1 removed" in out, out


@test
def expire_without_a_broker_fails_and_loses_nothing():
    with House() as house:
        db = database(house)
        add_sandbox(db, "a", 1, 10)
        code, _, errors = house.ilctl("expire")
        assert code == 1 and errors != "", errors
        assert db.execute("SELECT state FROM sandboxes").fetchone()[0] == \
            "expiring"


@test
def the_commands_are_as_discord_wants_them():
    with House() as house:
        code, out, _ = house.ilctl("commands")
        commands = json.loads(out)
        assert code == 0 and [c["name"] for c in commands] == [
            "il", "py", "Run Python", "Edit and run", "health"]
        subs = [one["name"] for one in commands[0]["options"]]
        assert subs == ["help", "create", "py", "session", "look", "write",
                        "rm", "pip", "packages", "get", "put", "delete"], subs
        code, *_ = commands[0]["options"][2]["options"]
        assert "Backticks" in code["description_localizations"]["de"], code
        if not os.path.exists(SUBSET):
            return
        import jsonschema
        with open(SUBSET) as file:
            api = json.load(file)
        pointer = ("#/paths/~1applications~1{application_id}~1commands/put/"
                   "requestBody/content/application~1json/schema")
        jsonschema.Draft202012Validator({**api, "$ref": pointer}).validate(
            commands)


@test
def the_standin_is_told_the_same():
    with House() as house, open(os.path.join(
            os.environ["BUILD"], "lib", "commands.json")) as file:
        assert json.loads(house.ilctl("commands")[1]) == json.load(file)


@test
def register_sends_them():
    with House() as house, Standin() as discord:
        keys = discord.environment()
        code, out, errors = house.ilctl("register", **keys)
        assert code == 0 and keys["DISCORD_APPLICATION_ID"] in out, errors
        ids = {one["name"]: int(one["id"]) for one in discord.commands()}
        assert sorted(ids) == ["Edit and run", "Run Python", "health", "il",
                               "py"], ids
        # what is in a menu cannot be clicked in a text
        del ids["Edit and run"], ids["Run Python"]
        assert "cannot be clicked" in out and "migrate" in out, out

        assert house.ilctl("migrate")[0] == 0
        code, out, errors = house.ilctl("register", **keys)
        assert code == 0 and "cannot" not in out, (out, errors)
        kept = sqlite3.connect(os.path.join(house.state, "inline.db"))
        rows = "SELECT name, id FROM command_ids WHERE application_id = ?"
        app = (int(keys["DISCORD_APPLICATION_ID"]),)
        assert dict(kept.execute(rows, app)) == ids
        code, out, errors = house.ilctl("register", "--guild", "81384788765712384",
                                        **keys)
        assert code == 0 and "guild 81384788765712384" in out, errors
        # the ids of one server's commands mean nothing elsewhere
        assert dict(kept.execute(rows, app)) == ids
        kept.close()
        bad = dict(keys, DISCORD_TOKEN="wrong.token.here")
        code, _, errors = house.ilctl("register", **bad)
        assert code == 78 and "DISCORD_TOKEN" in errors, errors
        assert "wrong.token" not in errors, errors
        discord.assert_no_violations()


@test
def register_says_which_box_to_tick_and_what_discord_objects_to():
    with House() as house, Standin() as discord:
        keys = discord.environment()
        for installs, box in ([0], "User Install"), ([1], "Guild Install"):
            discord.settings(installs=installs)
            code, out, errors = house.ilctl("register", **keys)
            assert code == 1 and "registered" not in out, (out, errors)
            lines = errors.split("\n")
            assert "status 400, code 50035" in lines[0], errors
            assert lines[1] == "  Invalid Form Body", errors
            assert lines[2].startswith(
                f"  0.integration_types.{1 - installs[0]}: The application "
                "does not support"), errors
            assert f'Tick "{box}" on the Installation page' in errors, errors
            # the commands of one server ask for nothing
            assert house.ilctl("register", "--guild", "81384788765712384",
                               **keys)[0] == 0
        discord.settings(installs=[0, 1])
        assert house.ilctl("register", **keys)[::2] == (0, "")


@test
def what_discord_objects_to_is_bounded_and_clean():
    deep = {"_errors": [{"code": "X", "message": "too deep"}]}
    for _ in range(40):
        deep = {"a": deep}
    wide = {f"k{i}\x1b[31m": {"_errors": [
        {"code": "C\n\x07", "message": "m" * 500}] * 20}
            for i in range(50)}
    for errors, least in ((wide, 10), (deep, 0), ([1], 0), ("x", 0),
                          ({"_errors": 7}, 0)):
        with House() as house, Standin() as discord:
            discord.fault("status", "commands", status=400, body=json.dumps(
                {"message": "Invalid\x1b[2J\nBody", "code": 50035,
                 "errors": errors}))
            code, _, said = house.ilctl("register", **discord.environment())
            assert code == 1 and "  Invalid Body\n" in said, said
            lines = said.split("\n")
            assert least <= len(lines) < 32, said
            assert max(map(len, lines)) < 700, said
            assert not set(said) & set("\x1b\x07\r"), said


@test
def register_tells_the_endpoint_which_discord_tests():
    with contextlib.closing(FakeApp(None)) as app, \
            Standin(app.url) as discord, House() as house:
        app.use(discord)
        keys = discord.environment()
        discord.settings(endpoint="")
        code, out, errors = house.ilctl("register", "--endpoint", app.url,
                                        **keys)
        assert code == 0 and app.url in out, (out, errors)
        assert discord.settings()["endpoint"] == app.url
        wrong = f"http://127.0.0.1:{free_port()}/interactions"
        code, out, errors = house.ilctl("register", "--endpoint", wrong,
                                        **keys)
        assert code == 1 and "could not be verified" in errors, errors
        assert "  interactions_endpoint_url: " in errors, errors
        assert "selftest" in errors, errors
        assert discord.settings()["endpoint"] == app.url
        for bad in ("ftp://x/", "https://" + "x" * 600):
            assert house.ilctl("register", "--endpoint", bad,
                               **keys)[0] == 64


@test
def a_token_of_another_application_is_told_apart():
    with House() as house, Standin() as discord:
        keys = dict(discord.environment(), DISCORD_APPLICATION_ID="123")
        code, out, errors = house.ilctl("register", **keys)
        assert code == 78 and "is of application" in errors, errors
        assert discord.commands() == [], out
        keys = dict(discord.environment(), DISCORD_PUBLIC_KEY="0" * 64)
        code, out, errors = house.ilctl("register", **keys)
        assert code == 78 and "DISCORD_PUBLIC_KEY" in errors, errors


@test
def doctor_compares_the_application_with_the_settings():
    with House() as house, Standin() as discord:
        keys = discord.environment()
        discord.settings(rate_limit=50)

        def line(**changed):
            out = house.ilctl("doctor", **{**keys, **changed})[1]
            return [one for one in out.split("\n")
                    if "application: " in one]

        assert "ok" in line()[0] and "--endpoint" in line()[1], line()
        assert "FAIL" in line(DISCORD_APPLICATION_ID="123")[0]
        other = line(DISCORD_PUBLIC_KEY="0" * 64)[0]
        assert "FAIL" in other and "DISCORD_PUBLIC_KEY" in other, other
        assert "401" in line(DISCORD_TOKEN="a.b.c")[0]
        assert line(DISCORD_TOKEN="") == []
        discord.fault("rate_limit", "me")
        told = line()[0]
        assert "note" in told and "429" in told, told
        discord.settings(installs=[0])
        told = line()[0]
        assert "FAIL" in told and "User Install" in told, told


@test
def register_that_reaches_nobody_says_so():
    with House() as house:
        base = f"http://127.0.0.1:{free_port()}/api"
        code, _, errors = house.ilctl(
            "register", DISCORD_APPLICATION_ID="123456789012345678",
            DISCORD_TOKEN="a.b.c", IL_TUNE_DISCORD_API_BASE=base)
        assert code == 1 and errors.count("\n") == 1, errors
        assert f"cannot reach Discord at {base}" in errors, errors
        assert "Failed to connect" in errors and "status" not in errors


@test
def register_without_keys_says_which():
    with House() as house:
        code, _, errors = house.ilctl("register")
        assert code == 78 and "DISCORD_APPLICATION_ID" in errors, errors
        code, _, errors = house.ilctl("register", DISCORD_APPLICATION_ID="123")
        assert code == 78 and "DISCORD_TOKEN" in errors, errors


@test
def config_prints_the_table():
    with House() as house:
        code, out, _ = house.ilctl("config")
        assert code == 0 and "| `IL_WORKERS` |" in out, out[:300]


@test
def a_mistyped_command_is_not_done_but_named():
    with House() as house:
        for typed, meant in (("doktor", "doctor"), ("statsu", "status"),
                             ("sandboxs", "sandboxes"), ("tpo", "top")):
            code, out, errors = house.ilctl(typed)
            assert code == 64 and out == "" and \
                f"did you mean '{meant}'?" in errors, errors
        code, _, errors = house.ilctl("x" * 5000)
        assert code == 64 and "did you mean" not in errors, errors


@test
def help_tells_of_one_command():
    with House() as house:
        code, out, _ = house.ilctl("help", "top")
        assert code == 0 and "usage: ilctl [-e envfile] top [-1]" in out, out
        code, out, errors = house.ilctl("help", "tpo")
        assert code == 64 and "did you mean 'top'?" in errors, errors
        code, out, _ = house.ilctl("version")
        assert code == 0 and re.fullmatch(r"Inline \d+\.\d+\.\d+\n", out), out


@test
def without_e_it_finds_what_is_meant():
    with House() as house:
        del house.environment["IL_STATE_DIR"]
        with open(os.path.join(house.folder, ".env"), "w") as file:
            file.write("IL_USER_RATE=none\n")
        code, _, errors = house.ilctl("commands")
        assert code == 0, errors        # no il_state beside it
        os.mkdir(os.path.join(house.folder, "il_state"))
        code, _, errors = house.ilctl("commands")
        assert code == 78 and "IL_USER_RATE" in errors, errors
        code, _, errors = house.ilctl("commands", IL_ENV_FILE="/dev/null")
        assert code == 0, errors
        code, _, errors = house.ilctl("-e", "/dev/null", "commands")
        assert code == 0, errors


@test
def an_env_file_that_others_may_write_is_passed_over():
    with House() as house:
        del house.environment["IL_STATE_DIR"]
        state = os.path.join(house.folder, "il_state")
        own = os.path.join(house.folder, ".env")
        os.mkdir(state, 0o755)
        with open(own, "w") as file:
            file.write("IL_USER_RATE=none\n")
        os.chmod(own, 0o644)
        assert house.ilctl("commands")[0] == 78
        for path, mode in ((own, 0o664), (own, 0o646), (state, 0o775),
                           (house.folder, 0o770)):
            was = os.stat(path).st_mode & 0o7777
            os.chmod(path, mode)
            code, _, errors = house.ilctl("commands")
            assert code == 0 and errors.count("\n") == 1 and \
                "passed over" in errors, (path, errors)
            assert house.ilctl("-e", ".env", "commands")[0] == 78
            os.chmod(path, was)
        if os.geteuid() != 0:
            return
        for path in (own, state, house.folder):     # a stranger's
            os.chown(path, 2000000000, 0)
            code, _, errors = house.ilctl("commands")
            assert code == 0 and "passed over" in errors, (path, errors)
            os.chown(path, 0, 0)
        assert house.ilctl("commands")[0] == 78


@test
def status_says_what_runs():
    with House() as house:
        database(house)
        code, out, errors = house.ilctl("status")
        assert code == 1 and out == (
            f"DEGRADED: nothing runs in {house.state} → make run, or "
            "systemctl start inline.target\n"), out
        assert errors == "", errors
        os.makedirs(os.path.join(house.state, "broker", "ctl"))
        with socket.socket(socket.AF_UNIX) as front:     # one of them
            front.bind(os.path.join(house.state, "fcgi.sock"))
            front.listen()
            code, out, _ = house.ilctl("status")
        assert code == 1 and out.startswith("DEGRADED: il-fcgi"), out
        assert out.count("not running") == 3 and "0 queued" in out, out


@test
def doctor_names_what_is_wrong_and_what_mends_it():
    with House() as house:
        code, out, _ = house.ilctl("doctor", IL_TUNE_PIDS="many")
        assert code == 78 and "IL_TUNE_PIDS" in out, out
        code, out, _ = house.ilctl("doctor", DOCKER_BINARY="/no/docker")
        assert code == 1, out
        assert "mend: ilctl migrate" in out, out
        assert "mkdir -p " + house.state in out, out
        assert "FAIL  engine: " in out and "/no/docker" in out, out
        assert out.count("make run, or systemctl start inline.target") == 1
        assert "FAIL  nothing runs in " + house.state in out, out
        podman = os.path.join(house.folder, "podman")
        with open(podman, "w") as file:     # 4.3, in its own words
            file.write("""#!/bin/sh
case $1 in
--version) echo podman version 4.3.1 ;;
version) echo 4.3.1 ;;
*) echo Error: inspecting object: x: image not known >&2; exit 125 ;;
esac
""")
        os.chmod(podman, 0o755)
        out = house.ilctl("doctor", DOCKER_BINARY=podman)[1]
        assert "FAIL  engine: DOCKER_BINARY: podman is not supported" in out, \
            out
        assert "volume-nocopy" in out and "mend: Docker 20.10" in out, out
        house.ilctl("migrate")
        out = house.ilctl("doctor")[1]
        assert "ok    database" in out and "ok    state" in out, out


@test
def doctor_measures_where_data_is():
    """On a host with little memory, /run is small: there are sockets alone."""
    def doctor(house, mounts):
        script = "".join("mount -t tmpfs -o size=%s tmpfs %s && " % (size, path)
                         for path, size in mounts) + "exec %s/bin/ilctl doctor"
        done = subprocess.run(
            ["unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-c",
             script % house.folder], env=house.environment,
            cwd=house.folder, capture_output=True, text=True)
        lines = done.stdout.split("\n")
        return [line for line in lines if " disk: " in line] or done.stderr

    with House() as house:
        base, data = house.environment["IL_BASE_DIR"], house.folder + "/data"
        house.environment.update(IL_DATABASE=data + "/inline.db",
                                 IL_API_FILES=data + "/files")
        for path in (house.state, base, data + "/files"):
            os.makedirs(path)
        disks = doctor(house, [(house.state, "4m")])
        assert len(disks) == 3, disks
        assert all(line.startswith("ok") for line in disks), disks
        for path, size, what in ((base, "900m", "the sandboxes"),
                                 (data, "200m", "the database"),
                                 (data + "/files", "400m", "the files")):
            disks = doctor(house, [(path, size)])
            bad = [line for line in disks if line.startswith("FAIL")]
            assert len(bad) == 1 and what in bad[0], (what, disks)


def nginx_said(house, text, **environment):
    """What the doctor says of an nginx with this configuration."""
    path = os.path.join(house.folder, "tools")
    os.makedirs(path, exist_ok=True)
    with open(path + "/dump", "w") as file:
        file.write(text)
    with open(path + "/nginx", "w") as file:
        file.write(f"""#!/bin/sh
case "$*" in
-v) echo nginx >&2 ;;
"-T -q -e stderr"*) cat {path}/dump; grep -q events {path}/dump ;;
*) exit 1 ;;
esac
""")
    os.chmod(path + "/nginx", 0o755)
    out = house.ilctl("doctor", PATH=path + ":" + os.environ["PATH"],
                      **environment)[1]
    return out[re.search(r"(?m)^.*  nginx: ", out).start():]


@test
def doctor_knows_an_nginx_with_too_few_connections():
    main = "# configuration file /etc/nginx/nginx.conf:\n"
    few = "events {\n\tworker_connections 768;\n}\n"
    enough = "worker_rlimit_nofile 16384;\n" + few.replace("768", "8192")
    with House() as house:
        ours = "\n# configuration file /lib/inline/nginx/http.conf:\n"
        house.environment["IL_TUNE_LIB_DIR"] = "/lib/inline"
        said = nginx_said(house, main + enough + ours)
        assert said.startswith("ok    nginx: "), said
        said = nginx_said(house, main + few + ours)
        assert said.startswith("FAIL  nginx: worker_connections is 768"), said
        mend = said.split("mend: ")[1].split("\n")[0].split(" && ")
        with open(os.path.join(ROOT, "systemd/INSTALL.md")) as file:
            assert "`%s`" % mend[0].replace(
                "/lib/", "/usr/lib/", 1) in file.read(), mend
        assert mend[1:] == ["nginx -t", "systemctl restart nginx"], mend
        # As many connections as there are not files for.
        said = nginx_said(house, main + few.replace("768", "8192") + ours)
        assert said.startswith("FAIL  nginx: "), said
        # Its dump may be of any length.
        said = nginx_said(house, main + few + ours + "#\n" * 2_000_000)
        assert said.startswith("FAIL  nginx: worker_connections is 768"), said
        said = nginx_said(house, main + few)
        assert said.startswith("note  nginx: its configuration has nothing "
                               "of Inline's"), said
        said = nginx_said(house, "")
        assert said.startswith("FAIL" if os.geteuid() == 0 else "note"), said
        # What was generated is asked for before the system's.
        os.mkdir(house.state)
        with open(house.state + "/nginx.conf", "w"):
            pass
        said = nginx_said(house, main + few + ours)
        assert "mend: start `ilctl run` again" in said, said


@test
def doctor_knows_an_nginx_that_does_not_reach_il_api():
    class Refuser(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(502)

        def log_message(self, *_):
            pass

    with House() as house, http.server.HTTPServer(
            ("127.0.0.1", house.port), Refuser) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            out = house.ilctl("doctor")[1]
        finally:
            server.shutdown()
        assert "FAIL  HTTP APIs: nginx does not reach il-api (status 502)" \
            in out and "inline-web" in out, out


run()
