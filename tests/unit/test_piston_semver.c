/* SPDX-License-Identifier: MIT */
/* Ranges of versions: each answer is npm's semver's (7.x). */
#include "fcgi/contract/piston/semver.h"

#include "tap.h"

/* The versions of which each row says, by a letter, whether they are in. */
static const struct semver versions[] = {
	{ 2, 7, 18 },
	{ 3, 9, 4 },
	{ 3, 10, 0 },
	{ 3, 11, 2 },
	{ 3, 13, 5 },
	{ 0, 0, 3 },
	{ 0, 2, 1 },
};
#define VERSIONS (sizeof(versions) / sizeof(versions[0]))

static const struct {
	const char *range;
	const char *in; /* a '+' or '-' for each of them */
} rows[] = {
#include "piston_ranges.inc"
};

int
main(void)
{
	char long_range[SEMVER_RANGE_MAX + 2];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char in[VERSIONS + 1] = "";

		for (size_t v = 0; v < VERSIONS; v++)
			in[v] = semver_is_in(&versions[v], rows[i].range,
				    strlen(rows[i].range)) ?
			    '+' :
			    '-';
		is_str(in, rows[i].in, rows[i].range);
	}
	memset(long_range, ' ', sizeof(long_range));
	ok(semver_is_in(&versions[0], long_range, SEMVER_RANGE_MAX),
	    "blanks are any version");
	ok(!semver_is_in(&versions[0], long_range, SEMVER_RANGE_MAX + 1),
	    "a longer range is none");
	ok(!semver_is_in(&versions[0], "2.7.18\0", 7), "nor one with a NUL");
	ok(semver_compare(&versions[0], &versions[1]) < 0 &&
		semver_compare(&versions[3], &versions[2]) > 0 &&
		semver_compare(&versions[3], &versions[3]) == 0,
	    "they are ordered by numbers");
	return tap_done();
}
