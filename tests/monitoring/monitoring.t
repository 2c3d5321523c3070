#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What Prometheus makes of Inline: it reads /metrics, each family is there and
moves when what it counts happens; its alerts fire, and are quiet when all is
well; the dashboard asks for nothing that there is not."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "api")]
from served import Served, wait_for  # noqa: E402
from prometheus import MONITORING, Prometheus  # noqa: E402
from tap import run, test  # noqa: E402

FAMILIES = """
    inline_interactions_total inline_interaction_response_seconds
    inline_jobs inline_jobs_total inline_job_queue_age_seconds
    inline_job_wait_seconds inline_job_duration_seconds inline_answers_total
    inline_discord_requests_total inline_discord_request_duration_seconds
    inline_discord_limits_total inline_discord_blocked_seconds
    inline_sandboxes inline_sandboxes_overdue inline_sandboxes_limit
    inline_database_up inline_database_bytes inline_database_wal_bytes
    inline_condition inline_front_up inline_broker_up inline_engine_up inline_image_present
    inline_cells inline_lease_queue inline_leases_total
    inline_lease_wait_seconds inline_cell_starts_total
    inline_cell_start_seconds inline_cell_start_failures
    inline_cell_memory_ends_total inline_disk_free_bytes
    inline_disk_promised_bytes inline_disk_floor_bytes
    inline_api_requests_total inline_api_request_duration_seconds
    inline_api_queue_seconds inline_api_runs_total
    inline_api_run_duration_seconds inline_api_run_wait_seconds
    inline_api_leases_total inline_api_bytes_total inline_api_requests
    inline_api_running inline_api_waiting inline_api_sessions
    inline_api_stored_files inline_api_stored_bytes
    inline_api_stored_bytes_max inline_paused
""".split()
# Takes so long that its answer is an edit.
SLOW = "import time\ntime.sleep(2)\nprint('slow')"

served = Served(IL_API_CELLS="1", IL_WORKERS="2").__enter__()
prometheus = Prometheus(served.port).__enter__()
with open(os.path.join(MONITORING, "alerts.yml")) as file:
    ALERTS = re.findall(r"^ *- alert: (\w+)$", file.read(), re.M)


def promtool(*words, text=None):
    """Run promtool; what it said, which is nothing bad."""
    done = subprocess.run(["promtool", *words], input=text, text=True,
                          capture_output=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def kinds():
    """{family: its type}, as /metrics says."""
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$",
                           served.get("/metrics").text, re.M))


def reaches(expr, least=1):
    """Prometheus sees that much of it, in the end."""
    wait_for(lambda: prometheus.number("sum(%s)" % expr) >= least)


def unknown(expr):
    """The families of an expression that there are not."""
    there = kinds()
    for name in re.findall(r"\binline_\w+", expr):
        base = re.sub("_(bucket|sum|count)$", "", name)
        histogram = there.get(base) == "histogram" and base != name
        if not histogram and there.get(name, "histogram") == "histogram":
            yield name


# ---- what it reads ----

@test
def the_target_is_up_and_the_format_is_right():
    def up():
        targets = prometheus.ask("targets")["activeTargets"]
        assert all(one["health"] != "down" for one in targets), targets
        return [one["health"] for one in targets] == ["up"]
    wait_for(up)
    assert promtool("check", "metrics",
                    text=served.get("/metrics").text) == ""
    promtool("check", "config", "--syntax-only", prometheus.config)


@test
def what_people_do_moves_the_counters():
    assert "1" in served.run("print(1)")
    assert "ZeroDivisionError" in served.run("1/0")
    sent = served.discord.send_command("py", user="alice", code=SLOW)
    served.discord.fault(route="edit", interaction=sent.id,
                         kind="rate_limit", retry_after=0.1)
    sent.wait_final()
    sent = served.discord.send_command("py", user="alice", code=SLOW)
    served.discord.fault(route="edit", interaction=sent.id, kind="status",
                         status=500)
    sent.wait_final()
    try:
        urllib.request.urlopen("http://127.0.0.1:%d/interactions"
                               % served.port, b"{}", timeout=60)
        raise AssertionError("it was taken")
    except urllib.error.HTTPError as error:
        with error:
            assert error.code == 401, error
    served.eval(input="print(1)")
    for expr, least in (
            ('interactions_total{type="command",outcome="answered"}', 2),
            ('interactions_total{type="command",outcome="deferred"}', 2),
            ('interactions_total{outcome="unsigned"}', 1),
            ('interaction_response_seconds_count{outcome="answered"}', 2),
            ('jobs_total{kind="py",outcome="done"}', 3),
            ('jobs_total{kind="py",outcome="failed"}', 1),
            ('job_duration_seconds_count{kind="py"}', 4),
            ('job_wait_seconds_count', 4),
            ('answers_total{way="first_response"}', 2),
            ('answers_total{way="edit"}', 2),
            ('discord_requests_total{route="edit",status="200"}', 2),
            ('discord_requests_total{route="edit",status="429"}', 1),
            ('discord_requests_total{route="edit",status="500"}', 1),
            ('discord_request_duration_seconds_count', 4),
            ('discord_limits_total{scope="route"}', 1),
            ('leases_total{class="user",outcome="warm"}', 3),
            ('leases_total{class="api",outcome="cold"}', 1),
            ('lease_wait_seconds_count{class="user"}', 4),
            ('cell_starts_total{class="user",outcome="up"}', 1),
            ('cell_start_seconds_count{class="api"}', 1),
            ('sandboxes{state="active"}', 1),
            ('database_bytes', 4096), ('database_wal_bytes', 4096),
            ('disk_free_bytes', 1 << 20), ('disk_promised_bytes', 1),
            ('disk_floor_bytes', 1), ('sandboxes_limit', 1),
            ('api_runs_total{api="eval",outcome="exit"}', 1)):
        reaches("inline_" + expr, least)


