/* SPDX-License-Identifier: MIT */
#include "pause.h"

#include <stdio.h>

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
