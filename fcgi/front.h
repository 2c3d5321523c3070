#ifndef FRONT_H
#define FRONT_H

#include <stdbool.h>
#include <stdint.h>

#include "seen.h"
#include "verify.h"
#include "wake.h"

struct config;
struct db;
struct err;
struct http_request;

/*
 * POST /interactions: everything between the HTTP request and its answer.  The
 * checks come in this order, and the first that fails is the answer: path (404)
 * and method (405), length (411, 413, 400), signature (401), JSON (400), type
 * (400), freshness (401), application (400), seen before (409).  A PING needs
 * the signature only.
 */
#define FRONT_BODY_MAX (1 << 20)

struct front {
	const struct config *config;
	struct verify_key key;
	struct db *db;	     /* NULL: it did not open; tried again */
	int64_t db_retry_ms; /* monotonic: not before */
	struct seen seen;
	char *wake_path;
	struct wake wake;
	bool wake_due;	    /* a job was committed for this request */
	int64_t log_second; /* denied requests are logged sparingly */
	int64_t log_count;
};

/* ERR_CONFIG when there is no usable public key.  The database need not be
 * there yet.  front is large: static storage. */
int front_open(struct front *front, const struct config *config,
    struct err *err);
void front_close(struct front *front);

/* For struct serve_calls: answer one request; after it, wake the workers. */
void front_answer(void *front, struct http_request *req);
void front_after(void *front);

#endif
