/* SPDX-License-Identifier: MIT */
/*
 * mkfs.ext4 and debugfs fill two sparse files in a draft folder, one after the
 * other, in the loop; the rename at the end makes the sandbox.
 */
#include "creation.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/log.h"
#include "folder.h"
#include "workspace.h"

#define BLOCK 4096
#define INODE 256
#define JOURNAL_MIB 4
#define TOOL_MS 60000

static const char *const volume_names[2] = { WORKSPACE_VOLUME,
	PACKAGES_VOLUME };

/* lost+found would be a folder of root's among the user's; e2fsck makes it
 * again when it has something to put there.  The mount point of the packages is
 * part of the volume, so that the engine need not write into a workspace. */
#define WORKSPACE_SCRIPT \
	"rmdir lost+found\n" \
	"mkdir .site-packages\n" \
	"set_inode_field .site-packages uid %" PRIu32 "\n" \
	"set_inode_field .site-packages gid %" PRIu32 "\n"
#define PACKAGES_SCRIPT "rmdir lost+found\n"

/* Ten inodes are reserved by ext4, one is the mount point's. */
int64_t
volume_inodes(const struct volume_size *size)
{
	return size->files + 11;
}

/*
 * What ext4 takes for itself comes on top: the inode tables, the journal, the
 * bitmaps and backup superblocks of each group of 128 MiB, a few folders, and
 * the reserve that the kernel keeps back from everyone (2 %, 4,096 blocks at
 * most).
 */
int64_t
volume_total_bytes(const struct volume_size *size)
{
	int64_t total = size->bytes + volume_inodes(size) * INODE +
	    ((int64_t)JOURNAL_MIB << 20) + (INT64_C(512) << 10);
	int64_t reserve;

	total += (total >> 27) * (INT64_C(96) << 10);
	reserve = total / 49;
	if (reserve > INT64_C(4096) * BLOCK)
		reserve = INT64_C(4096) * BLOCK;
	total += reserve;
	return (total + BLOCK - 1) / BLOCK * BLOCK;
}

/* Remove what was begun. */
static void
creation_drop(const struct creation *c)
{
	struct err err;

	if (*c->draft != '\0' &&
	    folder_delete(c->host->base, c->draft, 0, &err) != 0)
		log_warn("%s sandbox=%s", err.text, c->id);
}

static void
creation_fail(struct creation *c, const struct err *failure)
{
	creation_drop(c);
	creation_done(c->client, failure);
}

static void creation_step(struct creation *c);

/* One tool is done: the next step, or the end. */
static void
creation_on_task(void *arg, const struct process_result *result)
{
	struct creation *c = arg;
	struct err err;
	char text[160];

	if (process_succeeded(result)) {
		c->step++;
		creation_step(c);
		return;
	}
	process_describe(result, text, sizeof(text));
	(void)err_set(&err, ERR_SYSTEM, "make a file system: %s", text);
	creation_fail(c, &err);
}

/* A sparse file in the draft, of the size of the volume. */
static int
creation_make_file(const struct creation *c, int which, struct err *err)
{
	char path[128];
	auto_close int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/%s", c->draft,
	    volume_names[which]);
	fd = openat(c->host->base, path,
	    O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || ftruncate(fd, volume_total_bytes(&c->sizes[which])) != 0)
		return err_system(err, "make %s", volume_names[which]);
	return 0;
}

/* Tables and journal are not written out: a new volume takes 4 MiB of disk. */
static void
creation_mkfs(const struct creation *c, int which, struct argv *argv)
{
	argv_init(argv,
	    ARGV_WORDS("mkfs.ext4", "-q", "-F", "-t", "ext4", "-b", "4096",
		"-I", "256", "-m", "0", "-e", "remount-ro", "-J", "size=4",
		"-O", "^resize_inode"));
	argv_option(argv, "-E",
	    "root_owner=%" PRIu32 ":%" PRIu32 ",lazy_itable_init=1,nodiscard",
	    c->uid, c->uid);
	argv_option(argv, "-N", "%" PRId64, volume_inodes(&c->sizes[which]));
}

/* What is in a new volume, said to debugfs on its standard input. */
static void
creation_populate(struct creation *c, int which, struct argv *argv)
{
	argv_init(argv, ARGV_WORDS("debugfs", "-w", "-f", "-"));
	if (which == 0)
		(void)snprintf(c->script, sizeof(c->script), WORKSPACE_SCRIPT,
		    c->uid, c->uid);
	else
		(void)snprintf(c->script, sizeof(c->script), PACKAGES_SCRIPT);
	argv->input = c->script;
}

/* Steps 0 and 1 make the workspace's volume and fill it, 2 and 3 the
 * packages'; then the draft gets its name. */
static void
creation_step(struct creation *c)
{
	auto_argv struct argv argv = { .count = 0 };
	int which = c->step / 2;
	struct err err;

	if (c->step == 4) {
		if (workspace_draft_publish(c->host->base, c->draft, c->id,
			&err) != 0)
			creation_fail(c, &err);
		else
			creation_done(c->client, NULL);
		return;
	}
	if (c->step % 2 == 0 && creation_make_file(c, which, &err) != 0) {
		creation_fail(c, &err);
		return;
	}
	if (c->step % 2 == 0)
		creation_mkfs(c, which, &argv);
	else
		creation_populate(c, which, &argv);
	argv_addf(&argv, "%s/%s/%s", c->host->config->base_dir, c->draft,
	    volume_names[which]);
	subprocess_start(&c->process, &argv, TOOL_MS, creation_on_task, c);
}

void
creation_start(struct creation *c, struct host *host, struct client *client)
{
	struct err err;

	subprocess_init(&c->process, host->loop);
	c->host = host;
	c->client = client;
	if (workspace_draft_make(host->base, c->draft, &err) != 0) {
		c->draft[0] = '\0';
		creation_fail(c, &err);
		return;
	}
	creation_step(c);
}

void
creation_cancel(struct creation *c)
{
	subprocess_cancel(&c->process);
	creation_drop(c);
}
