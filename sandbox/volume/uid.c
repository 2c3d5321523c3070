/* SPDX-License-Identifier: MIT */
/*
 * A counter in a file. It is written ahead, so that a crash skips numbers and
 * never gives one twice.
 */
#include "volume/uid.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"

#define COUNTER_FILE ".uids"
#define COUNTER_LEN 11 /* ten digits and a line feed */
/* So many are taken from the file at once: one write to the disk for them. */
#define RESERVE 64

/* ---- the counter ---- */

static uint32_t
random_between(uint32_t first, uint32_t last)
{
	char hex[9];

	text_random_hex(hex, 8);
	return first + (uint32_t)strtoul(hex, NULL, 16) % (last - first + 1);
}

/* 0 when the file does not hold one. */
static uint32_t
counter_read(int fd)
{
	char text[COUNTER_LEN + 1] = "";
	int64_t value = 0;

	if (pread(fd, text, COUNTER_LEN, 0) != COUNTER_LEN ||
	    text[COUNTER_LEN - 1] != '\n')
		return 0;
	text[COUNTER_LEN - 1] = '\0';
	(void)text_parse_int(text, UID_SANDBOX_FIRST, UID_SANDBOX_LAST, &value);
	return (uint32_t)value;
}

/* Durable before the first of these numbers is given. */
static int
counter_reserve(struct uids *uids, struct err *err)
{
	uint32_t reserved = uids->next + RESERVE;
	char text[COUNTER_LEN + 1];

	if (reserved > UID_SANDBOX_LAST)
		reserved = UID_SANDBOX_LAST;
	(void)snprintf(text, sizeof(text), "%010u\n", reserved);
	if (pwrite(uids->fd, text, COUNTER_LEN, 0) != COUNTER_LEN ||
	    fdatasync(uids->fd) != 0)
		return err_system(err, "write " COUNTER_FILE);
	uids->reserved = reserved;
	return 0;
}

/* A file that is empty or damaged begins anew, somewhere at random. */
int
uids_open(struct uids *uids, int base, struct err *err)
{
	uids->fd = openat(base, COUNTER_FILE,
	    O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (uids->fd < 0)
		return err_system(err, "open " COUNTER_FILE);
	uids->next = counter_read(uids->fd);
	if (uids->next == 0)
		uids->next = random_between(UID_SANDBOX_FIRST,
		    UID_SANDBOX_LAST);
	uids->reserved = uids->next;
	uids->memory = random_between(UID_MEMORY_FIRST, UID_MEMORY_LAST);
	return 0;
}

/* Behind the last number comes the first again: there are 117 million. */
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

uint32_t
uids_take_for_memory(struct uids *uids)
{
	uint32_t uid = uids->memory++;

	if (uids->memory > UID_MEMORY_LAST)
		uids->memory = UID_MEMORY_FIRST;
	return uid;
}

bool
uid_is_of_one_sandbox(uint32_t uid)
{
	return uid >= UID_SANDBOX_FIRST && uid <= UID_SANDBOX_LAST;
}

bool
uid_is_sandboxs(uint32_t uid)
{
	return uid == UID_COMMON || uid_is_of_one_sandbox(uid);
}
