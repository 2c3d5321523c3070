/* SPDX-License-Identifier: MIT */
#include "store.h"

#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/text.h"
#include "../protocol/snapshot.h"

struct store *
store_open(const struct config *config, struct err *err)
{
	return *config->snapshots == '/' ? folder_open(config, err) :
					   s3_open(config, err);
}

void
store_close(struct store *s)
{
	if (s != NULL)
		s->close(s);
}

void
store_cleanup(struct store **s)
{
	store_close(*s);
}

struct got {
	struct buf *out;
	bool there;
};

static int
on_got(void *arg, const void *data, size_t len, struct err *err)
{
	struct got *got = arg;

	(void)err;
	got->there = data != NULL;
	if (got->there)
		buf_add(got->out, data, len);
	return 0;
}

int
store_get(struct store *s, const char *name, struct buf *out, struct err *err)
{
	struct got got = { .out = out };

	if (s->fetch(s, name, out->max, on_got, &got, err) != 0 ||
	    s->wait(s, err) != 0)
		return -1;
	return got.there ? 0 : 1;
}

static size_t
hex_length(const char *s)
{
	return strspn(s, "0123456789abcdef");
}

/* "<uuid>/head", "<uuid>/07" */
static bool
is_of_file(const char *rest)
{
	const char *last = rest + SNAPSHOT_FILE_LEN;

	if (strnlen(rest, SNAPSHOT_FILE_LEN + 1) <= SNAPSHOT_FILE_LEN ||
	    !text_is_uuid(rest, SNAPSHOT_FILE_LEN) || *last++ != '/')
		return false;
	return strcmp(last, "head") == 0 ||
	    (strspn(last, "0123456789") == 2 && last[2] == '\0');
}

/* "<id>/manifest", "<id>/blocks/ab/abcd…" */
bool
store_is_name(const char *name, const char *below)
{
	static const char blocks[] = "blocks/";
	size_t len = strlen(below);
	const char *rest = name + len + 1;

	if (strncmp(name, below, len) != 0 || name[len] != '/')
		return false;
	if (strcmp(below, STORE_FILES) == 0)
		return is_of_file(rest);
	if (strcmp(rest, "manifest") == 0)
		return true;
	if (strncmp(rest, blocks, strlen(blocks)) != 0)
		return false;
	rest += strlen(blocks);
	return hex_length(rest) == 2 && rest[2] == '/' &&
	    hex_length(rest + 3) == 64 && rest[67] == '\0' &&
	    strncmp(rest, rest + 3, 2) == 0;
}
