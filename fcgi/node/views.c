/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "node.h"
#include "../server/http.h"

#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/base/text.h"
#include "../../sandbox/protocol/node_ask.h"
#include "../../sandbox/store/view.h"

/* As a worker has it for those of this host: what is another's is shared, and a
 * file is in one sandbox. */
static bool
may_have(const struct view *view, const struct view_texts *texts, int64_t user)
{
	return view->kind == JOB_PY && *texts->text != '\0' &&
	    (view->user_id == user || view->share != 0);
}

void
views_get(struct node *node, struct http_request *req, const char *id)
{
	const char *user = http_param(req, "INLINE_USER");
	auto_view_texts struct view_texts texts = { 0 };
	auto_free char *body = NULL;
	struct view view;
	struct err err;
	int64_t view_id;
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
	if (body != NULL)
		http_answer(req, 200, "application/json", NULL, body,
		    strlen(body));
	else
		http_answer(req, found < 0 ? 500 : 404, NULL, NULL, "", 0);
}
