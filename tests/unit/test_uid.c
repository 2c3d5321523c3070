/* SPDX-License-Identifier: MIT */
/* The counter of users: no number twice, whatever happens to its file. */
#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/basics.h"
#include "volume/owner.h"

static int base = -1;

static void
counter_write(const char *text)
{
	int fd = openat(base, ".uids", O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ok(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text),
	    "the file is written");
	(void)close(fd);
}

/* The first number that is given after opening, 0: none. */
static uint32_t
first(unsigned int count, uint32_t *last)
{
	struct uids uids;
	struct err err;
	uint32_t uid = 0;
	uint32_t found = 0;

	if (uids_open(&uids, base, &err) != 0)
		return 0;
	for (unsigned int i = 0; i < count; i++) {
		if (uids_take(&uids, &uid, &err) != 0 || !uid_is_sandboxs(uid))
			found = 0;
		else if (i == 0)
			found = uid;
	}
	*last = uid;
	(void)close(uids.fd);
	return found;
}

static void
test_goes_on(void)
{
	uint32_t last = 0;
	uint32_t next = 0;

	counter_write("2013266000\n");
	is_int(first(1, &last), 2013266000, "it goes on where the file says");
	ok(first(100, &next) > last, "one that was cut short gives no old one");
	is_int(next, first(1, &last) > next ? next : 0, "nor after many");
}

static void
test_wraps(void)
{
	uint32_t last = 0;

	counter_write("2130706428\n");
	is_int(first(5, &last), 2130706428, "near the end of the range");
	is_int(last, UID_SANDBOX_FIRST + 1, "it begins again");
	ok(first(1, &last) > UID_SANDBOX_FIRST + 1, "and that is kept");
}

static void
test_spoilt(void)
{
	static const char *const bad[] = { "", "7\n", "0000000007\n",
		"9999999999\n", "201326600x\n", "2013266000" };
	uint32_t last = 0;
	uint32_t a;
	uint32_t b;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		counter_write(bad[i]);
		a = first(1, &last);
		counter_write(bad[i]);
		b = first(1, &last);
		ok(a != 0 && b != 0 && a != b,
		    "a spoilt file: somewhere in the range, at random");
	}
}

static void
test_whose(void)
{
	ok(!uid_is_sandboxs(0) && !uid_is_sandboxs(1000) &&
		!uid_is_sandboxs(65534),
	    "nobody of the host's");
	ok(uid_is_sandboxs(UID_COMMON) && uid_is_sandboxs(UID_SANDBOX_FIRST) &&
		uid_is_sandboxs(UID_SANDBOX_LAST) &&
		!uid_is_sandboxs(UID_MEMORY_FIRST),
	    "a sandbox's of before and of now");
}

int
main(void)
{
	char folder[] = "/tmp/test_uid-XXXXXX";

	if (mkdtemp(folder) != NULL)
		base = open(folder, O_RDONLY | O_DIRECTORY);
	test_goes_on();
	test_wraps();
	test_spoilt();
	test_whose();
	(void)unlinkat(base, ".uids", 0);
	(void)rmdir(folder);
	return tap_done();
}
