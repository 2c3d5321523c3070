#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""GET /metrics over HTTP: Prometheus can read it, and each number moves when
what it counts happens."""

import os
import re
import signal
import threading
import time

from interpreter import Interpreter
from served import Served, wait_for
from service import children
from tap import run, test

served = Served(IL_API_CELLS="2").__enter__()
client = Interpreter(served)
NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(r'(%s)(?:\{((?:%s="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? '
                    r"([-+0-9.eE]+|NaN|[+-]Inf)" % (NAME, NAME))
ROUTES = {*served.get("/openapi.json").json["paths"], "other"}


def metrics(service=served):
    """{(name, labels): number}, labels as they are written."""
    answer = service.get("/metrics")
    assert answer.status == 200, answer
    found = {}
    for line in answer.text.splitlines():
        if line.startswith("#"):
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        key = match[1], match[2] or ""
        assert key not in found, "twice: %r" % (key,)
        found[key] = float(match[3])
    return found


class Moved:
    """What a block adds to which numbers."""

    def __enter__(self):
        self.before = metrics()
        return self

    def __exit__(self, *_):
        after = metrics()
        self.by = {key: number - self.before.get(key, 0)
                   for key, number in after.items()
                   if number != self.before.get(key, 0)}

    def of(self, name, labels=""):
        return self.by.get(("inline_" + name, labels), 0)


def request(route, status):
    return "api_requests_total", 'route="%s",status="%d"' % (route, status)


def outcome(api, how):
    return "api_runs_total", 'api="%s",outcome="%s"' % (api, how)


def gauge(name, service=served):
    return metrics(service)["inline_" + name, ""]


def cells(of, state):
    return metrics().get(
        ("inline_cells", 'class="%s",state="%s"' % (of, state)))


@test
def what_il_fcgi_told_has_an_age_that_is_known():
    path = os.path.join(served.settings["IL_STATE_DIR"], "front", "jobs")

    def is_there():
        return "\ninline_interactions_total{" in served.get("/metrics").text
    wait_for(is_there, pause=0.2)
    pids = served.pids("il-fcgi")
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        with open(path) as file:
            told = file.read()
        for moved, known in ((0, True), (-60, False), (60, False), (0, True)):
            with open(path, "w") as file:
                file.write(re.sub(r"(?<=written_ms )\d+", str(int(
                    (time.time() + moved) * 1000)), told))
            assert is_there() == known, moved
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


# ---- the format ----

@test
def every_family_has_its_head_once_and_stands_together():
    served.execute("1")
    served.eval(input="print(1)")
    answer = served.get("/metrics")
    assert answer.headers["Content-Type"] == \
        "text/plain; version=0.0.4; charset=utf-8", answer.headers
    assert answer.text.endswith("\n")
    kind = family = None
    seen = set()
    lines = iter(answer.text.splitlines())
    for line in lines:
        if line.startswith("# HELP "):
            family = line.split()[2]
            assert family not in seen and re.fullmatch(NAME, family), line
            seen.add(family)
            assert line.split(" ", 3)[3].endswith("."), line
            head = next(lines).split()
            assert head[:3] == ["#", "TYPE", family], head
            kind = head[3]
            assert kind in ("counter", "gauge", "histogram"), head
            continue
        name = SAMPLE.fullmatch(line)[1]
        assert name == family or kind == "histogram" and \
            name.removeprefix(family) in ("_bucket", "_sum", "_count"), line
        assert kind != "counter" or name.endswith("_total"), line


@test
def histograms_are_cumulative():
    served.execute("1")
    rows = {}
    numbers = metrics()
    for (name, labels), number in numbers.items():
        if name.endswith("_bucket"):
            of, end = re.fullmatch('(.*?),?le="([^"]*)"', labels).groups()
            rows.setdefault((name[:-7], of), []).append((float(end), number))
    assert len({name for name, _ in rows}) >= 6, sorted(rows)
    for (name, of), buckets in rows.items():
        assert buckets == sorted(buckets), (name, of, buckets)
        assert buckets[-1][0] == float("inf"), (name, of)
        assert numbers[name + "_count", of] == buckets[-1][1], (name, of)
        assert numbers[name + "_sum", of] >= 0, (name, of)


@test
def prometheus_client_reads_it_where_there_is_one():
    try:
        from prometheus_client.parser import text_string_to_metric_families
    except ImportError:
        return
    names = {family.name for family in text_string_to_metric_families(
        served.get("/metrics").text)}
    assert {"inline_api_requests", "inline_cells"} <= names, names


# ---- requests ----

@test
def requests_are_counted_by_route_and_status():
    file_id = client.put("f", b"abc")
    with Moved() as moved:
        served.execute("1")
        served.post("/v1/execute", {})
        served.post("/v1/execute", b"\xff")
        client.streamed("1")
        client.upload("f", b"x")
        client.download(file_id)
        client.download("x")
        client.listed()
        client.delete(file_id)
        served.eval(input="1")
        served.post("/eval", {})
        served.get("/v1/nothing/at/all")
        served.request("PUT", "/v1/execute")
        for path in ("/health", "/versions", "/openapi.json", "/docs"):
            served.get(path)
    for route, status, want in (
            ("/v1/execute", 200, 1), ("/v1/execute", 422, 1),
            ("/v1/execute", 400, 1), ("/v1/execute", 405, 1),
            ("/v1/execute/stream", 200, 1), ("/v1/files", 201, 1),
            ("/v1/files", 200, 1), ("/v1/files/{file_id}", 200, 1),
            ("/v1/files/{file_id}", 404, 1), ("/v1/files/{file_id}", 204, 1),
            ("/eval", 200, 1), ("/eval", 400, 1), ("other", 404, 1),
            ("/health", 200, 1), ("/versions", 200, 1), ("/metrics", 200, 1),
            ("/openapi.json", 200, 1), ("/docs", 200, 1)):
        assert moved.of(*request(route, status)) == want, (
            route, status, moved.by)
    total = sum(by for (name, _), by in moved.by.items()
                if name == "inline_api_requests_total")
    for name in ("request_duration", "queue"):
        counted = sum(by for (key, _), by in moved.by.items()
                      if key == "inline_api_%s_seconds_count" % name)
        assert counted == total, (name, counted, total)
    routes = {re.search('route="([^"]*)"', labels)[1]
              for (name, labels) in metrics()
              if name == "inline_api_requests_total"}
    assert routes <= ROUTES, routes


@test
def a_client_that_hangs_up_is_counted_as_499():
    with Moved() as moved:
        link = served.connect()
        link.request("POST", "/v1/execute", b'{"code":"import time; '
                     b'time.sleep(50)","timeout_ms":60000}',
                     {"Content-Type": "application/json"})
        wait_for(lambda: gauge("api_running") == 1)
        link.close()
        wait_for(lambda: gauge("api_requests") == 1)  # the question's own
        wait_for(lambda: gauge("api_running") == 0)
    assert moved.of(*request("/v1/execute", 499)) == 1, moved.by
    assert moved.of(*outcome("execute", "gone")) == 1, moved.by


@test
def bytes_are_counted_both_ways():
    with Moved() as moved:
        body = b'{"code":"print(str(7) * 100000)"}'
        answer = served.post("/v1/execute", body)
    came = moved.of("api_bytes_total", 'direction="in"')
    went = moved.of("api_bytes_total", 'direction="out"')
    assert came == len(body), (came, moved.by)
    assert len(answer.body) < went < len(answer.body) + 100_000, went


# ---- runs ----

@test
def runs_are_counted_by_how_they_ended():
    with Moved() as moved:
        served.execute("1")
        served.execute("1/0")
        served.execute("import os; os.abort()")
        served.execute("while True: pass", timeout_ms=100)
        client.streamed("1")
        served.eval(input="1")
        served.eval(input="while True: print('x' * 10000)")
        session = served.post("/v1/sessions", {}).json["session_id"]
        served.post("/v1/sessions/%s/bash" % session, {"cmd": "exit 3"})
        served.request("DELETE", "/v1/sessions/" + session)
    for api, how, want in (
            ("execute", "exit", 2), ("execute", "signal", 1),
            ("execute", "time", 1), ("stream", "exit", 1),
            ("eval", "exit", 1), ("eval", "output", 1), ("bash", "exit", 1)):
        assert moved.of(*outcome(api, how)) == want, (api, how, moved.by)
    for api, count in (("execute", 4), ("stream", 1), ("eval", 2),
                       ("bash", 1)):
        for name in ("duration", "wait"):
            key = "api_run_%s_seconds_count" % name, 'api="%s"' % api
            assert moved.of(*key) == count, (key, moved.by)
    assert moved.of("api_run_duration_seconds_sum", 'api="execute"') >= 0.1
    assert moved.of("api_leases_total", 'outcome="granted"') >= 7, moved.by


@test
def what_goes_on_is_told_while_it_does():
    session = served.post("/v1/sessions", {}).json["session_id"]
    assert gauge("api_sessions") == 1
    with client.stream("import time; print(1); time.sleep(50)",
                       timeout_ms=60000) as stream:
        next(iter(stream))
        assert gauge("api_running") == 1
        assert gauge("api_requests") == 2
        assert cells("api", "leased") == 1 == cells("session", "leased")
    wait_for(lambda: gauge("api_running") == 0)
    served.request("DELETE", "/v1/sessions/" + session)
    wait_for(lambda: gauge("api_sessions") == 0)
    wait_for(lambda: cells("session", "leased") == 0)
    wait_for(lambda: cells("api", "leased") == 0)


@test
def whoever_is_killed_takes_what_it_told_along():
    session = served.post("/v1/sessions", {}).json["session_id"]
    with client.stream("import time; print(1); time.sleep(50)",
                       timeout_ms=60000) as stream:
        next(iter(stream))
        assert (gauge("api_running"), gauge("api_sessions")) == (1, 1)
        for pid in children(served.pids("il-api")):
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: gauge("api_running") == 0)
        assert gauge("api_sessions") == 1  # the broker has it
    assert served.execute("1")["stdout"] == "1\n"
    answer = served.request("DELETE", "/v1/sessions/" + session)
    assert answer.status == 204, answer


# ---- the store and the broker ----

@test
def what_is_stored_is_told():
    for file_id in client.listed():
        client.delete(file_id)
    assert gauge("api_stored_files") == 0 and gauge("api_stored_bytes") == 0
    file_id = client.put("f", bytes(1000))
    served.execute("_ = open('f', 'wb').write(bytes(24))")
    assert gauge("api_stored_files") == 2
    assert gauge("api_stored_bytes") == 1024
    assert gauge("api_stored_bytes_max") == 4 << 30
    client.upload("f", bytes((100 << 20) + 1))
    client.post_form(b"--b\r\nbroken")
    client.delete(file_id)
    assert gauge("api_stored_files") == 1
    assert gauge("api_stored_bytes") == 24


@test
def without_the_broker_it_says_so_and_runs_are_refused():
    assert gauge("broker_up") == 1 and gauge("engine_up") == 1
    assert gauge("image_present") == 1 and gauge("disk_free_bytes") > 0
    os.kill(served.pids("il-sandboxd")[0], signal.SIGSTOP)
    try:
        wait_for(lambda: gauge("broker_up") == 0)
        assert cells("api", "leased") is None
        assert gauge("broker_up") == 0
        thread = threading.Thread(target=served.post, args=(
            "/v1/execute", {"code": "1"}))
        thread.start()
        wait_for(lambda: gauge("api_waiting") == 1)
    finally:
        os.kill(served.pids("il-sandboxd")[0], signal.SIGCONT)
    thread.join()
    wait_for(lambda: gauge("api_waiting") == 0)
    wait_for(lambda: gauge("broker_up") == 1)


try:
    run()
finally:
    served.close()
