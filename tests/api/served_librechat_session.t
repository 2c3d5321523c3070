#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""LibreChat's stateful agents (runtime_session_hint): the runs of a conversation
have one cell, where there is room; otherwise each has a fresh one."""

import json
import os
import re
import subprocess
import tempfile
import threading

from libre import JSON, Libre, reference, refused
from served import Served, wait_for
from service import BUILD, docker
from tap import run, test

folder = tempfile.TemporaryDirectory(prefix="inline-libre-")
path = os.path.join(folder.name, "tokens")


def add(name, *options):
    told = subprocess.run([os.path.join(BUILD, "bin", "ilctl"), "token", "-f",
                           path, *options, "add", name], check=True, text=True,
                          capture_output=True).stdout
    return next(word for word in told.split() if word.startswith("il_"))


key, other_key, small_key = add("first"), add("second"), add("third", "-c", "1")
served = Served(IL_API_TOKENS_FILE=path, IL_API_CELLS="2",
                IL_API_SESSIONS="3").__enter__()
libre = Libre(served, {"X-API-Key": key})
stranger = Libre(served, {"X-API-Key": other_key})


made = []  # the digits of the sessions


def say(client, hint, code, lang="bash", **more):
    told = client.exec(code, lang, runtime_session_hint=hint, **more)
    if status(told) == "new":
        made.append(told["runtime_session_id"])
    return told


def status(told):
    return told.get("runtime_status")


def sessions(of=served):
    """How many there are."""
    text = of.get("/metrics", Authorization="Bearer " + key).text
    found = re.search(r"^inline_api_sessions (\d+)$", text, re.M)
    return int(found.group(1))


def end_all():
    """Whoever has them ends them."""
    while made:
        for token in key, other_key, small_key:
            served.request("DELETE", "/v1/sessions/code-session-" + made[-1],
                           headers={"Authorization": "Bearer " + token})
        made.pop()
    assert sessions() == 0, sessions()


@test
def a_conversation_has_one_work_folder():
    first = say(libre, "a", "true")  # as the client warms it up
    assert status(first) == "new", first
    told = say(libre, "a", "print(1)\nopen('kept', 'w').write('k')", "py")
    assert (status(told), told["stdout"]) == ("reused", "1\n"), told
    assert told["runtime_session_id"] == first["runtime_session_id"], told
    assert libre.made(told) == {"kept": b"k"}, told
    told = say(libre, "a", "cat kept; ls -A", files=told["files"])
    assert told["stdout"] == "kkept\n", told
    assert [one.get("inherited") for one in told["files"]] == [True], told
    told = say(libre, "a", "cat kept")  # an older client sends no list
    assert told["stdout"] == "k", told
    end_all()


@test
def it_is_no_one_elses():
    assert status(say(libre, "b", "echo x >x")) == "new"
    assert status(say(libre, "c", "ls x")) == "new"
    others = say(stranger, "b", "ls x")
    assert status(others) == "new", others
    for told in others, say(libre, "c", "ls x"), libre.exec("ls x", "bash"):
        assert told["code"] == 2, told
    assert status(libre.exec("true", "bash")) is None
    end_all()


@test
def what_is_no_hint_is_none_or_refused():
    for hint in None, "":
        told = say(libre, hint, "true")
        assert told["code"] == 0 and status(told) is None, (hint, told)
    for hint, why in ((7, "must be a string"), (["a"], "must be a string"),
                      ("x" * 129, "must have at most 128 bytes"),
                      *((bad, 'may only contain letters, digits, ".", "_", '
                         '":", and "-"') for bad in (
                             "a\0b", "\ud800", "é", "a b", "a/b"))):
        refused(libre.post({"lang": "bash", "code": "true",
                            "runtime_session_hint": hint}), 400, {
                                "error": "runtime_session_hint " + why})
    assert status(say(libre, "Az09._:-" * 16, "true")) == "new"
    end_all()


@test
def changed_files_come_back_and_others_do_not():
    session, file_id = libre.put("in.csv", b"1")
    kept, kept_id = libre.put("same", b"s")
    files = [reference("in.csv", session, file_id),
             reference("same", kept, kept_id)]
    for _ in range(2):
        told = say(libre, "d", "echo 2 >>in.csv; cat in.csv", files=files)
        assert told["stdout"] == "12\n", told
        assert libre.made(told) == {"in.csv": b"12\n"}, told
    told = say(libre, "d", "cat in.csv", files=told["files"])
    assert told["stdout"] == "12\n" and not libre.made(told), told
    end_all()


@test
def its_processes_end_with_their_run():
    say(libre, "e", "(while :; do echo x >>alive; done) & "
        "until [ -s alive ]; do :; done")
    told = say(libre, "e", "a=$(wc -c <alive); sleep .3; "
               "[ $a = $(wc -c <alive) ] && echo ended")
    assert told["stdout"] == "ended\n", told
    end_all()


@test
def beside_a_run_of_the_same_conversation_a_fresh_cell_takes_it():
    say(libre, "f", "echo mine >x")
    answers = []
    thread = threading.Thread(target=lambda: answers.append(say(
        libre, "f", "touch began; until [ -e stop ]; do sleep .1; done; cat x",
        timeout=9000)))
    thread.start()
    # Nothing of the other cell can be seen from here, and so it is asked
    # until it has been busy.
    wait_for(lambda: status(say(libre, "f", "true")) is None)
    told = say(libre, "f", "cat x")
    assert (status(told), told["code"]) == (None, 1), told
    thread.join()
    assert status(answers[0]) == "reused", answers
    assert status(say(libre, "f", "cat x")) == "reused"
    end_all()


@test
def two_that_begin_at_one_time_make_one_session():
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(
        say(libre, "g", "echo x >>x; cat x"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    said = sorted(one["stdout"] for one in answers)
    # one after the other, or a fresh cell for who came while the other one ran
    beside = None in map(status, answers)
    assert said == (["x\n", "x\n"] if beside else ["x\n", "x\nx\n"]), answers
    assert sessions() == 1, sessions()
    end_all()


@test
def without_room_a_run_has_a_fresh_cell():
    for hint in "1", "2", "3":
        assert status(say(libre, hint, "true")) == "new"
    for client, hint in (libre, "4"), (stranger, "1"):
        told = say(client, hint, "echo here")
        assert (status(told), told["stdout"]) == (None, "here\n"), told
    assert status(say(libre, "1", "true")) == "reused"
    end_all()


@test
def a_key_has_as_many_conversations_as_cells_and_runs_beside_them():
    small = Libre(served, {"X-API-Key": small_key})
    assert status(say(small, "1", "true")) == "new"
    assert status(say(small, "2", "true")) is None
    assert status(say(small, "1", "true")) == "reused"
    end_all()


@test
def who_hangs_up_ends_the_run_but_not_the_session():
    say(libre, "h", "echo kept >kept")
    connection = served.connect()
    connection.request("POST", "/librechat/exec", json.dumps({
        "lang": "bash", "code": "echo x >began; sleep 600; echo y >>began",
        "timeout": 60000, "runtime_session_hint": "h"}),
        {**JSON, "X-API-Key": key})
    wait_for(lambda: status(say(libre, "h", "true")) is None)
    connection.close()
    # Long before its limit of 60 seconds.
    wait_for(lambda: status(say(libre, "h", "true")) == "reused", 30)
    told = say(libre, "h", "cat kept began")
    assert told["stdout"] == "kept\nx\n", told
    end_all()


@test
def what_a_folder_does_not_take_a_fresh_cell_does():
    session, file_id = libre.put("data", b"file")
    say(libre, "i", "mkdir data; touch data/x")
    told = say(libre, "i", "cat data", files=[
        reference("data", session, file_id)])
    assert (status(told), told["stdout"]) == (None, "file"), told
    told = say(libre, "i", "cat data", files=told["files"])
    assert (status(told), told["stdout"]) == ("new", "file"), told
    end_all()


@test
def a_lost_cell_is_a_new_one_next_time():
    say(libre, "j", "echo x >x")
    for name in served.containers(everything=False):
        docker("kill", name, check=False)
    wait_for(lambda: sessions() == 0)
    told = say(libre, "j", "ls x")
    assert (status(told), told["code"]) == ("new", 2), told
    end_all()


@test
def it_ends_when_it_has_rested():
    with Served(IL_TUNE_LIBRECHAT_REST_SECONDS="1") as short:
        client = Libre(short)
        assert status(say(client, "k", "true")) == "new"
        wait_for(lambda: sessions(short) == 0)
    with Served(IL_TUNE_LIBRECHAT_REST_SECONDS="0") as none:
        told = say(Libre(none), "k", "echo 1")
        assert (status(told), told["stdout"]) == (None, "1\n"), told


run()
