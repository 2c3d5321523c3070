#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`/il pip` against a package index on this machine: wheels come and work, and
nothing of the user's runs where there is network."""

import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from package_index import Index, network  # noqa: E402
from service import Service  # noqa: E402
from client import File  # noqa: E402
from tap import run, test  # noqa: E402

NETWORK = f"inline-e2e-{os.getpid()}"
DONE = "nstalled:? `"
SITE = "/workspace/.site-packages"
# Tells the index that it ran, by any way that is left to it.
CALL = ("import urllib.request, ssl\n"
        "try: urllib.request.urlopen('{origin}/ran/{name}', timeout=3,"
        " context=ssl._create_unverified_context())\n"
        "except Exception: pass\n"
        "try: open('/site/RAN-{name}', 'w').close()\n"
        "except OSError: pass\n")


def pip(packages, service=None, timeout=90):
    """Install; returns the text in the end."""
    sent = (service or house).discord.send_command("pip", user="alice",
                                                   packages=packages)
    return sent.wait_final(match=DONE, timeout=timeout).original.text()


def calls():
    """Return what ran and told so: at the index, or by a file."""
    found = [path for path in index.paths if "/ran/" in path]
    text = house.run(f"import os\nprint(*os.listdir('{SITE}'))")
    return found + [word for word in text.split() if "RAN-" in word]


def call(name):
    """Return source that tells that it ran."""
    return CALL.format(origin=index.origin, name=name)


def offer():
    """Fill the index."""
    index.add_wheel("demo", "1.0", {"demo.py": "import part\nversion = 1\n",
                                    "demo_old.py": ""}, ["part>=2"])
    index.add_wheel("demo", "2.0", {"demo.py": "import part\nversion = 2\n"},
                    ["part>=2"])
    index.add_wheel("part", "1.0", {"part.py": "version = 1\n"})
    index.add_wheel("part", "2.0", {"part.py": "version = 2\n"})
    index.add_wheel("tool", "1.0", {"tool.py": "def main():\n"
                                    "    print('tool', 'ran')\n"},
                    scripts="tool = tool:main")
    index.add_wheel("huge", "1.0", {"huge.bin": os.urandom(40 << 20)})
    index.add_wheel("hostile", "1.0", {
        "hostile.pth": f"import os; exec({call('wheel-pth')!r})\n",
        "sitecustomize.py": call("wheel-site"), "pip/__init__.py": "",
        "pip/__main__.py": call("wheel-pip"), "ssl.py": call("wheel-ssl")})
    index.add_wheel("stuck", "1.0", {"stuck.py": ""}, slow=60)
    for i in range(5):
        index.add_wheel(f"slow{i}", "1.0", {f"slow{i}.py": ""},
                        [f"slow{i + 1}"] if i < 4 else [], slow=1.6)
    backend = ("import os\n" + call("sdist") +
               "def build_wheel(folder, *_, **__):\n"
               "    import package\n"
               "    name = 'source-1.0-py3-none-any.whl'\n"
               "    with open(os.path.join(folder, name), 'wb') as f:\n"
               "        f.write(package.make())\n"
               "    return name\n")
    package = ("import io, zipfile\n"
               "def make():\n"
               "    out = io.BytesIO()\n"
               "    i = 'source-1.0.dist-info/'\n"
               "    with zipfile.ZipFile(out, 'w') as z:\n"
               "        z.writestr('source.py', 'built = True')\n"
               "        z.writestr(i + 'METADATA', 'Metadata-Version: 2.1\\n"
               "Name: source\\nVersion: 1.0\\n')\n"
               "        z.writestr(i + 'WHEEL', 'Wheel-Version: 1.0\\n"
               "Root-Is-Purelib: true\\nTag: py3-none-any\\n')\n"
               "        z.writestr(i + 'RECORD', '')\n"
               "    return out.getvalue()\n")
    index.add_sdist("demo", "3.0", {})
    index.add_sdist("source", "1.0", {
        "pyproject.toml": "[build-system]\nrequires = []\n"
                          "build-backend = 'backend'\nbackend-path = ['.']\n",
        "backend.py": backend, "package.py": package,
        "setup.py": call("setup")})


@test
def a_package_and_what_it_needs_can_be_imported():
    text = pip("demo==1.0")
    assert text == "Installed `demo==1.0`.", text
    text = house.run("import demo, part\nprint(demo.version, part.version)")
    assert "1 2" in text, text


