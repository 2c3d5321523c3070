#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What nginx tells programs of who asks, where there are several nodes: what
strangers say of it in headers is not among it.  The programs are played."""

import http.client
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "api"))
from served import wait_for  # noqa: E402
from service import BUILD, free_port  # noqa: E402
from tap import run, test  # noqa: E402

CONF = """
daemon off;
pid %(folder)s/pid;
error_log %(folder)s/log;
events {}
http {
	access_log off;
	client_body_temp_path %(folder)s/body;
	fastcgi_temp_path %(folder)s/fastcgi;
	proxy_temp_path %(folder)s/proxy;
	uwsgi_temp_path %(folder)s/uwsgi;
	scgi_temp_path %(folder)s/scgi;
	include %(lib)s/nginx/http.conf;
	%(upstreams)s
	%(nodes)s
	server {
		listen 127.0.0.1:%(public)d;
		set $inline_foreign 1;
		include %(lib)s/nginx/limits.conf;
		include %(lib)s/nginx/errors.conf;
		include %(lib)s/nginx/discord.conf;
		include %(lib)s/nginx/api.conf;
	}
}
"""
FORGED = {"Inline-By": "c", "Inline-Foreign": "0", "Inline-Node": "h:1",
          "Inline-Node-Key": "0" * 64, "Inline-Owner": "ab" * 32,
          "Inline-Took": "0.1", "Inline-User": "1"}
heard = []      # what the programs were told
passes_on = []  # a location and a node: what they answer instead


def receive(link, size):
    data = b""
    while len(data) < size:
        piece = link.recv(size - len(data))
        assert piece
        data += piece
    return data


def play(link):
    """A program behind FastCGI, which answers with what it was told."""
    told = b""
    with link:
        while True:
            kind, _, length, padding = struct.unpack(
                "!xBHHBx", receive(link, 8))
            data = receive(link, length + padding)[:length]
            if kind == 4:       # parameters
                told += data
            if kind == 5 and not length:        # the end of its input
                break
        params = {}
        while told:
            sizes = []
            for _ in range(2):
                if told[0] < 128:
                    sizes.append(told[0])
                    told = told[1:]
                else:
                    sizes.append(struct.unpack("!I", told[:4])[0] & 0x7fffffff)
                    told = told[4:]
            name = told[:sizes[0]].decode()
            params[name] = told[sizes[0]:sum(sizes)].decode("latin-1")
            told = told[sum(sizes):]
        heard.append(params)
        answer = b"Content-Type: text/plain\r\n\r\n" + json.dumps(
            params).encode()
        if "INLINE_GATE" in params:
            answer = b"Status: 204 No Content\r\n\r\n"
        elif passes_on and params.get("INLINE_NODE_AWAY", "0") == "0":
            answer = ("X-Accel-Redirect: %s\r\nInline-Node: %s\r\n\r\n" %
                      tuple(passes_on)).encode()
        link.sendall(b"".join(
            struct.pack("!BBHHBx", 1, kind, 1, len(data), 0) + data
            for kind, data in ((6, answer), (6, b""), (3, b"\0" * 8))))


def serve(listener):
    while True:
        threading.Thread(target=play, args=(listener.accept()[0],),
                         daemon=True).start()


def ask(port, path, method="GET", body=None, **headers):
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        link.request(method, path, body, headers)
        answer = link.getresponse()
        return answer.status, answer.read()
    finally:
        link.close()


def params(port, path, method="GET", body=None, **headers):
    status, text = ask(port, path, method, body, **headers)
    assert status == 200, (status, text)
    return json.loads(text)


def locally(path, node=None, **headers):
    """As a program of this host asks, on the unix socket."""
    lines = [f"GET {path} HTTP/1.0", "Host: inline"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if node is not None:
        lines.append("Inline-Node: " + node)
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(os.path.join(folder, "nodes", "nginx.sock"))
        link.sendall("\r\n".join([*lines, "", ""]).encode())
        text = b""
        while piece := link.recv(65536):
            text += piece
    head, _, body = text.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def said(told, *names):
    """What nginx says of it; of what the client says nothing was passed on."""
    for one in heard:
        assert not [name for name in one
                    if name.startswith("HTTP_INLINE")], one
    return [told.get(name) for name in names]


@test
def a_stranger_is_heard_of_as_nginx_says():
    for path in "/v1/files/x", "/health", "/v1/files":
        told = params(public, path, **FORGED)
        assert said(told, "INLINE_FROM_NODE", "INLINE_FOREIGN",
                    "INLINE_OWNER", "INLINE_NODE_AWAY") == [
                        "0", "1", "", "0"], told
    told = params(public, "/v1/execute", "POST", "{}", **FORGED)
    assert said(told, "INLINE_FROM_NODE", "INLINE_OWNER") == ["0", ""], told
    told = params(public, "/interactions", "POST", "{}", **FORGED)
    assert said(told, "INLINE_FROM_NODE", "INLINE_BY",
                "INLINE_TOOK_BEFORE") == ["0", None, None], told
    assert any("INLINE_GATE" in one for one in heard)
    # nor with the key, which counts at the other port alone
    told = params(public, "/v1/files/x", **{**FORGED, "Inline-Node-Key": KEY})
    assert said(told, "INLINE_FROM_NODE", "INLINE_FOREIGN",
                "INLINE_OWNER", "INLINE_NODE_AWAY") == [
                    "0", "1", "", "1"], told
    assert KEY not in json.dumps(told), told
    # where a node that comes here was led astray, and is passed on no more
    assert ask(public, "/interactions", "POST", "{}",
               **{"Inline-Node-Key": KEY})[0] == 421


@test
def the_key_opens_the_port_of_nodes_and_nothing_else_does():
    for key in None, "", "0" * 64, KEY[:-1], KEY + "0", KEY.upper(), f" {KEY}x":
        headers = {**FORGED, "Inline-Node-Key": key}
        if key is None:
            del headers["Inline-Node-Key"]
        for path in "/v1/files/x", "/nodes/files/x", "/health", "/interactions":
            assert ask(peers, path, **headers)[0] == 403, (key, path)
    for foreign, want in ("0", "0"), ("1", "1"), ("", "1"), ("x", "1"):
        headers = {**FORGED, "Inline-Node-Key": KEY, "Inline-Foreign": foreign}
        for path in "/v1/files/x", "/nodes/files/x", "/health":
            told = params(peers, path, **headers)
            assert said(told, "INLINE_FROM_NODE", "INLINE_FOREIGN",
                        "INLINE_OWNER") == ["1", want, "ab" * 32], told
            assert KEY not in json.dumps(told), told
    told = params(peers, "/interactions", "POST", "{}", **{
        **FORGED, "Inline-Node-Key": KEY})
    assert said(told, "INLINE_FROM_NODE", "INLINE_BY",
                "INLINE_TOOK_BEFORE") == ["1", "c", "0.1"], told
    assert ask(peers, "/nonsense", **{"Inline-Node-Key": KEY})[0] == 404
    assert ask(public, "/nodes/files/x", **{"Inline-Node-Key": KEY})[0] == 404


@test
def a_program_of_this_host_asks_the_node_that_it_names():
    own = f"127.0.0.1:{peers}"
    status, text = locally("/nodes/files/x", own, **{
        "Inline-Owner": "cd" * 32, "Inline-Foreign": "1", "X-Other": "1",
        "Authorization": "Bearer x"})
    told = json.loads(text)
    assert status == 200 and said(
        told, "INLINE_FROM_NODE", "INLINE_OWNER") == ["1", "cd" * 32], told
    assert not {"HTTP_X_OTHER", "HTTP_AUTHORIZATION"} & set(told), told
    assert locally("/health", own)[0] == 200
    for path in "/v1/files/x", "/interactions", "/metrics", "/healthy", "/":
        assert locally(path, own)[0] == 404, path
    for node in (None, "", "h", "h:", ":1", "h:1/x", "u@h:1", "h:1;", "$host:1",
                 "h:1 x", "http://h:1", "H:1", "unix:/tmp/x", "h:1?"):
        assert locally("/health", node)[0] == 404, node


def is_reached(port, node, listener):
    """Does nginx go where a program of ours sends it, by any way there is?"""
    listener.settimeout(0.3)
    ways = [("/interactions", "@person"), ("/v1/files", "@node_v1"),
            ("/v1/files", "@node_librechat"), ("/mcp", "@node_mcp")]
    found = []
    for path, location in ways:
        passes_on[:] = location, node
        asker = threading.Thread(target=ask, args=(port, path, "POST", "{}"))
        asker.start()
        try:
            listener.accept()[0].close()
            found.append(location)
        except TimeoutError:
            pass
        asker.join()
    passes_on.clear()
    assert len(found) in (0, len(ways)), found
    return bool(found)


@test
def nginx_goes_to_nodes_alone_and_on_one_host_to_nobody():
    with socket.socket() as other, socket.socket(socket.AF_UNIX) as local:
        other.bind(("127.0.0.1", 0))
        other.listen()
        place = os.path.join(folder, "local")
        local.bind(place)
        local.listen()
        os.chmod(place, 0o666)
        address = "127.0.0.1:%d" % other.getsockname()[1]
        assert is_reached(public, address, other)
        assert not is_reached(alone, address, other)
        for name in "unix:" + place, f"unix:{place}:/x":
            for port in public, alone:
                assert not is_reached(port, name, local), (port, name)


folder = tempfile.mkdtemp(prefix="inline-nginx-")
os.chmod(folder, 0o755)     # nginx's workers are not root
public, peers = free_port(), free_port()
with open(os.path.join(folder, "table"), "w") as file:
    file.write(f"node a 127.0.0.1:{peers}\n")
with open(os.path.join(folder, "key"), "w") as file:
    file.write("01" * 32 + "\n")
for name in "nodes", "nginx":
    os.mkdir(os.path.join(folder, name))
made = subprocess.run(
    [os.path.join(BUILD, "bin", "ilctl"), "nginx"], check=True, text=True,
    stdout=subprocess.PIPE, env={
        "IL_STATE_DIR": folder, "IL_NODE": "a",
        "IL_NODES": os.path.join(folder, "table"),
        "IL_NODES_KEY_FILE": os.path.join(folder, "key"),
        "PATH": os.environ["PATH"]}).stdout
KEY = re.search(r'inline_node_key \{\s*default "(\w+)"', made)[1]
program = socket.socket(socket.AF_UNIX)
program.bind(os.path.join(folder, "program"))
program.listen(64)
os.chmod(os.path.join(folder, "program"), 0o666)
threading.Thread(target=serve, args=(program,), daemon=True).start()


def start(name, port, nodes):
    place = os.path.join(folder, name)
    os.mkdir(place)
    with open(os.path.join(place, "conf"), "w") as out:
        out.write(CONF % {
            "folder": place, "lib": os.path.join(BUILD, "lib"),
            "nodes": nodes, "public": port, "upstreams": "".join(
                f"upstream inline_{one} {{ server unix:{folder}/program; }}\n"
                for one in ("discord", "api", "gate", "run", "files",
                            "session", "connect", "mcp"))})
    return subprocess.Popen(["nginx", "-e", os.path.join(place, "log"), "-c",
                             os.path.join(place, "conf")])


def answers():
    for port in public, alone:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return False
    return True


alone = free_port()
servers = start("with", public, made), start("without", alone, "")
try:
    wait_for(answers)
    run()
finally:
    for server in servers:
        server.terminate()
        server.wait()
    program.close()
    subprocess.run(["rm", "-rf", folder], check=True)
