#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`ilctl run`: starts everything, watches it, and ends it in order."""

import os
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from house import House, is_alive, wait_gone  # noqa: E402
from client import Standin  # noqa: E402
from tap import run, test  # noqa: E402

ALL = ("il-sandboxd", "il-worker", "il-worker", "il-fcgi", "il-api")


@test
def it_starts_everything_and_says_where_to_look():
    with House() as house:
        lines = house.start().wait_starts(ALL)
        house.wait_ready()
        text = house.output.decode()
        assert f"http://127.0.0.1:{house.port}/interactions" in text, text
        assert "chat page" in text, text
        assert f"http://127.0.0.1:{house.port}/docs" in text, text
        slots = sorted(line[4] for line in lines if line[1] == "il-worker")
        assert slots == ["0", "1"], lines
        assert all(len(line[-1]) == len("key=") + 8 for line in lines), lines
        status, page = house.get("/")
        assert status == 200 and "<html" in page, (status, page[:200])
        assert house.stop() == 0, house.errors()


@test
def a_folder_for_files_that_is_not_there_is_made():
    with House() as house:
        files = os.path.join(house.folder, "new", "files")
        house.environment["IL_API_FILES"] = files
        house.start().wait_ready()
        assert os.path.isdir(files)
        assert house.stop() == 0, house.errors()


@test
def it_ends_in_order_and_leaves_nothing():
    with House() as house:
        house.start().wait_starts(ALL)
        house.wait_ready()
        pids = house.descendants()
        assert len(pids) >= 8, pids
        assert house.stop(signal.SIGINT) == 0, house.errors()
        ends = [house.wait_word("term")[1] for _ in ALL]
        assert ends[:2] == ["il-worker", "il-worker"], ends
        assert set(ends[2:4]) == {"il-fcgi", "il-api"}, ends
        assert ends[4:] == ["il-sandboxd"], ends
        assert not [pid for pid in pids if is_alive(pid)], pids
        left = {name for _, _, names in os.walk(house.state) for name in names}
        gone = {"lease.sock", "fcgi.sock", "api.sock", "run.sock",
                "files.sock", "session.sock", "connect.sock", "mcp.sock",
                "nginx.pid", "wake"}
        assert not left & gone, left


@test
def a_request_that_runs_is_answered_and_no_page_is_waited_for():
    """The stand-in's REST API takes two seconds for it; the event stream of a
    page would take for ever.
    """
    with House() as house:
        house.start().wait_ready()
        discord = Standin.attach(house.port)
        page, slow = house.connect(), house.connect()
        page.request("GET", "/control/feed")
        assert page.getresponse().readline(), "no page"
        discord.fault("slow", "me", seconds=2)
        slow.request("GET", "/api/v10/applications/@me")
        while not discord.faults()[0]["hits"]:
            time.sleep(0.01)
        began = time.monotonic()
        assert house.stop() == 0, house.errors()
        assert time.monotonic() - began < 15, "the page was waited for"
        assert b"message" in slow.getresponse().read(), "was cut"
        page.close()
        slow.close()


@test
def a_program_that_dies_is_started_again():
    with House() as house:
        lines = house.start().wait_starts(ALL)
        house.wait_ready()
        for line in lines:
            os.kill(int(line[2]), signal.SIGKILL)
        again = house.wait_starts(ALL)
        assert not {line[2] for line in lines} & {line[2] for line in again}
        assert house.stop() == 0


@test
def nginx_killed_comes_back_although_its_workers_held_the_port():
    with House() as house:
        house.start().wait_ready()
        master = [pid for pid, line in house.children().items()
                  if line.startswith("nginx")]
        assert len(master) == 1, house.children()
        workers = [pid for pid, line in house.descendants().items()
                   if line.startswith("nginx: worker")]
        os.kill(master[0], signal.SIGKILL)
        assert wait_gone(master[0]) and all(map(wait_gone, workers))
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                status = house.get("/")[0]
                break
            except OSError:
                wait_gone(house.process.pid, 0.1)
        assert status == 200, status
        assert house.stop() == 0