@test
def a_newer_version_takes_the_place_of_the_older():
    pip("'demo >= 2'")
    text = house.run("import demo, importlib.metadata as m, os\n"
                     "print(demo.version, m.version('demo'),"
                     " sorted(n for n in os.listdir('%s') if 'demo' in n"
                     " and n[0] != '_'))" % SITE)
    assert "2 2.0 ['demo-2.0.dist-info', 'demo.py']" in text, text


@test
def several_packages_and_scripts():
    text = pip("tool part==1.0")
    assert "`tool`" in text and "`part==1.0`" in text, text
    text = house.run("import subprocess, sys, part\n"
                     "print(part.version, flush=True)\n"
                     "subprocess.run([sys.executable, '-c',"
                     " 'import tool; tool.main()'])\n"
                     f"print(open('{SITE}/bin/tool').read(2))")
    assert "1\ntool ran\n#!" in text, text


@test
def what_does_not_exist_is_told():
    text = pip("nunpy")
    assert "There is no project `nunpy`." in text, text
    assert "Nearest to that: `numpy`" in text, text
    assert "wheel" not in text, text
    text = pip("'Demo == 9'")
    assert "There is no `Demo==9`. There are: `2.0`, `1.0`." in text, text
    assert "wheel" not in text and "project" not in text, text
    for word in ("source", "source==1.0", "demo==3.0"):
        text = pip(word)
        assert f"no `{word}` as a wheel" in text, text


@test
def a_source_distribution_is_refused_and_does_not_run():
    text = pip("source")
    assert "Not installed" in text and "built" in text, text
    assert not calls(), calls()


@test
def the_log_is_shown_live_and_not_too_often():
    sent = house.discord.send_command("pip", user="alice", packages="slow0")
    sent.wait_final(match=DONE)
    edits = house.discord.requests(route="edit", interaction=sent.id)
    texts = [one["payload"]["content"] for one in edits]
    assert len(texts) >= 3 and "Installing" in texts[0], texts
    assert "slow1" in "".join(texts[:-1]), texts
    assert len(set(texts)) == len(texts), texts
    times = [one["time"] for one in edits[:-1]]
    assert all(later - sooner >= 2.9
               for sooner, later in zip(times, times[1:])), times


@test
def too_large_for_the_quota_is_told_and_leaves_room():
    text = pip("huge")
    assert "Not installed" in text and "room for packages" in text, text
    text = house.run(f"import os\nprint(os.path.exists('{SITE}/huge.bin'),"
                     f" [n for n in os.listdir('{SITE}') if n[0] == '.'])")
    assert "False []" in text, text
    assert "Installed" in pip("part==2.0")


@test
def the_user_plants_nothing_where_there_is_network():
    """The cell that has network mounts what a cell of the user's only reads."""
    text = house.run(
        f"import os\nos.chdir('{SITE}')\n"
        f"code = {call('planted')!r}\n"
        "for name in ('sitecustomize.py', 'x.pth', 'demo/__init__.py',"
        " 'pip.conf'):\n"
        "    try:\n"
        "        open(name, 'w').write(code)\n"
        "        print('planted', name)\n"
        "    except OSError as error:\n"
        "        print(error.strerror)\n"
        "for call in (lambda: os.symlink('/run/cell', 'slow0'),"
        " lambda: os.rename('demo', 'part'), lambda: os.mkdir('x'),"
        " lambda: os.remove('demo/__init__.py'), lambda: os.chmod('.', 0)):\n"
        "    try:\n"
        "        call()\n"
        "        print('planted')\n"
        "    except OSError as error:\n"
        "        print(error.strerror)\n")
    assert "planted" not in text, text
    assert text.count("Read-only file system") >= 7, text
    text = house.say("write", name=".site-packages/x.pth", content="import os")
    assert "`/il pip` installs" in text, text


@test
def what_a_package_brings_runs_nothing_with_network():
    text = pip("demo==1.0")
    assert "Installed" in text, text
    text = pip("hostile")
    assert "Installed" in text, text
    text = pip("tool")
    assert "Installed" in text, text
    text = house.run("print('sa' + 'fe')")
    found = [path for path in index.paths if "/ran/" in path]
    assert not found, found


@test
def packages_are_removed():
    text = house.say("rm", name=".site-packages/hostile.py")
    assert "Removed" in text or "does not exist" in text, text
    text = house.say("rm", name=".site-packages")
    assert "recursive:True" in text, text
    text = house.say("rm", name=".site-packages", recursive=True)
    assert "Removed" in text, text
    text = house.run("import os\nprint(os.listdir('.site-packages'))")
    assert "[]" in text, text
    text = house.say("look")
    assert ".site-packages" not in text, text


def removed(name):
    """Remove a package; returns the final message."""
    sent = house.discord.send_command("packages remove", user="alice",
                                      name=name)
    sent.wait_final(timeout=90)
    return sent.original


