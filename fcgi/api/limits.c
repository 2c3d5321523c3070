/* SPDX-License-Identifier: MIT */
#include "api/limits.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sodium.h>

#include "base/err.h"
#include "base/log.h"
#include "base/shared_file.h"
#include "protocol/tokens.h"

/* More than there are tokens at one time, so that one that was not used of late
 * is always found when a new one needs its place. */
#define PLACES 4096
#define MINUTE_US INT64_C(60000000)
/* A token's slots are bytes of the file, one beside the other. */
#define SLOT_BITS 20
#define KEY_BITS 40

/*
 * free_us: when the token, if nothing else came, would have its whole minute
 * before it again (the "theoretical arrival time" of GCRA).  A token whose time
 * has passed is as good as one never seen, and its place is anybody's.
 */
struct limits_rate {
	_Atomic uint64_t key; /* 0: nobody's */
	_Atomic int64_t free_us;
};

/* The hash is random already. */
static uint64_t
key_of(const struct token *token)
{
	uint64_t key;

	memcpy(&key, token->hash, sizeof(key));
	return key;
}

int
limits_open(struct limits *limits, struct err *err)
{
	limits->rates = shared_file_open(NULL,
	    2 * PLACES * sizeof(*limits->rates), err);
	if (limits->rates == NULL)
		return -1;
	limits->strangers = limits->rates + PLACES;
	limits->slots = memfd_create("slots", MFD_CLOEXEC);
	return limits->slots < 0 ? err_system(err, "memfd_create") : 0;
}

/* ---- rates ---- */

/* Where the number of a key is, or is to be; NULL: all are in use.  Two who
 * look for the same new key at once may find it two places; the first one
 * counts then. */
static struct limits_rate *
find_place(struct limits_rate *rates, uint64_t key, int64_t now_us)
{
	struct limits_rate *free_place = NULL;
	uint64_t whose = 0;

	for (uint64_t i = 0; i < PLACES; i++) {
		struct limits_rate *r = &rates[(key + i) % PLACES];
		uint64_t there = r->key;

		if (there == key)
			return r;
		if (free_place == NULL && r->free_us <= now_us) {
			free_place = r;
			whose = there;
		}
		if (there == 0)
			break;
	}
	/* Another one was faster: there is a next place, or it is ours too. */
	if (free_place != NULL &&
	    !atomic_compare_exchange_strong(&free_place->key, &whose, key))
		return find_place(rates, key, now_us);
	return free_place;
}

/* In how many seconds the next one may come; -1: there is no place to count
 * it. */
static int64_t
count_request(struct limits_rate *rates, uint64_t key, int64_t rate,
    int64_t now_ms, bool count)
{
	int64_t now_us = now_ms * 1000;
	struct limits_rate *place = find_place(rates, key != 0 ? key : 1,
	    now_us);
	int64_t was;
	int64_t next;

	if (place == NULL)
		return -1;
	was = place->free_us;
	do {
		next = (was > now_us ? was : now_us) + MINUTE_US / rate;
		if (next - now_us > MINUTE_US)
			return (next - now_us - MINUTE_US + 999999) / 1000000;
	} while (count &&
	    !atomic_compare_exchange_strong(&place->free_us, &was, next));
	return 0;
}

int64_t
limits_request(struct limits *limits, const struct token *token, int64_t now_ms,
    bool count)
{
	int64_t seconds = 0;

	/* With another limit a token begins anew. */
	if (token->rate > 0)
		seconds = count_request(limits->rates,
		    key_of(token) + (uint64_t)token->rate, token->rate, now_ms,
		    count);
	return seconds < 0 ? 1 : seconds;
}

/* A host has the last half of an IPv6 address for itself, unless there is an
 * IPv4 address in it: as $inline_address of nginx/http.conf. */
int64_t
limits_stranger(struct limits *limits, const char *address, int64_t now_ms)
{
	static const unsigned char mapped[12] = { [10] = 0xff, 0xff };
	static const unsigned char nat64[12] = { 0, 0x64, 0xff, 0x9b };
	unsigned char bytes[sizeof(struct in6_addr)] = { 0 };
	unsigned char hash[crypto_generichash_BYTES_MIN];
	uint64_t key;
	int64_t seconds;

	if (inet_pton(AF_INET, address, bytes) != 1 &&
	    inet_pton(AF_INET6, address, bytes) == 1) {
		bool v4 = memcmp(bytes, mapped, sizeof(mapped)) == 0 ||
		    memcmp(bytes, nat64, sizeof(nat64)) == 0;

		if (v4)
			memmove(bytes, bytes + sizeof(mapped), 4);
		memset(bytes + (v4 ? 4 : 8), 0, sizeof(bytes) - (v4 ? 4 : 8));
	}
	(void)crypto_generichash(hash, sizeof(hash), bytes, sizeof(bytes), NULL,
	    0);
	memcpy(&key, hash, sizeof(key));
	seconds = count_request(limits->strangers, key, LIMITS_STRANGER_RATE,
	    now_ms, true);
	return seconds < 0 ? 0 : seconds;
}

/* ---- slots ---- */

/* The first of count bytes that nobody has locked, from there on. */
static int
take_lock(const struct limits *limits, uint64_t key, int64_t count)
{
	char name[64];
	int fd;

	/* Locks belong to an open file: each slot needs one of its own. */
	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", limits->slots);
	fd = open(name, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		log_err("open %s: %m", name);
		return -1;
	}
	for (int64_t i = 0; i < count; i++) {
		struct flock lock = { .l_type = F_WRLCK,
			.l_whence = SEEK_SET,
			.l_start = (off_t)(key << SLOT_BITS) + i,
			.l_len = 1 };

		if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
			return fd;
	}
	(void)close(fd);
	return -1;
}

int
limits_take_slot(const struct limits *limits, const struct token *token,
    enum limits_kind kind, int64_t most)
{
	uint64_t key = (key_of(token) & ((UINT64_C(1) << KEY_BITS) - 1)) |
	    (uint64_t)kind << KEY_BITS;

	if (token->cells == 0 || token->cells >= most)
		return LIMITS_NONE;
	return take_lock(limits, key, token->cells);
}

int
limits_take_place(const struct limits *limits, enum limits_kind kind,
    int64_t count)
{
	return take_lock(limits, (uint64_t)kind << KEY_BITS, count);
}
