/* SPDX-License-Identifier: MIT */
#include "reply.h"

#include <stdio.h>

#include <jansson.h>

#include "../base/buf.h"
#include "transfer.h"

#define RETRY_AFTER_MOST 3600.0 /* seconds */

bool
rest_is_moderated(const struct rest_reply *reply)
{
	enum { MESSAGE = 200000, TITLE = 200001, HARMFUL_LINKS = 240000 };

	return reply->code == MESSAGE || reply->code == TITLE ||
	    reply->code == HARMFUL_LINKS;
}

void
reply_read(struct rest_reply *reply, const struct transfer_answer *answer,
    const struct buf *body)
{
	json_auto_t *root = json_loadb(buf_str(body), body->len, 0, NULL);
	const json_t *after = json_object_get(root, "retry_after");
	const json_t *code = json_object_get(root, "code");
	const char *message = json_string_value(json_object_get(root,
	    "message"));
	double seconds = json_number_value(after);

	*reply = (struct rest_reply){
		.status = answer->status,
		/* a limit need not have a code */
		.json = message != NULL &&
		    (json_is_integer(code) || answer->status == 429),
		.code = json_integer_value(code),
		.global = json_is_true(json_object_get(root, "global")),
		.shared = answer->shared,
		.retry_after_ms = answer->retry_after_ms,
	};
	/* the body is more exact than the header */
	if (json_is_number(after) && seconds >= 0.0 &&
	    seconds <= RETRY_AFTER_MOST)
		reply->retry_after_ms = (int64_t)(seconds * 1000.0);
	(void)snprintf(reply->message, sizeof(reply->message), "%s",
	    message != NULL ? message : "");
}
