#ifndef INTERACTION_H
#define INTERACTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

enum value_type {
	VALUE_OTHER = 0, /* a type that we do not take; has no value */
	VALUE_STRING = 3,
	VALUE_INTEGER = 4,
	VALUE_BOOLEAN = 5,
	VALUE_ATTACHMENT = 11,
};

/* One option of a command, or one input of a modal. */
struct interaction_value {
	char *name; /* the option's name, the input's custom_id */
	enum value_type type;
	char *text;	/* VALUE_STRING: valid UTF-8, otherwise "" */
	size_t len;	/* of text; strlen() is less if there is a NUL in it */
	int64_t number; /* VALUE_INTEGER; VALUE_ATTACHMENT: its id */
	bool flag;	/* VALUE_BOOLEAN */
};

struct interaction_attachment {
	int64_t id;
	char *url;
	char *name;
	int64_t size;
};

#define INTERACTION_VALUES_MAX 25
#define INTERACTION_ATTACHMENTS_MAX 25
#define ATTACHMENT_LIMIT_DEFAULT ((int64_t)10 << 20)
#define ATTACHMENT_LIMIT_MAX ((int64_t)500 << 20)

/* Strings are heap and never NULL in a parsed one; interaction_release() frees
 * them.  Nothing is bounded here but by the body: route.c knows the limits. */
struct interaction {
	enum interaction_type type;
	int64_t id; /* a PING may have none: 0 */
	int64_t application_id;
	int64_t user_id;	  /* who invoked it */
	char *token;		  /* safe as one segment of a URL's path */
	char *locale;		  /* "en-US", "" if there is none */
	int64_t attachment_limit; /* 1..ATTACHMENT_LIMIT_MAX */
	bool may_attach;

	/* COMMAND, AUTOCOMPLETE */
	int64_t command_type; /* 1 is a slash command */
	char *name;	      /* "il" */
	char *sub;	      /* "py", "group/sub", "" */
	/* COMPONENT, MODAL */
	char *custom_id;

	size_t value_count;
	struct interaction_value values[INTERACTION_VALUES_MAX];
	size_t attachment_count;
	struct interaction_attachment attachments[INTERACTION_ATTACHMENTS_MAX];
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

/* When Discord made it, milliseconds since 1970: the id says so. */
int64_t interaction_created_ms(int64_t id);

#endif
