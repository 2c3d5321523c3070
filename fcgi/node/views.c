/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "node.h"
#include "../server/http.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/base/text.h"
#include "../../sandbox/protocol/node_ask.h"
#include "../../sandbox/protocol/node_table.h"
#include "../../sandbox/store/moves.h"
#include "../../sandbox/store/row_id.h"
#include "../../sandbox/store/view.h"

/* As a worker has it for those of this host: what is another's is shared, and a
 * file is in one sandbox. */
static bool
may_have(const struct view *view, const struct view_texts *texts, int64_t user)
{
	return view->kind == JOB_PY && *texts->text != '\0' &&
	    (view->user_id == user || view->share != 0);
}

/* Where whoever had it has gone with it; NULL: nowhere.  Who asks because of
 * another node's answer is sent to none. */
static const struct node_entry *
find_next(struct node *node, const struct http_request *req, int64_t view_id)
{
	char to[MOVES_NODE_MAX + 1];
	int slot = row_id_slot(view_id);
	struct err ignored;

	if (slot < 0 || http_says(req, "INLINE_MOVED") ||
	    moves_find(node->db, slot, MOVES_ALL, to, &ignored) != MOVE_GONE)
		return NULL;
	node_table_refresh(node->table, clock_monotonic_ms());
	return node_table_named(node->table, to);
}

void
views_get(struct node *node, struct http_request *req, const char *id)
{
	const char *user = http_param(req, "INLINE_USER");
	auto_view_texts struct view_texts texts = { 0 };
	auto_free char *body = NULL;
	auto_free char *headers = NULL;
	const struct node_entry *next = NULL;
	struct view view;
	struct err err;
	int64_t view_id = 0;
	int64_t user_id;
	int found = 1;

	if (user != NULL &&
	    text_parse_snowflake(user, strlen(user), &user_id) &&
	    text_parse_snowflake(id, strlen(id), &view_id))
		found = view_load(node->db, view_id, &view, &texts, &err);
	if (found < 0)
		log_err("%s", err.text);
	else if (found == 0 && may_have(&view, &texts, user_id))
		body = node_view_write(&(struct node_view){
		    texts.text, texts.input, view.version, view.timeit });
	else if (found == 1)
		next = find_next(node, req, view_id);
	if (next != NULL) {
		headers = xprintf("X-Accel-Redirect: @view_moved\r\n"
				  "Inline-Node: %s\r\n",
		    next->address);
		http_answer(req, 200, NULL, headers, "", 0);
	} else if (body != NULL)
		http_answer(req, 200, "application/json", NULL, body,
		    strlen(body));
	else
		http_answer(req, found < 0 ? 500 : 404, NULL, NULL, "", 0);
}
