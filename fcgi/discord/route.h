#ifndef ROUTE_H
#define ROUTE_H

struct context;
struct interaction;
struct reply;

/*
 * From an interaction (not a PING) to its answer.  The slash commands, buttons
 * and editors that there are stand in sandbox/store/commands.def.
 */
void route(const struct context *context, const struct interaction *in,
    struct reply *reply);
/* Of these the message components and modals. */
void route_action(const struct context *context, const struct interaction *in,
    struct reply *reply);

#endif
