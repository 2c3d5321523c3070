#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""il-snapshot with S3: signatures, and a service that refuses, is overloaded,
is cut off, is elsewhere, or is another."""

import os
import ssl
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from snapshotlib import *  # noqa: E402,F403
try:
    from bucket import *  # noqa: E402,F403
except ImportError:
    print("1..0 # SKIP no python3-botocore")
    sys.exit()

bucket = Bucket()


def node_of(url, key=f"{KEY}:{SECRET}\n", place="s3://bucket/some/prefix",
            **settings):
    node = Snapshotter(place, start=False)
    path = os.path.join(node.folder, "key")
    with open(path, "w") as file:
        file.write(key)
    os.chmod(path, 0o600)
    node.settings = {"IL_SNAPSHOTS_ENDPOINT": url,
                     "IL_SNAPSHOTS_REGION": REGION,
                     "IL_SNAPSHOTS_KEY_FILE": path, **settings}
    return node.start()


node = node_of(bucket.url)
away = node_of(bucket.url)
PREFIX = "some/prefix/" + sandbox_id(1)


def change():
    had = node.told()["saved"]
    node.write(1, 8 * MIB, os.urandom(300000))
    return had


def whole(n):
    assert away.restore(1, n), away.logged()
    assert away.read(n)[MIB:] == node.read(1)[MIB:]


def not_saved(why, count=1 << 30):
    """It is told, and once the service is well again it is saved."""
    had = change()
    failures = node.told()["failures"]
    wait_for(lambda: node.told()["failures"] > failures, why)
    assert why in node.logged().split("not saved:")[-1], node.logged()
    assert node.told()["failing_ms"] and node.told()["waiting"]
    bucket.well()
    wait_for(lambda: node.told()["saved"] > had, "another try")
    node.wait_saved()
    assert not node.told()["failing_ms"]


@test
def it_is_saved_and_restored_and_each_request_is_signed():
    node.make(1)
    node.write(1, 8 * MIB, os.urandom(MIB))
    node.wait_saved()
    wait_for(lambda: PREFIX + "/manifest" in bucket.objects)
    whole(10)
    assert bucket.unsigned == 0
    kinds = {m for m, _, _ in bucket.seen}
    assert kinds == {"GET", "PUT"}, kinds   # nothing to list yet, or delete


@test
def blocks_that_nobody_needs_go_and_a_list_of_many_pages_is_read():
    had = change()
    wait_for(lambda: node.told()["saved"] > had)
    node.wait_saved()
    assert bucket.unsigned == 0
    text = bucket.objects[PREFIX + "/manifest"].decode()
    needed = {line.split()[-1] for line in text.splitlines()
              if line[0] == "b"}
    assert {n.rsplit("/")[-1] for n in bucket.objects
            if n.startswith(PREFIX + "/blocks/")} == needed
    assert away.forget(10) is None
    assert "DELETE" in {m for m, _, _ in bucket.seen}


@test
def a_key_that_is_refused_is_told_and_not_tried_again():
    bucket.fail(1 << 30, status(403, "AccessDenied"), "PUT")
    before = len(bucket.seen)
    not_saved("refuses the key of IL_SNAPSHOTS_KEY_FILE, or what it wants "
              "(403 AccessDenied)")
    puts = [n for m, n, _ in bucket.seen[before:] if m == "PUT"]
    assert len(puts) < 2 * 8 + 10, puts     # one each, not five


@test
def an_overloaded_one_has_the_pause_that_it_wants():
    had = change()
    bucket.fail(1, status(503, "SlowDown", Retry_After="2"), "PUT")
    wait_for(lambda: node.told()["saved"] > had)
    node.wait_saved()
    times = [t for m, _, t in bucket.seen if m == "PUT"]
    gap = max(b - a for a, b in zip(times, times[1:]))
    assert gap > 1.5, gap
    assert node.told()["failures"] == 1
    bucket.well()


@test
def one_that_stays_so_is_given_up_for_a_while():
    bucket.fail(1 << 30, status(500, "InternalError"))
    not_saved("is not at its best (500 InternalError)")


@test
def half_a_body_is_no_body():
    bucket.fail(3, half, "GET")
    whole(11)
    bucket.well()
    bucket.fail(1 << 30, half, "GET", "blocks")
    assert away.restore(1, 12) == "UNAVAILABLE", away.logged()
    bucket.well()
    bucket.fail(1 << 30, uncounted, "GET", "manifest")
    assert away.restore(1, 12) == "UNAVAILABLE", away.logged()
    bucket.well()
    assert sandbox_id(12) not in os.listdir(away.base)
    whole(12)


@test
def too_long_an_answer_is_damaged():
    bucket.fail(1 << 30, too_much, "GET", "blocks")
    assert away.restore(1, 13) == "INPUT", away.logged()
    bucket.well()


@test
def a_redirect_is_not_followed():
    bucket.fail(1 << 30, status(301, "PermanentRedirect",
                                Location=bucket.url + "/other"))
    not_saved("IL_SNAPSHOTS_ENDPOINT or _REGION is wrong (301 "
              "PermanentRedirect)")
    assert not [n for _, n, _ in bucket.seen if "other" in n]


@test
def no_bucket_is_not_no_snapshot():
    other = node_of(bucket.url, place="s3://another")
    assert other.restore(1, 2) == "CONFIG"
    assert "has no such bucket (404 NoSuchBucket)" in other.logged()
    assert node.restore(99, 98) is None


@test
def another_secret_is_refused():
    other = node_of(bucket.url, key=f"{KEY}:another\n")
    assert other.restore(1, 2) == "CONFIG"
    assert "403 SignatureDoesNotMatch" in other.logged()


@test
def one_that_says_nothing_holds_up_nobody_else():
    bucket.fail(1, silence, "PUT")
    had = change()
    wait_for(lambda: node.told()["saved"] > had, "a second try")
    node.wait_saved()
    bucket.well()
    whole(14)


@test
def one_that_is_not_there_is_told():
    free = Bucket()
    free.shutdown()
    free.server_close()
    other = node_of(free.url)
    assert other.restore(1, 2) == "UNAVAILABLE", other.logged()
    assert "does not answer" in other.logged()


@test
def a_certificate_of_nobodys_is_refused():
    path = os.path.join(node.folder, "pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
                    "-subj", "/CN=127.0.0.1", "-addext",
                    "subjectAltName=IP:127.0.0.1", "-keyout", path, "-out",
                    path + ".crt"], check=True, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path + ".crt", path)
    other = node_of(Bucket(context).url)
    assert other.restore(1, 2) == "CONFIG", other.logged()
    assert "has a certificate that does not fit" in other.logged()


@test
def nothing_of_the_secret_is_in_a_log():
    for one in (node, away):
        assert SECRET not in one.logged()


run()
