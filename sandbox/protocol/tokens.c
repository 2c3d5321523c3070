/* SPDX-License-Identifier: MIT */
#include "protocol/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>

#include <sodium.h>

#include "base/basics.h"
#include "base/file.h"
#include "base/text.h"

#define PREFIX "il_"
#define SECRET_LEN 32
#define LINE_MAX_LEN 256
#define FILE_MAX ((size_t)(TOKENS_MAX + 100) * LINE_MAX_LEN)
#define LIMIT_MAX 1000000

_Static_assert(TOKENS_TEXT_LEN == 3 + 2 * SECRET_LEN, "a token in hex");

/* ---- the file ---- */

static bool
token_read(struct token *token, char *words[], size_t count)
{
	if (count != 5 || !text_is_name(words[0], TOKENS_NAME_MAX))
		return false;
	(void)snprintf(token->name, sizeof(token->name), "%s", words[0]);
	return text_parse_hex(words[1], strlen(words[1]), token->hash,
		   sizeof(token->hash)) &&
	    text_parse_int(words[2], 0, INT64_MAX, &token->created_s) &&
	    text_parse_int(words[3], 0, LIMIT_MAX, &token->cells) &&
	    text_parse_int(words[4], 0, LIMIT_MAX, &token->rate);
}

/* Cut up the text; -1 with the number of the first wrong line. */
static int
tokens_parse(struct tokens *tokens, char *text, struct err *err)
{
	char *words[6];
	int number = 0;
	size_t count;

	while ((count = text_next_words(&text, &number, words, 6)) > 0) {
		if (tokens->count == TOKENS_MAX)
			return err_set(err, ERR_CONFIG,
			    "%s: more than %d tokens", tokens->path,
			    TOKENS_MAX);
		if (!token_read(&tokens->items[tokens->count], words, count))
			return err_set(err, ERR_CONFIG,
			    "%s line %d: not NAME HASH CREATED CELLS RATE",
			    tokens->path, number);
		tokens->count++;
	}
	return 0;
}

int
tokens_open(struct tokens *tokens, const char *path, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(FILE_MAX);

	memset(tokens, 0, sizeof(*tokens));
	if (sodium_init() < 0)
		return err_set(err, ERR_CONFIG, "libsodium does not start");
	/* First: what is written meanwhile is a change. */
	if (stat(path, &tokens->file) != 0) {
		(void)err_system(err, "open %s", path);
		if (errno == ENOENT)
			err->code = ERR_NOT_FOUND;
		return -1;
	}
	tokens->path = xstrdup(path);
	tokens->items = xcalloc(TOKENS_MAX, sizeof(*tokens->items));
	if (file_read(path, &text, err) == 0) {
		buf_addc(&text, '\0');
		if (tokens_parse(tokens, text.data, err) == 0)
			return 0;
	}
	tokens_close(tokens);
	return -1;
}

void
tokens_close(struct tokens *tokens)
{
	free(tokens->path);
	free(tokens->items);
	memset(tokens, 0, sizeof(*tokens));
}

/* When the file is gone, all tokens are gone with it. */
int
tokens_refresh(struct tokens *tokens, struct err *err)
{
	struct stat *old = &tokens->file;
	struct tokens fresh;
	struct stat st;

	if (stat(tokens->path, &st) != 0) {
		if (errno == ENOENT) {
			int had = old->st_ino != 0;

			tokens->count = 0;
			old->st_ino = 0;
			return had;
		}
	} else if (file_is_same(&st, old)) {
		return 0;
	}
	if (tokens_open(&fresh, tokens->path, err) < 0)
		return -1;
	tokens_close(tokens);
	*tokens = fresh;
	return 1;
}

/* ---- a client's token ---- */

static void
hash_secret(const unsigned char secret[SECRET_LEN],
    unsigned char hash[TOKENS_HASH_LEN])
{
	(void)crypto_generichash(hash, TOKENS_HASH_LEN, secret, SECRET_LEN,
	    NULL, 0);
}

const struct token *
tokens_find(const struct tokens *tokens, const char *authorization)
{
	const struct token *found = NULL;
	unsigned char secret[SECRET_LEN];
	unsigned char hash[TOKENS_HASH_LEN];

	if (authorization == NULL ||
	    strncasecmp(authorization, "Bearer ", 7) != 0)
		return NULL;
	authorization += 7;
	authorization += strspn(authorization, " ");
	if (strlen(authorization) != TOKENS_TEXT_LEN ||
	    strncmp(authorization, PREFIX, strlen(PREFIX)) != 0)
		return NULL;
	/* As it was given out and no other way: nginx counts by its text. */
	authorization += strlen(PREFIX);
	if (strspn(authorization, "0123456789abcdef") != 2 * SECRET_LEN ||
	    !text_parse_hex(authorization, 2 * SECRET_LEN, secret,
		sizeof(secret)))
		return NULL;
	hash_secret(secret, hash);
	for (size_t i = 0; i < tokens->count; i++)
		if (sodium_memcmp(tokens->items[i].hash, hash, sizeof(hash)) ==
		    0)
			found = &tokens->items[i];
	sodium_memzero(secret, sizeof(secret));
	return found;
}

