# SPDX-License-Identifier: MIT
"""The documentation's steps for production, followed word for word on a fresh
Debian.  Two programs take the place of what a person or the internet does:
`editor` fills the settings in, `certbot` brings a certificate of our own.
"""

import time

from house import ENV, TLS
from machine import HOST
from steps import production

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Fills in what /root/answers says: KEY=VALUE lines in the place of those that
# the file has.
EDITOR = """#!/usr/bin/python3
import sys
lines = open(sys.argv[1]).read().split("\\n")
for line in open("/root/answers").read().split():
    key = line.split("=")[0] + "="
    lines = [one for one in lines if not one.startswith(key)] + [line]
open(sys.argv[1], "w").write("\\n".join(lines) + "\\n")
"""

CERTBOT = f"""#!/bin/sh
set -eu
case " $* " in *" certonly --webroot -w /var/www/html "*) ;; *) exit 2 ;; esac
test -d /var/www/html
install -d {TLS}
install -m 644 /root/tls/fullchain.pem {TLS}/fullchain.pem
install -m 600 /root/tls/privkey.pem {TLS}/privkey.pem
"""


def prepare(house, machine, discord):
    """What an administrator brings along: a clone, the image, the keys."""
    machine.sh("mkdir -p /root/payload && "
               "tar -x -C /root/payload -f /dev/vdb && "
               "{ [ -d /root/inline ] || git clone -q -b check-host "
               "/root/payload/inline.bundle /root/inline; }")
    known = discord.settings()
    answers = {
        "DISCORD_PUBLIC_KEY": known["public_key"],
        "DISCORD_APPLICATION_ID": known["application_id"],
        "IL_TUNE_DISCORD_API_BASE": f"http://{HOST}:{discord.port}/api/v10",
        "SANDBOX_IMAGE": house.image,
    }
    # Where one start of a container takes longer than it does anywhere else.
    for key, value in {"IL_TUNE_START_SECONDS": "100"}.items():
        if house.knows(key):
            answers[key] = value
    machine.write("/root/answers", "".join(
        f"{key}={value}\n" for key, value in answers.items()))
    machine.write("/root/token", known["bot_token"] + "\n", "600")
    machine.write("/usr/local/bin/editor", EDITOR, "755")
    machine.write("/usr/local/bin/certbot", CERTBOT, "755")
    for name in ("fullchain.pem", "privkey.pem"):
        machine.write("/root/tls/" + name, house.authority.text(name), "600")


def between(house, machine, command):
    """What stands in the place of a registry: the image is there before the
    service is started that would pull it.
    """
    if command.startswith("systemctl enable --now inline"):
        machine.sh("systemctl start docker && "
                   "docker load -q -i /root/payload/image.tar && "
                   "rm -r /root/payload")


def settled(machine, command):
    """The doctor looks at a service that starts: the programs have to be up,
    and the first cells warm, before it is asked.
    """
    if " doctor" in command:
        machine.sh("""
            for i in $(seq 300); do
                systemctl -q is-active il-fcgi il-api il-sandboxd &&
                    [ -n "$(docker ps -q --filter label=inline.class=api)" ] &&
                    break
                sleep 1
            done; sleep 10""")


def follow(house, machine):
    """Follow all steps; yields (what, passed, output, seconds)."""
    for where, command in production(house.commit):
        between(house, machine, command)
        settled(machine, command)
        begun = time.monotonic()
        status, text = machine.run(
            f"export PATH={PATH} HOME=/root MAKEFLAGS=-j2 "
            f"DEBIAN_FRONTEND=noninteractive; cd /root/inline\n{command}",
            seconds=3600)
        passed = status == 0
        yield (f"{where}: {command}", passed, text,
               time.monotonic() - begun)
        # What the doctor finds keeps nobody from going on.
        if not passed and " doctor" not in command:
            return


__all__ = ["prepare", "follow", "ENV"]
