/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>

#include "node.h"
#include "../server/http.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/config.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/base/text.h"
#include "../../sandbox/move/arrival.h"
#include "../../sandbox/protocol/node_table.h"
#include "../../sandbox/store/moves.h"

#define PIECE 65536
#define WHOLE_MS 60000 /* for an answer of a line */

/* Has this host given the slot away?  Then who comes would be nobody's. */
static int
check_slot(struct node *node, int slot, struct err *err)
{
	char to[MOVES_NODE_MAX + 1];

	switch (moves_find(node->db, slot, MOVES_ALL, to, err)) {
	case MOVE_NONE:
	case MOVE_LEAVING:
		return 0;
	case MOVE_GONE:
		return err_set(err, ERR_CONFLICT,
		    "this host has given slot %d to %s", slot, to);
	case MOVE_UNKNOWN:
		break;
	}
	return -1;
}

/* 1: they were here before. */
static int
receive(struct node *node, struct http_request *req, int64_t user_id,
    struct err *err)
{
	struct arrival *a = arrival_new(node->db, node->base,
	    node->config->node, user_id);
	char piece[PIECE];
	int result = 0;

	while (result == 0 && req->unread > 0) {
		ssize_t n = http_read(req, piece, sizeof(piece));

		result = n > 0 ? arrival_take(a, piece, (size_t)n, err) :
				 err_set(err, ERR_INPUT, "it was cut short");
	}
	if (result == 0)
		result = arrival_end(a, err);
	arrival_free(a);
	return result;
}

static int
status_of(const struct err *err)
{
	switch ((int)err->code) {
	case ERR_INPUT:
		return 400;
	case ERR_CONFLICT:
	case ERR_NOT_FOUND:
		return 409;
	case ERR_LIMIT:
		return 507;
	case ERR_UNKNOWN:
		return 500;
	default:
		return 503;
	}
}

void
people_put(struct node *node, struct http_request *req, const char *id)
{
	struct err err = { 0 };
	int64_t user_id = 0;
	int result;

	http_allow_slow_reader(req, WHOLE_MS);
	if (!text_parse_snowflake(id, strlen(id), &user_id))
		result = err_set(&err, ERR_INPUT, "no user's id");
	else if (check_slot(node, slot_of(user_id), &err) != 0)
		result = -1;
	else
		result = receive(node, req, user_id, &err);
	if (result < 0)
		log_warn("not taken in: %s user=%" PRId64, err.text, user_id);
	else
		log_info("%s user=%" PRId64,
		    result == 0 ? "arrived" : "was here before", user_id);
	http_answer(req, result < 0 ? status_of(&err) : 200, "text/plain", NULL,
	    err.text, strlen(err.text));
}

/* Only where the table says, too, that the slot is another's can it come back:
 * then what was noted of it is over. */
static int
await_slot(struct node *node, int slot, struct err *err)
{
	node_table_refresh(node->table, clock_monotonic_ms());
	if (node_table_other(node->table, slot) != NULL)
		return moves_forget(node->db, slot, err);
	return check_slot(node, slot, err) == 0 ?
	    0 :
	    err_wrap(err, "its table of nodes is old");
}

void
slots_put(struct node *node, struct http_request *req, const char *id)
{
	struct err err = { 0 };
	int64_t slot = 0;
	int result = text_parse_int(id, 0, SLOTS - 1, &slot) ?
	    await_slot(node, (int)slot, &err) :
	    err_set(&err, ERR_INPUT, "no slot");

	if (result != 0)
		log_warn("no person of the slot is taken in: %s", err.text);
	http_answer(req, result != 0 ? status_of(&err) : 200, "text/plain",
	    NULL, err.text, strlen(err.text));
}
