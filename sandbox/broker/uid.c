#include "uid.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "../base/cleanup.h"
#include "../base/err.h"
#include "../base/log.h"
#include "class.h"
#include "container.h"
#include "owner.h"
#include "workspace.h"

#define COUNTER_FILE ".uids"
#define COUNTER_LEN 11 /* ten digits and a line feed */
/* So many are taken from the file at once: one write to the disk for them. */
#define RESERVE 64

/* ---- the counter ---- */

static int
random_between(uint32_t first, uint32_t last, uint32_t *value, struct err *err)
{
	uint32_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return err_system(err, "getrandom");
	*value = first + number % (last - first + 1);
	return 0;
}

static bool
is_in(uint32_t uid, uint32_t first, uint32_t last)
{
	return uid >= first && uid <= last;
}

/* 0 when the file does not hold one. */
static uint32_t
counter_read(int fd)
{
	char text[COUNTER_LEN + 1] = "";
	char *end;
	unsigned long value;

	if (pread(fd, text, COUNTER_LEN, 0) != COUNTER_LEN)
		return 0;
	value = strtoul(text, &end, 10);
	return end == text + COUNTER_LEN - 1 && *end == '\n' &&
		value <= UID_SANDBOX_LAST && value >= UID_SANDBOX_FIRST ?
	    (uint32_t)value :
	    0;
}

static int
counter_reserve(struct uids *uids, struct err *err)
{
	uint32_t reserved = uids->next + RESERVE;
	char text[COUNTER_LEN + 1];

	if (!is_in(reserved, UID_SANDBOX_FIRST, UID_SANDBOX_LAST))
		reserved = UID_SANDBOX_LAST;
	(void)snprintf(text, sizeof(text), "%010u\n", reserved);
	if (pwrite(uids->fd, text, COUNTER_LEN, 0) != COUNTER_LEN ||
	    fdatasync(uids->fd) != 0)
		return err_system(err, "write " COUNTER_FILE);
	uids->reserved = reserved;
	return 0;
}

int
uids_open(struct uids *uids, int base, struct err *err)
{
	uids->fd = openat(base, COUNTER_FILE,
	    O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (uids->fd < 0)
		return err_system(err, "open " COUNTER_FILE);
	uids->next = counter_read(uids->fd);
	if (uids->next == 0 &&
	    random_between(UID_SANDBOX_FIRST, UID_SANDBOX_LAST, &uids->next,
		err) != 0)
		return -1;
	uids->reserved = uids->next;
	return random_between(UID_MEMORY_FIRST, UID_MEMORY_LAST, &uids->memory,
	    err);
}

void
uids_close(struct uids *uids)
{
	cleanup_close(&uids->fd);
	uids->fd = -1;
}

int
uids_take(struct uids *uids, uint32_t *uid, struct err *err)
{
	if (uids->next == UID_SANDBOX_LAST) {
		uids->next = UID_SANDBOX_FIRST;
		uids->reserved = uids->next;
	}
	if (uids->next == uids->reserved && counter_reserve(uids, err) != 0)
		return -1;
	*uid = uids->next++;
	return 0;
}

bool
uid_is_sandboxs(uint32_t uid)
{
	return uid == UID_COMMON ||
	    is_in(uid, UID_SANDBOX_FIRST, UID_SANDBOX_LAST);
}

/* ---- a container's ---- */

/* Another sandbox's container, or another cell in memory, has it now. */
static bool
is_taken(const struct container *c, uint32_t uid)
{
	const struct container *other;

	TAILQ_FOREACH(other, c->host->all, link)
	{
		if (other != c && other->uid == uid &&
		    (c->class->in_memory ||
			strcmp(other->sandbox, c->sandbox) != 0))
			return true;
	}
	return false;
}

static void
choose_in_memory(struct container *c)
{
	struct uids *uids = c->host->uids;

	do {
		c->uid = uids->memory++;
		if (uids->memory > UID_MEMORY_LAST)
			uids->memory = UID_MEMORY_FIRST;
	} while (is_taken(c, c->uid));
}

/* What the first image says that has one; 0: none has. */
static int
sandbox_uid(const struct container *c, uint32_t *uid, struct err *err)
{
	static const char *const names[] = { WORKSPACE_IMAGE, PACKAGES_IMAGE };

	*uid = 0;
	for (size_t i = 0; i < 2 && *uid == 0; i++) {
		auto_close int fd = workspace_image_open(c->host->base,
		    c->sandbox, names[i], err);

		if (fd < 0)
			return -1;
		*uid = owner_of(fd);
		if (!is_in(*uid, UID_SANDBOX_FIRST, UID_SANDBOX_LAST))
			*uid = 0;
	}
	return 0;
}

int
uid_choose(struct container *c, struct err *err)
{
	if (c->class->in_memory) {
		choose_in_memory(c);
		return 0;
	}
	if (sandbox_uid(c, &c->uid, err) != 0)
		return -1;
	if (c->uid != 0 && !is_taken(c, c->uid))
		return 0;
	if (uids_take(c->host->uids, &c->uid, err) != 0)
		return -1;
	log_info("the sandbox has a user of its own now: uid=%u sandbox=%s",
	    c->uid, c->sandbox);
	return 0;
}
