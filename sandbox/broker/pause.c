/* SPDX-License-Identifier: MIT */
#include "pause.h"

#include <stdio.h>

/* Twice as long each time, up to a minute. */
void
pause_note_failure(struct pause *pause, enum refusal code, const char *text,
    int64_t now_ms)
{
	int64_t ms = PAUSE_FIRST_MS;

	for (int i = 0; i < pause->failures && ms < PAUSE_MOST_MS; i++)
		ms *= 2;
	if (ms > PAUSE_MOST_MS)
		ms = PAUSE_MOST_MS;
	pause->failures++;
	pause->until_ms = now_ms + ms;
	pause->code = code;
	(void)snprintf(pause->text, sizeof(pause->text), "%s", text);
}

void
pause_note_success(struct pause *pause)
{
	*pause = (struct pause){ 0 };
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
