#!/bin/sh
# SPDX-License-Identifier: MIT
# All of browser.t on a phone.
BROWSER_SIZE=390x844 exec "$(dirname "$0")"/browser.t
