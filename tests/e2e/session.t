#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A notebook in chat: variables live on from run to run, and an answer says so
when they do not."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from service import DOCKER, Service, wait_for  # noqa: E402
from tap import run, test  # noqa: E402

service = Service(IL_TIMEOUT_SECONDS="4", IL_WORKERS="2", IL_TUNE_SPARE_CELLS="1",
                  IL_SESSION_SECONDS="600", IL_TUNE_SESSIONS="1")


py, say = service.run, service.say


@test
def without_one_nothing_lives_on():
    assert "There is no session" in say("session status")
    assert "There is no session" in say("session stop")
    py("x = 1")
    assert "NameError" in py("print(x)")


@test
def one_run_is_kept_for_the_next():
    py("x = 20", keep=True)
    assert "21" in py("print(x + 1)")
    text = py("print(x)")
    assert "NameError" in text and "had ended" not in text, text


@test
def variables_imports_and_the_folder_live_on():
    assert "session is on" in say("session start")
    py("import os, math as m; x = 1; os.mkdir('d'); os.chdir('d')")
    text = py("x += 1; (x, m.pi > 3, os.getcwd())")
    assert "(2, True, '/workspace/d')" in text, text
    assert "ZeroDivisionError" in py("1 / 0")
    assert "3" in py("import sys; print(x + 1); sys.exit(3)")
    text = say("session status")
    assert "variables" in text and "of memory" in text, text
    say("look")
    assert "x is 2" in py("print('x is', x)")


@test
def a_limit_ends_it_and_the_next_answer_says_so():
    py("x = 5")
    assert "limit" in py("while True: pass")
    text = py("print('x' in globals())")
    assert "False" in text and "had ended: the time limit" in text, text
    text = py("x = 6; print('on')")
    assert "had ended" not in text, text
    py("import os; os._exit(0)")
    assert "had ended: the code ended Python itself" in py("x = 7")


@test
def so_does_a_restart():
    assert "7" in py("print(x)")
    service.kill("il-sandboxd")
    text = py("print('x' in globals())")
    assert "False" in text and "the service was restarted" in text, text


@test
def so_does_another_person_where_there_is_one_place():
    py("x = 8")
    service.create("bob")
    py("y = 1", user="bob", keep=True)
    wait_for(lambda: "Nothing is in memory" in say("session status"))
    text = py("print('x' in globals())")
    assert "False" in text and "others needed its place" in text, text


@test
def its_cell_is_killed():
    py("x = 9")
    killed = service.containers()
    subprocess.run([DOCKER, "kill"] + killed, stdout=subprocess.DEVNULL)
    wait_for(lambda: not set(killed) & set(service.containers()))
    text = py("print('x' in globals())")
    assert "False" in text and "ended from outside" in text, text


@test
def its_owner_stops_it():
    py("x = 9")
    assert "session is over" in say("session stop")
    assert "There is no session" in say("session status")
    text = py("print('x' in globals())")
    assert "False" in text and "had ended" not in text, text


@test
def nothing_broke_discords_rules():
    service.assert_kept_discords_rules()


with service:
    service.create("alice")
    run()
