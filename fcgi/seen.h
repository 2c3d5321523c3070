#ifndef SEEN_H
#define SEEN_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The interactions that this process has answered lately, in memory: refuses
 * what is sent again and makes no job (an editor that is opened, a refusal).
 * What made a job is refused by the job's unique interaction id for good.
 */
#define SEEN_MAX 8192

/* A ring of ids, each in the chain of its hash.  Zero is empty. */
struct seen {
	int64_t ids[SEEN_MAX];
	uint16_t heads[SEEN_MAX]; /* the newest of a chain: its place + 1 */
	uint16_t older[SEEN_MAX]; /* the next one of the chain, likewise */
	unsigned next;
};

/* Note the id (never 0).  False: it had been noted before. */
bool seen_add(struct seen *seen, int64_t id);

#endif
