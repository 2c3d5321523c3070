/* SPDX-License-Identifier: MIT */
/* Where things are. */
#include <libgen.h>
#include <limits.h>
#include <unistd.h>

#include "buf.h"
#include "cleanup.h"
#include "config.h"

/*
 * <folder of the program>/../lib, where a build tree has its copies, or else
 * ../lib/inline, where they are installed: below any prefix.
 */
char *
config_lib_dir(void)
{
	char self[PATH_MAX] = "";
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *top = len > 0 ? dirname(dirname(self)) : "/usr";
	auto_free char *mark = xprintf("%s/lib/cell/cell.py", top);

	return xprintf("%s/lib%s", top,
	    access(mark, R_OK) == 0 ? "" : "/inline");
}

char *
config_state_path(const struct config *config, const char *name)
{
	return xprintf("%s/%s", config->state_dir, name);
}
