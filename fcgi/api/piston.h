/* SPDX-License-Identifier: MIT */
#ifndef PISTON_H
#define PISTON_H

#include <stdbool.h>
#include <stddef.h>

#include "../contract/piston/request.h"

struct api_app;
struct api_run;
struct err;
struct http_request;

/*
 * What the routes of Piston's contract have in common: which languages there
 * are, and what a request is for a cell.
 */

/* Two for each interpreter. */
#define PISTON_RUNTIMES_MAX 128

struct piston_runtimes {
	struct piston_runtime items[PISTON_RUNTIMES_MAX];
	size_t count;
};

/* Before the children are forked: memory for what they find out. */
int piston_open(struct api_app *app, struct err *err);
/* What the interpreters on offer say of themselves.  Whoever needs to know it
 * first asks in a cell, and all know it then; with anew what is older than
 * PISTON_ASK_AGAIN_MS is asked again.  False: there was no cell, which is to be
 * told, or nobody waits for it (http_client_gone()). */
#define PISTON_ASK_AGAIN_MS 600000
bool piston_runtimes(struct piston_runtimes *all, struct api_app *app,
    struct http_request *req, bool anew);

/* The limits that the operator has set. */
struct piston_limits piston_limits(const struct api_app *app);
/* A request as the cell takes it; the request stays. */
void piston_fill(struct cell_request *cell, const struct piston_request *req);

/* Serve who has connected to connect.sock: HTTP, then a WebSocket, whose run
 * takes input while it goes on.  For struct serve_socket; app: the api_app. */
void api_connect(void *app, int fd);

#endif
