#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Values that are wrong are refused before anything is installed, in words that
name the key."""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from chart import BUILD, loaded, nested, objections  # noqa: E402
from tap import run, test  # noqa: E402

# What is wrong, and what has to be in the words.
WRONG = [
    ({"replicas": 3}, ["'replicas' not allowed"]),
    ({"replicaCount": 0}, ["/replicaCount", "minimum"]),
    ({"replicaCount": 1001}, ["/replicaCount", "maximum"]),
    ({"replicaCount": "3"}, ["/replicaCount", "want integer"]),
    ({"image__tag": 1}, ["/image/tag", "want string"]),
    ({"image__repository": ""}, ["/image/repository"]),
    ({"image__pullPolicy": "Sometimes"}, ["/image/pullPolicy"]),
    ({"imagePullSecrets": ["registry"]}, ["/imagePullSecrets/0"]),
    ({"fullnameOverride": "In_Line"}, ["/fullnameOverride"]),
    ({"discord__publicKey": "abc", "discord__applicationId": "1" * 18},
     ["/discord/publicKey"]),
    ({"discord__publicKey": "a" * 64}, ["discord", "applicationId"]),
    ({"discord__token": "x"}, ["/discord", "'token' not allowed"]),
    ({"settings__IL_WORKERZ": 3}, ["/settings", "'IL_WORKERZ' not allowed"]),
    ({"settings__IL_NODES": "x"}, ["/settings", "'IL_NODES' not allowed"]),
    ({"settings__IL_MEMORY": "1 GB"}, ["/settings/IL_MEMORY"]),
    ({"settings__IL_WORKERS": -1}, ["/settings/IL_WORKERS", "minimum"]),
    ({"settings__IL_WORKERS": "many"}, ["/settings/IL_WORKERS"]),
    ({"settings__IL_TIMEOUT_SECONDS": "30s"},
     ["/settings/IL_TIMEOUT_SECONDS"]),
    ({"settings__IL_TUNE_EVAL_FALLBACK": True}, ["/settings/IL_TUNE_EVAL_FALLBACK"]),
    ({"settings__IL_HTTP_TRUST": "all"}, ["/settings/IL_HTTP_TRUST"]),
    ({"settings__IL_API_ISOLATION": "vm"}, ["/settings/IL_API_ISOLATION"]),
    ({"nodes__settled": 0}, ["/nodes/settled", "minimum"]),
    ({"nodes__settled": 3, "replicaCount": 2},
     ["nodes.settled", "replicaCount is 2"]),
    ({"nodes__slots": "17 inline-0"}, ["/nodes/slots"]),
    ({"nodes__slots": "slots 17,, inline-0"}, ["/nodes/slots"]),
    ({"nodes__slots": "slots 17 inline-1"},
     ["nodes.slots", "inline-1 is none of the 1 nodes"]),
    ({"nodes__slots": ["slots 17 inline-0"]}, ["/nodes/slots", "want string"]),
    ({"nodes__clusterDomain": ""}, ["/nodes/clusterDomain"]),
    ({"api__tokens": "x", "api__existingSecret": "y"}, ["api.tokens"]),
    ({"api__expose": True}, ["api.expose", "api.tokens"]),
    ({"api__expose": "yes"}, ["/api/expose", "want boolean"]),
    ({"snekbox__enabled": True, "api__existingSecret": "tokens"},
     ["snekbox.tokenSecret"]),
    ({"snekbox__port": 0}, ["/snekbox/port"]),
    ({"snekbox__serviceName": "8060"}, ["/snekbox/serviceName"]),
    ({"snekbox__from": [{"namespace": "x"}]}, ["/snekbox/from/0"]),
    ({"service__type": "ExternalName"}, ["/service/type"]),
    ({"service__annotations": {"a": 1}}, ["/service/annotations/a"]),
    ({"ingress__enabled": True}, ["/ingress/hosts", "minItems"]),
    ({"ingress__hosts": ["https://x"]}, ["/ingress/hosts/0"]),
    ({"ingress__hosts": [{"host": "x"}]}, ["/ingress/hosts/0"]),
    ({"httpRoute__enabled": True}, ["/httpRoute/parentRefs", "minItems"]),
    ({"httpRoute__parentRefs": [{}]}, ["/httpRoute/parentRefs/0", "name"]),
    ({"networkPolicy__ingressFrom": [{}]}, ["/networkPolicy/ingressFrom/0"]),
    ({"networkPolicy__dns": []}, ["/networkPolicy/dns", "minItems"]),
    ({"networkPolicy__egressExcept": ["10.0.0.0"]},
     ["/networkPolicy/egressExcept/0"]),
    ({"networkPolicy__egressPorts": ["443"]},
     ["/networkPolicy/egressPorts/0"]),
    ({"persistence__size": "lots"}, ["/persistence/size"]),
    ({"persistence__accessMode": "ReadWriteMany"},
     ["/persistence/accessMode"]),
    ({"persistence__retain": "no"}, ["/persistence/retain"]),
    ({"backup__schedule": "daily"}, ["/backup/schedule"]),
    ({"backup__waitSeconds": -1}, ["/backup/waitSeconds"]),
    ({"backup__enabled": True, "persistence__accessMode": "ReadWriteOncePod"},
     ["backup.enabled", "ReadWriteOnce"]),
    ({"monitoring__serviceMonitor__interval": 30},
     ["/monitoring/serviceMonitor/interval"]),
    ({"monitoring__dashboards": {}}, ["'dashboards' not allowed"]),
    ({"resources__memory": "1Gi"}, ["/resources", "'memory' not allowed"]),
    ({"runtimeClassName": "Kata!"}, ["/runtimeClassName"]),
    ({"nodeSelector": {"a": True}}, ["/nodeSelector/a"]),
    ({"tolerations": {}}, ["/tolerations", "want array"]),
    ({"extraEnv": [{"value": "x"}]}, ["/extraEnv/0", "name"]),
    ({"podDisruptionBudget__maxUnavailable": 0},
     ["/podDisruptionBudget/maxUnavailable"]),
    ({"serviceAccount__automount": True}, ["'automount' not allowed"]),
]
# Keys of inline.conf(5) that are not the operator's here, and why.
OWN = {
    "IL_ENV_FILE": "settings are the environment",
    "DISCORD_PUBLIC_KEY": "discord.publicKey",
    "DISCORD_APPLICATION_ID": "discord.applicationId",
    "DISCORD_TOKEN": "no pod gets it",
    "DISCORD_TOKEN_FILE": "no pod gets it",
    "IL_NODE": "the pod's name", "IL_NODES": "the chart's table",
    "IL_NODES_KEY_FILE": "the chart's Secret",
    "IL_STATE_DIR": "the claim", "IL_BASE_DIR": "the claim",
    "IL_DATABASE": "the claim", "IL_API_FILES": "the claim",
    "IL_TUNE_LIB_DIR": "the image", "DOCKER_BINARY": "the image",
    "IL_HTTP_PORT": "the pod's network", "IL_HTTP_GATEWAY": "none is trusted",
    "IL_API_TOKENS_FILE": "api", "IL_LIBRECHAT_KEYS_FILE": "librechat",
}


@test
def each_wrong_value_is_named():
    for values, words in WRONG:
        said = objections(nested(**values))
        for word in words:
            assert word in said, f"{values}: {said or 'taken'}"


@test
def defaults_and_their_like_are_taken():
    for values in ({}, loaded.values, {"settings": {"IL_CELLS": "4"}},
                   {"settings": {"IL_CPUS": 0.5}}, {"global": {"x": 1}}):
        assert objections(values) == "", objections(values)


def known_keys():
    """Of `ilctl config`."""
    said = subprocess.run([os.path.join(BUILD, "bin", "ilctl"), "config"],
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    return {row.split("`")[1] for row in said.splitlines()
            if row.startswith("| `")}


@test
def each_setting_is_the_operators_or_the_charts():
    known = known_keys()
    assert len(known) > 50, known
    offered = set(loaded.schema["properties"]["settings"]["properties"])
    assert not offered & set(OWN), offered & set(OWN)
    unknown = known - offered - set(OWN)
    assert not unknown, f"neither in the schema nor in OWN: {unknown}"
    gone = offered - known
    assert not gone, f"there is no such key: {gone}"


@test
def each_default_has_a_place_in_the_schema():
    def walk(values, schema, path):
        for key, value in values.items():
            assert key in schema, f"{path}/{key}"
            inner = schema[key].get("properties")
            if isinstance(value, dict) and inner is not None:
                walk(value, inner, f"{path}/{key}")
    walk(loaded.values, loaded.schema["properties"], "")
    gone = set(loaded.schema["properties"]) - set(loaded.values) - {"global"}
    assert not gone, f"values.yaml does not name {gone}"


run()
