/* SPDX-License-Identifier: MIT */
/*
 * The checks of the HTTP APIs: isolation and tokens.
 */
#include "doctor.h"

#include <stdio.h>
#include <string.h>

#include "../base/config.h"
#include "../base/err.h"
#include "../protocol/frame.h"
#include "../protocol/tokens.h"
#include "isolation.h"

/* Why there are no namespaces for each run, and what would bring them. */
static void
explain(struct doctor *d)
{
	struct isolation_facts facts;
	struct isolation_verdict verdict;
	const char *how = d->status.isolation_reason;

	isolation_look(&facts, d->config->api_apparmor,
	    d->config->sandbox_runtime);
	isolation_judge(&facts, how, &verdict);
	if (strcmp(d->config->api_isolation, "run") == 0) {
		doctor_bad(d, *verdict.mend != '\0' ? verdict.mend : NULL,
		    "isolation: IL_API_ISOLATION=run, and no run can have "
		    "namespaces (%s): %s",
		    how, verdict.cause);
		return;
	}
	doctor_note(
	    "isolation: each run of the APIs has a container of its own, "
	    "which is slower than namespaces (%s): %s",
	    how, verdict.cause);
	if (*verdict.mend != '\0')
		printf("      better: %s\n", verdict.mend);
}

/* The cell has tried it: what it found is told, and explained. */
void
doctor_isolation(struct doctor *d)
{
	if (!d->broker)
		return; /* told by its own check */
	if (d->status.isolation == ISOLATION_RUN)
		doctor_good(
		    "isolation: each run of the APIs has namespaces of its "
		    "own");
	else if (d->status.isolation == ISOLATION_CELL)
		explain(d);
	else
		doctor_note(
		    "isolation: not known before the first run of the APIs");
}

/* Whom the APIs serve. */
void
doctor_tokens(struct doctor *d)
{
	const char *path = d->config->api_tokens_file;
	struct tokens tokens;
	struct err err;

	if (*path == '\0') {
		doctor_note("tokens: none are asked for; the APIs are for this "
			    "machine alone");
		return;
	}
	if (tokens_open(&tokens, path, &err) < 0) {
		doctor_bad(d, "ilctl token -f FILE add NAME", "tokens: %s",
		    err.text);
		return;
	}
	doctor_good("tokens: %zu in %s", tokens.count, path);
	tokens_close(&tokens);
}
