/* SPDX-License-Identifier: MIT */
#include "base/basics.h"

#include <errno.h>

#include "tap.h"

static void
test_set(void)
{
	struct err err = { 0 };

	errno = ENOENT;
	is_int(err_set(&err, ERR_LIMIT, "%d jobs", 7), -1, "returns -1");
	is_int(err.code, ERR_LIMIT, "err_set sets the code");
	is_str(err.text, "7 jobs", "err_set formats");
	is_int(errno, ENOENT, "err_set keeps errno");
}

static void
test_system(void)
{
	struct err err = { 0 };
	char want[sizeof(err.text)];

	errno = EACCES;
	is_int(err_system(&err, "open %s", "x"), -1, "err_system returns -1");
	(void)snprintf(want, sizeof(want), "open x: %s", strerror(EACCES));
	is_str(err.text, want, "err_system appends the reason");
	is_int(err.code, ERR_SYSTEM, "err_system sets the code");
	is_int(errno, EACCES, "err_system keeps errno");
}

static void
test_wrap(void)
{
	struct err err = { 0 };
	char longer[400];

	(void)err_set(&err, ERR_BUSY, "inner");
	is_int(err_wrap(&err, "claim job %d", 5), -1, "err_wrap returns -1");
	is_str(err.text, "claim job 5: inner", "err_wrap puts text before");
	is_int(err.code, ERR_BUSY, "err_wrap keeps the code");
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	(void)err_wrap(&err, "%s", longer);
	is_int(strlen(err.text), sizeof(err.text) - 1, "a long text is cut");
	(void)err_wrap(&err, "outer");
	ok(strncmp(err.text, "outer: xxx", 10) == 0, "wrapping a full text");
}

int
main(void)
{
	test_set();
	test_system();
	test_wrap();
	return tap_done();
}
