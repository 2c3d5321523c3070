/* SPDX-License-Identifier: MIT */
#ifndef S3_ANSWER_H
#define S3_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/err.h"
#include "store.h"

/*
 * What an S3 service's answers mean: pure functions.
 *
 *	2xx		done; of GET 200 alone, and of GET and PUT with an
 *			ETag alone, which who is no S3 service does not send
 *	404 of GET	there is no such object (NoSuchBucket: the operator's)
 *	404 of DELETE	done
 *	408, 429, 5xx	again, S3_TRIES times at most; 429 and 503 hold up
 *			every request, as long as Retry-After says
 *	no answer, or not all of it	again likewise
 *	3xx, 400, 401, 403, a certificate that does not fit
 *			the operator's to mend: never again
 *	one too long	damaged
 */
#define S3_TRIES 5
#define S3_TOKEN_MAX 1024

enum s3_method { S3_GET, S3_PUT, S3_DELETE };

struct s3_answer {
	enum s3_method method;
	int tries;  /* before this one */
	int status; /* 0: none */
	bool whole;
	bool foreign; /* a 2xx without what S3 says with it */
	bool too_long;
	bool certificate; /* does not fit */
	int64_t retry_after_ms;
	const char *text; /* libcurl's, of no answer */
	const char *body;
};

struct s3_verdict {
	enum { S3_DONE, S3_ABSENT, S3_AGAIN, S3_FAILED } outcome;
	int64_t wait_ms;
	bool brake; /* it holds for all requests */
	enum err_code code;
	char text[200];
};

struct s3_verdict s3_decide(const struct s3_answer *answer);

/* Call fn for each object below that name on a page of a list, without the
 * prefix; set next to what asks for the next page, "": this is the last.
 * False: it is no whole page. */
bool s3_page(const char *xml, const char *prefix, const char *below,
    store_list_fn fn, void *arg, char next[S3_TOKEN_MAX]);

#endif
