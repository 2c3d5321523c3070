/* SPDX-License-Identifier: MIT */
#include "other_view.h"

#include <inttypes.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../protocol/node_key.h"
#include "../protocol/node_table.h"
#include "../protocol/node_view.h"
#include "../rest/node.h"
#include "../store/row_id.h"
#include "worker.h"

/* The other node that has the row; NULL: it is this one's. */
static const struct node_entry *
find_node(struct worker *worker, int64_t view_id)
{
	int slot = row_id_slot(view_id);

	if (worker->nodes == NULL || slot < 0)
		return NULL;
	node_table_refresh(worker->nodes, clock_monotonic_ms());
	return node_table_other(worker->nodes, slot);
}

static enum other_view
take_answer(int status, const struct buf *body, struct node_view *view,
    struct err *err)
{
	if (status == 404)
		return OTHER_VIEW_NONE;
	if (status == 200 &&
	    node_view_read(view, buf_str(body), body->len, err) == 0)
		return OTHER_VIEW_READ;
	if (status > 0 && status != 200)
		(void)err_set(err, ERR_UNAVAILABLE, "status %d", status);
	return OTHER_VIEW_AWAY;
}

enum other_view
other_view_read(struct worker *worker, int64_t view_id, int64_t user_id,
    struct node_view *view)
{
	const struct node_entry *entry = find_node(worker, view_id);
	auto_buf struct buf body = BUF_INIT(NODE_VIEW_MAX);
	auto_free char *path = NULL;
	auto_free char *socket = NULL;
	enum other_view what;
	struct err err = { 0 };
	int status;

	if (entry == NULL)
		return OTHER_VIEW_OURS;
	path = xprintf(NODE_VIEWS "%" PRId64, view_id);
	socket = config_state_path(worker->config, NODES_SOCKET);
	status = rest_ask_node(worker->rest,
	    &(struct rest_node){ socket, entry->address, user_id }, path,
	    OTHER_VIEW_MS, &body, &err);
	what = take_answer(status, &body, view, &err);
	if (what == OTHER_VIEW_AWAY)
		log_warn("node %s does not say what view %" PRId64 " is: %s",
		    entry->name, view_id, err.text);
	return what;
}
