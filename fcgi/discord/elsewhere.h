/* SPDX-License-Identifier: MIT */
#ifndef ELSEWHERE_H
#define ELSEWHERE_H

#include <stdbool.h>
#include <stdint.h>

struct context;
struct http_request;
struct interaction;
struct node_table;
struct reply;

/*
 * Where there are several nodes (protocol/node_table.h), a person's sandbox is
 * on one of them, and the row of a button as well.  nginx/discord.conf hands an
 * interaction on to that node; this says to which, and in words why it cannot
 * be.  A node that was handed one hands it to nobody: two tables that differ
 * end in an answer.  But for who has moved away (store/moves.h), whatever any
 * table says: they are handed on once more, and that is said with it.
 */

/* Where another node has handed it on, that one had it for a while, which
 * counts, and tells the person itself when it has waited long enough. */
void elsewhere_note_node(struct http_request *req, int64_t *received_ms,
    int64_t *until_ms);

/* Is the interaction for another node?  Then the reply is made: its headers
 * have nginx hand it on, or it says in words why that cannot be. */
bool elsewhere_decide(struct node_table *nodes, const struct http_request *req,
    const struct interaction *in, struct reply *reply);

/* Does the person move, or have they moved, or are they another node's although
 * one has handed them to us?  Then the reply is made.  Asked where a job may
 * follow, so that none begins of a person who leaves: what is so stays until
 * the group is committed. */
bool elsewhere_moved(struct node_table *nodes, const struct http_request *req,
    struct context *c);

#endif
