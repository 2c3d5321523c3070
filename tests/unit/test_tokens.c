/* SPDX-License-Identifier: MIT */
/* Bearer tokens: the file, who a header is, changes while it is in use. */
#include "protocol/tokens.h"

#include <ctype.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/basics.h"
#include "tap.h"

static char path[256];
static struct err err;

static void
write_text(const char *text)
{
	FILE *file = fopen(path, "we");

	if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0)
		note("cannot write %s", path);
}

/* The name that belongs to a header; "" when nobody's. */
static const char *
who(const struct tokens *tokens, const char *before, const char *text,
    const char *after)
{
	char header[200];
	const struct token *token;

	(void)snprintf(header, sizeof(header), "%s%s%s", before, text, after);
	token = tokens_find(tokens, header);
	return token == NULL ? "" : token->name;
}

static void
test_life(void)
{
	struct tokens tokens;
	char alice[TOKENS_TEXT_LEN + 1];
	char bob[TOKENS_TEXT_LEN + 1];
	char upper[TOKENS_TEXT_LEN + 1] = "il_";
	char file[4096];
	ssize_t n;
	int fd;

	ok(tokens_open(&tokens, path, &err) < 0 && err.code == ERR_NOT_FOUND,
	    "no file");
	is_int(mkfifo(path, 0600), 0, "a FIFO in its place");
	ok(tokens_open(&tokens, path, &err) == 0 && tokens.count == 0,
	    "holds nobody up");
	tokens_close(&tokens);
	is_int(unlink(path), 0, "it goes");
	ok(tokens_add(path, "alice", 2, 60, alice, &err) == 0, "the first");
	ok(tokens_open(&tokens, path, &err) == 0, "makes the file");
	is_int(tokens.count, 1, "with one in it");
	is_int(tokens.items[0].cells, 2, "its runs");
	is_int(tokens.items[0].rate, 60, "its requests");
	ok(tokens.items[0].created_s > 1700000000, "its time");
	is_int(tokens_refresh(&tokens, &err), 0, "nothing has changed");
	ok(tokens_add(path, "bob", 0, 0, bob, &err) == 0, "another");
	is_str(who(&tokens, "Bearer ", bob, ""), "", "is not known yet");
	is_int(tokens_refresh(&tokens, &err), 1, "something has changed");
	is_str(who(&tokens, "Bearer ", bob, ""), "bob", "now it is");
	is_str(who(&tokens, "bearer   ", alice, ""), "alice",
	    "so is the first");
	is_str(who(&tokens, "Bearer ", alice, " "), "", "a blank after it");
	is_str(who(&tokens, "Basic ", alice, ""), "", "another scheme");
	is_str(who(&tokens, "", alice, ""), "", "no scheme");
	is_str(who(&tokens, "Bearer ", alice + 1, ""), "", "no prefix");
	is_str(who(&tokens, "Bearer ", "", ""), "", "no token");
	alice[TOKENS_TEXT_LEN - 1] ^= 1;
	is_str(who(&tokens, "Bearer ", alice, ""), "", "one bit wrong");
	alice[TOKENS_TEXT_LEN - 1] ^= 1;
	for (size_t i = 3; alice[i] != '\0'; i++)
		upper[i] = (char)toupper((unsigned char)alice[i]);
	is_str(who(&tokens, "Bearer ", upper, ""), "", "in capitals");
	ok(tokens_find(&tokens, NULL) == NULL, "no header");
	ok(tokens_add(path, "bob", 0, 0, file, &err) < 0 &&
		err.code == ERR_CONFLICT,
	    "a name is taken");
	ok(tokens_set(path, "carol", 1, 1, &err) < 0 &&
		err.code == ERR_NOT_FOUND,
	    "nobody to change");
	ok(tokens_set(path, "bob", 1, 1000001, &err) < 0 &&
		err.code == ERR_INPUT,
	    "not a limit");
	ok(tokens_set(path, "bob", 3, -1, &err) == 0 &&
		tokens_set(path, "bob", -1, 70, &err) == 0,
	    "other limits");
	is_int(tokens_refresh(&tokens, &err), 1, "are a change");
	is_int(tokens.items[1].cells, 3, "of the runs");
	is_int(tokens.items[1].rate, 70, "of the requests");
	is_str(who(&tokens, "Bearer ", bob, ""), "bob", "not of the token");
	ok(tokens_revoke(path, "carol", &err) < 0 && err.code == ERR_NOT_FOUND,
	    "nobody to revoke");
	ok(tokens_revoke(path, "alice", &err) == 0, "revoked");
	is_int(tokens_refresh(&tokens, &err), 1, "which changes the file");
	is_str(who(&tokens, "Bearer ", alice, ""), "", "and counts");
	is_str(who(&tokens, "Bearer ", bob, ""), "bob", "for that one only");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, file, sizeof(file) - 1);
	file[n > 0 ? n : 0] = '\0';
	(void)close(fd);
	ok(strstr(file, bob + 3) == NULL, "the file has no token in it");
	write_text("garbage\n");
	ok(tokens_refresh(&tokens, &err) < 0, "a broken file");
	is_str(who(&tokens, "Bearer ", bob, ""), "bob",
	    "leaves what was there");
	(void)unlink(path);
	is_int(tokens_refresh(&tokens, &err), 1, "a file that is gone");
	is_str(who(&tokens, "Bearer ", bob, ""), "", "takes all with it");
	is_int(tokens_refresh(&tokens, &err), 0, "once");
	ok(tokens_add(path, "bob", 0, 0, bob, &err) == 0, "and anew");
	is_int(tokens_refresh(&tokens, &err), 1, "it is read again");
	is_str(who(&tokens, "Bearer ", bob, ""), "bob", "with who is in it");
	tokens_close(&tokens);
}

#define LONG "01234567890123456789012345678901234567890123456789012345678901234"

static void
test_names(void)
{
	static const char *const bad[] = { "", "a b", "é", "a\n", "a/b", LONG };
	char text[TOKENS_TEXT_LEN + 1];

	(void)unlink(path);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(tokens_add(path, bad[i], 0, 0, text, &err) < 0 &&
			err.code == ERR_INPUT,
		    "not a name");
	ok(tokens_add(path, "a", -1, 0, text, &err) < 0, "not a limit");
	ok(tokens_add("/nowhere/x", "a", 0, 0, text, &err) < 0, "no folder");
}

static void
test_files(void)
{
#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	static const char *const bad[] = { "a\n", "a " HASH " 1 1\n",
		"a " HASH " 1 1 1 1\n", "a " HASH "0 1 1 1\n",
		"a " HASH " -1 1 1\n", "a/b " HASH " 1 1 1\n",
		"a " HASH " 1 x 1\n", "a " HASH " 1 1 99999999999999999999\n" };
	struct tokens tokens;

	write_text("# none\n\n \n");
	ok(tokens_open(&tokens, path, &err) == 0 && tokens.count == 0, "none");
	tokens_close(&tokens);
	write_text("#\na\t" HASH "  1 2 3\nb " HASH " 1 0 0");
	ok(tokens_open(&tokens, path, &err) == 0 && tokens.count == 2, "two");
	is_int(tokens.items[0].rate, 3, "as written");
	tokens_close(&tokens);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_text(bad[i]);
		ok(tokens_open(&tokens, path, &err) < 0 &&
			err.code == ERR_CONFIG,
		    "a wrong line");
	}
}

int
main(void)
{
	(void)snprintf(path, sizeof(path), "%s/tokens", tap_folder());
	test_life();
	test_names();
	test_files();
	return tap_done();
}