@test
def every_family_is_read():
    there = kinds()
    assert sorted(there) == sorted(FAMILIES), \
        set(there) ^ set(FAMILIES)
    known = prometheus.ask("metadata")
    for family, kind in there.items():
        (told,) = known[family]
        assert told["type"] == kind and told["help"].endswith("."), told


@test
def labels_are_few_and_nobodys_words():
    served.discord.send_command("py", user="alice",
                                code="raise SystemExit('stranger')"
                                ).wait_final()
    served.post("/v1/nothing/stranger", {})
    text = served.get("/metrics").text
    labels = set(re.findall(r'(\w+)="', text))
    assert labels == {"type", "outcome", "le", "kind", "state", "way", "route",
                      "status", "scope", "class", "api", "direction"}, labels
    assert "stranger" not in text
    assert text.count("\n") < 1500, text.count("\n")


# ---- who dies ----

@test
def a_killed_worker_is_counted_and_takes_no_number_along():
    done = 'inline_jobs_total{kind="py",outcome="done"}'
    before = prometheus.number("sum(%s)" % done)
    sent = served.discord.send_command(
        "py", user="alice", code="import time; time.sleep(60)")
    reaches('inline_jobs{kind="py",state="started"}')
    reaches('inline_cells{class="user",state="leased"}')
    served.kill("il-worker")
    sent.wait_final()
    reaches('inline_jobs_total{kind="py",outcome="interrupted"}')
    assert prometheus.number("sum(%s)" % done) >= before
    assert prometheus.number("sum(resets(%s[5m]))" % done) == 0


@test
def the_queue_has_an_age():
    workers = served.pids("il-worker")
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    try:
        sent = served.discord.send_command("py", user="alice", code="1")
        reaches("inline_job_queue_age_seconds", 0.5)
        reaches('inline_jobs{kind="py",state="queued"}')
    finally:
        for pid in workers:
            os.kill(pid, signal.SIGCONT)
    sent.wait_final()
    wait_for(lambda: prometheus.number("inline_job_queue_age_seconds") == 0)


# ---- alerts and the dashboard ----

@test
def the_alerts_are_loaded_and_say_what_to_do():
    def evaluated():
        return all(rule["health"] == "ok" for group in
                   prometheus.ask("rules")["groups"]
                   for rule in group["rules"])
    wait_for(evaluated)
    (group,) = prometheus.ask("rules")["groups"]
    assert [rule["name"] for rule in group["rules"]] == ALERTS
    for rule in group["rules"]:
        assert set(rule["annotations"]) == {"summary", "action"}, rule
        assert rule["labels"]["severity"] in ("critical", "warning"), rule
        assert not list(unknown(rule["query"])), rule


@test
def each_alert_fires_when_it_should_and_only_then():
    path = os.path.join(HERE, "alerts.yml")
    promtool("test", "rules", path)
    with open(path) as file:
        tried = re.findall(r"alertname=\"(\w+)\"}'$", file.read(), re.M)
    assert tried == ALERTS, set(tried) ^ set(ALERTS)


@test
def the_dashboard_asks_for_what_there_is():
    with open(os.path.join(MONITORING, "dashboard.json")) as file:
        dashboard = json.load(file)
    used = set()
    asked = 0
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            expr = target["expr"].replace("$__rate_interval", "1m").replace(
                "$instance", ".*")
            assert "$" not in expr, expr
            assert not list(unknown(expr)), (panel["title"], expr)
            assert prometheus.query(expr) or "inline" in expr, expr
            used |= set(re.findall(r"\binline_\w+", expr))
            asked += 1
    assert asked > 50, asked
    missing = {family for family in FAMILIES
               if not any(re.fullmatch(family + "(_bucket)?", name)
                          for name in used)}
    assert not missing, missing


try:
    run()
finally:
    prometheus.__exit__(None)
    served.close()
