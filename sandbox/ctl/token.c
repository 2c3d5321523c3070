/* SPDX-License-Identifier: MIT */
/*
 * `ilctl token`: the file of the bearer tokens (protocol/tokens.h), changed by
 * hand.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/basics.h"
#include "base/text.h"
#include "ctl/ctl.h"
#include "ctl/table.h"
#include "protocol/tokens.h"

#define LIMIT_MAX 1000000

static int
token_list(const char *file, bool json)
{
	json_t *rows = json_array();
	auto_tokens struct tokens tokens = { 0 };
	struct err err;

	if (tokens_open(&tokens, file, &err) < 0) {
		json_decref(rows);
		return ctl_fail("token", &err);
	}
	for (size_t i = 0; i < tokens.count; i++) {
		const struct token *t = &tokens.items[i];

		(void)json_array_append_new(rows,
		    json_pack("{s:s, s:I, s:I, s:I}", "name", t->name,
			"created_at", (json_int_t)t->created_s, "cells",
			(json_int_t)t->cells, "rate", (json_int_t)t->rate));
		if (json)
			continue;
		printf("%s  cells=%" PRId64 " rate=%" PRId64 "  %s\n",
		    text_time(t->created_s).text, t->cells, t->rate, t->name);
	}
	if (json)
		return table_print_json(rows);
	json_decref(rows);
	return CTL_OK;
}

/* Of a token's limits, -1: nothing was said. */
static int
token_change(const char *file, const char *verb, const char *name,
    int64_t cells, int64_t rate)
{
	char text[TOKENS_TEXT_LEN + 1];
	struct err err;

	if (strcmp(verb, "add") == 0) {
		if (tokens_add(file, name, cells < 0 ? 0 : cells,
			rate < 0 ? 0 : rate, text, &err) < 0)
			return ctl_fail("token", &err);
		/* The token itself goes to standard output, everything about
		 * it to standard error. */
		(void)fprintf(stderr,
		    "The token of %s, which is shown only now:\n", name);
		printf("%s\n", text);
	} else if (strcmp(verb, "set") == 0 && (cells >= 0 || rate >= 0)) {
		if (tokens_set(file, name, cells, rate, &err) < 0)
			return ctl_fail("token", &err);
		printf("changed %s\n", name);
	} else if (strcmp(verb, "revoke") == 0) {
		if (tokens_revoke(file, name, &err) < 0)
			return ctl_fail("token", &err);
		printf("revoked %s\n", name);
	} else {
		return CTL_MISUSED;
	}
	return CTL_OK;
}

/* The options of all verbs; each takes what it needs. */
int
ctl_token(struct ctl *ctl)
{
	const char *file = NULL;
	int64_t cells = -1;
	int64_t rate = -1;
	char **words;
	int c;

	while ((c = getopt(ctl->argc, ctl->argv, "f:c:r:")) != -1) {
		if (c == 'f')
			file = optarg;
		else if ((c != 'c' && c != 'r') ||
		    !text_parse_int(optarg, 0, LIMIT_MAX,
			c == 'c' ? &cells : &rate))
			return CTL_MISUSED;
	}
	words = ctl->argv + optind;
	if (file == NULL || words[0] == NULL)
		return CTL_MISUSED;
	if (strcmp(words[0], "list") == 0 && words[1] == NULL)
		return token_list(file, ctl->json);
	if (ctl->json || words[1] == NULL || words[2] != NULL)
		return CTL_MISUSED;
	return token_change(file, words[0], words[1], cells, rate);
}
