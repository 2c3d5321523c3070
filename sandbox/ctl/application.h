/* SPDX-License-Identifier: MIT */
#ifndef APPLICATION_H
#define APPLICATION_H

#include <stdbool.h>
#include <stdint.h>

#include "../rest/rest.h"

struct buf;
struct config;
struct err;

#define APPLICATION_KEY_SIZE 65
#define APPLICATION_URL_MAX 512

/* What Discord knows of the application that the bot's token belongs to, as far
 * as it says so. */
struct application {
	int64_t id;
	char verify_key[APPLICATION_KEY_SIZE]; /* "": not said */
	bool endpoint;			       /* it has an endpoint URL */
	bool contexts; /* it says where it may be installed: */
	bool guild;
	bool user;
};

/* Ask for it; answer is filled with what Discord said, whatever came of it.
 * REST_DONE: it is in app; otherwise reply and err say why not. */
enum rest_outcome application_ask(struct rest *rest,
    enum rest_patience patience, struct application *app, struct buf *answer,
    struct rest_reply *reply, struct err *err);

/* Is it the application of the settings?  -1: err says what differs. */
int application_compare(const struct application *app,
    const struct config *config, struct err *err);
/* The box that has to be ticked on the Installation page, so that both servers
 * and people can install it; NULL: none, or nobody knows. */
const char *application_missing_box(const struct application *app);

#endif
