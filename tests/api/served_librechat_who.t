#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Who may use LibreChat's routes, in all three generations of it; and what each
of its errors is, byte for byte."""

import base64
import json
import os
import secrets
import signal
import subprocess
import tempfile
import time

from mcp_client import Mcp
from libre import FORM, Libre, form, reference, refused
from served import NOT_FOUND, Served, wait_for
from service import BUILD
from keys import Identity
from tap import run, test

folder = tempfile.TemporaryDirectory(prefix="inline-libre-")
TOKENS = os.path.join(folder.name, "tokens")
KEYS = os.path.join(folder.name, "keys")
FILES = os.path.join(folder.name, "files")
signer = Identity(secrets.token_bytes(32), "1", "x")
other_signer = Identity(secrets.token_bytes(32), "1", "x")


def ilctl(*words):
    told = subprocess.run([os.path.join(BUILD, "bin", "ilctl"), "token", "-f",
                           TOKENS, *words], check=True, text=True,
                          capture_output=True).stdout
    return next(word for word in told.split() if word.startswith("il_"))


def encode(data):
    if not isinstance(data, bytes):
        data = json.dumps(data).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def token(sub="u1", tenant="t", by=signer, header=(), **claims):
    """One as LibreChat makes it."""
    now = int(time.time())
    text = encode({"alg": "EdDSA", "typ": "JWT", "kid": "lc-codeapi-2026-05",
                   **dict(header)}) + "." + encode({
                       "iss": "librechat", "aud": "codeapi", "sub": sub,
                       "tenant_id": tenant, "iat": now, "nbf": now,
                       "exp": now + 300, "jti": secrets.token_hex(8),
                       "role": "USER", "principal_source": "x",
                       "auth_context_hash": "x", **claims})
    return text + "." + encode(bytes.fromhex(by.sign(text.encode())))


def bearer(text):
    return {"Authorization": "Bearer " + text}


def user(**who):
    return Libre(served, bearer(token(**who)))


with open(KEYS, "w", encoding="ascii") as file:
    file.write("# LibreChat's\nlc-codeapi-2026-05 %s\n" % encode(
        bytes.fromhex(signer.public_key)))
key = ilctl("add", "first")
few = ilctl("-r", "1", "add", "few")
served = Served(IL_API_TOKENS_FILE=TOKENS, IL_LIBRECHAT_KEYS_FILE=KEYS,
                IL_LIBRECHAT_OPEN="0", IL_API_CELLS="2",
                IL_TUNE_LIBRECHAT_CELLS="1", IL_API_FILES=FILES).__enter__()
PRINT = {"lang": "py", "code": "print(1)"}


# ---- who gets in ----

@test
def a_key_gets_in_by_either_header():
    for credentials in ({"X-API-Key": key}, bearer(key)):
        assert Libre(served, credentials).exec("print(1)")["stdout"] == "1\n"


@test
def a_token_of_librechats_gets_in():
    assert user().exec("print(1)")["stdout"] == "1\n"


@test
def the_rest_does_not():
    now = int(time.time())
    text = token()
    head, claims, signature = text.split(".")
    forged = encode({"alg": "none", "typ": "JWT"}) + "." + claims
    for why, credentials, error in (
            ("nothing", {}, "Authentication is required"),
            ("another scheme", {"Authorization": "Basic x"},
             "Authentication is required"),
            ("another key", {"X-API-Key": "il_" + "0" * 64},
             "Invalid API key"),
            ("a long key", {"X-API-Key": "x" * 5000}, "Invalid API key"),
            ("another key as a token", bearer("il_" + "0" * 64),
             "Invalid bearer token"),
            ("expired", bearer(token(iat=now - 400, nbf=now - 400,
                                     exp=now - 100)), "Invalid bearer token"),
            ("for an hour", bearer(token(exp=now + 3600)),
             "Invalid bearer token"),
            ("another audience", bearer(token(aud="other")),
             "Invalid bearer token"),
            ("another issuer", bearer(token(iss="other")),
             "Invalid bearer token"),
            ("another signer", bearer(token(by=other_signer)),
             "Invalid bearer token"),
            ("another kid", bearer(token(header={"kid": "k2"}.items())),
             "Invalid bearer token"),
            ("alg none", bearer(forged + "."), "Invalid bearer token"),
            ("alg none, signed", bearer(forged + "." + signature),
             "Invalid bearer token"),
            ("no user", bearer(token(sub="")), "Invalid bearer token"),
            ("no base64", bearer("*." + claims + "." + signature),
             "Invalid bearer token"),
            ("no JSON", bearer(encode(b"{") + "." + claims + "." + signature),
             "Invalid bearer token"),
            ("other claims", bearer(".".join((head, encode({"sub": "x"}),
                                              signature))),
             "Invalid bearer token"),
            ("over-long", bearer("A" * 7000), "Invalid bearer token")):
        answer = Libre(served, credentials).post(PRINT)
        try:
            refused(answer, 401, {"error": error})
        except AssertionError as wrong:
            raise AssertionError(why) from wrong
        assert answer.headers["WWW-Authenticate"] == "Bearer", answer.headers


@test
def what_to_set_instead_of_rs256_is_said():
    text = token(header={"alg": "RS256"}.items())
    why = ("signed with RS256; only EdDSA is taken: set "
           "CODEAPI_JWT_ALGORITHM=EdDSA and an Ed25519 key in LibreChat")
    refused(Libre(served, bearer(text)).post(PRINT), 401, {
        "error": "Invalid bearer token", "details": why})
    with open(served.log, encoding="utf-8") as log:
        assert "librechat: Invalid bearer token: " + why in log.read()


@test
def clocks_may_differ_by_thirty_seconds():
    now = int(time.time())
    for change in ({"exp": now - 25, "iat": now - 300, "nbf": now - 300},
                   {"nbf": now + 25, "iat": now + 25},
                   {"aud": ["other", "codeapi"]}):
        assert Libre(served, bearer(token(**change))).get(
            "/files/x").json == [], change
    for change in {"exp": now - 60}, {"nbf": now + 60}, {"iat": now + 60}:
        refused(Libre(served, bearer(token(**change))).get("/files/x"), 401,
                {"error": "Invalid bearer token"})


@test
def two_credentials_are_one_too_many():
    for path, method in (("/exec", "POST"), ("/files/x", "GET")):
        both = Libre(served, {"X-API-Key": key, **bearer(token())})
        refused(both.request(method, path, b"{}" if method == "POST" else None,
                             {"Content-Type": "application/json"}), 400,
                {"error": "Ambiguous authentication headers"})


@test
def why_is_in_the_log():
    Libre(served, bearer(token(aud="logged"))).post(PRINT)
    with open(served.log, encoding="utf-8") as log:
        text = log.read()
    assert "librechat: Invalid bearer token: for another audience" in text
    assert "eyJ" not in text, "no token is logged"


@test
def users_and_tenants_are_apart():
    one = user()
    session, file_id = one.put("a", b"secret", kind="user", id="u1")
    query = "?kind=user&id=u1"
    assert user().download(session, file_id, query).body == b"secret"
    for who in (user(sub="u2"), user(tenant="t2"), user(sub="tu1", tenant=None),
                Libre(served, {"X-API-Key": key})):
        refused(who.download(session, file_id, query), 404, {
            "error": "File not found",
            "details": "It was never here, or its time is over"})
        refused(who.get("/sessions/%s/objects/%s" % (session, file_id)), 404,
                {"error": "File not found"})
        assert who.get("/files/" + session).json == []
        told = who.exec("cat a", "bash",
                        files=[reference("a", session, file_id)])
        assert told["stdout"] == "" and told["files"] == [], told


@test
def agents_and_skills_are_a_tenants():
    one = user()
    agent = one.put("a", b"agent's", kind="agent", id="g1")
    answer = one.upload(("kind", "skill"), ("id", "s1"), ("version", "3"),
                        ("file", "s/b", b"skill's"), path="/upload/batch").json
    skill = answer["storage_session_id"], answer["files"][0]["fileId"]
    files = [reference("a", *agent, kind="agent", resource_id="g1"),
             reference("b", *skill, kind="skill", resource_id="s1", version=3)]
    told = user(sub="u2").exec("cat a b", "bash", files=files)
    assert told["stdout"] == "agent'sskill's", told
    assert user(sub="u2").download(*skill, "?kind=skill&id=s1&version=3"
                                   ).body == b"skill's"
    for change in ({"resource_id": "g2"}, {"kind": "user"}):
        told = one.exec("cat a", "bash", files=[{**files[0], **change}])
        assert told["stdout"] == "", told
    told = one.exec("cat b", "bash", files=[{**files[1], "version": 4}])
    assert told["stdout"] == "", told
    told = user(tenant="t2").exec("cat a b", "bash", files=files)
    assert told["stdout"] == "" and told["files"] == [], told


@test
def a_form_that_is_refused_leaves_nothing():
    before = set(os.listdir(FILES))
    body = form(("kind", "user"), ("file", "a", b"x"), ("kind", "agent"),
                ("id", "g1"), ("file", "b", b"y"), ("file", "c", b"z"))
    answer = user().upload(path="/upload/batch", body=body[:-4])
    refused(answer, 400, {"error": "Bad request",
                          "details": answer.json["details"]})
    assert set(os.listdir(FILES)) == before, os.listdir(FILES)
    told = user().upload(path="/upload/batch", body=body).json
    assert (told["succeeded"], told["failed"]) == (3, 0), told


@test
def a_user_has_its_limits():
    answer = Libre(served, {"X-API-Key": few})
    answer.get("/files/x")
    late = answer.get("/files/x")
    refused(late, 429, {
        "error": "rate_limited",
        "message": "This token's requests of a minute are used up",
        "retry_after_seconds": int(late.headers["Retry-After"])})
    link = served.connect()
    link.request("POST", "/librechat/exec", json.dumps({
        "lang": "bash", "code": "sleep 30"}), {
            "Content-Type": "application/json", **bearer(token())})
    wait_for(lambda: "inline_api_running 1\n" in served.get(
        "/metrics", **bearer(key)).text)
    answer = user().post(PRINT)
    refused(answer, 429, {"error": "rate_limited",
                          "message": "This token's cells are all in use",
                          "retry_after_seconds": 1})
    assert answer.headers["Retry-After"] == "1", answer.headers
    assert user(sub="u9").exec("print(2)")["stdout"] == "2\n"
    link.close()


@test
def names_that_are_made_up_take_nobody_elses_room():
    with Served(IL_LIBRECHAT_KEYS_FILE=KEYS, IL_API_CELLS="1",
                IL_API_FILES_QUOTA="8m") as house:
        greedy, other = (Libre(house, bearer(token(sub=name)))
                         for name in ("greedy", "other"))
        got = []
        for number in range(12):
            answer = greedy.upload(("kind", "agent"), ("id", str(number)),
                                   ("file", "a", bytes(1_000_000)))
            got.append(answer.status)
        assert got == [200] * 2 + [507] * 10, got
        refused(answer, 507, {"error": "Error uploading files",
                              "details": "The file store is full"})
        # The one that has room has it, and what belongs to an agent.
        session, file_id = other.put("b", bytes(1_000_000))
        assert other.download(session, file_id).status == 200


@test
def a_user_s_file_is_had_by_nobody_else_by_whatever_route():
    for more in {}, {"IL_LIBRECHAT_OPEN": "1"}:
        with Served(IL_LIBRECHAT_KEYS_FILE=KEYS, IL_API_CELLS="1",
                    **more) as house:
            one = Libre(house, bearer(token()))
            session, file_id = one.put("a", b"secret")
            uuid = [name for name in os.listdir(os.path.join(
                house.settings["IL_STATE_DIR"], "files"))
                    if len(name) == 36]
            assert len(uuid) == 1, uuid
            assert house.get("/v1/files").json["files"] == []
            assert house.get("/v1/files/" + uuid[0]).status == 404
            assert house.request("DELETE", "/v1/files/" + uuid[0]
                                 ).status == 404
            answer = house.post("/v1/execute", {"code": "1", "files": [
                {"path": "a", "file_id": uuid[0]}]})
            assert answer.status == 404, answer
            result = Mcp(house)
            result = result.result(result.legacy("resources/list"))
            assert result["resources"] == [], result
            answer = Libre(house).download(session, file_id)
            assert answer.status == (404 if more else 401), answer
            assert one.download(session, file_id).body == b"secret"


# ---- errors ----

@test
def what_makes_no_sense_is_refused():
    libre = Libre(served, {"X-API-Key": key})
    for body, error in (
            (b"{", "The body is not valid JSON"),
            (b"[]", "The body must be an object"),
            ({"code": "1"}, "lang is missing"),
            ({"lang": "py"}, "code is missing"),
            ({"lang": "rs", "code": ""}, "Unsupported language: rs"),
            ({**PRINT, "runtime_session_hint": 1},
             "runtime_session_hint must be a string"),
            ({**PRINT, "runtime_session_hint": "x" * 129},
             "runtime_session_hint must have at most 128 bytes"),
            ({**PRINT, "runtime_session_hint": "a b"},
             'runtime_session_hint may only contain letters, digits, ".", '
             '"_", ":", and "-"'),
            ({**PRINT, "files": {}}, "files must be an array"),
            ({**PRINT, "args": [1]}, "args[0] must be a string"),
            ({**PRINT, "files": [{"name": ""}]},
             "files[0].name must not be empty"),
            ({**PRINT, "files": [{"name": "/etc/passwd"}]},
             "files[0].name must be a relative path"),
            ({**PRINT, "files": [{"name": "../x"}]},
             "files[0].name must not contain empty, current, or parent path "
             "segments")):
        refused(libre.post(body), 400, {"error": error})
    refused(libre.post({**PRINT, "files": [{"name": "a", "id": "x"}]}), 403,
            {"error": "Unauthorized file reference"})


@test
def wrong_forms_are_refused():
    libre = Libre(served, {"X-API-Key": key})
    no_form = {"error": "Invalid content type. Must be multipart/form-data."}
    for path in ("/upload", "/upload/batch"):
        refused(libre.request("POST", path, b"{}", {
            "Content-Type": "application/json"}), 400, no_form)
        refused(libre.request("POST", path, b"x", {
            "Content-Type": "multipart/form-data"}), 400, no_form)
        refused(libre.upload(("kind", "user"), path=path), 400,
                {"error": "No files provided"})
        refused(libre.upload(("file", "no file's"), path=path), 400,
                {"error": "No files provided"})
        refused(libre.upload(("kind", "x"), ("file", "a", b""), path=path),
                400, {"error": "kind must be one of: skill, agent, user"})
        refused(libre.upload(("kind", "skill"), ("file", "a", b""),
                             path=path), 400,
                {"error": "version is required for kind: 'skill'"})
        refused(libre.upload(("id", "x" * 300), ("file", "a", b""),
                             path=path), 400,
                {"error": "A field of the form is too long"})
        answer = libre.upload(path=path, body=form(("file", "a", b"x"))[:-4])
        assert answer.status == 400, answer
        assert answer.json["error"] == "Bad request", answer
    refused(libre.upload(("file", "../a", b"")), 400,
            {"error": "Invalid filename"})


@test
def a_file_that_is_too_large_is_refused():
    libre = Libre(served, {"X-API-Key": key})
    large = {"error": "File size limit exceeded"}
    refused(libre.upload(("file", "a", bytes((100 << 20) + 1)),), 413, large)
    answer = libre.request("POST", "/upload", bytes(102 << 20), FORM)
    refused(answer, 413, large)


@test
def what_is_not_there_is_404_and_other_methods_are_405():
    libre = Libre(served, {"X-API-Key": key})
    refused(libre.get("/nothing"), 404, {"error": NOT_FOUND})
    answer = libre.get("/exec")
    refused(answer, 405, {"error": "Method Not Allowed"})
    assert answer.headers["Allow"] == "POST", answer.headers


@test
def strangers_and_those_without_credentials():
    with Served(IL_API_CELLS="1") as house:
        assert Libre(house).exec("print(1)")["stdout"] == "1\n"
        refused(Libre(house, {"Host": "inline.example.org"}).post(PRINT), 403,
                {"error": "Closed to others while neither IL_API_TOKENS_FILE "
                          "nor IL_LIBRECHAT_KEYS_FILE is set. On this machine "
                          "ask localhost or 127.0.0.1; /docs says more"})
    with Served(IL_API_TOKENS_FILE=TOKENS, IL_LIBRECHAT_OPEN="1",
                IL_API_CELLS="1") as house:
        assert Libre(house).exec("print(1)")["stdout"] == "1\n"
        refused(Libre(house, {"Host": "inline.example.org"}).post(PRINT), 401,
                {"error": "Authentication is required"})
        refused(Libre(house, bearer(token())).post(PRINT), 401,
                {"error": "Invalid bearer token"})
    with Served(IL_LIBRECHAT_KEYS_FILE=KEYS, IL_API_CELLS="1",
                IL_API_CONTRACTS="librechat,snekbox") as house:
        refused(Libre(house, {"X-API-Key": key}).post(PRINT), 401,
                {"error": "Bearer token is required"})
        assert Libre(house, bearer(token())).exec("print(1)")["stdout"]
        refused(Libre(house, {"Host": "inline.example.org", **bearer(token())}
                      ).get("/nothing"), 404, {"error": NOT_FOUND})
    with Served(IL_API_CONTRACTS="snekbox") as house:
        refused(Libre(house).post(PRINT), 404, {"error": NOT_FOUND})


@test
def its_health_asks_for_no_credentials():
    for headers in {}, {"Host": "inline.example.org"}:
        answer = served.get("/librechat/health", **headers)
        assert (answer.status, answer.text) == (200, "OK"), answer
    with Served(IL_API_CELLS="1") as house:
        assert house.get("/librechat/health").status == 200
        os.kill(house.pids("il-sandboxd")[0], signal.SIGSTOP)
        try:
            refused(house.get("/librechat/health"), 503, {
                "error": "Inline cannot run code just now; GET /health says "
                         "why"})
        finally:
            os.kill(house.pids("il-sandboxd")[0], signal.SIGCONT)


try:
    run()
finally:
    served.close()
    folder.cleanup()
