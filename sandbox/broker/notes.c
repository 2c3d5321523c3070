/* SPDX-License-Identifier: MIT */
#include "broker/notes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "broker/container.h"

#define NOTES_MAX 10000 /* 500 KiB; beyond, the oldest goes */
#define ABSENT_MS (INT64_C(600) * 1000)

/* ---- ends of sessions ---- */

static void
session_note_free(struct session_notes *notes, struct session_note *note)
{
	TAILQ_REMOVE(&notes->list, note, link);
	notes->count--;
	free(note);
}

void
session_notes_release(struct session_notes *notes)
{
	while (!TAILQ_EMPTY(&notes->list))
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it is unlinked */
		session_note_free(notes, TAILQ_FIRST(&notes->list));
}

enum kept_end
session_recall(struct session_notes *notes, const char *sandbox)
{
	struct session_note *note;
	enum kept_end why = KEPT_RESTARTED;

	TAILQ_FOREACH(note, &notes->list, link) {
		if (strcmp(note->sandbox, sandbox) == 0) {
			why = note->why;
			session_note_free(notes, note);
			break;
		}
	}
	return why;
}

void
session_note_end(struct session_notes *notes, struct container *c)
{
	struct session_note *note;

	if (!c->has_session)
		return;
	c->has_session = false;
	(void)session_recall(notes, c->sandbox);
	if (notes->count >= NOTES_MAX)
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it is unlinked */
		session_note_free(notes, TAILQ_FIRST(&notes->list));
	note = xcalloc(1, sizeof(*note));
	memcpy(note->sandbox, c->sandbox, sizeof(note->sandbox));
	note->why = c->session_end != 0 ? c->session_end : KEPT_DIED;
	TAILQ_INSERT_TAIL(&notes->list, note, link);
	notes->count++;
	log_debug("session ended: %d cell=%s sandbox=%s", (int)note->why,
	    c->name, c->sandbox);
}

/* ---- cells with sessions ---- */

void
cell_end_idle(struct container *c, enum kept_end why)
{
	c->session_end = why;
	container_end(c, false);
}

bool
is_evicted_before(const struct container *c, const struct container *other)
{
	return other == NULL || c->has_session < other->has_session ||
	    (c->has_session == other->has_session &&
		c->since_ms < other->since_ms);
}

/* ---- backoff ---- */

void
pause_note_failure(struct pause *pause, enum refusal code, const char *text,
    int64_t now_ms)
{
	pause->until_ms = now_ms +
	    clock_backoff_ms(PAUSE_FIRST_MS, pause->most_ms, pause->failures);
	pause->failures++;
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
