/* SPDX-License-Identifier: MIT */
#include "ooms.h"

#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

/* The descriptor came from the cell: only a file of the kernel's own is
 * read. */
bool
ooms_valid(int fd)
{
	struct statfs fs;

	return fd >= 0 && fstatfs(fd, &fs) == 0 &&
	    (fs.f_type == CGROUP2_SUPER_MAGIC ||
		fs.f_type == CGROUP_SUPER_MAGIC);
}

/* The line `oom_kill N`, in both versions of cgroups. */
int64_t
ooms_count(int fd)
{
	static const char key[] = "\noom_kill ";
	char text[512] = "\n";
	const char *at;
	ssize_t len = -1;

	if (fd >= 0)
		len = pread(fd, text + 1, sizeof(text) - 2, 0);
	if (len <= 0)
		return 0;
	text[1 + len] = '\0';
	at = strstr(text, key);
	return at == NULL ? 0 : strtoll(at + sizeof(key) - 1, NULL, 10);
}
