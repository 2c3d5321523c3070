#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""LibreChat's contract over HTTP on real cells: runs, and files in and out."""

import os
import subprocess
import tempfile

from libre import ID, Libre, reference, refused
from served import Served
from service import BUILD
from tap import run, test

folder = tempfile.TemporaryDirectory(prefix="inline-libre-")
path = os.path.join(folder.name, "tokens")


def add(name):
    told = subprocess.run([os.path.join(BUILD, "bin", "ilctl"), "token", "-f",
                           path, "add", name], check=True, text=True,
                          capture_output=True).stdout
    return next(word for word in told.split() if word.startswith("il_"))


key, other_key = add("first"), add("second")
served = Served(IL_API_TOKENS_FILE=path, IL_API_CELLS="2").__enter__()
libre = Libre(served, {"X-API-Key": key})
stranger = Libre(served, {"X-API-Key": other_key})


# ---- runs ----

@test
def a_program_runs_with_an_api_key():
    told = libre.exec("import sys\nprint(6 * 7)\nprint('e', file=sys.stderr)")
    assert (told["stdout"], told["stderr"]) == ("42\n", "e\n"), told
    assert told["files"] == [] and told["code"] == 0, told
    assert told["signal"] is told["message"] is told["status"] is None, told
    assert isinstance(told["wall_time"], int), told


@test
def the_work_folder_is_mnt_data():
    for lang, code in (("py", "import os\nprint(os.path.samefile('.', "
                        "'/mnt/data'), os.environ['PWD'])"),
                       ("bash", 'pwd; test . -ef /mnt/data && echo same')):
        told = libre.exec(code, lang)
        assert told["stdout"] in ("True /mnt/data\n", "/mnt/data\nsame\n"
                                  ), told
    told = libre.exec("raise OSError(1)")
    assert "line 1, in <module>\n    raise OSError(1)\n" in told["stderr"], told


@test
def what_is_no_regular_file_is_named():
    told = libre.exec("import os\nopen('f', 'w').write('1')\n"
                      "os.mkfifo('fifo'); os.symlink('f', 'link')")
    assert [f["name"] for f in told["files"]] == ["f"], told
    assert told["stderr"].splitlines() == [
        "[sandbox] This file does not come back, not a regular file: " + name
        for name in ("fifo", "link")], told


@test
def bash_has_what_it_is_promised():
    told = libre.exec('echo "$1 $2 $#"; python3 -c "print(1)" | base64; '
                      'cat /dev/null; exit 7', "bash", args=["a b", "c"])
    assert (told["stdout"], told["code"]) == ("a b c 2\nMQo=\n", 7), told
    told = libre.exec("cat <<'E' >big\n" + "x" * 500000 + "\nE\nwc -c <big",
                      "bash")
    assert told["stdout"].strip() == "500001", told["stderr"]


@test
def arguments_reach_a_program():
    told = libre.exec("import sys; print(sys.argv[1:])", args=["a", "b c"])
    assert told["stdout"] == "['a', 'b c']\n", told


@test
def nothing_of_a_call_is_there_in_the_next():
    libre.exec("open('/tmp/x', 'w').write('1'); open('y', 'w').write('1')")
    told = libre.exec("import os; print(os.listdir('/tmp'), os.listdir('.'))")
    assert told["stdout"] == "[] ['__main__.py']\n", told


@test
def why_a_program_was_ended_is_told_below_its_errors():
    told = libre.exec("import time\nprint('x', flush=True)\ntime.sleep(60)",
                      timeout=700)
    assert told["stdout"] == "x\n" and told["code"] is None, told
    assert told["stderr"] == \
        "[sandbox] Time limit exceeded: ended after 0.7 s\n", told
    assert (told["message"], told["status"], told["signal"]) == (
        "Time limit exceeded", "TO", "SIGKILL"), told
    told = libre.exec("import os\nos.write(2, b'e')\nos.kill(os.getpid(), 11)")
    assert told["stderr"] == \
        "e\n[sandbox] The program was ended by SIGSEGV\n", told
    assert (told["signal"], told["status"]) == ("SIGSEGV", "SG"), told
    told = libre.exec("x = b'1' * (1 << 30)\nfor i in range(0, 1 << 30, 4096): "
                      "x[i]")
    assert "Out of memory" in told["stderr"] or "MemoryError" in \
        told["stderr"], told