def there():
    """The packages that are installed, as they are listed."""
    text = house.say("packages list")
    return [name for name in ("demo", "part", "tool") if name in text]


@test
def what_nothing_needs_any_more_is_named_and_goes_with_a_button():
    pip("demo==2.0")
    pip("tool")
    assert there() == ["demo", "part", "tool"]
    message = removed("demo")
    assert "Removed the package `demo`. Nothing needs these any more: " \
        "`part`." in message.text(), message
    assert there() == ["part", "tool"]
    house.discord.press(message, "Remove these, too").wait_final(timeout=90)
    text = message.refresh().text()
    assert "Removed `part`." in text and "packages: " in text, text
    assert there() == ["tool"]
    pip("part==2.0")
    pip("demo==2.0")    # which brings part once more
    message = removed("demo")
    assert "Nothing needs" not in message.text(), message
    assert not message.buttons(), message
    assert there() == ["part", "tool"]


@test
def both_spaces_are_told_with_their_limits():
    index.add_wheel("large", "1.0", {"large.bin": os.urandom(9 << 20)})
    assert "Installed" in pip("large")
    for command in ("look", "packages list"):
        text = house.say(command)
        line = text.splitlines()[-1]
        assert re.search(r"-# .* of 256 MiB used, .* of 10,000 files"
                         r" · packages: 9(\.\d+)? MiB of 32 MiB$", line), text
    text = house.say("create")
    assert "256 MiB in 10,000 files, and 32 MiB of packages" in text, text
    text = house.run("for i in range(300): open(f'f{i}', 'wb')"
                     ".write(bytes(1 << 20))")
    assert "(256 MiB)" in text, text
    house.run("f = open('rest', 'wb', buffering=0)\n"
              "while True: f.write(bytes(1 << 20))")
    text = house.say("put", file=File("more", "x" * (2 << 20)))
    assert "256 MiB in 10,000 files" in text, text
    assert " of 256 MiB used" in text and "of 32 MiB" in text, text
    text = removed("large").text()
    assert re.search(r"-# packages: .* of 32 MiB", text), text


@test
def a_live_edit_that_is_limited_is_left_out():
    sent = house.discord.send_command("pip", user="alice", packages="slow0")
    house.discord.fault("rate_limit", "edit", interaction=sent.id)
    sent.wait_final(match=DONE)
    first, second = house.discord.requests(route="edit",
                                           interaction=sent.id)[:2]
    assert first["status"] == 429, first
    assert first["payload"] != second["payload"], (first, second)


@test
def an_installation_is_cancelled():
    sent = house.discord.send_command("pip", user="alice", packages="stuck")
    sent.wait_edits(1, match="Installing")
    house.discord.press(sent.refresh().original, "Cancel")
    text = sent.wait_final(match=DONE).original.text()
    assert "Not installed" in text and "cancelled" in text, text
    assert "Installed" in pip("part==2.0")


@test
def the_user_never_has_network():
    text = house.run(call("user") + "print('tried')")
    assert "tried" in text and not calls(), (text, calls())


@test
def an_index_that_is_not_to_be_trusted_is_not_used():
    with Service(IL_TUNE_SPARE_CELLS="1", IL_PIP_INDEX_URL=index.url,
                 IL_PIP_NETWORK=NETWORK,
                 IL_PIP_ALLOW_SDIST="1") as other:
        other.create()
        before = len(index.paths)
        text = pip("part", other, timeout=120)
        assert "Not installed" in text and "IL_PIP_CA_BUNDLE" in text, text
        assert len(index.paths) == before, index.paths[before:]


@test
def source_builds_are_for_operators_to_allow():
    with Service(**dict(SETTINGS, IL_PIP_ALLOW_SDIST="1")) as other:
        other.create()
        text = pip("source", other)
        assert "Installed" in text, text
        assert "True" in other.run("import source\nprint(source.built)")
        # so this is what a build looks like that was not allowed
        assert "/ran/sdist" in index.paths, index.paths


@test
def nothing_broke_discords_rules():
    house.assert_kept_discords_rules()


with tempfile.TemporaryDirectory(prefix="inline-e2e-") as place, \
        network(NETWORK) as gateway, Index(place, gateway) as index:
    offer()
    SETTINGS = {"IL_PIP_INDEX_URL": index.url, "IL_PIP_CA_BUNDLE": index.ca,
                "IL_PIP_NETWORK": NETWORK, "IL_PIP_QUOTA": "32m"}
    with Service(**SETTINGS) as house:
        house.create()
        run()
