#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The engine away, the image missing, and a docker that hangs, lies or dies:
requests are answered soon and truthfully, and all is well when it is back."""
from brokerlib import *
from fake import Fake, REAL

SOON_S = 20

def probe_fails():
    for mode in "down", "die", "lie", "flood", "hang", "quiet":
        fake = Fake(probe=mode)
        with Broker(**fake.settings) as b:
            b.create(1)
            began = time.monotonic()
            is_(b.refusal(1), "ENGINE", mode + ": the engine is said to be away")
            ok(time.monotonic() - began < SOON_S, "soon")
            is_(b.status()["ENGINE"], 0, "the status says it too")
            fake.set(probe="real")
            ok(b.wait_granted(1), "when it is back: granted")
        fake.close()


def status_waits_for_nobody():
    """What is known last, and how old that is; docker is asked behind it."""
    fake = Fake(probe="hang")
    with Broker(**fake.settings) as b:
        asked = b.ask(pack("STATUS"))
        kind, fields = asked.answer(PATIENCE)
        is_(kind, "STATUS_IS", "docker hangs: there is a status")
        ok(not b.logged().count("does not answer"),
           "before its deadline has passed")
        ok("ENGINE_AGE" not in fields, "nothing is known yet")
        b.wait_log("does not answer")
        fields = b.status()
        ok(fields["ENGINE"] == 0 and fields["ENGINE_AGE"] >= 0,
           "then it is away, since just now")
        ok(b"timed out" in fields["TROUBLE"] or fields["TROUBLE"],
           "and why")
        note(fields["TROUBLE"])
        fake.set(probe="real")
        b.wait_status(ENGINE=1, patience=PATIENCE)
        ok("TROUBLE" not in b.status() or not b.status()["TROUBLE"],
           "it is found to be back, without anybody's lease")
        probes = fake.calls().count("probe")
        end = time.monotonic() + PATIENCE
        age = 0
        while fake.calls().count("probe") == probes and \
                time.monotonic() < end:
            age = max(age, b.status()["ENGINE_AGE"])
            time.sleep(0.2)
        ok(1000 < age < 20000, "what is old is asked for anew: %d ms" % age)
    fake.close()


def run_fails():
    for mode, why in (("fails", "START"), ("die", "ENGINE"), ("flood", "START"),
                      ("lie", "START"), ("quiet", "START"), ("down", "ENGINE"),
                      ("noimage", "IMAGE")):
        fake = Fake(run=mode)
        with Broker(**fake.settings) as b:
            b.create(1)
            began = time.monotonic()
            is_(b.refusal(1), why, "docker run, %s: refused" % mode)
            ok(time.monotonic() - began < SOON_S, "soon")
            b.wait_status(CELLS=0)
            fake.set(run="real")
            ok(b.wait_granted(1), "and granted when it works")
        fake.close()


def run_says_why():
    fake = Fake(run="fails")
    with Broker(**fake.settings) as b:
        b.create(1)
        asked = b.ask_lease(1)
        asked.answer()
        ok(b"the moon is full" in asked.fields["TEXT"],
           "the refusal holds docker's own words")
        ok("the moon is full" in b.logged(), "the log too")
    fake.close()


def run_hangs():
    fake = Fake(run="stubborn")
    with Broker(**fake.settings) as b:
        b.create(1)
        b.create(2)
        began = time.monotonic()
        one, two = b.ask_lease(1), b.ask_lease(2)
        is_([refusal_name(a.answer()[1]) for a in (one, two)],
            ["ENGINE", "ENGINE"], "docker run hangs: refused")
        took = time.monotonic() - began
        note("after %.1f s" % took)
        ok(took < 55, "after its deadline")
        fake.set(run="real")
        ok(b.wait_granted(1), "then it works again")
        b.wait_status(STARTING=0)
        is_(b.stop(), 0, "and ends well")
    fake.close()


def one_run_hangs():
    """Of starts that succeed beside it the status tells no trouble."""
    fake = Fake(run="stubborn")
    with Broker(**fake.settings) as b:
        b.create(1)
        b.create(2)
        one = b.ask_lease(1)
        pending = 0
        end = time.monotonic() + PATIENCE
        while pending < 3000 and time.monotonic() < end:
            pending = b.status().get("START_PENDING", 0)
            time.sleep(0.1)     # a number is asked for anew
        fake.set(run="real")
        ok(b.wait_granted(2), "beside a docker run that hangs: granted")
        now = b.status()["START_PENDING"]
        ok(now < 3000 <= pending, "starts are late since then: %d ms" % now)
        one.close()
    fake.close()


def kill_fails():
    fake = Fake()
    with Broker(IL_CELLS="1", **fake.settings) as b:
        b.create(1)
        lease = b.lease(1)
        fake.set(rm="fails")
        # A cell that cannot notice the end of its control socket.
        subprocess.run([REAL, "pause", lease.name()], check=True,
                       stdout=subprocess.DEVNULL)
        lease.close()
        b.wait_log("the moon is full", 2)
        is_(b.status()["CELLS"], 1, "a cell that cannot be killed still counts")
        fake.set(rm="real")
        b.wait_status(CELLS=0)
        ok(True, "the kill is repeated until it works")
        is_(b.refusal(1), "GRANTED", "then there is a new one")
    fake.close()


def interpreters_pulled():
    images = "a=%s,b=inline-test:none,c=inline-test:nor-that" % IMAGE
    for pull, words in (("quiet", ("none was pulled", "that was pulled")),
                        ("fails", ("no Python b", "no Python c"))):
        fake = Fake(pull=pull)
        with Broker(SANDBOX_PULL_ON_STARTUP="1", SANDBOX_IMAGES=images,
                    **fake.settings) as b:
            for word in words:
                b.wait_log(word)
            is_(fake.calls().count("pull"), 2,
                "what is missing of SANDBOX_IMAGES is pulled once: " + pull)
            b.create(1)
            ok(b.wait_granted(1), "and all else goes on")
        fake.close()
    fake = Fake(pull="hang")
    with Broker(SANDBOX_PULL_ON_STARTUP="1", SANDBOX_IMAGES=images,
                **fake.settings) as b:
        b.wait_log("pulling")
    ok(True, "a pull that hangs does not keep it from ending")
    fake.close()


def nothing_works_at_the_end():
    fake = Fake()
    with Broker(**fake.settings) as b:
        b.create(1)
        b.lease(1)
        fake.set(all="hang")
        began = time.monotonic()
        is_(b.stop(), 0, "SIGTERM while docker hangs: exit 0")
        ok(time.monotonic() - began < 40, "within its bound")
        b.wait_no_container()
        ok(True, "the cell went by itself")
    fake.close()


def no_program():
    with Broker(DOCKER_BINARY="/nonexistent/docker") as b:
        is_(b.create(1), "GRANTED", "no docker at all: workspaces can be made")
        is_(b.refusal(1), "ENGINE", "leases are refused")
        is_(b.status()["ENGINE"], 0, "the status says so")


def podman():
    fake = Fake(all="podman")
    b = Broker(start=False, **fake.settings)
    with open(b.log, "ab") as log:
        done = subprocess.run([PROGRAM], env=b.environment({}), stdout=log,
                              stderr=log, cwd="/", timeout=60)
    is_(done.returncode, 78, "podman: a start ends as with any wrong key")
    ok("DOCKER_BINARY: podman is not supported" in b.logged(),
       "it says what is wrong")
    ok("volume-nocopy" in b.logged(), "and why")
    b.close()
    fake.close()


def image_missing():
    with Broker(SANDBOX_IMAGE="broker-test/none:1") as b:
        b.create(1)
        is_(b.refusal(1), "IMAGE", "an image that is not there")
        is_((b.status()["ENGINE"], b.status()["IMAGE"]), (1, 0),
            "the engine is there")


def image_pulled():
    fake = Fake(probe="noimage", pull="quiet")
    with Broker(SANDBOX_PULL_ON_STARTUP="1", **fake.settings) as b:
        b.create(1)
        b.wait_log("was pulled")
        ok("pull" in fake.calls(), "a missing image is pulled at start")
        fake.set(probe="real")
        ok(b.wait_granted(1), "then there are leases")
    fake.close()
    fake = Fake(probe="noimage", pull="hang")
    with Broker(SANDBOX_PULL_ON_STARTUP="1", **fake.settings) as b:
        b.create(1)
        b.wait_log("pulling")
        is_(b.refusal(1), "IMAGE", "while it is pulled leases are refused")
        is_(b.stop(), 0, "and it can be ended")
    fake.close()
    fake = Fake(pull="quiet")
    with Broker(SANDBOX_PULL_ON_STARTUP="1", **fake.settings) as b:
        b.create(1)
        ok(b.wait_granted(1), "the image is there, and then it goes:")
        b.create(2)
        fake.set(probe="noimage", run="noimage")
        b.refusal(2)
        b.wait_log("was pulled")
        ok("pull" in fake.calls(), "it is pulled then")
    fake.close()
    fake = Fake(probe="noimage")
    with Broker(**fake.settings) as b:
        b.create(1)
        b.refusal(1)
        ok("pull" not in fake.calls(), "not without SANDBOX_PULL_ON_STARTUP")
    fake.close()


def engine_away_and_back():
    """The engine's socket behind a link, which is turned."""
    folder = tempfile.mkdtemp(prefix="broker-sock-")
    link = os.path.join(folder, "docker.sock")
    real = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")[7:]

    def turn(target):
        os.symlink(target, link + ".new")
        os.rename(link + ".new", link)

    turn(os.path.join(folder, "nobody"))
    try:
        with Broker(start=False) as b:
            b.start(DOCKER_HOST="unix://" + link)
            b.create(1)
            b.create(2)
            is_(b.refusal(1), "ENGINE", "the engine is away: refused")
            turn(real)
            b.wait_granted(1)
            lease = b.lease(1)
            is_(lease.run("print(1)")[1], b"1\n", "it is back: granted")
            turn(os.path.join(folder, "nobody"))
            is_(lease.run("print(2)")[1], b"2\n", "a lease goes on without it")
            lease.close()
            b.wait_status(LEASED=0)
            is_(b.refusal(1), "GRANTED", "a warm cell is leased without it")
            is_(b.refusal(2), "ENGINE", "a new one is refused")
            turn(real)
            ok(b.wait_granted(2), "until it is back")
    finally:
        shutil.rmtree(folder)


main(probe_fails, status_waits_for_nobody, run_fails, run_says_why, run_hangs,
     one_run_hangs, kill_fails, interpreters_pulled, nothing_works_at_the_end,
     no_program, podman, image_missing, image_pulled, engine_away_and_back)
