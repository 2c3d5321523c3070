/* SPDX-License-Identifier: MIT */
#include "help.h"

#include <stdio.h>
#include <string.h>

#include "../../sandbox/base/buf.h"
#include "answer.h"

#define NEAR_MOST 3
#define NAME_MOST COMMAND_SPELT_MAX /* bytes: longer names are near to none */

const struct help_example help_examples[HELP_EXAMPLES] = {
	{ "/il py code:sum(range(101))", JOB_PY, "sum(range(101))", NULL,
	    false },
	{ "/il py code:print(input()[::-1]) stdin:olleh", JOB_PY,
	    "print(input()[::-1])", "olleh", false },
	{ "/il py code:import this", JOB_PY, "import this", NULL, false },
	{ "/il py code:sorted(range(99)) timeit:True", JOB_PY,
	    "sorted(range(99))", NULL, true },
	{ "/il look", JOB_LOOK, NULL, NULL, false },
};

/* ---- names ---- */

/* Levenshtein's distance: what is to be changed, put in or left out. */
static size_t
distance(const char *a, const char *b)
{
	size_t row[NAME_MOST + 1];
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

/* How far a name is from what was typed; more than NAME_MOST: it is another
 * one.  Whoever typed a part of it meant it. */
static size_t
far(const char *typed, const char *name)
{
	size_t len = strlen(typed);
	size_t most = strlen(name);
	size_t found;

	if (len == 0 || len > NAME_MOST || most > NAME_MOST)
		return NAME_MOST + 1;
	if (len > 1 && most > 1 &&
	    strncmp(typed, name, len < most ? len : most) == 0)
		return 1;
	found = distance(typed, name);
	return found <= 1 + len / 4 && found < len ? found : NAME_MOST + 1;
}

/* Those that are nearest, in the order of their distance. */
struct near {
	struct {
		char name[NAME_MOST];
		size_t far;
	} of[NEAR_MOST];
	size_t count;
};

static void
near_take(struct near *near, const char *name, size_t far)
{
	size_t at = near->count;

	if (far > NAME_MOST)
		return;
	while (at > 0 && near->of[at - 1].far > far)
		at--;
	if (at == NEAR_MOST)
		return;
	if (near->count < NEAR_MOST)
		near->count++;
	memmove(&near->of[at + 1], &near->of[at],
	    (near->count - at - 1) * sizeof(near->of[0]));
	(void)snprintf(near->of[at].name, NAME_MOST, "%s", name);
	near->of[at].far = far;
}

static void
near_add(struct buf *out, const struct near *near, const char *slash)
{
	if (near->count == 0)
		return;
	buf_addc(out, ' ');
	buf_adds(out, text_of(TEXT_NEAREST));
	for (size_t i = 0; i < near->count; i++)
		buf_addf(out, "%s `%s%s`", i > 0 ? "," : "", slash,
		    near->of[i].name);
}

void
help_add_near_command(struct buf *out, const char *name)
{
	struct near near = { .count = 0 };
	char spelt[COMMAND_SPELT_MAX];

	for (int kind = 0; kind < JOB_UNKNOWN; kind++) {
		if (command_spell((enum job_kind)kind, spelt))
			near_take(&near, spelt, far(name, commands[kind].name));
	}
	near_add(out, &near, "/");
}

void
help_add_near_option(struct buf *out, const struct command *command,
    const char *name)
{
	struct near near = { .count = 0 };

	for (int i = 0; i < COMMAND_OPTIONS_MAX; i++)
		if (command->options[i].name != NULL)
			near_take(&near, command->options[i].name,
			    far(name, command->options[i].name));
	near_add(out, &near, "");
}

/* ---- all of it ---- */

void
help_add(struct buf *out)
{
	char spelt[COMMAND_SPELT_MAX];
	bool first = true;

	buf_adds(out, text_of(TEXT_HELP));
	for (int i = 0; i < HELP_EXAMPLES; i++)
		buf_addf(out, "\n%d. `%s`", i + 1, help_examples[i].line);
	buf_adds(out, "\n\n");
	buf_adds(out, text_of(TEXT_HELP_COMMANDS));
	for (int kind = 0; kind < JOB_UNKNOWN; kind++) {
		if (!command_spell((enum job_kind)kind, spelt))
			continue;
		buf_addf(out, "%s`/%s`", first ? " " : " · ", spelt);
		first = false;
	}
	buf_adds(out, "\n");
	buf_adds(out, text_of(TEXT_HELP_MENU));
}