@test
def one_that_always_dies_is_not_started_in_a_busy_loop():
    with House(do="il-api=exit:1") as house:
        house.start().wait_word("start", "il-api")
        began = time.monotonic()
        starts = 0
        while starts < 3:
            house.wait_word("start", "il-api")
            starts += 1
        # 0.2 + 0.4 + 0.8 s between them
        assert time.monotonic() - began > 1.2, time.monotonic() - began
        with open(f"/proc/{house.process.pid}/stat") as file:
            ticks = file.read().rsplit(")", 1)[1].split()
        assert int(ticks[11]) + int(ticks[12]) < 50, ticks
        assert house.stop() == 0


@test
def a_hopeless_program_ends_everything_with_its_reason():
    for code in (78, 64):
        with House(do=f"il-fcgi=exit:{code}") as house:
            house.start()
            assert house.wait() == code, house.errors()
            assert "il-fcgi" in house.errors()


@test
def a_missing_program_ends_everything():
    with House(leave_out=["il-worker"]) as house:
        house.start()
        assert house.wait() == 78
        assert "il-worker" in house.errors()


@test
def killed_with_9_it_takes_everything_along():
    with House() as house:
        house.start().wait_starts(ALL)
        house.wait_ready()
        pids = house.descendants()
        house.process.kill()
        house.process.wait()
        assert all(map(wait_gone, pids)), pids
        # and the next one starts over what is left
        house.start().wait_ready()
        assert house.stop() == 0, house.errors()


@test
def what_a_program_leaves_behind_is_ended_with_it():
    with House(do="il-api=leave") as house:
        house.start()
        left = int(house.wait_word("left", "il-api")[2])
        house.wait_ready()
        assert house.stop() == 0
        assert wait_gone(left), left


@test
def two_signals_within_a_second_are_one():
    with House(IL_STOP_SECONDS="1") as house:
        house.start().wait_ready()
        # both are there when it looks: no time lies between them
        for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGINT,
                       signal.SIGCONT):
            house.process.send_signal(number)
        assert house.wait() == 0
        for name in ("il-worker", "il-fcgi", "il-sandboxd"):
            house.wait_word("term", name)
        assert "hurrying" not in house.errors()


@test
def a_second_signal_hurries():
    with House(do="il-worker=stubborn") as house:
        house.start().wait_ready()
        began = time.monotonic()
        house.process.send_signal(signal.SIGINT)
        house.wait_word("term", "il-worker")
        wait_gone(house.process.pid, 1.1)  # a second signal, not the first
        assert house.stop(signal.SIGINT) == 0
        assert time.monotonic() - began < 18  # what others have to end
        house.wait_word("term", "il-sandboxd")


@test
def who_does_not_end_in_time_is_killed():
    with House(do="il-fcgi=stubborn") as house:
        house.start().wait_ready()
        pids = house.descendants()
        assert house.stop() == 0
        assert "il-fcgi did not end in time" in house.errors()
        assert not [pid for pid in pids if is_alive(pid)], pids


@test
def two_do_not_share_a_state_folder():
    with House() as house:
        house.start().wait_ready()
        code, _, errors = house.ilctl("run", IL_HTTP_PORT="1")
        assert code == 78 and "another ilctl" in errors, (code, errors)
        assert house.get("/")[0] == 200
        assert house.stop() == 0


@test
def a_taken_port_is_said():
    with House() as house, socket.socket() as taken:
        taken.bind(("127.0.0.1", house.port))
        taken.listen()
        code, _, errors = house.ilctl("run")
        assert code == 78 and "IL_HTTP_PORT" in errors, (code, errors)


@test
def a_wrong_setting_is_said():
    with House() as house:
        code, _, errors = house.ilctl("run", IL_WORKERS="none")
        assert code == 78 and "IL_WORKERS" in errors, (code, errors)
        code, _, errors = house.ilctl("run", "surplus")
        assert code == 64 and "usage" in errors, (code, errors)


@test
def files_of_others_are_not_given_to_il_api():
    if os.geteuid() != 0:
        return      # all are one user's then
    with House() as house:
        files = os.path.join(house.folder, "files")
        os.mkdir(files)
        victim = os.path.join(files, "victim")
        open(victim, "w").close()
        code, _, errors = house.ilctl("run", IL_API_FILES=files)
        assert code == 78 and "IL_API_FILES" in errors, (code, errors)
        assert "name an empty folder" in errors, errors
        assert os.stat(victim).st_uid == 0
        os.rename(victim, os.path.join(files, "lost+found"))
        house.environment["IL_API_FILES"] = files
        house.start().wait_ready()
        assert os.stat(files).st_uid != 0
        assert house.stop() == 0