@test
def output_over_a_mebibyte_is_cut_and_told():
    told = libre.exec("print('x' * (1 << 20), end='yz')")
    assert told["stdout"] == "x" * (1 << 20), len(told["stdout"])
    assert told["stderr"] == "[sandbox] stdout length exceeded: cut after " \
        "1048576 bytes\n", told["stderr"]


@test
def what_is_no_text_comes_back_as_text():
    told = libre.exec("import os; os.write(1, b'a\\xff'); os.write(2, b'\\xe2')")
    assert (told["stdout"], told["stderr"]) == ("a\ufffd", "\ufffd"), told


# ---- files in and out ----

@test
def files_go_in_and_come_out():
    session, file_id = libre.put("d/a.csv", b"1,2")
    gone, gone_id = libre.put("same.txt", b"same")
    told = libre.exec(
        "print(open('/mnt/data/d/a.csv').read(), open('same.txt').read())\n"
        "open('d/a.csv', 'a').write(',3'); open('new.pkl', 'w').write('n')\n"
        "os = __import__('os'); os.makedirs('e'); open('e/é', 'w').close()",
        files=[reference("d/a.csv", session, file_id),
               reference("same.txt", gone, gone_id)])
    assert told["stdout"] == "1,2 same\n" and told["stderr"] == "", told
    assert libre.made(told) == {"d/a.csv": b"1,2,3", "new.pkl": b"n",
                                "e/é": b""}, told
    by_name = {one["name"]: one for one in told["files"]}
    same = by_name.pop("same.txt")
    assert same == {"id": gone_id, "name": "same.txt",
                    "storage_session_id": gone, "inherited": True}, same
    changed = by_name.pop("d/a.csv")
    assert changed["id"] != file_id and ID.fullmatch(changed["id"]), changed
    assert changed["modified_from"] == {
        "id": file_id, "storage_session_id": session}, changed
    assert all(set(one) == {"id", "name", "storage_session_id"}
               for one in by_name.values()), by_name
    assert libre.download(session, file_id).body == b"1,2"


@test
def the_list_that_comes_back_is_the_next_calls():
    told = libre.exec("open('n', 'w').write('1')")
    for number in range(2, 5):
        told = libre.exec("n = open('n').read() + '%d'\n"
                          "open('n', 'w').write(n)" % number,
                          files=told["files"], session_id=told["session_id"])
    assert libre.made(told) == {"n": b"1234"}, told


@test
def the_old_name_of_the_session_is_taken_too():
    session, file_id = libre.put("a", b"old")
    told = libre.exec("print(open('a').read())", files=[
        {"id": file_id, "session_id": session, "name": "a"}])
    assert told["stdout"] == "old\n", told


@test
def of_one_name_the_last_wins():
    first, second = libre.put("a", b"first"), libre.put("a", b"second")
    told = libre.exec("cat a", "bash", files=[
        reference("a", *first), reference("a", *second)])
    assert told["stdout"] == "second", told
    assert [one["id"] for one in told["files"]] == [second[1]], told


@test
def a_file_called_as_the_code_is_is_no_matter():
    session, file_id = libre.put("__main__.py", b"mine")
    told = libre.exec("print(open('__main__.py').read())", files=[
        reference("__main__.py", session, file_id)])
    assert told["stdout"] == "mine\n", told
    assert [one["id"] for one in told["files"]] == [file_id], told


@test
def what_is_not_kept_any_more_ends_no_conversation():
    session, file_id = libre.put("a", b"x")
    assert libre.request("DELETE", "/files/%s/%s" % (session, file_id)
                         ).json == {"message": "File deleted successfully",
                                    "session_id": session, "fileId": file_id}
    told = libre.exec("print(1)", files=[reference("a", session, file_id)])
    assert (told["stdout"], told["stderr"], told["files"]) == (
        "1\n", "[sandbox] This input is not kept any more: a\n", []), told


