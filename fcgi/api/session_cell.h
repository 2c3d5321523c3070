/* SPDX-License-Identifier: MIT */
#ifndef SESSION_CELL_H
#define SESSION_CELL_H

#include <stdint.h>

#include "../../sandbox/protocol/lease.h"

struct api_app;
struct err;
struct http_request;

/*
 * A cell for a session of so long a time.  Where all are taken by sessions, the
 * one of the same owner's that has been at rest for the longest time ends for
 * it.  interpreter NULL: the default one.
 *
 * REFUSAL_NONE: the lease is to be closed, when the session's holder has it.
 * Otherwise err says why, *next_ms in how long it may be had; who asked may be
 * gone.
 */
enum refusal session_cell_lease(struct api_app *app, struct http_request *req,
    const char *interpreter, int64_t ttl_ms, struct lease *lease,
    int64_t *next_ms, struct err *err);

#endif
