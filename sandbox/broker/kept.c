/* SPDX-License-Identifier: MIT */
#include "kept.h"

#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/config.h"
#include "../base/log.h"
#include "container.h"

#define NOTES_MAX 10000 /* 500 KiB; then the oldest is forgotten */

/* ---- why they have ended ---- */

void
kept_init(struct kept_notes *notes)
{
	*notes = (struct kept_notes){ 0 };
	TAILQ_INIT(&notes->list);
}

static void
forget(struct kept_notes *notes, struct kept_note *note)
{
	TAILQ_REMOVE(&notes->list, note, link);
	notes->count--;
	free(note);
}

void
kept_release(struct kept_notes *notes)
{
	while (!TAILQ_EMPTY(&notes->list))
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it is unlinked */
		forget(notes, TAILQ_FIRST(&notes->list));
}

enum kept_end
kept_recall(struct kept_notes *notes, const char *sandbox)
{
	struct kept_note *note;
	enum kept_end why = KEPT_RESTARTED;

	TAILQ_FOREACH(note, &notes->list, link) {
		if (strcmp(note->sandbox, sandbox) == 0) {
			why = note->why;
			forget(notes, note);
			break;
		}
	}
	return why;
}

void
kept_settle(struct kept_notes *notes, struct container *c)
{
	struct kept_note *note;

	if (!c->kept)
		return;
	c->kept = false;
	(void)kept_recall(notes, c->sandbox);
	if (notes->count >= NOTES_MAX)
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it is unlinked */
		forget(notes, TAILQ_FIRST(&notes->list));
	note = xcalloc(1, sizeof(*note));
	memcpy(note->sandbox, c->sandbox, sizeof(note->sandbox));
	note->why = c->kept_end != 0 ? c->kept_end : KEPT_DIED;
	TAILQ_INSERT_TAIL(&notes->list, note, link);
	notes->count++;
	log_debug("what was kept has ended: %d cell=%s sandbox=%s",
	    (int)note->why, c->name, c->sandbox);
}

/* ---- the cells ---- */

void
kept_end(struct container *c, enum kept_end why)
{
	c->kept_end = why;
	container_end(c, false);
}

bool
kept_goes_before(const struct container *c, const struct container *other)
{
	return other == NULL || c->kept < other->kept ||
	    (c->kept == other->kept && c->since_ms < other->since_ms);
}

int64_t
kept_rest_ms(const struct container *c)
{
	const struct config *config = c->host->config;

	return (c->kept ? config->session_seconds : config->warm_seconds) *
	    1000;
}
