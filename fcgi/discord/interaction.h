/* SPDX-License-Identifier: MIT */
#ifndef INTERACTION_H
#define INTERACTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/counters.h"
#include "store/commands.h"

struct err;

/*
 * An interaction: its signature, then its JSON as a typed struct.  No other
 * file sees that JSON.  Unknown fields are skipped, as Discord adds fields.  A
 * needed field that is missing or has another type is an ERR_INPUT.
 */

/* ---- the signature ---- */

/*
 * Pure functions over bytes: no clock, no database, no JSON.  The signature is
 * Ed25519 over the timestamp header followed by the body, exactly as they came.
 */
#define INTERACTION_KEY_LEN 32

struct interaction_key {
	unsigned char bytes[INTERACTION_KEY_LEN];
};

/* Decode DISCORD_PUBLIC_KEY (64 hex digits).  False: it is not a key. */
bool interaction_decode_key(struct interaction_key *key, const char *hex);

/* NULL: Discord signed it, and *signed_at is the timestamp in Unix seconds.
 * Otherwise a word for answer and log, and *signed_at is untouched:
 * "no-timestamp" (missing, or not exactly 10 ASCII digits), "no-signature"
 * (missing, or not exactly 128 hex digits), "no-body" (empty) or
 * "wrong-signature" (well-formed, but of other bytes).  The two headers may be
 * NULL (absent). */
const char *interaction_verify(const struct interaction_key *key,
    const char *timestamp, const char *signature, const void *body, size_t len,
    int64_t *signed_at);

/* ---- the JSON ---- */

/* One option of a command, or one input of a modal. */
struct interaction_value {
	const char *name; /* the option's name, the input's custom_id */
	int64_t type;	  /* an option_type; any other has no value */
	const char *text; /* OPTION_STRING: valid UTF-8, otherwise "" */
	size_t len; /* of text; strlen() is less if there is a NUL in it */
	/* OPTION_INTEGER; OPTION_BOOLEAN: 0 or 1; OPTION_ATTACHMENT: its id */
	int64_t number;
};

struct interaction_attachment {
	int64_t id;
	const char *url;
	const char *name; /* its owner's name for it, as far as it is known */
	int64_t size;
};

/* The message whose menu a command was chosen in; of a forwarding message the
 * forwarded one.  Its files are the interaction's attachments. */
struct interaction_message {
	bool found;	  /* Discord sends no deleted message */
	bool shows;	  /* embeds, components: neither text nor files */
	const char *text; /* valid UTF-8, "" when there is none */
	size_t len;	  /* strlen() is less if there is a NUL in it */
	int64_t view_id;  /* of the run that our message answers; or 0 */
};

#define LOCALE_MAX 16 /* of the name of a language */
#define INTERACTION_VALUES_MAX 25
#define INTERACTION_ATTACHMENTS_MAX 25
#define ATTACHMENT_LIMIT_DEFAULT ((int64_t)10 << 20)
#define ATTACHMENT_LIMIT_MAX ((int64_t)500 << 20)

/* Strings of a parsed interaction are never NULL, and valid until
 * interaction_release().  Only the body bounds them: route.c has the limits. */
struct interaction {
	enum interaction_type type;
	int64_t id; /* a PING may have none: 0 */
	int64_t application_id;
	int64_t user_id;	  /* its invoker */
	int64_t guild_id;	  /* its server; 0: none */
	const char *token;	  /* safe as one segment of a URL's path */
	const char *locale;	  /* "en-US", "" if there is none */
	int64_t attachment_limit; /* 1..ATTACHMENT_LIMIT_MAX */
	bool may_attach;
	bool may_post; /* a message that everybody there sees */

	/* COMMAND, AUTOCOMPLETE */
	int64_t command_type;		    /* 1 is a slash command */
	const char *name;		    /* "il" */
	const char *sub;		    /* "py", "group/sub", "" */
	struct interaction_message message; /* of a message command */
	/* COMPONENT, MODAL */
	const char *custom_id;
	bool is_select; /* of a menu: the chosen values are named "" */

	/* AUTOCOMPLETE: the option that is being typed; NULL: none */
	const struct interaction_value *focused;

	size_t value_count;
	struct interaction_value values[INTERACTION_VALUES_MAX];
	size_t attachment_count;
	struct interaction_attachment attachments[INTERACTION_ATTACHMENTS_MAX];

	struct json_t *root; /* owns the strings */
};

/* Parse a verified body.  On -1 there is nothing to release. */
int interaction_parse(struct interaction *in, const char *body, size_t len,
    struct err *err);
void interaction_release(struct interaction *in);

/* NULL: no value has that name, no attachment that id. */
const struct interaction_value *interaction_value(const struct interaction *in,
    const char *name);
const struct interaction_attachment *
interaction_attachment(const struct interaction *in, int64_t id);

/* The beginning of the interaction's line in the log: id, type, command and
 * user; heap.  Not for a PING. */
char *interaction_label(const struct interaction *in);
/* The time at which Discord made it, milliseconds since 1970: the id has it. */
int64_t interaction_created_ms(int64_t id);

/* Parse "<action>:<view id>", with ":<word>" behind it where an action has a
 * word (*word NULL: it has none).  ACTION_COUNT: the id is not one of ours. */
enum action action_parse(const char *custom_id, enum action_type type,
    int64_t *view_id, const char **word);

#endif
