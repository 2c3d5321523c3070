#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""/v1/files over HTTP: uploads as clients send them and as nobody should; lists,
downloads, names of any kind."""

import http.client
import os
import re
import shutil
import subprocess
import time
import urllib.parse

from interpreter import FORM, Interpreter, compact, form, missing, part, \
    refused
from served import Served, wait_for
from service import children
from tap import run, test

served = Served(IL_API_CELLS="1", IL_API_FILES_QUOTA="1g").__enter__()
client = Interpreter(served)
pids = sorted(served.pids("il-api"))
ID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
INVALID = "Invalid multipart data."
NO_BOUNDARY = "Missing boundary in multipart."
NO_NAME = 'The Content-Disposition header field "name" must be provided.'
TOO_LARGE = "File size exceeds maximum of 100 MB"
FILE = 'name="file"; filename="f"'
LIMIT = 100 << 20


def stored():
    """What is in the store's folder."""
    return os.listdir(os.path.join(served.settings["IL_STATE_DIR"], "files"))


def name_of(answer):
    """The name that a client reads in the header of a download (RFC 6266)."""
    header = answer.headers["Content-Disposition"]
    match = re.fullmatch(
        r"attachment; filename=\"([ !#-\[\]-~]*)\"(; filename\*=UTF-8''"
        r"([A-Za-z0-9!#$&+.^_`|~-]|%[0-9A-F]{2})*)?", header)
    assert match, header
    if match[2]:
        return urllib.parse.unquote(match[2].partition("''")[2],
                                    errors="strict")
    return match[1]


def raw(head, *pieces):
    """Send a request by hand and read the answer; whoever answers early may
    close early."""
    link = served.connect(30)
    link.connect()
    try:
        link.sock.sendall(head)
        try:
            for piece in pieces:
                link.sock.sendall(piece)
        except OSError:
            pass
        response = http.client.HTTPResponse(link.sock)
        response.begin()
        return response.status, response.read()
    finally:
        link.close()


def system_calls():
    """How often those who answer have read and written."""
    total = 0
    for pid in children(served.pids("il-api")):
        with open(f"/proc/{pid}/io") as file:
            fields = dict(line.split(": ") for line in file)
        total += int(fields["syscr"]) + int(fields["syscw"])
    return total


# ---- the routes ----

@test
def an_empty_store_is_an_empty_list():
    answer = served.get("/v1/files")
    assert (answer.status, answer.text) == (200, '{"files":[]}'), answer
    assert answer.headers["Content-Type"] == "application/json"


