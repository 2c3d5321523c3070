/* SPDX-License-Identifier: MIT */
#include "elsewhere.h"

#include <inttypes.h>
#include <string.h>

#include "../server/http.h"
#include "submit.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/locale/locale.h"
#include "../../sandbox/protocol/node_table.h"
#include "../../sandbox/store/db.h"
#include "../../sandbox/store/moves.h"

/* Bytes that are logged of what nginx says of the other node. */
#define WORD_MOST 64

/* Before any row is looked at, so the words are all that there is.  Always
 * true. */
static bool
tell(const struct interaction *in, struct reply *reply, enum text_id text,
    const char *outcome)
{
	locale_set(in->locale);
	if (in->type == INTERACTION_AUTOCOMPLETE)
		reply_set(reply, xstrdup(ANSWER_JSON_NO_CHOICES), outcome);
	else
		reply_set(reply, answer_message(text_of(text)), outcome);
	reply->said = CHAT_FAULT;
	return true;
}

/* nginx has tried another node in vain. */
static bool
tell_away(const struct interaction *in, struct reply *reply, const char *what)
{
	log_warn("the person's node does not answer: interaction=%" PRId64
		 " user=%" PRId64 " status=\"%.*s\"",
	    in->id, in->user_id, WORD_MOST, what);
	return tell(in, reply, TEXT_NODE_AWAY, "node-away");
}

/* The one that has handed it on takes us for the person's node, and we another
 * one. */
static bool
tell_differ(const struct interaction *in, struct reply *reply,
    const struct http_request *req, const char *owner)
{
	const char *by = http_param(req, "INLINE_BY");

	log_warn("the tables of nodes differ: node %.*s has handed on "
		 "interaction=%" PRId64 " of a person who is on node %s",
	    WORD_MOST, by != NULL ? by : "?", in->id, owner);
	return tell(in, reply, TEXT_NODES_DIFFER, "nodes-differ");
}

void
elsewhere_note_node(struct http_request *req, int64_t *received_ms,
    int64_t *until_ms)
{
	int64_t before_ms = http_param_ms(req, "INLINE_TOOK_BEFORE");

	if (!http_is_from_node(req))
		return;
	req->relayed = true;
	if (before_ms > 0 && before_ms < *received_ms)
		*received_ms -= before_ms;
	*until_ms = *received_ms + SUBMIT_RELAYED_MS;
}

/* The node that has handed it on has given the person to us. */
static bool
is_given(const struct http_request *req)
{
	return http_is_from_node(req) && http_says(req, "INLINE_MOVED");
}

/* In nginx/discord.conf; a name and an address hold nothing but letters, digits
 * and a few signs.  moved: whatever that node's table says. */
static bool
hand_on(struct node_table *nodes, struct reply *reply,
    const struct node_entry *node, bool moved)
{
	reply->status = 200;
	reply->headers = xprintf("X-Accel-Redirect: @person\r\n"
				 "Inline-Node: %s\r\nInline-By: %s\r\n%s",
	    node->address, node_table_own(nodes)->name,
	    moved ? "Inline-Moved: 1\r\n" : "");
	reply->outcome = "handed-on";
	reply->said = CHAT_HANDED_ON;
	return true;
}

bool
elsewhere_decide(struct node_table *nodes, const struct http_request *req,
    const struct interaction *in, struct reply *reply)
{
	const char *away = http_param(req, "INLINE_NODE_AWAY");
	const struct node_entry *node;
	int slot;

	/* It may have been done there, whatever the table says by now. */
	if (away != NULL)
		return tell_away(in, reply, away);
	slot = route_slot(in);
	if (slot < 0)
		return false;
	node_table_refresh(nodes, clock_monotonic_ms());
	node = node_table_other(nodes, slot);
	return node != NULL && !http_is_from_node(req) &&
	    hand_on(nodes, reply, node, false);
}

/* Where another person's row is asked for, only the whole slot is known. */
static enum move_state
find_move(struct context *c, int slot, char to[MOVES_NODE_MAX + 1])
{
	int64_t user_id = slot == slot_of(c->in->user_id) ? c->in->user_id :
							    MOVES_ALL;

	if (slot < 0 || c->db == NULL)
		return MOVE_NONE;
	/* from here on nobody else changes it */
	if (c->in->type != INTERACTION_AUTOCOMPLETE &&
	    db_begin(c->db, &c->reply->err) != 0)
		return MOVE_UNKNOWN;
	return moves_find(c->db, slot, user_id, to, &c->reply->err);
}

bool
elsewhere_moved(struct node_table *nodes, const struct http_request *req,
    struct context *c)
{
	char to[MOVES_NODE_MAX + 1] = "";
	const struct node_entry *node = NULL;
	int slot = route_slot(c->in);

	if (slot >= 0 && !is_given(req))
		node = node_table_other(nodes, slot);
	switch (find_move(c, slot, to)) {
	case MOVE_NONE:
		return node != NULL &&
		    tell_differ(c->in, c->reply, req, node->name);
	case MOVE_UNKNOWN:
		(void)submit_fault(c, "database");
		return true;
	case MOVE_LEAVING:
		(void)tell(c->in, c->reply, TEXT_NODE_MOVES, "moves");
		c->reply->said = CHAT_REFUSED;
		return true;
	case MOVE_GONE:
		break;
	}
	node = node_table_named(nodes, to);
	if (node == NULL || is_given(req))
		return tell_differ(c->in, c->reply, req, to);
	return hand_on(nodes, c->reply, node, true);
}