@test
def another_ones_file_is_not_there():
    session, file_id = libre.put("a", b"secret")
    told = stranger.exec("cat a", "bash",
                         files=[reference("a", session, file_id)])
    assert "not kept any more: a\n" in told["stderr"], told
    assert told["stdout"] == "" and told["files"] == [], told
    refused(stranger.download(session, file_id), 404, {
        "error": "File not found",
        "details": "It was never here, or its time is over"})
    where = "/sessions/%s/objects/%s" % (session, file_id)
    refused(stranger.get(where), 404, {"error": "File not found"})
    refused(stranger.request("DELETE", "/files/%s/%s" % (session, file_id)),
            404, {"error": "File not found"})
    assert stranger.get("/files/" + session).json == []
    assert libre.get(where).status == 200


@test
def what_may_not_be_changed_stays_as_it_is():
    told = libre.upload(("kind", "skill"), ("id", "s"), ("version", "1"),
                        ("read_only", "true"), ("file", "s/SKILL.md", b"r"),
                        ("file", "s/b", b"b"), path="/upload/batch").json
    files = [reference(one["filename"], told["storage_session_id"],
                       one["fileId"], kind="skill", resource_id="s", version=1)
             for one in told["files"]]
    ran = libre.exec("rm -f s/b; echo other >s/b; echo n >n", "bash",
                     files=files)
    assert libre.made(ran) == {"n": b"n\n"}, ran
    assert {one["id"] for one in ran["files"] if one.get("inherited")} == {
        one["fileId"] for one in told["files"]}, ran


@test
def what_the_store_does_not_take_is_counted():
    code = ("for name in %r:\n    with open(name, 'wb') as file:\n"
            "        file.write(bytes(400_000))")
    with Served(IL_API_CELLS="1", IL_API_FILES_QUOTA="1m") as small:
        told = Libre(small).exec(code % "ab")
        assert "artifact_delivery" not in told, told
        for names, status, kept in ("cde", "failed", 0), ("f", "failed", 0):
            told = Libre(small).exec(code % names)
            assert told["artifact_delivery"] == {
                "code": "artifact_delivery_failed", "status": status,
                "attempted": len(names), "delivered": kept,
                "failed": len(names) - kept}, told
            assert told["stderr"].count("the store is full") == len(names)
    with Served(IL_API_CELLS="1", IL_API_FILES_QUOTA="1m") as small:
        told = Libre(small).exec(code % "abc")
        assert told["artifact_delivery"] == {
            "code": "artifact_delivery_failed", "status": "partial",
            "attempted": 3, "delivered": 2, "failed": 1}, told
        assert len(told["files"]) == 2, told


@test
def what_a_program_removes_is_told():
    put = {name: libre.put(name, name.encode())
           for name in ("a", "d/b", "c", "\u0436\\x", "f")}
    read_only = libre.upload(("read_only", "true"), ("file", "r", b"r"),
                             path="/upload/batch").json
    files = [reference(name, *where) for name, where in put.items()] + [
        reference("r", read_only["storage_session_id"],
                  read_only["files"][0]["fileId"])]
    for more in {}, {"runtime_session_hint": "removed"}:
        told = libre.exec(
            "rm a d/b r *x; mv c e; rm f; mkdir f; touch f/g new; rm new",
            "bash", files=files, **more)
        assert sorted(told["deleted_files"]) == [
            "a", "c", "d/b", "f", "\u0436\\x"], told
        assert {one["name"]: one.get("inherited", False)
                for one in told["files"]} == {
                    "e": False, "f/g": False, "r": True}, told
    told = libre.exec("true", "bash", files=files)
    assert "deleted_files" not in told, told
    answer = libre.post({"code": "import os\nos.remove('a')\nprint(1)",
                         "tools": [{"name": "t"}], "files": files},
                        path="/exec/programmatic").json
    assert (answer["status"], answer["deleted_files"]) == (
        "completed", ["a"]), answer


@test
def what_does_not_come_back_is_told():
    told = libre.exec("import os\nos.truncate(os.open('big', os.O_CREAT | "
                      "os.O_WRONLY), 101 << 20)")
    assert told["stderr"] == \
        "[sandbox] This file does not come back, too large: big\n", told
    assert told["files"] == [], told


# ---- files alone ----

