/* SPDX-License-Identifier: MIT */
#ifndef ROUTE_H
#define ROUTE_H

struct context;

/*
 * From an interaction (not a PING) to its reply.  The slash commands, buttons
 * and editors that there are stand in sandbox/store/commands.def.
 */
void route(struct context *c);
/* Of these the message components and modals. */
void route_action(struct context *c);

#endif
