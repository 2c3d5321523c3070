/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/config.h"
#include "broker/policy.h"
#include "tap.h"

static char automatic[] = "auto";
static char named[] = "colorsys,json";
static char none[] = "none";

static void
lists(void)
{
	char names[PRELOAD_NAMES_MAX];
	const char *list = ",,a.b,,c,";
	const char *name;
	size_t len;

	name = preload_next(&list, &len);
	ok(name != NULL && len == 3 && memcmp(name, "a.b", len) == 0, "a name");
	name = preload_next(&list, &len);
	ok(name != NULL && len == 1 && *name == 'c', "the next one");
	ok(preload_next(&list, &len) == NULL, "no more");
	ok(strcmp(preload_list(named), named) == 0, "a list is itself");
	ok(*preload_list(none) == '\0', "none is an empty one");
	ok(preload_bit(2) == 4 && preload_bit(31) == preload_bit(1000),
	    "the last bit is for the rest");
	preload_auto_names(5, names);
	ok(strcmp(names, "numpy,matplotlib.pyplot") == 0, "names of a mask");
	preload_auto_names(0, names);
	ok(*names == '\0', "of none");
	preload_auto_names(PRELOAD_ALL, names);
	ok(strcmp(names, preload_list(automatic)) == 0, "of all");
	ok(preload_without(0x1a, 5) == 8, "two of three were imported");
	ok(preload_without(0x1a, PRELOAD_ALL) == 0, "all");
	ok(preload_without(0x80000001, 1) == 0x80000000, "all but the last");
}

static void
choice(void)
{
	struct config config = { .preload = automatic, .warm_seconds = 10 };
	struct preload p = { 0 };

	preload_note(&p, 1, 1000);
	ok(preload_wanted(&p, &config, 1000) == 0, "once is not enough");
	preload_note(&p, 3, 5000);
	ok(preload_wanted(&p, &config, 5000) == 1, "twice is");
	ok(preload_wanted(&p, &config, 10999) == 1, "for a while");
	ok(preload_wanted(&p, &config, 11000) == 0, "and no longer");
	preload_note(&p, 1, 6000);
	ok(preload_wanted(&p, &config, 14999) == 1, "longer when used again");
	preload_note_absent(&p, 1, 6000);
	preload_note(&p, 1, 605000);
	preload_note(&p, 1, 605000);
	ok(preload_wanted(&p, &config, 605999) == 0, "what is absent is not");
	ok(preload_wanted(&p, &config, 606000) == 1, "until it is tried again");
	config.preload = named;
	ok(preload_wanted(&p, &config, 0) == PRELOAD_ALL, "what is named is");
	config.preload = none;
	ok(preload_wanted(&p, &config, 605999) == 0, "nothing is nothing");
}

int
main(void)
{
	lists();
	choice();
	return tap_done();
}