/* ---- changing the file ---- */

static int
tokens_write(const struct tokens *tokens, const char *path, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(FILE_MAX);
	char hex[2 * TOKENS_HASH_LEN + 1];

	buf_adds(&text, "# NAME HASH CREATED CELLS RATE; ilctl token\n");
	for (size_t i = 0; i < tokens->count; i++) {
		const struct token *t = &tokens->items[i];

		buf_addf(&text, "%s %s %" PRId64 " %" PRId64 " %" PRId64 "\n",
		    t->name,
		    sodium_bin2hex(hex, sizeof(hex), t->hash, sizeof(t->hash)),
		    t->created_s, t->cells, t->rate);
	}
	return file_write(path, buf_str(&text), text.len, true, err);
}

/* One at a time: a descriptor that holds the lock, or -1. */
static int
lock_folder(const char *path, struct err *err)
{
	auto_free char *copy = xstrdup(path);
	auto_close int fd = open(dirname(copy),
	    O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return err_system(err, "lock the folder of %s", path);
	return steal_fd(&fd);
}

static struct token *
tokens_find_name(const struct tokens *tokens, const char *name)
{
	for (size_t i = 0; i < tokens->count; i++)
		if (strcmp(tokens->items[i].name, name) == 0)
			return &tokens->items[i];
	return NULL;
}

/* A new token, text, and its row. */
static void
token_make(struct token *token, const char *name, int64_t cells, int64_t rate,
    char text[TOKENS_TEXT_LEN + 1])
{
	unsigned char secret[SECRET_LEN];

	*token = (struct token){ .created_s = clock_wall_ms() / 1000,
		.cells = cells,
		.rate = rate };
	(void)snprintf(token->name, sizeof(token->name), "%s", name);
	randombytes_buf(secret, sizeof(secret));
	hash_secret(secret, token->hash);
	(void)snprintf(text, TOKENS_TEXT_LEN + 1, "%s", PREFIX);
	(void)sodium_bin2hex(text + strlen(PREFIX), 2 * SECRET_LEN + 1, secret,
	    sizeof(secret));
	sodium_memzero(secret, sizeof(secret));
}

int
tokens_add(const char *path, const char *name, int64_t cells, int64_t rate,
    char text[TOKENS_TEXT_LEN + 1], struct err *err)
{
	auto_close int lock = -1;
	auto_tokens struct tokens tokens = { 0 };

	if (!text_is_name(name, TOKENS_NAME_MAX))
		return err_set(err, ERR_INPUT,
		    "a name has 1 to %d of A-Z a-z 0-9 . _ -", TOKENS_NAME_MAX);
	if (cells < 0 || cells > LIMIT_MAX || rate < 0 || rate > LIMIT_MAX)
		return err_set(err, ERR_INPUT, "a limit is 0 to %d", LIMIT_MAX);
	lock = lock_folder(path, err);
	if (lock < 0)
		return -1;
	if (tokens_open(&tokens, path, err) < 0 && err->code != ERR_NOT_FOUND)
		return -1;
	/* It may not be there yet. */
	if (tokens.items == NULL)
		tokens.items = xcalloc(1, sizeof(*tokens.items));
	if (tokens_find_name(&tokens, name) != NULL)
		return err_set(err, ERR_CONFLICT, "there is a token %s", name);
	if (tokens.count == TOKENS_MAX)
		return err_set(err, ERR_LIMIT, "there are %d tokens",
		    TOKENS_MAX);
	token_make(&tokens.items[tokens.count++], name, cells, rate, text);
	return tokens_write(&tokens, path, err);
}

/* Change what stands in the file by that name; NULL: remove it. */
static int
tokens_edit(const char *path, const char *name, const struct token *limits,
    struct err *err)
{
	auto_close int lock = lock_folder(path, err);
	auto_tokens struct tokens tokens = { 0 };
	struct token *token;

	if (lock < 0 || tokens_open(&tokens, path, err) < 0)
		return -1;
	token = tokens_find_name(&tokens, name);
	if (token == NULL)
		return err_set(err, ERR_NOT_FOUND, "there is no token %s",
		    name);
	if (limits == NULL)
		*token = tokens.items[--tokens.count];
	else if (limits->cells >= 0)
		token->cells = limits->cells;
	if (limits != NULL && limits->rate >= 0)
		token->rate = limits->rate;
	return tokens_write(&tokens, path, err);
}

int
tokens_set(const char *path, const char *name, int64_t cells, int64_t rate,
    struct err *err)
{
	const struct token limits = { .cells = cells, .rate = rate };

	if (cells > LIMIT_MAX || rate > LIMIT_MAX)
		return err_set(err, ERR_INPUT, "a limit is 0 to %d", LIMIT_MAX);
	return tokens_edit(path, name, &limits, err);
}

int
tokens_revoke(const char *path, const char *name, struct err *err)
{
	return tokens_edit(path, name, NULL, err);
}
