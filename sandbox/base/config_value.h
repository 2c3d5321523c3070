/* SPDX-License-Identifier: MIT */
#ifndef CONFIG_VALUE_H
#define CONFIG_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/* How a value is written, checked and stored. */
enum config_type {
	CONFIG_INT,	/* int64_t */
	CONFIG_SIZE,	/* int64_t bytes, written "256m" */
	CONFIG_SECONDS, /* int64_t milliseconds, written "30" or "0.5" */
	CONFIG_CPUS,	/* double; min and max are thousandths */
	CONFIG_BOOL,	/* bool, written 0 or 1 */
	CONFIG_ID,	/* int64_t, a Discord id; 0 when empty */
	/* the others: char *, checked so that they can become a path, a word of
	 * an argv or a line of a generated file as they are */
	CONFIG_SECRET,	/* printable ASCII without blanks */
	CONFIG_HEX_KEY, /* 64 hex digits */
	CONFIG_URL,	/* http:// or https://, no blanks, '/' at the end cut */
	CONFIG_PATH,	/* made absolute, '/' at the end cut */
	CONFIG_PROGRAM, /* a name to look up in PATH, or a path */
	CONFIG_NAME,	/* [A-Za-z0-9._-] */
	CONFIG_NETWORK, /* the same, and not the host's own */
	CONFIG_IMAGE,	/* [A-Za-z0-9._/:@-] */
	CONFIG_IMAGES,	/* NAME=IMAGE,…: config_images.h */
	CONFIG_ISOLATION, /* auto, run or cell */
	CONFIG_MODULES,	  /* of Python, MODULE,PACKAGE.MODULE,… */
	CONFIG_SOURCE,	  /* read before the others, stored nowhere */
};

/* One row of config.def. */
struct config_key {
	const char *name;
	enum config_type type;
	size_t offset;	      /* in struct config */
	const char *fallback; /* the default, written as a value is */
	int64_t min;	      /* of what is stored */
	int64_t max;
	const char *help; /* one line, Markdown */
};

/* Check a value and store it in *field; a text stored there before is freed.
 * An empty value of a text stays empty; for the other types it is wrong, but
 * for CONFIG_ID.  ERR_CONFIG "KEY: reason", which never repeats the value. */
int config_value_store(const struct config_key *key, const char *value,
    void *field, struct err *err);

/* Whether the type is stored as a heap string. */
bool config_value_is_text(enum config_type type);

#endif
