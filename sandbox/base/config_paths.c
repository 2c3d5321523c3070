/* SPDX-License-Identifier: MIT */
/* What follows from the settings, and from where we are. */
#include <ctype.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "cleanup.h"
#include "config.h"
#include "err.h"
#include "file.h"

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

#define NODE_MAX 32

char *
config_node(void)
{
	char name[NODE_MAX + 1] = "";
	size_t len = 0;

	/* a longer one is cut, which some say is an error */
	(void)gethostname(name, sizeof(name) - 1);
	for (; name[len] != '\0' && name[len] != '.'; len++)
		name[len] = isalnum((unsigned char)name[len]) ?
		    (char)tolower((unsigned char)name[len]) :
		    '-';
	name[len] = '\0';
	return xstrdup(isalnum((unsigned char)*name) ? name : "node");
}

int
config_lease_wait_ms(const struct config *config)
{
	return (int)(config->stop_ms + 2 * config->start_ms + 5000);
}

int
config_node_instance(const struct config *config,
    char id[CONFIG_INSTANCE_LEN + 1], struct err *err)
{
	auto_free char *path = config_state_path(config, "node");
	auto_buf struct buf text = BUF_INIT(CONFIG_INSTANCE_LEN + 1);

	if (file_read(path, &text, err) != 0) {
		err->code = ERR_UNAVAILABLE; /* il-sandboxd may be on its way */
		return err_wrap(err, "which host this is");
	}
	(void)snprintf(id, CONFIG_INSTANCE_LEN + 1, "%s", buf_str(&text));
	return strspn(id, "0123456789abcdef") == CONFIG_INSTANCE_LEN ?
	    0 :
	    err_set(err, ERR_UNAVAILABLE, "%s: is no id", path);
}
