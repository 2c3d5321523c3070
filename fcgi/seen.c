#include "seen.h"

#include <stddef.h>

_Static_assert((SEEN_MAX & (SEEN_MAX - 1)) == 0, "a hash is cut by its bits");
_Static_assert(SEEN_MAX < UINT16_MAX, "places are 16 bits");

/* A snowflake's upper bits are the time, its lower ones hardly ever set. */
static size_t
hash(int64_t id)
{
	uint64_t mixed = (uint64_t)id * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(mixed >> 40) & (SEEN_MAX - 1);
}

static void
forget(struct seen *seen, unsigned place)
{
	uint16_t *link = &seen->heads[hash(seen->ids[place])];

	while (*link != place + 1)
		link = &seen->older[*link - 1];
	*link = seen->older[place];
}

bool
seen_add(struct seen *seen, int64_t id)
{
	uint16_t *head = &seen->heads[hash(id)];
	unsigned place = seen->next;

	for (unsigned i = *head; i != 0; i = seen->older[i - 1])
		if (seen->ids[i - 1] == id)
			return false;
	if (seen->ids[place] != 0)
		forget(seen, place);
	seen->ids[place] = id;
	seen->older[place] = *head;
	*head = (uint16_t)(place + 1);
	seen->next = (place + 1) % SEEN_MAX;
	return true;
}
