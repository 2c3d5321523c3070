#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What of an answer of /mcp a client cannot take is not sent: pictures that are
not whole, or too large, and results that are too long."""

import base64

from mcp_client import Mcp
from served import Served
from tap import run, test

served = Served(IL_API_CELLS="2").__enter__()
mcp = Mcp(served)
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA"
    "WjR9awAAAABJRU5ErkJggg==")
PICTURES = """
import struct, zlib
def chunk(kind, data):
    crc = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)
def png(width, height):
    return (b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(
        ">IIBBBBB", width, height, 8, 0, 0, 0, 0)) + chunk(b"IDAT",
        zlib.compress((bytes(width + 1)) * height)) + chunk(b"IEND", b""))
def save(name, data):
    with open(name, "wb") as file:
        file.write(data)
"""


def judged(result):
    """{name: why it is not shown}, None for what is; a picture is shown or
    linked, and never both."""
    content = result["content"]
    files = {f["path"]: f.get("not_shown")
             for f in result["structuredContent"]["files"]}
    links = [item["name"] for item in content
             if item["type"] == "resource_link"]
    shown = [item for item in content if item["type"] == "image"]
    assert len(links) + len(shown) == len(files), (links, len(shown), files)
    assert sorted(links) == sorted(n for n in files if files[n]), (links, files)
    for name, why in files.items():
        if why:
            assert "[file %s," % name in content[0]["text"], content[0]
            assert "; not shown: " + why in content[0]["text"], content[0]
    return files


@test
def a_picture_that_is_not_whole_or_too_large_is_a_link_and_says_why():
    whole = "it is no whole picture"
    large = "it has over 2,000 pixels in width or height"
    files = judged(mcp.tool("run_python", code=PICTURES + """
data = png(3, 2)
for tenth in range(2, 10):
    save(f"cut{tenth}.png", data[:len(data) * tenth // 10])
save("head.png", data[:8])
save("whole.png", data)
save("half.png", data[:len(data) // 2])
"""))
    assert files.pop("whole.png") is None, files
    assert set(files.values()) == {whole} and len(files) == 10, files
    files = judged(mcp.tool("run_python", code=PICTURES + """
for side in 1, 2000, 2001, 8001:
    save(f"w{side}.png", png(side, 1))
    save(f"h{side}.png", png(1, side))
save("10000x800.png", png(10000, 800))
"""))
    assert files == {
        "w1.png": None, "h1.png": None, "w2000.png": None, "h2000.png": None,
        "w2001.png": large, "h2001.png": large, "w8001.png": large,
        "h8001.png": large, "10000x800.png": large}, files
    files = judged(mcp.tool("run_python", code=PICTURES + """
save("long.png", png(2, 2) + bytes(700000))
"""))
    assert files == {"long.png": "it has over 700,000 bytes"}, files


@test
def a_session_s_picture_is_looked_at_in_the_same_way():
    with mcp.session() as session:
        files = judged(mcp.tool("run_python", session=session, code=PICTURES +
                                "save('cut.png', png(3, 2)[:50])\n"
                                "save('good.png', png(3, 2))\n"))
        assert files == {"cut.png": "it is no whole picture",
                         "good.png": None}, files
        result = mcp.tool("read_file", session=session, path="cut.png")
        assert [item["type"] for item in result["content"]] == [
            "text", "text"], result
        assert result["content"][1]["text"] == (
            "[not shown as a picture: it is no whole picture]"), result
        assert result["structuredContent"]["mime_type"] == (
            "application/octet-stream"), result


@test
def no_broken_picture_is_called_one_when_it_is_read():
    for cut, kind in (70, "image/png"), (60, "application/octet-stream"):
        file, = mcp.tool("run_python", code="open('a.png', 'wb').write(%r)"
                         % PNG[:cut])["structuredContent"]["files"]
        content, = mcp.result(mcp.legacy("resources/read", {
            "uri": file["uri"]}))["contents"]
        assert (file["mime_type"], content["mimeType"]) == (kind, kind), (
            file, content)


@test
def what_clients_cut_or_refuse_is_not_sent():
    result = mcp.result(mcp.modern("server/discover"))
    assert len(result["instructions"]) < 2000, result
    for tool in mcp.result(mcp.legacy("tools/list"))["tools"]:
        assert len(tool["description"]) < 2000, tool
        long = tool["name"] in ("run_python", "run_shell", "list_files",
                                "read_file")
        assert tool.get("_meta") == ({
            "anthropic/maxResultSizeChars": 500000} if long else None), tool
    with mcp.session() as session:
        mcp.tool("run_python", session=session, code="open('a', 'w').write("
                 "'\u0436' * 400000)\nopen('b', 'wb').write(bytes(900000))")
        for path in "a", "b":
            offset, parts = 0, 0
            while offset is not None:
                answer = mcp.legacy("tools/call", {
                    "name": "read_file", "arguments": {
                        "session": session, "path": path, "offset": offset,
                        "limit": 1 << 20}})
                assert len(answer.body) <= 1 << 20, len(answer.body)
                offset = mcp.result(answer)["structuredContent"]["next_offset"]
                parts += 1
            assert parts in (3, 5), parts


try:
    run()
finally:
    served.close()
