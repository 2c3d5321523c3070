/* SPDX-License-Identifier: MIT */
#ifndef BENCH_DISCORD_H
#define BENCH_DISCORD_H

#include <stddef.h>

struct loop;

/*
 * The end of Discord that receives edits: answers everything with 200 and the
 * least that a client needs, and tells of each request when the last byte of
 * it is there.  token: the part of the path after the application's id.
 */
struct discord;

typedef void (*discord_fn)(void *arg, const char *token, const char *body,
    size_t len);

/* listen_fd: a listening TCP socket, the caller's. */
struct discord *discord_new(struct loop *loop, int listen_fd, discord_fn fn,
    void *arg);
void discord_free(struct discord *discord);

#endif
