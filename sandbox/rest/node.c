/* SPDX-License-Identifier: MIT */
#include "node.h"

#include <inttypes.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "rest_parts.h"
#include "transfer.h"

int
rest_ask_node(struct rest *rest, const struct rest_node *node, const char *path,
    int timeout_ms, struct buf *body, struct err *err)
{
	auto_free char *url = xprintf("http://inline%s", path);
	auto_free char *which = xprintf("Inline-Node: %s", node->address);
	auto_free char *user = xprintf("Inline-User: %" PRId64, node->user_id);
	const struct transfer_request request = {
		.method = "GET",
		.url = url,
		.socket = node->socket,
		.headers = { which, user },
		.timeout_ms = timeout_ms,
	};
	struct transfer_answer answer;

	return transfer_run(rest->transfer, &request, &answer, body, err) == 0 ?
	    answer.status :
	    -1;
}
