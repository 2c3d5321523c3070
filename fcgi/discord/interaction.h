/* SPDX-License-Identifier: MIT */
#ifndef INTERACTION_H
#define INTERACTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/commands.h"

struct err;

/*
 * What Discord sent, as a typed struct: the only place that sees its JSON.
 * What we do not know is skipped, as Discord adds fields; what we need and is
 * missing or of another type makes the whole an ERR_INPUT.
 */
enum interaction_type {
	INTERACTION_PING = 1,
	INTERACTION_COMMAND = 2,
	INTERACTION_COMPONENT = 3,
	INTERACTION_AUTOCOMPLETE = 4,
	INTERACTION_MODAL = 5,
};

/* One option of a command, or one input of a modal. */
struct interaction_value {
	char *name;   /* the option's name, the input's custom_id */
	int64_t type; /* an option_type; any other has no value */
	char *text;   /* OPTION_STRING: valid UTF-8, otherwise "" */
	size_t len;   /* of text; strlen() is less if there is a NUL in it */
	/* OPTION_INTEGER; OPTION_BOOLEAN: 0 or 1; OPTION_ATTACHMENT: its id */
	int64_t number;
};

struct interaction_attachment {
	int64_t id;
	char *url;
	char *name; /* the one that its owner gave it, as far as is known */
	int64_t size;
};

/* The message whose menu a command was chosen in; a forwarded one is what it
 * forwards.  Its files are the interaction's attachments. */
struct interaction_message {
	bool found; /* Discord sent it along: it does not of a deleted one */
	bool shows; /* something besides text and files: embeds, components */
	char *text; /* valid UTF-8, "" when there is none */
	size_t len; /* strlen() is less if there is a NUL in it */
	int64_t view_id; /* of the run that it answers, if we sent it; or 0 */
};

#define LOCALE_MAX 16 /* of the name of a language */
#define INTERACTION_VALUES_MAX 25
#define INTERACTION_ATTACHMENTS_MAX 25
#define ATTACHMENT_LIMIT_DEFAULT ((int64_t)10 << 20)
#define ATTACHMENT_LIMIT_MAX ((int64_t)500 << 20)

/* Strings are never NULL in a parsed one, and valid until
 * interaction_release().  Nothing is bounded here but by the body: route.c
 * knows the limits. */
struct interaction {
	enum interaction_type type;
	int64_t id; /* a PING may have none: 0 */
	int64_t application_id;
	int64_t user_id;	  /* who invoked it */
	int64_t guild_id;	  /* in which server; 0: in none */
	char *token;		  /* safe as one segment of a URL's path */
	char *locale;		  /* "en-US", "" if there is none */
	int64_t attachment_limit; /* 1..ATTACHMENT_LIMIT_MAX */
	bool may_attach;
	bool may_post; /* so that all see it who are there */

	/* COMMAND, AUTOCOMPLETE */
	int64_t command_type;		    /* 1 is a slash command */
	char *name;			    /* "il" */
	char *sub;			    /* "py", "group/sub", "" */
	struct interaction_message message; /* of a message command */
	/* COMPONENT, MODAL */
	char *custom_id;
	bool is_select; /* of a menu: what was chosen are values named "" */

	/* AUTOCOMPLETE: the one that is being typed; NULL: there is none */
	const struct interaction_value *focused;

	size_t value_count;
	struct interaction_value values[INTERACTION_VALUES_MAX];
	size_t attachment_count;
	struct interaction_attachment attachments[INTERACTION_ATTACHMENTS_MAX];

	char *strings; /* all of the above, one after another; heap */
	size_t size;   /* their bytes */
	size_t used;
};

/* Parse a verified body.  On -1 there is nothing to release. */
int interaction_parse(struct interaction *in, const char *body, size_t len,
    struct err *err);
void interaction_release(struct interaction *in);

/* NULL: there is none of that name, id. */
const struct interaction_value *interaction_value(const struct interaction *in,
    const char *name);
const struct interaction_attachment *
interaction_attachment(const struct interaction *in, int64_t id);

/* The beginning of the interaction's line in the log, which says who asked for
 * what; heap.  Not for a PING. */
char *interaction_label(const struct interaction *in);
/* When Discord made it, milliseconds since 1970: the id says so. */
int64_t interaction_created_ms(int64_t id);

/* "<action>:<view id>", or that with ":<word>" behind it where an action has
 * one (NULL: it has not), as Discord carries it.  ACTION_COUNT: it is not one
 * of ours. */
enum action action_parse(const char *custom_id, enum action_type type,
    int64_t *view_id, const char **word);

#endif
