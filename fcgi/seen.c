#include "seen.h"

/* 64 KiB walked in a few microseconds: less than one signature check. */
bool
seen_add(struct seen *seen, int64_t id)
{
	for (int i = 0; i < SEEN_MAX; i++)
		if (seen->ids[i] == id)
			return false;
	seen->ids[seen->next] = id;
	seen->next = (seen->next + 1) % SEEN_MAX;
	return true;
}
