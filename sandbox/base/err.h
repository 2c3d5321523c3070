/* SPDX-License-Identifier: MIT */
#ifndef ERR_H
#define ERR_H

/*
 * One error object for every module.  It is the caller's, of fixed size, and
 * there is nothing to free.  A function that takes `struct err *err` returns 0
 * when it succeeded (and did not touch err) or -1 (and filled it).
 *
 * The text is for operators and logs; it is never shown to a Discord user.
 */
enum err_code {
	ERR_NONE = 0,
	ERR_SYSTEM,    /* a system call failed: text ends in strerror */
	ERR_INPUT,     /* input from outside is malformed */
	ERR_NOT_FOUND, /* the named thing does not exist */
	ERR_CONFLICT,  /* somebody else was first, or the state moved on */
	ERR_LIMIT,     /* a bound was reached */
	ERR_QUOTA,     /* somebody has his share of what others may have, too */
	ERR_BUSY,      /* in use now; trying later makes sense */
	ERR_TIMEOUT,   /* the deadline passed */
	ERR_UNAVAILABLE, /* a part that we need is not there (engine, net) */
	ERR_PROTOCOL,	 /* a peer of ours broke the protocol, or hung up */
	ERR_UNKNOWN,	 /* it went away in the middle: nobody knows whether
			  * what was asked for is done */
	ERR_CONFIG,	 /* configuration or installation is wrong */
};

struct err {
	enum err_code code;
	char text[256];
};

/* Fill err with a formatted text, cut to fit.  Always returns -1. */
int err_set(struct err *err, enum err_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with ERR_SYSTEM and ": <strerror(errno)>" appended.  Keeps errno. */
int err_system(struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Put "<formatted>: " before the text that is there.  Always returns -1. */
int err_wrap(struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
