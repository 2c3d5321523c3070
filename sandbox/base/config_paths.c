/* SPDX-License-Identifier: MIT */
/* Where things are. */
#include <libgen.h>
#include <limits.h>
#include <unistd.h>

#include "buf.h"
#include "cleanup.h"
#include "config.h"

/* <folder of the program>/../lib is where a build tree has its copies. */
char *
config_lib_dir(void)
{
	char self[PATH_MAX] = "";
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *top = dirname(dirname(self));
	auto_free char *mark = xprintf("%s/lib/cell/cell.py", top);

	if (len > 0 && access(mark, R_OK) == 0)
		return xprintf("%s/lib", top);
	return xstrdup(INLINE_LIB_DIR);
}

char *
config_state_path(const struct config *config, const char *name)
{
	return xprintf("%s/%s", config->state_dir, name);
}