@test
def bytes_that_look_like_the_end_cost_no_more_than_others():
    size = 4 << 20
    for piece in (b"a", b"\r", b"\r\n", b"\r\n--", b"\r\n--bx", b"\n"):
        data = (piece * (size // len(piece) + 1))[:size]
        before = system_calls()
        answer = client.upload("f", data)
        assert answer.status == 201, answer
        assert system_calls() - before < 2000, (
            piece, system_calls() - before)
        path = "/v1/files/" + answer.json["file_id"]
        assert served.get(path).body == data, piece
        assert served.request("DELETE", path).status == 204


@test
def an_upload_is_answered_with_id_name_and_size():
    answer = client.upload("a b.txt", b"abc")
    assert answer.status == 201, answer
    assert answer.headers["Content-Type"] == "application/json"
    assert re.fullmatch('{"file_id":"%s","filename":"a b.txt",'
                        '"size_bytes":3}' % ID, answer.text), answer
    client.delete(answer.json["file_id"])


@test
def the_list_has_uploads_and_files_of_runs():
    before = time.time()
    uploaded = client.put("é.txt", b"abc")
    made = served.execute("_ = open('d', 'w').write('12')")["files"][0][
        "file_id"]
    answer = served.get("/v1/files")
    files = {f["file_id"]: f for f in answer.json["files"]}
    assert set(files) == {uploaded, made}, answer
    for file_id, name, size in ((uploaded, "é.txt", 3), (made, "d", 2)):
        assert ('{"file_id":"%s","filename":"%s","size_bytes":%d,'
                '"upload_time":%.3f}' % (
                    file_id, name, size, files[file_id]["upload_time"])
                in answer.text), answer
        assert list(files[file_id]) == ["file_id", "filename", "size_bytes",
                                        "upload_time"], answer
        assert files[file_id]["filename"] == name, answer
        assert files[file_id]["size_bytes"] == size, answer
        assert isinstance(files[file_id]["upload_time"], float), answer
        assert before - 1 < files[file_id]["upload_time"] < time.time() + 1
    for file_id in files:
        client.delete(file_id)


@test
def a_download_is_the_bytes_with_their_name():
    data = bytes(range(256)) * 4097
    answer = client.download(client.put("report.csv", data))
    assert (answer.status, answer.body) == (200, data), answer
    headers = {name: answer.headers[name] for name in (
        "Content-Type", "Content-Disposition", "Content-Length",
        "X-Content-Type-Options")}
    assert headers == {
        "Content-Type": "application/octet-stream",
        "Content-Disposition": 'attachment; filename="report.csv"',
        "Content-Length": str(len(data)),
        "X-Content-Type-Options": "nosniff"}, headers


@test
def a_deleted_file_is_gone():
    file_id = client.put("a", b"abc")
    answer = client.delete(file_id)
    assert (answer.status, answer.body) == (204, b""), answer
    assert answer.headers["Content-Type"] is None, answer.headers
    assert file_id not in client.listed()
    want = "File with ID '%s' not found" % file_id
    refused(client.download(file_id), 404, want)
    refused(client.delete(file_id), 404, want)
    assert not [name for name in stored() if file_id in name], stored()


@test
def an_empty_file_is_a_file():
    file_id = client.put("empty", b"")
    answer = client.download(file_id)
    assert (answer.status, answer.body) == (200, b""), answer
    assert served.execute("print(open('e').read())", files=[
        {"path": "e", "file_id": file_id}])["stdout"] == "\n"


@test
def of_several_files_the_last_one_counts():
    answer = client.post_form(form(
        part(b"one", 'name="file"; filename="a"'),
        part(b"text", 'name="other"'),
        part(b"three!", 'name="file"; filename="b"'),
        part(b"x", 'name="more"; filename="c"')))
    assert answer.status == 201, answer
    assert answer.json["filename"] == "b", answer
    assert client.download(answer.json["file_id"]).body == b"three!"


@test
def a_file_without_a_name_is_unnamed():
    answer = client.upload("", b"abc")
    assert answer.json["filename"] == "unnamed", answer


# ---- what is refused ----

@test
def what_is_no_file_is_422():
    for body, kind in ((b"x", "text/plain"), (b"{}", "application/json"),
                       (form(part(b"x", FILE)), "multipart/mixed; boundary=b"),
                       (form(part(b"x", 'name="other"; filename="f"')), None),
                       (b"", None), (b"--b--\r\n", None)):
        refused(client.post_form(body, kind), 422, [missing("file")])
    answer = served.request("POST", "/v1/files", b"x")
    refused(answer, 422, [missing("file")])
    for disposition in ('name="file"', "name=file", 'name="file"; filename*=x'):
        refused(client.post_form(form(part("é\n".encode(), disposition))),
                422, [missing("file")])


@test
def bad_boundaries_are_400():
    body = form(part(b"x", FILE))
    for kind in ("multipart/form-data", "multipart/form-data; boundary=",
                 'multipart/form-data; boundary=""',
                 "multipart/form-data; charset=b",
                 "multipart/form-data; boundary=" + "y" * 201,
                 "multipart/form-data; boundary=" + "y" * 5000):
        refused(client.post_form(body, kind), 400, NO_BOUNDARY)
    for kind in ("multipart/form-data; boundary=c",
                 "multipart/form-data; boundary=bb"):
        refused(client.post_form(body, kind), 400, INVALID)


@test
def forms_that_are_none_are_400():
    whole = form(part(b"abc", FILE))
    for body in (whole[:-4], whole[:-12], whole[:40], whole[:5],
                 b"garbage", whole.replace(b"\r\n", b"\n"),
                 form(part(b"x", FILE, b"no colon")),
                 form(part(b"x", FILE, b"X: " + b"y" * 9000)),
                 form(part(b"x", FILE, b": value")),
                 form(part(b"x", 'name="file"; filename="a\0b"')),
                 form(part(b"x", 'name="file"; filename="a\nb"')),
                 form(part(b"x", 'name="file"; filename="a\rb"')),
                 form(part(b"x", 'name="file"; filename="a\r\nb"')),
                 form(part(b"x", 'name="file"; filename="%s"'
                           % ("n" * 10000)))):
        refused(client.post_form(body), 400, INVALID)
    for disposition in ('filename="f"', "", "name"):
        refused(client.post_form(form(part(b"x", disposition))), 400, NO_NAME)


@test
def ten_thousand_parts_are_400():
    for disposition, what in (('name="f"', "fields"), (FILE, "files")):
        refused(client.post_form(form(*[part(b"x", disposition)] * 10000)),
                400, "Too many %s. Maximum number of %s is 1000." % (
                    what, what))
    refused(client.post_form(form(part(b"x" * ((1 << 20) + 1), 'name="f"'))),
            400, "Part exceeded maximum size of 1024KB.")


@test
def after_all_that_nothing_is_left_and_nobody_died():
    assert sorted(served.pids("il-api")) == pids
    assert not [name for name in stored() if name.startswith("new-")]
    assert client.upload("a", b"x").status == 201


# ---- forms that are odd, and fine ----

@test
def what_looks_like_a_delimiter_is_data():
    for data in (b"--b", b"\r\n--", b"\r\n-b\r\n", b"\n--b--\n", b"\r--b\r",
                 b"\r\n--bb\r\n", b"a--b--\r\n", b"\r\n\r\n--\r\n",
                 b"\r\n--B--\r\n", b"\r\n--b-\r\n"):
        file_id = client.put("f", data)
        assert client.download(file_id).body == data, data


@test
def a_form_within_a_form_is_data():
    inner = form(part(b"inner", FILE)).replace(b"--b", b"--inner")
    answer = client.post_form(form(part(
        inner, FILE, b"Content-Type: multipart/mixed; boundary=inner")))
    assert client.download(answer.json["file_id"]).body == inner, answer


@test
def what_is_around_a_form_is_skipped():
    answer = client.post_form(b"preamble\r\n" + form(part(b"abc", FILE)) +
                              b"epilogue\r\n--b\r\n\r\n")
    assert client.download(answer.json["file_id"]).body == b"abc", answer


@test
def boundaries_of_any_client_are_understood():
    for boundary in ("----WebKitFormBoundarygK9DtQm1hxWRQ0qJ",
                     "---------------------------13853207241234567890",
                     "------------------------d74496d66958873e", "a b'()+_,-./"
                     ":=?z", "y" * 70, "0" * 200):
        body = form(part(b"abc", FILE)).replace(
            b"--b", b"--" + boundary.encode())
        answer = client.post_form(
            body, 'multipart/form-data; boundary="%s"' % boundary)
        assert answer.status == 201, (boundary, answer)


@test
def a_body_in_chunks_is_taken():
    body = form(part(b"abc" * 1000, FILE))
    answer = served.request(
        "POST", "/v1/files", iter([body[:10], body[10:11], body[11:]]),
        {**FORM, "Transfer-Encoding": "chunked"}, encode_chunked=True)
    assert answer.status == 201, answer
    assert client.download(answer.json["file_id"]).body == b"abc" * 1000


# ---- sizes ----

@test
def a_hundred_megabytes_go_up_and_down_whole():
    data = os.urandom(1 << 20) * 100
    file_id = client.put("big", data)
    assert client.listed()[file_id]["size_bytes"] == LIMIT
    assert client.download(file_id).body == data
    client.delete(file_id)


@test
def a_byte_more_is_413():
    refused(client.upload("big", bytes(LIMIT + 1)), 413, TOO_LARGE)
    assert not [name for name in stored() if name.startswith("new-")]


@test
def a_larger_file_that_is_not_the_last_one_does_not_matter():
    answer = client.post_form(form(
        part(bytes(LIMIT + 1), FILE), part(b"abc", FILE)))
    assert answer.status == 201, answer
    assert answer.json["size_bytes"] == 3, answer
    client.delete(answer.json["file_id"])


@test
def a_megabyte_more_is_413_before_it_is_sent():
    head = ("POST /v1/files HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\n"
            "Content-Length: %d\r\n%s\r\n")
    want = 413, compact({"detail": TOO_LARGE}).encode()
    for more in ("", "Expect: 100-continue\r\n"):
        got = raw((head % (FORM["Content-Type"], (101 << 20) + 200,
                           more)).encode())
        assert got == want, got
    got = raw((head % (FORM["Content-Type"], 1 << 50, "")).encode())
    assert got == want, got
    assert not [name for name in stored() if name.startswith("new-")]


@test
def a_body_without_a_length_is_413_as_soon_as_it_is_too_long():
    chunk = b"100000\r\n" + bytes(1 << 20) + b"\r\n"
    first = part(b"", FILE)[:-2]
    status, body = raw(
        b"POST /v1/files HTTP/1.1\r\nHost: localhost\r\nContent-Type: " +
        FORM["Content-Type"].encode() + b"\r\nTransfer-Encoding: chunked\r\n"
        b"\r\n%x\r\n%s\r\n" % (len(first), first), *[chunk] * 110)
    assert (status, body) == (413, compact({"detail": TOO_LARGE}).encode())


# ---- names ----

@test
def names_of_any_kind_go_up_and_down():
    for name in ("a b.txt", "é.txt", "e\u0301.txt", "日本語.csv", "😀.png",
                 "\u202egpj.exe", "a'b;c=d,e.txt", "..", "../../etc/passwd",
                 "/etc/passwd", ".env", "a/b", "%41%", "a%0d%0aX: y",
                 "\u2028", "\x85", "\x01\x7f\t", "n" * 255, "日" * 255,
                 "~", "-rf", "con", "a:b"):
        answer = client.upload(name, b"x")
        assert answer.status == 201, (name, answer)
        assert answer.json["filename"] == name, (name, answer)
        answer = client.download(answer.json["file_id"])
        assert (answer.status, answer.body) == (200, b"x"), (name, answer)
        header = answer.headers["Content-Disposition"]
        assert header.isascii() and header.isprintable(), header
        assert name_of(answer) == name, (name, header)


@test
def quotes_and_backslashes_in_names_are_taken_as_they_are_escaped():
    for sent, name in ((r'a\"b\\c', 'a"b\\c'), (r"a\b", r"a\b"),
                       (r"C:\dir\f.txt", "f.txt"), (r"\\\\host\\f", "f"),
                       ("a%22b", "a%22b")):
        answer = client.upload(sent, b"x")
        assert answer.json["filename"] == name, (sent, answer)
        assert name_of(client.download(answer.json["file_id"])) == name


@test
def names_that_are_encoded_in_the_head_are_decoded():
    for parameter, name in (("filename*=UTF-8''a%20%C3%A9", "a é"),
                            ("filename*=utf-8'en'%e2%82%ac", "€"),
                            ("filename*=iso-8859-1''%e9", "é"),
                            ("filename*=UTF-8''a%0D%0AX%3A%20y", "a\r\nX: y"),
                            ("filename=plain", "plain"),
                            ('filename="a"; filename*=UTF-8\'\'b', "a")):
        answer = client.post_form(form(part(b"x", 'name="file"; ' +
                                            parameter)))
        assert answer.json["filename"] == name, (parameter, answer)
        answer = client.download(answer.json["file_id"])
        assert answer.headers["X"] is None, answer.headers
        assert name_of(answer) == name, answer.headers


@test
def the_longest_names_download():
    for name in ("n" * 8000, "é" * 4000, "日" * 2600, "\x01" * 8000):
        answer = client.upload(name, b"x")
        assert answer.json["filename"] == name, answer
        answer = client.download(answer.json["file_id"])
        assert (answer.status, answer.body) == (200, b"x"), answer
        header = answer.headers["Content-Disposition"]
        assert len(header) < 8000, len(header)
        told = len(name_of(answer).encode())
        assert 1020 < told <= 1024 and name.startswith(name_of(answer)), header
    answer = client.post_form(form(part(b"x", b'name="file"; filename="' +
                                        b"\xe9" * 8000 + b'"')))
    assert answer.json["filename"] == "é" * 8000, answer
    answer = client.download(answer.json["file_id"])
    assert (answer.status, answer.body) == (200, b"x"), answer


@test
def curl_sends_and_takes_them():
    folder = os.path.join(served.folder, "curl")
    os.mkdir(folder)
    for number, name in enumerate(("plain.txt", "é 日.txt", 'q"u.txt',
                                   "semi;colon=.txt")):
        path = os.path.join(folder, name)
        with open(path, "w") as file:
            file.write("data %d" % number)
        quoted = path.replace("\\", "\\\\").replace('"', '\\"')
        done = subprocess.run(
            ["curl", "-sS", "-F", 'file=@"%s"' % quoted,
             "http://127.0.0.1:%d/v1/files" % served.port],
            capture_output=True, check=True)
        listed = [f for f in client.listed().values()
                  if f["file_id"] in done.stdout.decode()]
        assert urllib.parse.unquote(listed[0]["filename"]) == name, listed
        target = os.path.join(folder, "down")
        os.mkdir(target)
        subprocess.run(["curl", "-sSOJ", "http://127.0.0.1:%d/v1/files/%s" % (
            served.port, listed[0]["file_id"])], cwd=target, check=True)
        (got,) = os.listdir(target)
        with open(os.path.join(target, got)) as file:
            assert file.read() == "data %d" % number, name
        assert got == name or not name.isascii() or '"' in name, got
        shutil.rmtree(target)


@test
def nothing_is_left_but_what_is_listed():
    names = {name.removesuffix(".meta") for name in stored()}
    assert names == set(client.listed()), names
    for file_id in names:
        assert client.delete(file_id).status == 204
    wait_for(lambda: stored() == [])
    assert sorted(served.pids("il-api")) == pids


try:
    run()
finally:
    served.close()
