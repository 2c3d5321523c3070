/* SPDX-License-Identifier: MIT */
#include "names.h"

#include <dirent.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *
names_next(struct names *names)
{
	const struct dirent64 *entry;
	long len;

	do {
		if (names->at == names->end) {
			len = syscall(SYS_getdents64, names->folder,
			    names->bytes, sizeof(names->bytes));
			names->failed = len < 0;
			if (len <= 0)
				return NULL;
			names->at = 0;
			names->end = (size_t)len;
		}
		entry = (const void *)(names->bytes + names->at);
		names->at += entry->d_reclen;
	} while (strcmp(entry->d_name, ".") == 0 ||
	    strcmp(entry->d_name, "..") == 0);
	return entry->d_name;
}
