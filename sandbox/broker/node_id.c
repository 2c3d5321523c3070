/* SPDX-License-Identifier: MIT */
#include "node_id.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../base/text.h"

#define FILE_NAME ".node"
#define DRAFT ".node.new"

static bool
read_id(int folder, const char *name, char *id)
{
	auto_close int fd = openat(folder, name,
	    O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 &&
	    read(fd, id, CONFIG_INSTANCE_LEN) == CONFIG_INSTANCE_LEN &&
	    strspn(id, "0123456789abcdef") == CONFIG_INSTANCE_LEN;
}

/* Whole or not at all. */
static int
write_id(int folder, const char *draft, const char *name, mode_t mode,
    const char *id, struct err *err)
{
	auto_close int fd = openat(folder, draft,
	    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || fchmod(fd, mode) != 0)
		return err_system(err, "make %s", name);
	if (fd_write_all(fd, id, CONFIG_INSTANCE_LEN, err) != 0)
		return -1;
	if (fsync(fd) != 0 || renameat(folder, draft, folder, name) != 0 ||
	    fsync(folder) != 0)
		return err_system(err, "write %s", name);
	return 0;
}

int
node_id_publish(int base, const struct config *config, struct err *err)
{
	char id[CONFIG_INSTANCE_LEN + 1] = "";
	char told[CONFIG_INSTANCE_LEN + 1] = "";
	auto_close int state = -1;

	if (!read_id(base, FILE_NAME, id)) {
		text_random_hex(id, CONFIG_INSTANCE_LEN);
		if (write_id(base, DRAFT, FILE_NAME, 0600, id, err) != 0)
			return -1;
	}
	state = open(config->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (state < 0)
		return err_system(err, "%s", config->state_dir);
	/* a full disk is no matter where it is there */
	if (read_id(state, "node", told) && strcmp(told, id) == 0)
		return 0;
	return write_id(state, "node.new", "node", 0644, id, err);
}