@test
def a_secret_is_read_where_it_is_or_refused():
    """A link is not given to il-api: who may read what it leads to is the
    operator's to say.
    """
    if os.geteuid() != 0:
        return
    with House() as house:
        secret, link = (os.path.join(house.folder, name)
                        for name in ("secret", "tokens"))
        open(secret, "w").close()
        os.symlink("secret", link)
        os.chmod(secret, 0o400)
        code, _, errors = house.ilctl("run", IL_API_TOKENS_FILE=link)
        assert code == 78 and "0444, or 0440" in errors, (code, errors)
        os.chmod(secret, 0o444)
        house.environment["IL_API_TOKENS_FILE"] = link
        house.start().wait_ready()
        stat = os.stat(link)
        assert (stat.st_uid, stat.st_gid, stat.st_mode & 0o777) == (
            0, 0, 0o444), stat
        assert house.stop() == 0


@test
def a_secret_that_all_may_read_is_read_in_a_folder_of_root_alone():
    if os.geteuid() != 0:
        return
    with House() as house:
        folder = os.path.join(house.folder, "closed")
        os.mkdir(folder, 0o700)
        tokens = os.path.join(folder, "tokens")
        open(tokens, "w").close()
        os.chmod(tokens, 0o644)
        house.environment["IL_API_TOKENS_FILE"] = tokens
        house.start().wait_ready()
        stat = os.stat(folder)
        assert (stat.st_uid, stat.st_mode & 0o777) == (0, 0o710) and \
            stat.st_gid == os.stat(tokens).st_gid != 0, stat
        assert house.stop() == 0


@test
def with_a_public_key_there_is_no_stand_in():
    with House(DISCORD_PUBLIC_KEY="ab" * 32) as house:
        lines = house.start().wait_starts(ALL)
        house.wait_ready()
        assert "chat page" not in house.output.decode()
        assert all(line[-1] == "key=abababab" for line in lines), lines
        assert house.get("/")[0] == 404
        assert not [line for line in house.children().values()
                    if "standin" in line]
        assert house.stop() == 0


@test
def a_stand_in_that_ended_plays_on():
    with House() as house:
        house.start().wait_ready()
        pid = next(pid for pid, line in house.children().items()
                   if "standin" in line)
        os.kill(pid, signal.SIGKILL)
        assert wait_gone(pid)
        deadline = time.monotonic() + 60
        while house.get("/")[0] != 200 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert house.get("/")[0] == 200, house.errors()
        errors = house.errors()
        assert "stand-in was ended by signal 9" in errors, errors
        assert "with status" not in errors, errors
        assert house.stop() == 0


@test
def the_env_file_reaches_every_program():
    with House() as house:
        path = os.path.join(house.folder, "my.env")
        with open(path, "w") as file:
            file.write("IL_WORKERS=1\n")
        del house.environment["IL_WORKERS"]
        house.environment["IL_ENV_FILE"] = path
        house.start().wait_ready()
        workers = [line for line in house.children().values()
                   if "il-worker" in line]
        assert len(workers) == 1, workers
        assert house.stop() == 0


@test
def the_env_file_named_after_run_counts_where_another_is_found():
    with House() as house:
        del house.environment["IL_STATE_DIR"]
        os.mkdir(os.path.join(house.folder, "il_state"))
        with open(os.path.join(house.folder, ".env"), "w") as file:
            file.write("IL_WORKERS=2\n")
        path = os.path.join(house.folder, "my.env")
        with open(path, "w") as file:
            file.write("IL_USER_RATE=none\n")
        code, _, errors = house.ilctl("run", "-e", path)
        assert code == 78 and "IL_USER_RATE" in errors, (code, errors)


@test
def passwords_are_for_who_uses_them():
    """The bot's token is one: `ilctl register` alone uses it."""
    with House() as house:
        house.environment["DISCORD_TOKEN"] = "a.b.c"
        house.start().wait_ready()
        told = set()
        for pid, line in house.children().items():
            with open(f"/proc/{pid}/environ", "rb") as file:
                environment = b"\0" + file.read()
            if b"\0DISCORD_TOKEN=" in environment:
                told.add(line.split("/bin/")[-1].split()[0])
        assert told == set(), told
        assert house.stop() == 0


run()
