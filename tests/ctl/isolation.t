#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What operators are told of how the runs of the HTTP APIs are held apart."""

import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
for folder in "broker", "api":
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), folder))
from brokerlib import Asked, pack  # noqa: E402
from served import Served, wait_for  # noqa: E402
from service import BUILD  # noqa: E402
from tap import run, test  # noqa: E402


def told(service):
    """(isolation, isolation_reason) of /health once the warm cell is up, and what the
    doctor says of it."""
    def known():
        inline = service.get("/health").json["inline"]
        return inline["isolation"] and inline
    inline = wait_for(known)
    text = service.ilctl("doctor")[1]
    at = text.rindex("\n", 0, text.index("isolation:")) + 1
    return inline["isolation"], inline["isolation_reason"], text[at:]


@test
def namespaces_for_each_run():
    with Served(IL_TUNE_API_WARM="1", IL_API_ISOLATION="run") as service:
        isolation, isolation_reason, text = told(service)
        assert (isolation, isolation_reason) == ("run", None)
        assert text.startswith("ok    isolation: each run of the APIs has "
                               "namespaces"), text


@test
def a_container_for_each_run_because_it_was_asked_for():
    with Served(IL_TUNE_API_WARM="1", IL_API_ISOLATION="cell") as service:
        isolation, isolation_reason, text = told(service)
        assert (isolation, isolation_reason) == ("cell", "asked for")
        assert text.startswith("note  isolation: each run of the APIs has a "
                               "container"), text
        assert "better: IL_API_ISOLATION=auto" in text, text
        assert service.ilctl("doctor")[0] == 0, "a note is no fault"


@test
def the_port_that_is_in_use_is_found():
    with Served(IL_API_CELLS="1") as service:
        code, out, errors = service.ilctl("doctor", IL_HTTP_PORT="1")
        assert (f"HTTP APIs: http://127.0.0.1:{service.port}/health answers"
                in out), (code, out, errors)


def without_namespaces(folder):
    """A library whose profile allows no namespaces."""
    lib = os.path.join(folder, "lib")
    shutil.copytree(os.path.join(BUILD, "lib"), lib, symlinks=True)
    shutil.copy(lib + "/seccomp.json", lib + "/seccomp-api.json")
    return lib


@test
def a_container_for_each_run_because_the_host_forbids_more():
    served = Served(IL_TUNE_API_WARM="1")
    served.settings["IL_TUNE_LIB_DIR"] = without_namespaces(served.folder)
    with served as service:
        isolation, isolation_reason, text = told(service)
        assert isolation == "cell"
        # the one by Docker 20.10, the other by later ones
        assert isolation_reason in ("unshare: EPERM", "unshare: ENOSYS"), isolation_reason
        assert "note  isolation" in text and isolation_reason in text, text
        tried = subprocess.run(["unshare", "--user", "--mount", "true"])
        assert ("works outside of containers" in text) == (
            tried.returncode == 0), text
        for _ in range(3):
            assert service.eval(input="print(42)")["stdout"] == "42\n"


@test
def runs_that_see_the_locks_of_others():
    """The kernel mounts no such file system for a cell."""
    served = Served(IL_TUNE_API_WARM="1")
    lib = os.path.join(served.folder, "lib")
    shutil.copytree(os.path.join(BUILD, "lib"), lib)
    path = os.path.join(lib, "cell", "jail.py")
    with open(path) as file:
        text = file.read()
    os.unlink(path)
    with open(path, "w") as file:
        file.write(text.replace('b"overlay"', 'b"no-such"'))
    served.settings["IL_TUNE_LIB_DIR"] = lib
    with served as service:
        assert told(service)[0] == "run"
        broker = os.path.join(served.settings["IL_STATE_DIR"], "broker", "ctl",
                              "lease.sock")
        with Asked(broker, pack("STAGE")) as staged:
            assert staged.answer()[0] == "GRANTED", staged.fields
            with Asked(broker, pack("PUBLISH")) as asked:
                assert asked.answer()[0] == "GRANTED", asked.fields
        assert service.eval(input="print(42)")["stdout"] == "42\n"
        wait_for(lambda: service.get("/health").json["inline"][
            "isolation_reason"])
        isolation, reason, text = told(service)
        assert isolation == "run" and reason.startswith("mount overlay "), reason
        assert "sees others' locks on files of installed packages" in text, text


@test
def nothing_starts_where_namespaces_are_insisted_on():
    served = Served(IL_TUNE_API_WARM="1", IL_API_ISOLATION="run")
    served.settings["IL_TUNE_LIB_DIR"] = without_namespaces(served.folder)
    with served as service:
        text = told(service)[2]
        assert text.startswith("FAIL  isolation: IL_API_ISOLATION=run"), text
        assert service.ilctl("doctor")[0] == 1
        answer = service.post("/eval", {"input": "print(42)"})
        assert answer.status >= 500, answer


run()
