/* SPDX-License-Identifier: MIT */
/*
 * `ilctl token`: the file of the bearer tokens (protocol/tokens.h), changed by
 * hand.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../base/err.h"
#include "../base/text.h"
#include "../protocol/tokens.h"
#include "ctl.h"

#define LIMIT_MAX 1000000

static const char usage[] =
    "token -f file [-c cells] [-r requests-a-minute] add|set name | "
    "token -f file list | token -f file revoke name";

struct options {
	const char *file;
	int64_t cells; /* -1: nothing was said */
	int64_t rate;
};

/* The token itself goes to standard output, everything about it to standard
 * error. */
static int
add(const struct options *options, const char *name)
{
	char text[TOKENS_TEXT_LEN + 1];
	struct err err;

	if (tokens_add(options->file, name,
		options->cells < 0 ? 0 : options->cells,
		options->rate < 0 ? 0 : options->rate, text, &err) < 0)
		return ctl_fail("token", &err);
	(void)fprintf(stderr, "The token of %s, which is shown only now:\n",
	    name);
	printf("%s\n", text);
	return CTL_OK;
}

static int
change(const struct options *options, const char *name)
{
	struct err err;

	if (options->cells < 0 && options->rate < 0)
		return ctl_usage(usage);
	if (tokens_set(options->file, name, options->cells, options->rate,
		&err) < 0)
		return ctl_fail("token", &err);
	printf("changed %s\n", name);
	return CTL_OK;
}

static int
forget(const struct options *options, const char *name)
{
	struct err err;

	if (tokens_revoke(options->file, name, &err) < 0)
		return ctl_fail("token", &err);
	printf("revoked %s\n", name);
	return CTL_OK;
}

static int
list(const struct options *options, const char *name)
{
	struct tokens tokens;
	struct err err;

	(void)name;
	if (tokens_open(&tokens, options->file, &err) < 0)
		return ctl_fail("token", &err);
	for (size_t i = 0; i < tokens.count; i++) {
		const struct token *t = &tokens.items[i];
		char made[20];

		ctl_time(t->created_s, made);
		printf("%s  cells=%" PRId64 " rate=%" PRId64 "  %s\n", made,
		    t->cells, t->rate, t->name);
	}
	tokens_close(&tokens);
	return CTL_OK;
}

/* The options of all verbs; each takes what it needs. */
static bool
parse_options(int argc, char **argv, struct options *options)
{
	int c;

	optind = 1;
	while ((c = getopt(argc, argv, "f:c:r:")) != -1) {
		if (c == 'f')
			options->file = optarg;
		else if (c == 'c') {
			if (!text_parse_int(optarg, 0, LIMIT_MAX,
				&options->cells))
				return false;
		} else if (c != 'r' ||
		    !text_parse_int(optarg, 0, LIMIT_MAX, &options->rate)) {
			return false;
		}
	}
	return options->file != NULL && optind < argc;
}

int
ctl_token(struct ctl *ctl, int argc, char **argv)
{
	struct options options = { .cells = -1, .rate = -1 };
	static const struct {
		const char *name;
		int words; /* itself, and a name */
		int (*run)(const struct options *options, const char *name);
	} verbs[] = { { "add", 2, add }, { "set", 2, change },
		{ "revoke", 2, forget }, { "list", 1, list } };
	const char *verb;

	(void)ctl;
	if (!parse_options(argc, argv, &options))
		return ctl_usage(usage);
	verb = argv[optind];
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(verb, verbs[i].name) == 0 &&
		    argc - optind == verbs[i].words)
			return verbs[i].run(&options, argv[optind + 1]);
	return ctl_usage(usage);
}
