#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""By what nginx counts where a request is from: networks of 64 bits, and this
machine as one."""

import os
import socket
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "api"))
from served import wait_for  # noqa: E402
from tap import run, test  # noqa: E402

# Whatever address a header says is taken for the client's.
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
	include %(root)s/nginx/http.conf;
	upstream inline_api { server unix:%(folder)s/none; }
	server {
		listen unix:%(folder)s/socket;
		set $inline_foreign 0;
		set_real_ip_from unix:;
		real_ip_header X-From;
		location = /address { return 200 "$inline_address"; }
		location = /from { return 200 "$inline_from"; }
		location = /client { return 200 "$inline_client"; }
		location = /interactions { return 200 "$inline_interaction_of"; }
	}
}
"""
TOKEN = "il_" + "0123456789abcdef" * 4


def told(folder, path, address, token=""):
    return subprocess.run(
        ["curl", "-s", "--unix-socket", folder + "/socket", "-H",
         "X-From: " + address, "-H", "Authorization:" + token,
         "http://localhost" + path], check=True, stdout=subprocess.PIPE).stdout


def listens(path):
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


@test
def networks_are_told_apart_and_hosts_of_one_are_not():
    one = told(folder, "/address", "2001:db8:1:2::1")
    assert one == bytes.fromhex("20010db800010002"), one
    assert told(folder, "/address", "2001:db8:1:2:ffff:a0a:d:7f00") == one
    assert told(folder, "/address", "2001:db8:1:3::1") != one
    assert told(folder, "/address", "203.0.113.9") == bytes((203, 0, 113, 9))
    assert told(folder, "/from", "203.0.113.9") == bytes((203, 0, 113, 9))
    for before in "::ffff:", "64:ff9b::":
        assert told(folder, "/address", before + "203.0.113.9") == bytes(
            (203, 0, 113, 9)), before


@test
def interactions_are_a_customers_who_may_have_many_networks():
    def of(address):
        return told(folder, "/interactions", address)
    assert of("2001:db8:1:2::1") == bytes.fromhex("20010db80001")
    assert of("2001:db8:1:3::1") == of("2001:db8:1:2::1")
    assert of("2001:db8:2:2::1") != of("2001:db8:1:2::1")
    assert of("203.0.113.9") == bytes((203, 0, 113, 9))
    assert of("::ffff:203.0.113.9") == bytes((203, 0, 113, 9))
    assert of("10.10.10.10") == b"\n\n\n\n"
    assert of("127.0.0.3") == b"local"


@test
def this_machine_is_one():
    for address in ("127.0.0.1", "127.0.0.2", "127.255.10.13", "::1",
                    "::ffff:127.0.0.9"):
        assert told(folder, "/address", address) == b"local", address
        assert told(folder, "/from", address) == b"", address


@test
def a_client_is_known_by_what_can_be_a_token():
    for token in "Bearer " + TOKEN, "bearer  " + TOKEN:
        assert told(folder, "/client", "203.0.113.9", token) == TOKEN.encode()
    for token in ("Bearer x", "Bearer " + TOKEN + "0", "Bearer " + "x" * 300,
                  "Basic " + TOKEN):
        assert told(folder, "/client", "127.0.0.7", token) == b"local", token


with tempfile.TemporaryDirectory(prefix="inline-address-") as folder:
    with open(folder + "/conf", "w") as conf:
        conf.write(CONF % {"folder": folder, "root": ROOT})
    with subprocess.Popen(["nginx", "-e", folder + "/log", "-c",
                           folder + "/conf"]) as nginx:
        try:
            wait_for(lambda: listens(folder + "/socket"))
            run()
        finally:
            nginx.terminate()
