/* SPDX-License-Identifier: MIT */
#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

size_t
nearest_distance(const char *a, const char *b)
{
	size_t row[NEAREST_NAME + 1];
	size_t len = strlen(b);

	for (size_t j = 0; j <= len; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1] != '\0'; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= len; j++) {
			size_t change = diagonal + (a[i - 1] != b[j - 1]);
			size_t other = 1 +
			    (row[j] < row[j - 1] ? row[j] : row[j - 1]);

			diagonal = row[j];
			row[j] = change < other ? change : other;
		}
	}
	return row[len];
}

/* The distance of a name from a typed one; more than NEAREST_NAME: it is
 * another name.  A part of a name means that name. */
static size_t
far(const char *typed, const char *name)
{
	size_t len = strlen(typed);
	size_t most = strlen(name);
	size_t found;

	if (len == 0 || len > NEAREST_NAME || most > NEAREST_NAME)
		return NEAREST_NAME + 1;
	if (len > 1 && most > 1 &&
	    strncmp(typed, name, len < most ? len : most) == 0)
		return 1;
	found = nearest_distance(typed, name);
	return found <= 1 + len / 4 && found < len ? found : NEAREST_NAME + 1;
}

void
nearest_add(struct nearest *nearest, const char *typed, const char *name,
    const char *shown)
{
	size_t at = nearest->count;
	size_t how_far = far(typed, name);

	if (how_far > NEAREST_NAME)
		return;
	while (at > 0 && nearest->of[at - 1].far > how_far)
		at--;
	if (at == NEAREST_MOST)
		return;
	if (nearest->count < NEAREST_MOST)
		nearest->count++;
	memmove(&nearest->of[at + 1], &nearest->of[at],
	    (nearest->count - at - 1) * sizeof(nearest->of[0]));
	(void)snprintf(nearest->of[at].name, NEAREST_NAME, "%s", shown);
	nearest->of[at].far = how_far;
}
