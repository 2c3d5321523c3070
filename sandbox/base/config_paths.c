/* SPDX-License-Identifier: MIT */
/* What follows from the settings, and from where we are. */
#include <ctype.h>
#include <libgen.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "cleanup.h"
#include "config.h"
#include "err.h"
#include "file.h"
#include "log.h"

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

char *
config_absolute(const char *path)
{
	auto_buf struct buf out = BUF_INIT(16384);
	auto_free char *here = NULL;

	if (*path != '/') {
		here = getcwd(NULL, 0);
		buf_adds(&out, here != NULL ? here : "");
		if (out.len == 0 || out.data[out.len - 1] != '/')
			buf_addc(&out, '/');
		while (path[0] == '.' && path[1] == '/')
			path += 1 + strspn(path + 1, "/");
		if (strcmp(path, ".") == 0)
			path++;
	}
	buf_adds(&out, path);
	while (out.len > 1 && out.data[out.len - 1] == '/')
		buf_cut(&out, out.len - 1);
	return buf_steal(&out, NULL);
}

const char *
config_node(char name[CONFIG_NODE_SIZE])
{
	size_t len = 0;

	if (gethostname(name, CONFIG_NODE_SIZE) != 0)
		*name = '\0';
	for (; name[len] != '\0' && name[len] != '.'; len++)
		name[len] = isalnum((unsigned char)name[len]) ?
		    (char)tolower((unsigned char)name[len]) :
		    '-';
	name[len] = '\0';
	return isalnum((unsigned char)*name) != 0 ? name : "node";
}

bool
config_is_ours(const char *pair)
{
	return strncmp(pair, "IL_", 3) == 0 ||
	    strncmp(pair, "SANDBOX_", 8) == 0 ||
	    strncmp(pair, "DISCORD_", 8) == 0;
}

bool
config_is_link(const char *pair)
{
	static const char pattern[] =
	    "^[A-Z0-9_]+_(SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)=|"
	    "PORT(_[0-9]+_(TCP|UDP|SCTP))?=(tcp|udp|sctp)://|"
	    "PORT_[0-9]+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR)=)";
	regex_t regex;
	bool found;

	if (!config_is_ours(pair))
		return false;
	if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0)
		log_fatal(1, "out of memory");
	found = regexec(&regex, pair, 0, NULL, 0) == 0;
	regfree(&regex);
	return found;
}

int
config_lease_wait_ms(const struct config *config)
{
	return (int)(config->stop_ms + 2 * config->start_ms + 5000);
}
