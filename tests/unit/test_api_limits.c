/* SPDX-License-Identifier: MIT */
/* Limits of tokens over several processes, of which any may be killed. */
#include "api/gate.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/basics.h"
#include "protocol/tokens.h"
#include "tap.h"

#define MOST 100

static struct limits limits;

static struct token
make_token(uint64_t number, int64_t cells, int64_t rate)
{
	struct token token = { .cells = cells, .rate = rate };

	memcpy(token.hash, &number, sizeof(number));
	return token;
}

static void
test_rates(void)
{
	const struct token slow = make_token(7, 0, 3);
	const struct token other = make_token(7 + 4096, 0, 3);
	const struct token free_one = make_token(8, 0, 0);
	const int64_t t = 1000000;

	for (int i = 0; i < 9; i++)
		is_int(limits_request(&limits, &slow, t, false), 0, "asked");
	for (int i = 0; i < 3; i++)
		is_int(limits_request(&limits, &slow, t, true), 0, "at once");
	is_int(limits_request(&limits, &slow, t, true), 20, "then 20 s");
	is_int(limits_request(&limits, &slow, t + 19000, true), 1,
	    "of which 19 go");
	is_int(limits_request(&limits, &slow, t + 20000, true), 0,
	    "and one more");
	is_int(limits_request(&limits, &slow, t + 20001, true), 20, "not two");
	is_int(limits_request(&limits, &other, t, true), 0,
	    "one that begins at the same place is another");
	is_int(limits_request(&limits, &slow, t + 20001, true), 20,
	    "still not");
	for (int i = 0; i < 3; i++)
		is_int(limits_request(&limits, &slow, t + 200000, true), 0,
		    "after a while all of them again");
	ok(limits_request(&limits, &slow, t + 200000, true) > 0, "and no more");
	for (int i = 0; i < 1000; i++)
		if (limits_request(&limits, &free_one, t, true) != 0)
			ok(false, "no limit");
}

/* Tokens come and go for as long as il-api runs. */
static void
test_many_tokens(void)
{
	const struct token kept = make_token(UINT64_MAX, 0, 1);
	int64_t t = 10000000;
	int refused = 0;

	is_int(limits_request(&limits, &kept, t, true), 0, "one of them all");
	for (uint64_t i = 0; i < 4000; i++) {
		const struct token token = make_token(1000000 + i * 3, 0, 60);

		refused += limits_request(&limits, &token, t, true) != 0;
	}
	is_int(refused, 0, "4,000 others at once");
	is_int(limits_request(&limits, &kept, t, true), 60,
	    "which it survives");
	for (uint64_t i = 0; i < 20000; i++) {
		const struct token token = make_token(900000 + i, 0, 60);

		t += 1000;
		refused += limits_request(&limits, &token, t, true) != 0;
	}
	is_int(refused, 0, "20,000 one after another");
}

/* A process that takes a slot and then waits to be killed. */
static pid_t
sit_down(const struct token *token)
{
	char byte = 0;
	int ready[2];
	pid_t pid;

	if (pipe(ready) != 0 || (pid = fork()) < 0)
		return -1;
	if (pid == 0) {
		byte = limits_claim_slot(&limits, token, LIMITS_CELL, MOST) >=
		    0;
		if (write(ready[1], &byte, 1) == 1)
			for (;;)
				(void)pause();
		_exit(1);
	}
	ok(read(ready[0], &byte, 1) == 1 && byte == 1, "another sits down");
	(void)close(ready[0]);
	(void)close(ready[1]);
	return pid;
}

static void
test_slots(void)
{
	const struct token two = make_token(42, 2, 0);
	const struct token one = make_token(43, 1, 0);
	const struct token any = make_token(44, MOST, 0);
	pid_t pid = sit_down(&two);
	int slot = limits_claim_slot(&limits, &two, LIMITS_CELL, MOST);
	int copy = dup(slot);

	ok(slot >= 0, "there are two slots");
	is_int(limits_claim_slot(&limits, &two, LIMITS_CELL, MOST), -1,
	    "not three");
	(void)close(limits_claim_slot(&limits, &one, LIMITS_CELL, MOST));
	ok(limits_claim_slot(&limits, &one, LIMITS_CELL, MOST) >= 0,
	    "others have theirs");
	(void)close(slot);
	is_int(limits_claim_slot(&limits, &two, LIMITS_CELL, MOST), -1,
	    "a copy holds it");
	(void)close(copy);
	slot = limits_claim_slot(&limits, &two, LIMITS_CELL, MOST);
	ok(slot >= 0, "when it is closed, too, it is free");
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	ok(limits_claim_slot(&limits, &two, LIMITS_CELL, MOST) >= 0,
	    "who is killed leaves his");
	is_int(limits_claim_slot(&limits, &two, LIMITS_CELL, MOST), -1,
	    "now both are taken");
	ok(limits_claim_slot(&limits, &two, LIMITS_COMMAND, MOST) >= 0 &&
		limits_claim_slot(&limits, &two, LIMITS_COMMAND, MOST) >= 0,
	    "commands are counted for themselves");
	is_int(limits_claim_slot(&limits, &two, LIMITS_COMMAND, MOST), -1,
	    "and are as many");
	is_int(limits_claim_slot(&limits, &any, LIMITS_CELL, MOST), LIMITS_NONE,
	    "no slot is needed where there are as many as can be");
}

/* A client with an unknown token is counted by its address. */
static void
test_strangers(void)
{
	static const char *const own[] = { "2001:db8::1", "2001:db8::ffff:1" };
	static const char *const v4[] = { "198.51.100.1", "::ffff:198.51.100.1",
		"64:ff9b::198.51.100.1" };
	const int64_t t = INT64_C(9000000000);
	char address[64];
	struct token token = { .hash = "stranger", .rate = 1 };

	for (int i = 0; i < LIMITS_STRANGER_RATE; i++)
		if (limits_stranger(&limits, own[i % 2], t) != 0)
			break;
	ok(limits_stranger(&limits, own[0], t) == 1, "a minute's are used up");
	ok(limits_stranger(&limits, own[1], t) == 1, "of the whole network");
	ok(limits_stranger(&limits, "2001:db8:0:1::1", t) == 0, "another one");
	ok(limits_stranger(&limits, "192.0.2.1", t) == 0, "an IPv4 address");
	ok(limits_stranger(&limits, own[0], t + 1000) == 0, "one each second");
	for (int i = 0; i < LIMITS_STRANGER_RATE; i++)
		if (limits_stranger(&limits, v4[i % 3], t) != 0)
			break;
	for (int i = 0; i < 3; i++)
		ok(limits_stranger(&limits, v4[i], t) == 1,
		    "one IPv4 address, however it is written");
	ok(limits_stranger(&limits, "::ffff:198.51.100.2", t) == 0 &&
		limits_stranger(&limits, "64:ff9b::198.51.100.3", t) == 0,
	    "its neighbours are others");
	for (unsigned i = 0; i < 5000; i++) {
		(void)snprintf(address, sizeof(address), "2001:db8:%x::1", i);
		if (limits_stranger(&limits, address, t) != 0)
			break;
	}
	ok(limits_request(&limits, &token, t, true) == 0,
	    "however many there are, a token has its place");
}

int
main(void)
{
	struct err err;

	auto_free char *path = xprintf("%s/slots", tap_folder());

	ok(limits_open(&limits, path, &err) == 0, "it opens");
	test_rates();
	test_many_tokens();
	test_slots();
	test_strangers();
	return tap_done();
}
