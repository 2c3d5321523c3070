/* SPDX-License-Identifier: MIT */
#include "file_copy.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "node_fetch.h"
#include "../server/http.h"

#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/config.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/protocol/snapshot.h"

/* il-snapshot has given up on the place of the copies before. */
#define OPEN_MS 15000
#define NEXT_MS 20000
/* Of one request, together. */
#define TOGETHER_MS 60000

_Static_assert(SNAPSHOT_FILE_LEN == FILESTORE_ID_LEN, "an id");

/* One that comes. */
struct coming {
	struct snapshot_copy copy;
	struct pollfd gone; /* its client */
	int64_t until_ms;   /* monotonic */
};

/* At most so long, and not longer than the request may. */
static int
wait_ms(const struct coming *c, int most_ms)
{
	int left_ms = clock_poll_timeout(c->until_ms);

	return left_ms < most_ms ? left_ms : most_ms;
}

static int
take_bytes(void *arg, struct filestore_new *file, struct err *err)
{
	struct coming *c = arg;
	const unsigned char *data;
	ssize_t n;

	while ((n = snapshot_copy_next(&c->copy, &c->gone, wait_ms(c, NEXT_MS),
		    &data, err)) > 0)
		if (filestore_write(file, data, (size_t)n, err) != 0)
			return -1;
	return n < 0 ? -1 : 0;
}

/* Whose it is stands in its note, and what is somebody else's is not there. */
static int
take(struct coming *c, struct api_app *app, const char *id,
    struct filestore_entry *entry, struct err *err)
{
	struct filestore_entry own = { .size = c->copy.size };
	int fd = -1;

	memcpy(own.id, id, FILESTORE_ID_LEN);
	if (!filestore_read_meta(&app->store, &own, c->copy.note))
		return err_set(err, ERR_NOT_FOUND, "it is somebody else's");
	fd = node_keep(app, own.size, take_bytes, c, err);
	if (fd >= 0 && entry != NULL) {
		*entry = own;
		return fd;
	}
	free(own.name);
	return fd;
}

/* What is told of it: one that is damaged is lost, and there may be others of
 * the request; for what does not answer they do not wait as well. */
static void
failed(struct api_app *app, const struct http_request *req, const char *id,
    struct err *err)
{
	const struct pollfd gone = { .fd = http_fd(req), .events = POLLRDHUP };
	struct pollfd look = gone;

	if (err->code == ERR_NOT_FOUND || err->code == ERR_LIMIT)
		return;
	if (poll(&look, 1, 0) != 0) {
		err->code = ERR_TIMEOUT; /* nobody waits for an answer */
		return;
	}
	log_warn("the copy of file %s: %s", id, err->text);
	if (err->code == ERR_INPUT) {
		err->code = ERR_NOT_FOUND;
		return;
	}
	err->code = ERR_UNAVAILABLE;
	app->copies_until_ms = clock_monotonic_ms();
}

int
file_copy_get(struct api_app *app, const struct http_request *req,
    const char *id, struct filestore_entry *entry, struct err *err)
{
	struct coming c = { .gone = {
				.fd = http_fd(req), .events = POLLRDHUP } };
	int64_t now_ms = clock_monotonic_ms();
	int fd = -1;
	int rc;

	if (*app->config->snapshots == '\0')
		return err_set(err, ERR_NOT_FOUND, "there are no copies");
	if (app->copies_until_ms == 0)
		app->copies_until_ms = now_ms + TOGETHER_MS;
	if (now_ms >= app->copies_until_ms)
		return err_set(err, ERR_UNAVAILABLE,
		    "copies take too long together");
	c.until_ms = app->copies_until_ms;
	rc = snapshot_copy_open(&c.copy, app->config, id, &c.gone,
	    wait_ms(&c, OPEN_MS), err);
	if (rc == 0)
		fd = take(&c, app, id, entry, err);
	else if (rc > 0)
		(void)err_set(err, ERR_NOT_FOUND, "it has no copy");
	snapshot_copy_release(&c.copy);
	if (fd < 0)
		failed(app, req, id, err);
	return fd;
}
