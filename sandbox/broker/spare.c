/* SPDX-License-Identifier: MIT */
#include "spare.h"

#include <string.h>

#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/log.h"
#include "attach.h"
#include "images.h"
#include "pool.h"

#define ATTACH_MS 5000 /* then whoever waits gets another cell */

/* ---- one that waits ---- */

void
spare_prepare(struct container *c)
{
	struct err err;

	for (size_t i = 0; i < CLASS_VOLUMES; i++) {
		if (attachment_hold(&c->volumes[i], &err) != 0) {
			container_fail(c, REFUSAL_START, err.text);
			return;
		}
	}
	attach_start(c->host->attach, c);
}

/* What is kept ready. */
static void
spare_kind(const struct pool *pool, struct ticket *kind)
{
	*kind = (struct ticket){ .class = class_find("user") };
	(void)images_find(pool->host->config->chat_images, "",
	    &kind->interpreter);
}

void
spare_refill(struct pool *pool)
{
	const struct config *config = pool->host->config;
	const struct container *c;
	struct pool_count count;
	struct ticket kind;
	int64_t spares = 0;

	TAILQ_FOREACH(c, &pool->containers, link)
		spares += c->spare && c->state <= CONTAINER_IDLE;
	pool_count(pool, &count);
	if (spares >= config->spare_cells || pool->waiting > 0 ||
	    count.starting > 0 ||
	    count.places[BUDGET_SANDBOXES].taken >= config->cells ||
	    !attach_may_start(pool->host->attach))
		return;
	spare_kind(pool, &kind);
	container_new(pool, &kind, true, false);
}

/* ---- adoption ---- */

struct container *
spare_find(const struct pool *pool, const struct ticket *ticket)
{
	struct container *c;

	if (ticket->as_ever)
		return NULL;
	TAILQ_FOREACH(c, &pool->containers, link) {
		if (c->spare && c->state == CONTAINER_IDLE && c->pidfd >= 0 &&
		    c->class == ticket->class &&
		    strcmp(c->interpreter.name, ticket->interpreter.name) == 0)
			return c;
	}
	return NULL;
}

/* It is never spare again.  Its number is one of now, as it had nothing of a
 * sandbox of this name that has been removed. */
void
spare_adopt(struct container *c, const struct ticket *ticket, bool writable,
    bool grows)
{
	c->spare = false;
	c->adopting = true;
	c->number = ++c->host->pool->serial;
	c->writable = writable;
	memcpy(c->sandbox, ticket->sandbox, sizeof(c->sandbox));
	memcpy(c->packages, ticket->packages, sizeof(c->packages));
	for (size_t i = 0; i < CLASS_VOLUMES; i++)
		cleanup_close(&c->volumes[i].volume_fd);
	container_set(c, CONTAINER_PREPARING);
	prepare_reserve(c, grows);
	prepare_begin(c);
}

static void
attach_on_timer(void *arg)
{
	attach_fail(arg, "its container did not answer");
}

void
spare_run(struct container *c)
{
	struct err err;

	container_set(c, CONTAINER_STARTING);
	container_timer(c, ATTACH_MS, attach_on_timer);
	if (attach_send(c, &err) != 0)
		container_fail(c, REFUSAL_START, err.text);
}

/* The mounts hold the devices now. */
void
spare_done(struct container *c, const char *trouble)
{
	if (trouble != NULL) {
		container_fail(c, REFUSAL_START, trouble);
		return;
	}
	launch_release(c);
	container_timer(c, -1, NULL);
	c->adopting = false;
	c->adopted = true;
	container_set(c, CONTAINER_IDLE);
}
