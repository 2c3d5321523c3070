/* SPDX-License-Identifier: MIT */
#ifndef APP_H
#define APP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "limits.h"
#include "metrics.h"
#include "../files/filestore.h"

#include "../../sandbox/protocol/node_table.h"
#include "../../sandbox/protocol/tokens.h"

struct config;
struct piston_versions;
struct libre_keys;

/*
 * What the routes of il-api share: made once, before the children are forked,
 * and then only read (what is counted is in shared memory); but for what is
 * known of the one request that is being answered: whose it is, and its id.
 */
#define API_INTERPRETERS_MAX 64
/* Of a request's body; its JSON takes about as much again. */
#define API_BODY_MAX ((size_t)128 << 20)

struct api_app {
	const struct config *config;
	char *lease_socket;
	char *sessions; /* folder of their sockets */
	pid_t master;
	struct metrics metrics;
	struct filestore store;
	struct piston_versions *versions; /* piston.h */
	struct tokens tokens; /* path NULL: nobody is asked for one */
	struct limits limits;
	struct token token;		      /* what who asks may have, */
	bool limited;			      /* if that is limited */
	unsigned char owner[TOKENS_HASH_LEN]; /* its token; zeros: none */
	int slot; /* the cell that its token may have; -1 and less: none */
	/* What its path has for the first {…} and the second; "": nothing. */
	const char *id;
	const char *second_id;
	/* Whose signatures LibreChat's users have; NULL: nobody's.  Of such a
	 * user its tenant (zeros: none), and the owner of what it shares. */
	struct libre_keys *librechat_keys;
	unsigned char tenant[TOKENS_HASH_LEN];
	unsigned char resource[TOKENS_HASH_LEN];
	unsigned char librechat_seal[32]; /* librechat_seal() */
	/* nodes.h: on one host NULL, and all empty. */
	struct node_table *nodes;
	char tag[NODES_TAG_LEN + 1];  /* ours */
	int64_t fetched;	      /* bytes of theirs, for this request */
	char away[NODES_TAG_LEN + 1]; /* did not answer it; "": none */
	const char *interpreters[API_INTERPRETERS_MAX + 1]; /* ends with NULL */
};

#endif
