/* SPDX-License-Identifier: MIT */
#include "preload.h"

#include "../base/config.h"

#define ABSENT_MS (INT64_C(600) * 1000)

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
