#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a run of the HTTP APIs finds around it, as both contracts have it: the
length of files, folders, their sizes."""

from served import Served
from tap import run, test

served = Served(IL_API_CELLS="2", IL_TUNE_API_WARM="2").__enter__()

EXTRAS = {"Inline-Extras": "1"}


def said(route, code, **fields):
    """What a run prints that ends well."""
    if route == "/eval":
        answer = served.eval(input=code, **fields)
        assert answer["returncode"] == 0, answer
    else:
        answer = served.execute(code, timeout_ms=20000, **fields)
        assert answer["exit_code"] == 0, answer
    return answer["stdout"]


# ---- the interpreter's names ----

@test
def the_interpreter_is_where_requests_name_it():
    path = "/snekbin/python/%s/bin/python"
    code = ("import os, subprocess, sys\n"
            "for name in ('default', '%d.%d' % sys.version_info[:2]):\n"
            "    name = '/snekbin/python/' + name + '/bin/python'\n"
            "    print(os.path.samefile(name, sys.executable),\n"
            "          subprocess.run([name, '-c', 'import json, sys; "
            "print(sys.prefix)'], stdout=-1).stdout.decode() ==\n"
            "          sys.prefix + '\\n')\n")
    for name in ("", path % "default", path % "3.11"):
        assert said("/eval", code, executable_path=name) == (
            "True True\n" * 2), name


@test
def nobody_changes_those_names():
    """The next run would start what they name."""
    code = ("import os\n"
            "for step in (lambda: open('/snekbin/x', 'w'),\n"
            "             lambda: os.mkdir('/snekbin/x'),\n"
            "             lambda: os.chmod('/snekbin', 0o777),\n"
            "             lambda: os.utime('/snekbin/python'),\n"
            "             lambda: os.rename('/snekbin/python', '/snekbin/p'),"
            "\n             lambda: os.remove('/snekbin/python/default/bin/"
            "python')):\n"
            "    try:\n        step()\n"
            "    except OSError as error:\n        print(error.errno)\n")
    for route in ("/eval", "/v1/execute"):
        assert said(route, code) == "30\n" * 6, route


# ---- what can be written ----

@test
def a_run_writes_where_its_contract_says():
    code = ("import os\n"
            "for path in ('/home', '/workspace', '/tmp', '/dev/shm',\n"
            "             '/snekbin', '/'):\n"
            "    try:\n"
            "        open(path + '/x', 'w').close()\n"
            "        os.remove(path + '/x')\n"
            "        print(path, os.statvfs(path).f_flag & 8)\n"
            "    except OSError as error:\n"
            "        assert error.errno in (13, 30), error\n")
    assert said("/eval", code) == "/home 0\n/dev/shm 8\n"
    assert said("/v1/execute", code) == (
        "/workspace 0\n/tmp 8\n/dev/shm 8\n")


@test
def what_is_read_only_says_so():
    """As snekbox's own test asks for it."""
    code = ("for path in ('/', '/etc', '/lib', '/snekbox', '/usr'):\n"
            "    try:\n        open(path + '/hello', 'w')\n"
            "    except OSError as error:\n        print(error.errno)\n")
    assert said("/eval", code) == "30\n" * 5


@test
def nobody_gets_back_what_was_taken():
    code = ("import ctypes, os\n"
            "mount = ctypes.CDLL(None, use_errno=True).mount\n"
            "for flags in (32, 32 | 4096, 32 | 4096 | 6, 32 | 4096 | 7,\n"
            "              32 | 4096 | 14, 32 | 4096 | 15, 4096, 0):\n"
            "    assert mount(b'tmpfs', b'/tmp', b'tmpfs',\n"
            "                 ctypes.c_ulong(flags), None) == -1, flags\n"
            "    assert ctypes.get_errno() == 1, flags\n"
            "print('refused')\n")
    for route in ("/eval", "/v1/execute"):
        assert said(route, code) == "refused\n", route


@test
def folders_are_as_large_as_the_contracts_say():
    code = ("import os\n"
            "for path in ('/home', '/workspace', '/tmp', '/dev/shm'):\n"
            "    there = os.statvfs(path)\n"
            "    print(path, there.f_blocks * there.f_frsize >> 20)\n")
    assert said("/v1/execute", code) == (
        "/home 48\n/workspace 120\n/tmp 64\n/dev/shm 40\n")
    with Served(IL_API_CELLS="1", IL_API_MEMORY="70m") as small:
        assert small.eval(input=code)["stdout"].startswith("/home 48\n")
        # Full, and the answer has all of it.
        answer = small.eval(input=(
            "with open('full', 'wb', 0) as f:\n"
            "    try:\n        while f.write(bytes(65536)): pass\n"
            "    except OSError as error:\n        print(error.errno)\n"))
        assert answer["stdout"] == "28\n", answer["stdout"]
        assert [f["size"] for f in answer["files"]] == [48 << 20]
        assert small.eval(input="print(1)")["stdout"] == "1\n"
    with Served(IL_API_CELLS="1", IL_TUNE_API_SHM="64m") as other:
        assert "/workspace 96\n/tmp 64\n/dev/shm 64\n" in other.execute(
            code)["stdout"]


# ---- the length of a file ----

@test
def a_file_may_be_as_long_as_it_likes():
    code = ("import os, resource\n"
            "print(resource.getrlimit(resource.RLIMIT_FSIZE))\n"
            "with open('long', 'wb') as f:\n"
            "    f.truncate(300 << 20)\n"
            "print(os.stat('long').st_size >> 20)\n"
            "os.truncate('long', 1 << 40)\nos.remove('long')\n")
    for route in ("/eval", "/v1/execute"):
        assert said(route, code) == "(-1, -1)\n300\n", route
    session = served.post("/v1/sessions", {}).json["session_id"]
    answer = served.post("/v1/sessions/%s/bash" % session, {
        "cmd": "ulimit -f; truncate -s 300M f && stat -c %s f && rm f"})
    assert answer.json["stdout"] == "unlimited\n314572800\n", answer
    assert served.request("DELETE", "/v1/sessions/" + session).status == 204


@test
def what_is_written_is_held_by_the_folder():
    """ENOSPC, the run goes on, and so does its cell."""
    code = ("import os\n"
            "size = os.statvfs('.').f_blocks * os.statvfs('.').f_frsize\n"
            "n = 0\n"
            "with open('full', 'wb', 0) as f:\n"
            "    f.truncate(300 << 20)\n"
            "    try:\n"
            "        while True:\n"
            "            n += f.write(b'x' * 65536)\n"
            "    except OSError as error:\n"
            "        print(error.errno, size - n < 1 << 20)\n"
            "os.remove('full')\n")
    for route in ("/eval", "/v1/execute"):
        for _ in range(3):
            assert said(route, code) == "28 True\n", route


@test
def a_long_file_of_holes_does_not_come_back():
    make = "open('%s', 'wb').truncate(%d)\n"
    code = ("open('small', 'w').write('x')\n" + make % ("long", 300 << 20) +
            make % ("endless", (1 << 63) - 1))
    answer = served.post("/eval", {"input": code}, EXTRAS).json
    assert [f["path"] for f in answer["files"]] == ["small"], answer
    assert [(f["path"], f["size"]) for f in answer["left_out"]] == [
        ("endless", (1 << 63) - 1), ("long", 300 << 20)], answer
    answer = served.post("/v1/execute", {"code": code}, EXTRAS).json
    assert answer["exit_code"] == 0, answer
    kept = [f["path"] for f in answer["files"] if f.get("file_id")]
    assert kept == ["small"], answer


try:
    run()
finally:
    served.close()
