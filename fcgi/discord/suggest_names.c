/* SPDX-License-Identifier: MIT */
/* What Discord asks at each key: which of a sandbox's names may be meant. */
#include "submit.h"

#include <string.h>

#include "../../sandbox/base/buf.h"
#include "suggest.h"

static void
consider(void *suggest, const struct name *name)
{
	suggest_consider(suggest, name);
}

/* The kinds that an option is about: a bit for each. */
static unsigned
kinds_of(const struct command_option *option)
{
	static const unsigned kinds[] = {
		[SUGGEST_NOTHING] = 0,
		[SUGGEST_PATHS] = 1u << NAME_DIRECTORY | 1u << NAME_FILE,
		[SUGGEST_FILES] = 1u << NAME_FILE,
		[SUGGEST_FOLDERS] = 1u << NAME_DIRECTORY,
		[SUGGEST_PACKAGES] = 1u << NAME_PACKAGE,
	};

	return kinds[option->suggest];
}

/* Is the invoker's sandbox there to be used? */
static bool
find_sandbox(struct context *c)
{
	return c->db != NULL &&
	    sandbox_find(c->db, c->in->user_id, &c->sandbox, &c->reply->err) ==
	    0 &&
	    sandbox_is_usable(&c->sandbox);
}

/* Whatever is wrong, nothing is suggested: a person goes on typing. */
void
route_suggest(struct context *c, const struct command_option *option)
{
	const struct interaction_value *value = c->in->focused;
	struct suggest suggest;
	unsigned kinds = option != NULL ? kinds_of(option) : 0;
	int result = 0;

	reply_set(c->reply, xstrdup(ANSWER_JSON_NO_CHOICES), "no-choices");
	if (kinds == 0 || value->len > option->bytes ||
	    strlen(value->text) != value->len || !find_sandbox(c))
		return;
	suggest_begin(&suggest,
	    option->suggest == SUGGEST_PACKAGES ? "" : c->sandbox.cwd,
	    value->text);
	for (int kind = 0; kind < NAME_KINDS && result == 0; kind++)
		if ((kinds & 1u << kind) != 0)
			result = names_each(c->db, c->sandbox.id,
			    (enum name_kind)kind, consider, &suggest,
			    &c->reply->err);
	if (suggest.count > 0)
		reply_set(c->reply, answer_choices(suggest.best, suggest.count),
		    "choices");
}
