/* SPDX-License-Identifier: MIT */
#include "broker/notes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/config.h"
#include "base/log.h"
#include "broker/container.h"

#define NOTES_MAX 10000 /* 500 KiB; then the oldest is forgotten */
#define ABSENT_MS (INT64_C(600) * 1000)

/* ---- why kept interpreters have ended ---- */

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

/* ---- the cells that keep them ---- */

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

/* ---- pauses ---- */

void
pause_note_failure(struct pause *pause, enum refusal code, const char *text,
    int64_t now_ms)
{
	int64_t ms = PAUSE_FIRST_MS;

	for (int i = 0; i < pause->failures && ms < pause->most_ms; i++)
		ms *= 2;
	if (ms > pause->most_ms)
		ms = pause->most_ms;
	pause->failures++;
	pause->until_ms = now_ms + ms;
	pause->code = code;
	(void)snprintf(pause->text, sizeof(pause->text), "%s", text);
}

void
pause_note_success(struct pause *pause)
{
	*pause = (struct pause){ .most_ms = pause->most_ms };
}

bool
pause_holds(const struct pause *pause, int64_t now_ms)
{
	return pause->failures > 0 && now_ms < pause->until_ms;
}

bool
pause_is_told(const struct pause *pause, int64_t now_ms)
{
	return pause->failures > 1 && pause_holds(pause, now_ms);
}

/* ---- modules ---- */

void
preload_note(struct preload *p, uint32_t mask, int64_t now_ms)
{
	for (size_t i = 0; i < PRELOAD_BITS; i++) {
		if ((mask & preload_bit(i)) == 0)
			continue;
		p->asked_ms[i][1] = p->asked_ms[i][0];
		p->asked_ms[i][0] = now_ms;
	}
}

void
preload_note_absent(struct preload *p, uint32_t mask, int64_t now_ms)
{
	for (size_t i = 0; i < PRELOAD_BITS; i++)
		if ((mask & preload_bit(i)) != 0)
			p->absent_ms[i] = now_ms + ABSENT_MS;
}

uint32_t
preload_wanted(const struct preload *p, const struct config *config,
    int64_t now_ms)
{
	int64_t rest_ms = config->warm_seconds * 1000;
	uint32_t mask = 0;

	if (!preload_is_auto(config->preload))
		return *preload_list(config->preload) == '\0' ? 0 : PRELOAD_ALL;
	for (size_t i = 0; i < PRELOAD_BITS; i++)
		if (p->asked_ms[i][1] != 0 &&
		    now_ms - p->asked_ms[i][1] < rest_ms &&
		    now_ms >= p->absent_ms[i])
			mask |= preload_bit(i);
	return mask;
}
