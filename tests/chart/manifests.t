#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each manifest of the chart, in each of its variants: Helm's linter has nothing
against it, and each version of Kubernetes takes it, strictly."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from chart import (FOLDER, VARIANTS, VERSIONS, Chart, helm,  # noqa: E402
                   nested, wrong_for)
from tap import run, test  # noqa: E402

# Kinds of others, with the fields that each of them knows.
FOREIGN = {
    "HTTPRoute": {"parentRefs", "hostnames", "rules"},
    "ServiceMonitor": {"jobLabel", "selector", "endpoints"},
    "PrometheusRule": {"groups"},
}
INFO = 1
seen = {}


def add_variant(name, values):
    def variant():
        for level, where, said in (
                (each["severity"], each["path"], each["error"]) for each in
                helm.lint(FOLDER, nested(**values), strict=True)["messages"]):
            assert level <= INFO, (where, said)
        for manifest in Chart(**values).manifests:
            check(manifest)
    variant.__name__ = name + " is valid"
    test(variant)


def check(manifest):
    """As valid as it was in another variant, if it is the same."""
    key = repr(manifest)
    if key in seen:
        return
    seen[key] = True
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    for version in VERSIONS:
        wrong = wrong_for(manifest, version)
        if wrong is None:
            assert kind in FOREIGN, f"{kind}: unknown to {version}"
            assert set(manifest["spec"]) <= FOREIGN[kind], manifest["spec"]
        else:
            assert not wrong, f"{kind} {name}, {version}: {wrong}"


@test
def ten_versions_of_kubernetes_are_asked():
    names = [".".join(each.split(".")[:2]) for each in VERSIONS]
    assert names == ["1.%d" % minor for minor in range(28, 38)], names


@test
def a_field_that_does_not_exist_is_seen():
    broken = Chart().one("StatefulSet")
    broken["spec"]["template"]["spec"]["containers"][0]["privileged"] = True
    assert "privileged" in wrong_for(broken, VERSIONS[0])


for each in VARIANTS.items():
    add_variant(*each)


@test
def names_fit_however_long_the_release_is():
    """A pod's name is its node's, and a label adds to it."""
    chart = Chart(name="r" * 53, replicaCount=1000)
    for manifest in chart.manifests:
        check(manifest)
        assert len(manifest["metadata"]["name"]) <= 63
    last = chart.one("StatefulSet")["metadata"]["name"] + "-999"
    assert len(last) <= 63 - len("-1234567"), last


run()
