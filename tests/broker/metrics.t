#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What il-sandboxd tells Prometheus: each thing that happens to a cell is
counted once, for its class; what is so now is what is so."""
import re

from brokerlib import *
from fake import Fake
sys.path.append(os.path.join(ROOT, "tests", "fcgi"))
from front import Metrics  # noqa: E402


def metrics(b):
    """{'name{labels}': number} of those that are not 0."""
    with Metrics(b.state, SANDBOX_IMAGE=IMAGE) as api:
        return {key: number for key, number in api.numbers().items()
                if number != 0}


def counted(b, name, key="outcome"):
    """{'class word': number} of a family."""
    return {"%s %s" % match: number for found, number in metrics(b).items()
            for match in re.findall(
                r'^%s{class="(\w+)",%s="(\w+)"}$' % (name, key), found)}


def leases():
    with Broker(IL_API_CELLS="1") as b:
        b.create(1)
        is_(counted(b, "inline_leases_total"), {}, "nothing was asked for")
        is_(b.refusal(2), "NO_WORKSPACE", "no such workspace")
        lease = b.lease(1)
        is_(counted(b, "inline_cells", "state"), {"user leased": 1},
            "one is leased")
        is_(b.refusal(1), "BUSY", "its sandbox is busy")
        with b.lease_api():
            waits = b.ask_api()
            b.wait_status(WAITING=1)
            is_(metrics(b).get("inline_lease_queue"), 1, "one waits")
            waits.close()
            b.wait_status(WAITING=0)
        lease.close()
        b.lease(1).close()
        b.wait_status(LEASED=0)
        is_(counted(b, "inline_leases_total"),
            {"user workspace": 1, "user cold": 1, "user busy": 1,
             "user warm": 1, "api cold": 1, "api gone": 1},
            "each is counted, by what came of it")
        is_(counted(b, "inline_cell_starts_total"),
            {"user up": 1, "api up": 1}, "so are the starts")
        told = metrics(b)
        is_(told.get('inline_lease_wait_seconds_count{class="user"}'), 2,
            "how long they waited")
        is_(told.get('inline_cell_start_seconds_count{class="user"}'), 1,
            "how long a start took")
        ok(told["inline_disk_free_bytes"] > 0 and
           told["inline_disk_promised_bytes"] > 0 and
           told["inline_disk_floor_bytes"] > 0, "the disk's ledger")
        is_((told.get("inline_engine_up"), told.get("inline_image_present")),
            (1, 1), "engine and image are there")


def failures():
    fake = Fake(run="fails")
    with Broker(**fake.settings) as b:
        b.create(1)
        is_(b.refusal(1), "START", "docker run fails")
        is_(counted(b, "inline_cell_starts_total"), {"user failed": 1},
            "the start is counted")
        is_(counted(b, "inline_leases_total"), {"user start": 1},
            "and the refusal")
        is_(metrics(b).get("inline_cell_start_failures"), 1, "one in a row")
        fake.set(run="real")
        ok(b.wait_granted(1), "it is mended")
        is_(metrics(b).get("inline_cell_start_failures"), None,
            "none in a row")
    fake.close()


main(leases, failures)