@test
def an_upload_says_where_it_is():
    answer = libre.upload(("kind", "user"), ("id", "u1"),
                          ("file", "a/b é.csv", b"1,2,3"))
    told = answer.json
    assert set(told) == {"message", "storage_session_id", "session_id",
                         "files"}, told
    assert told["message"] == "success", told
    assert told["files"] == [{"fileId": told["files"][0]["fileId"],
                              "filename": "a/b é.csv"}], told
    session, file_id = told["session_id"], told["files"][0]["fileId"]
    assert ID.fullmatch(session) and ID.fullmatch(file_id), told
    back = libre.download(session, file_id, "?kind=user&id=u1")
    assert (back.status, back.body) == (200, b"1,2,3"), back
    assert back.headers["Content-Type"] == "text/csv", back.headers
    assert back.headers["Content-Disposition"] == \
        "attachment; filename*=UTF-8''b%20%C3%A9.csv", back.headers
    probe = libre.get("/sessions/%s/objects/%s" % (session, file_id)).json
    assert probe.pop("lastModified").endswith("Z"), probe
    assert probe == {"name": "%s/%s.csv" % (session, file_id),
                     "originalFilename": "a/b é.csv", "size": 5,
                     "etag": file_id, "contentType": "text/csv",
                     "readOnly": False}, probe


@test
def a_batch_says_what_became_of_each():
    answer = libre.upload(("file", "a", b"1"), ("file", "../b", b"2"),
                          ("file", "c/", b"3"), path="/upload/batch")
    told = answer.json
    assert answer.status == 200, answer
    assert (told["message"], told["succeeded"], told["failed"]) == (
        "partial_success", 1, 2), told
    assert told["files"][1:] == [
        {"status": "error", "filename": name, "error": "Invalid filename"}
        for name in ("../b", "c/")], told
    answer = libre.upload(("file", "..", b""), path="/upload/batch")
    assert (answer.status, answer.json["message"]) == (400, "error"), answer
    answer = libre.upload(*[("file", "%d" % i, b"") for i in range(203)],
                          path="/upload/batch")
    told = answer.json
    assert (told["succeeded"], told["filesLimitReached"], told["maxFiles"]
            ) == (200, True, 200), told


@test
def a_batch_of_the_longest_names_is_answered_whole():
    name = "\x01" * 8000
    answer = libre.upload(*[("file", name, b"") for _ in range(200)],
                          path="/upload/batch")
    told = answer.json
    assert (answer.status, told["failed"]) == (400, 200), answer.status
    assert {one["filename"] for one in told["files"]} == {name}


@test
def a_list_has_what_old_clients_read():
    session, file_id = libre.put("x.tar.gz", b"12")
    (one,) = libre.get("/files/%s?detail=full" % session).json
    assert one["name"].split("/")[1].split(".")[0] == file_id, one
    assert one["metadata"] == {"content-type": "application/gzip",
                               "original-filename": "x.tar.gz"}, one
    (one,) = libre.get("/files/%s?detail=summary" % session).json
    assert set(one) == {"name", "size", "lastModified", "etag"}, one
    assert libre.get("/files/" + session).json == [
        "%s/%s.gz" % (session, file_id)]
    for unknown in ("A" * 21, "x", session[:-1]):
        answer = libre.get("/files/" + unknown)
        assert (answer.status, answer.text) == (200, "[]"), answer


@test
def the_other_contract_does_not_list_them():
    libre.put("a", b"x")
    told = served.get("/v1/files", Authorization="Bearer " + key).json
    assert told["files"] == [], told


@test
def a_file_is_found_in_its_own_session_only():
    session, file_id = libre.put("a", b"x")
    other, _ = libre.put("a", b"x")
    for where, what in ((other, file_id), (session, "A" * 21)):
        refused(libre.download(where, what), 404, {
            "error": "File not found",
            "details": "It was never here, or its time is over"})
    for where, what in ((session, "x"), ("x" * 22, file_id),
                        (session, file_id + ".")):
        refused(libre.download(where, what), 400, {"error": "Bad request"})
        refused(libre.get("/sessions/%s/objects/%s" % (where, what)), 400,
                {"error": "Bad request"})
    for kind in ("x", ""):
        refused(libre.download(session, file_id, "?kind=" + kind), 400,
                {"error": "Bad request"})


@test
def it_is_counted():
    text = served.get("/metrics", Authorization="Bearer " + key).text
    assert 'inline_api_requests_total{route="/librechat/exec",status="200"}' \
        in text
    assert 'inline_api_runs_total{api="librechat",outcome="time"} 1' in text


try:
    run()
finally:
    served.close()
