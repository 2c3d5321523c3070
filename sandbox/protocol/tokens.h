/* SPDX-License-Identifier: MIT */
#ifndef TOKENS_H
#define TOKENS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct err;

/*
 * The bearer tokens of the HTTP APIs.  The file has a line for each,
 *
 *	NAME HASH CREATED CELLS RATE
 *
 * HASH being BLAKE2b-256 of the token's 32 random bytes, in hex; CREATED Unix
 * seconds; CELLS the runs and sessions at once and RATE the requests in a
 * minute that it may have, 0 for as many as there are.  Blank lines and lines
 * that begin with '#' are skipped.  The token itself, "il_" and 64 hex digits,
 * is stored nowhere.
 */
#define TOKENS_HASH_LEN 32
#define TOKENS_NAME_MAX 64 /* [A-Za-z0-9._-] */
#define TOKENS_TEXT_LEN 67
#define TOKENS_MAX 1000

struct token {
	char name[TOKENS_NAME_MAX + 1];
	unsigned char hash[TOKENS_HASH_LEN];
	int64_t created_s;
	int64_t cells;
	int64_t rate;
};

struct tokens {
	char *path;
	struct token *items;
	size_t count;
	struct stat file; /* the one that was read; inode 0: it is gone */
};

/* Read the file.  After -1 there is nothing to close. */
int tokens_open(struct tokens *tokens, const char *path, struct err *err);
void tokens_close(struct tokens *tokens);
#define auto_tokens __attribute__((cleanup(tokens_close)))
/* Read it again if it has changed.  1: it had, and pointers to what was there
 * are void; 0: it had not; -1: it cannot be read now, the old ones still
 * count.  A file that is gone holds none. */
int tokens_refresh(struct tokens *tokens, struct err *err);

/* Find the token of an Authorization header ("Bearer il_…", as it was given
 * out, in lower case); NULL: there is none.  Takes the same time for any
 * token. */
const struct token *tokens_find(const struct tokens *tokens,
    const char *authorization);

/* Make one and add it to the file, which is made if it is missing, in one step.
 * text is the token, to be shown once.  ERR_CONFLICT: the name is taken. */
int tokens_add(const char *path, const char *name, int64_t cells, int64_t rate,
    char text[TOKENS_TEXT_LEN + 1], struct err *err);
/* Give one other limits; -1 leaves a limit as it is.  ERR_NOT_FOUND: there is
 * none of that name; so below. */
int tokens_set(const char *path, const char *name, int64_t cells, int64_t rate,
    struct err *err);
int tokens_revoke(const char *path, const char *name, struct err *err);

#endif
