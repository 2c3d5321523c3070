#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""il-snapshot with S3: signatures, and a service that refuses, is overloaded,
is cut off, is elsewhere, or is another."""

import collections
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


class Pair:
    """A bucket, a node with a sandbox that is saved there, and another one
    that restores it."""

    def __init__(self):
        self.bucket = Bucket()
        self.node = node_of(self.bucket.url)
        self.away = node_of(self.bucket.url)
        self.node.make(1)
        self.node.write(1, 8 * MIB, os.urandom(MIB))
        self.node.wait_saved()

    def change(self):
        had = self.node.told()["saved"]
        self.node.write(1, 8 * MIB, os.urandom(300000))
        return had

    def saved_again(self, had):
        wait_for(lambda: self.node.told()["saved"] > had, "another try")
        self.node.wait_saved()

    def whole(self, n):
        assert self.away.restore(1, n), self.away.logged()
        assert self.away.read(n)[MIB:] == self.node.read(1)[MIB:]

    def not_saved(self, why):
        """It is told, and once the service is well again it is saved."""
        node = self.node
        failures = node.told()["failures"]
        had = self.change()
        wait_for(lambda: node.told()["failures"] > failures, why)
        assert why in node.logged().split("not saved:")[-1], node.logged()
        assert node.told()["failing_ms"] and node.told()["waiting"]
        self.bucket.well()
        self.saved_again(had)
        assert not node.told()["failing_ms"]
        return node.told()["failures"] - failures


pair = Pair()
bucket, node, away, whole = pair.bucket, pair.node, pair.away, pair.whole
PREFIX = "some/prefix/" + sandbox_id(1)


@test
def it_is_saved_and_restored_and_each_request_is_signed():
    wait_for(lambda: PREFIX + "/manifest" in bucket.objects)
    whole(10)
    assert bucket.unsigned == 0
    kinds = {m for m, _, _ in bucket.seen}
    assert kinds == {"GET", "PUT"}, kinds   # nothing to list yet, or delete


@test
def blocks_that_nobody_needs_go_and_a_list_of_many_pages_is_read():
    pair.saved_again(pair.change())
    assert bucket.unsigned == 0
    text = bucket.objects[PREFIX + "/manifest"].decode()
    needed = {line.split()[-1] for line in text.splitlines()
              if line[0] == "b"}
    assert {n.rsplit("/")[-1] for n in bucket.objects
            if n.startswith(PREFIX + "/blocks/")} == needed
    assert away.forget(10) is None
    assert "DELETE" in {m for m, _, _ in bucket.seen}


@aside
def a_key_that_is_refused_is_told_and_not_tried_again():
    pair = Pair()
    pair.bucket.fail(1 << 30, status(403, "AccessDenied"), "PUT")
    before = len(pair.bucket.seen)
    failures = pair.not_saved("refuses the key of IL_SNAPSHOTS_KEY_FILE, or "
                              "what it wants (403 AccessDenied)")
    puts = collections.Counter(n for m, n, _ in pair.bucket.seen[before:]
                               if m == "PUT")
    # one with each save that failed, not five; and the good one
    assert puts and max(puts.values()) <= failures + 1, puts


@aside
def an_overloaded_one_has_the_pause_that_it_wants():
    pair = Pair()
    pair.bucket.fail(1, status(503, "SlowDown", Retry_After="2"), "PUT")
    pair.saved_again(pair.change())
    times = [t for m, _, t in pair.bucket.seen if m == "PUT"][-7:]
    gap = max(b - a for a, b in zip(times, times[1:]))
    assert gap > 1.5, gap
    assert pair.node.told()["failures"] == 0


@aside
def one_that_stays_so_is_given_up_for_a_while():
    pair = Pair()
    pair.bucket.fail(1 << 30, status(500, "InternalError"))
    pair.not_saved("is not at its best (500 InternalError)")


@aside
def what_is_not_s3s_word_is_not_taken_for_none():
    """A proxy in front of it that has lost it, say."""
    pair = Pair()
    pair.whole(11)
    pair.bucket.fail(1 << 30, status(404, "NotFound"), "GET")
    assert pair.away.restore(1, 12) == "UNAVAILABLE", pair.away.logged()
    pair.bucket.well()
    pair.whole(12)


@aside
def what_another_answers_is_neither_kept_nor_damaged():
    pair = Pair()
    for how in (page_of_a_proxy, nothing):
        pair.bucket.fail(1 << 30, how, "GET")
        assert pair.away.restore(1, 12) == "UNAVAILABLE", pair.away.logged()
        pair.bucket.well()
    pair.bucket.fail(1 << 30, page_of_a_proxy, "PUT")
    pair.not_saved("it does not answer as S3 does")
    pair.whole(12)


@aside
def what_could_not_be_deleted_is_with_the_next_save():
    pair = Pair()
    pair.bucket.fail(1 << 30, status(400, "InvalidRequest"), "DELETE")
    pair.saved_again(pair.change())
    assert "blocks stay" in pair.node.logged()
    pair.bucket.well()
    pair.saved_again(pair.change())
    text = pair.bucket.objects[PREFIX + "/manifest"].decode()
    assert {n.rsplit("/")[-1] for n in pair.bucket.objects if "/blocks/" in n
            } == {line.split()[-1] for line in text.splitlines()
                  if line[0] == "b"}


@aside
def half_a_body_is_no_body():
    pair = Pair()
    bucket, away = pair.bucket, pair.away
    bucket.fail(3, half, "GET")
    pair.whole(11)
    bucket.well()
    bucket.fail(1 << 30, half, "GET", "blocks")
    assert away.restore(1, 12) == "UNAVAILABLE", away.logged()
    bucket.well()
    bucket.fail(1 << 30, uncounted, "GET", sandbox_id(1) + "/manifest")
    assert away.restore(1, 12) == "UNAVAILABLE", away.logged()
    bucket.well()
    assert sandbox_id(12) not in os.listdir(away.base)
    pair.whole(12)


@test
def too_long_an_answer_is_damaged():
    bucket.fail(1 << 30, too_much, "GET", "blocks")
    assert away.restore(1, 13) == "INPUT", away.logged()
    bucket.well()


@aside
def a_redirect_is_not_followed():
    pair = Pair()
    pair.bucket.fail(1 << 30, status(301, "PermanentRedirect",
                                     Location=pair.bucket.url + "/other"))
    pair.not_saved("IL_SNAPSHOTS_ENDPOINT or _REGION is wrong (301 "
                   "PermanentRedirect)")
    assert not [n for _, n, _ in pair.bucket.seen if "other" in n]


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


@aside
def one_that_says_nothing_holds_up_nobody_else():
    pair = Pair()
    pair.bucket.fail(1, silence, "PUT")
    pair.saved_again(pair.change())
    pair.whole(14)
    pair.bucket.over.set()


@aside
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
