/* SPDX-License-Identifier: MIT */
#ifndef ELSEWHERE_H
#define ELSEWHERE_H

#include <stdbool.h>

struct http_request;
struct interaction;
struct node_table;
struct reply;

/*
 * Where there are several nodes (protocol/node_table.h), a person's sandbox is
 * on one of them, and the row of a button as well.  nginx/discord.conf hands an
 * interaction on to that node; this says to which, and in words why it cannot
 * be.  A node that was handed one hands it to nobody: two tables that differ
 * end in an answer.
 */

/* Is the interaction for another node?  Then the reply is made: its headers
 * have nginx hand it on, or it says in words why that cannot be. */
bool elsewhere_decide(struct node_table *nodes, const struct http_request *req,
    const struct interaction *in, struct reply *reply);

/* nginx knows another node by the key that it has shown. */
bool elsewhere_is_from_node(const struct http_request *req);

#endif
