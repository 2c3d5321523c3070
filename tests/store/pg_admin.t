#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The operator's queries for psql, in sql/postgres/admin: the same rows as in
admin.t, and the same answers."""

import os
import subprocess
import sys
import time

from cluster import Cluster, skip_unless_installed

BUILD = os.environ["BUILD"]
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ADMIN = os.path.join(TOP, "sql/postgres/admin")
USER = 123456789012345678
count = 0
failed = 0


def ok(good, name, detail=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    if not good:
        print("# " + str(detail).replace("\n", "\n# "))


skip_unless_installed()
with Cluster() as cluster:
    address = cluster.database("admin")
    subprocess.run([BUILD + "/bin/ilctl", "migrate"], check=True,
                   stdout=subprocess.DEVNULL,
                   env=dict(os.environ, IL_DATABASE=address))

    def one(text):
        return cluster.sql(text, "admin")

    def shell(query, **values):
        """Run one as an operator does; its text, errors included."""
        argv = [cluster.bin + "/psql", "-XA", "-v", "ON_ERROR_STOP=1"]
        for name, value in values.items():
            argv += ["-v", f"{name}={value}"]
        done = subprocess.run(argv + ["-f", f"{ADMIN}/{query}.sql", address],
                              capture_output=True, text=True, timeout=30)
        return done.stdout + done.stderr

    now = int(time.time())
    for letter, user, state, expires, pinned, size in (
            ("a", USER, "active", now + 86400, 0, 5 << 20),
            ("b", 2, "active", now + 30 * 86400, 0, 1 << 20),
            ("c", 3, "active", now + 86400, 1, 9 << 20),
            ("d", 4, "expired", now - 86400, 0, 0)):
        one("INSERT INTO sandboxes (id, user_id, state, expires_at, pinned, "
            f"used_bytes, created_at, used_at) VALUES ('{letter * 32}', {user}"
            f", '{state}', {expires}, {pinned}, {size}, 1, 1)")
    one("INSERT INTO jobs (interaction_id, application_id, user_id, kind, "
        "state, answer, token, received_ms, attachment_limit, may_attach, "
        f"outcome, finished_ms, told_ms) SELECT i + 1, 1, {USER}, 'py', "
        f"'delivered', 'deferred', '', {now}000 - 1000, 0, 1, 'exit 0', "
        f"{now}000 - 950, {now}000 - 900 + i FROM generate_series(0, 19) AS i")

    text = shell("expiring")
    ok("aaaa" in text and "bbbb" not in text and "cccc" not in text,
       "expiring: within three days, unpinned", text)
    ok(str(USER) in text, "with the user's whole id", text)
    ok("bbbb" in shell("expiring", days=60), "expiring: within :days")
    text = shell("expired")
    ok("dddd" in text and "aaaa" not in text, "expired", text)
    text = shell("extend", user=USER)
    ok("aaaa" in text and abs(int(one(
        f"SELECT expires_at FROM sandboxes WHERE user_id = {USER}")) -
        now - 8 * 86400) < 60, "extend: seven days more", text)
    ok("ERROR" in shell("extend"), "extend: nobody without :user")
    shell("pin", user=2)
    ok(one("SELECT pinned FROM sandboxes WHERE user_id = 2") == "1", "pin")
    shell("pin", user=2, pinned=0)
    ok(one("SELECT pinned FROM sandboxes WHERE user_id = 2") == "0", "unpin")
    text = shell("expire-now", user=3)
    ok("cccc" in text and "cccc" in shell("expired"),
       "expire-now, a pinned one too", text)
    text = shell("job", id=17)
    ok(f"17|{USER}|py|delivered|exit 0" in text and "|116" in text,
       "job: what became of it, and when", text)
    one("UPDATE jobs SET cpu_ms = 250, started_ms = finished_ms - 30, "
        "guild_id = 9 WHERE id < 11")
    one("INSERT INTO rules (subject, id, blocked, changed_at) "
        f"VALUES ('user', {USER}, 1, 1)")
    text = shell("abuse")
    ok(f"{USER}|20|0|0|0|2.5|0.3|1|yes" in text,
       "abuse: commands, time, servers, who is blocked", text)
    covered = {"expiring", "expired", "extend", "pin", "expire-now", "job",
               "abuse"}
    found = {name[:-4] for name in os.listdir(ADMIN)}
    ok(found == covered and found == {name[:-4] for name in os.listdir(
        os.path.join(TOP, "sql/admin"))}, "every query is there", found)
print(f"1..{count}")
sys.exit(failed != 0)
