#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Signature vectors: what verifies and what must be 401, before any JSON."""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import front as f  # noqa: E402

TIMESTAMP = "1767225600"
GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493
tap = f.Tap()


def malleate(signature):
    """Return S + L in the place of S: the same equation."""
    raw = bytes.fromhex(signature)
    scalar = int.from_bytes(raw[32:], "little") + GROUP_ORDER
    return (raw[:32] + scalar.to_bytes(32, "little")).hex()


def own_vectors(identity):
    """Return (name, timestamp, signature, body, status) of our own."""
    ping = f.encode(f.interaction(1, None, guild=False))
    stamp = TIMESTAMP.encode()
    good = identity.sign(stamp + ping)
    yield "a PING", TIMESTAMP, good, ping, 200
    yield "upper-case hex", TIMESTAMP, good.upper(), ping, 200
    spaced = json.dumps({"type": 1, "id": "1"}, indent=2).encode()
    yield ("JSON with spaces", TIMESTAMP, identity.sign(stamp + spaced),
           spaced, 200)
    yield "missing signature", TIMESTAMP, None, ping, 401
    yield "empty signature", TIMESTAMP, "", ping, 401
    yield "126 digits", TIMESTAMP, good[:-2], ping, 401
    yield "127 digits", TIMESTAMP, good[:-1], ping, 401
    yield "130 digits", TIMESTAMP, good + "00", ping, 401
    yield "not hex", TIMESTAMP, "zz" + good[2:], ping, 401
    yield "malleated", TIMESTAMP, malleate(good), ping, 401
    yield "zeros", TIMESTAMP, "0" * 128, ping, 401
    yield "one bit of S", TIMESTAMP, good[:-1] + "%x" % (
        int(good[-1], 16) ^ 1), ping, 401
    yield "missing timestamp", None, good, ping, 401
    for wrong in ("", "176722560", "176722560x", "+767225600", "1767225601"):
        yield ("timestamp '%s'" % wrong, wrong,
               identity.sign(wrong.encode() + ping)
               if wrong != "1767225601" else good, ping, 401)
    longer = "17672256001"
    yield ("11 digits", longer, identity.sign(longer.encode() + ping), ping,
           401)
    yield "11 digits, signed without the last", longer, good, ping, 401
    yield ("boundary shifted", longer, identity.sign(stamp + b"1" + ping),
           ping, 401)
    yield "newline added", TIMESTAMP, good, ping + b"\n", 401
    yield ("body before timestamp", TIMESTAMP, identity.sign(ping + stamp),
           ping, 401)
    yield "empty body", TIMESTAMP, identity.sign(stamp), b"", 401
    broken = b"{not json"
    yield ("broken JSON, badly signed", TIMESTAMP, good, broken, 401)
    yield ("broken JSON, well signed", TIMESTAMP,
           identity.sign(stamp + broken), broken, 400)


def stored_vectors():
    """Return those of the shared file, where it is present."""
    path = os.path.join(f.SHARED, "vectors.json")
    if not os.path.exists(path):
        print("# %s is not there: our own vectors only" % path)
        return
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    for v in document["vectors"]:
        good = v["valid"] and len(v["timestamp"]) == 10
        yield (v["id"], v["timestamp"], v["signature"], v["body"].encode(),
               200 if good else 401)


def check(front, name, timestamp, signature, body, status):
    headers = {"Content-Type": "application/json"}
    if timestamp is not None:
        headers["X-Signature-Timestamp"] = timestamp
    if signature is not None:
        headers["X-Signature-Ed25519"] = signature
    answer = front.request("POST", "/interactions", body, headers)
    good = answer.status == status and front.alive()
    if good and status == 200:
        front.complaints += front.validator.complaints(answer.json)
        if json.loads(body)["type"] == 1:
            good = answer.body == b'{"type":1}' and \
                answer.headers["Content-Type"] == "application/json"
    tap.ok(good, "%s: %d" % (name, status), answer)


with f.Front(IL_TUNE_MAX_SKEW_SECONDS="0") as front:
    for vector in list(own_vectors(front.identity)) + list(stored_vectors()):
        check(front, *vector)
    tap.equal(front.complaints, [], "every answer is as Discord wants it")
tap.done()
