/* SPDX-License-Identifier: MIT */
/* sandbox/base/process.c: what a client's version says of it. */
#include "base/process.h"
#include "tap.h"

static void
check_rates(const char *text, bool forgets)
{
	ok(docker_cli_forgets_rates(text) == forgets, text);
}

int
main(void)
{
	check_rates("Docker version 20.10.24+dfsg1, build 297e128", false);
	check_rates("Docker version 24.0.9, build 2936816", false);
	check_rates("Docker version 25.0.0, build e758fe5", true);
	check_rates("Docker version 25.0.6, build 32b99dd", true);
	check_rates("Docker version 25.0.7, build 0d1ee6a", false);
	check_rates("Docker version 26.1.5+dfsg1, build a72d7cd", true);
	check_rates("Docker version 27.0.3, build 7d4bcd8", true);
	check_rates("Docker version 27.1.1, build 6312585", true);
	check_rates("Docker version 27.1.2, build d01f264", false);
	check_rates("Docker version 28.0.0, build f9ced58", false);
	check_rates("podman version 4.3.1", false);
	check_rates("version 26", false);
	check_rates("version 99999999999999999999.1.1", false);
	check_rates("", false);
	return tap_done();
}
