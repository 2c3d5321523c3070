/* SPDX-License-Identifier: MIT */
#include "discord/help.h"

#include <string.h>

#include "base/buf.h"
#include "base/nearest.h"
#include "discord/answer.h"

_Static_assert(COMMAND_SPELT_MAX <= NEAREST_NAME, "each has room");

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

static void
near_add(struct buf *out, const struct nearest *near, const char *slash)
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
	struct nearest near = { .count = 0 };
	char spelt[COMMAND_SPELT_MAX];

	for (int kind = 0; kind < JOB_UNKNOWN; kind++) {
		if (command_spell((enum job_kind)kind, spelt))
			nearest_add(&near, name, commands[kind].name, spelt);
	}
	near_add(out, &near, "/");
}

void
help_add_near_option(struct buf *out, const struct command *command,
    const char *name)
{
	struct nearest near = { .count = 0 };

	for (int i = 0; i < COMMAND_OPTIONS_MAX; i++)
		if (command->options[i].name != NULL)
			nearest_add(&near, name, command->options[i].name,
			    command->options[i].name);
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
