/* SPDX-License-Identifier: MIT */
/*
 * il-node: answers other nodes of IL_NODES.
 *
 * 	another node's ilctl, il-worker ──▶ its nginx ──key──▶ our nginx ──▶
 * 		node.sock ──▶ 6 children ──▶ SQLite, IL_BASE_DIR
 *
 * It sends a worker of another node the code of a shared message, and accepts
 * people who move here.  Where IL_NODES is empty it has nothing to do, and
 * exits with status 0.
 *
 * It may: listen on its socket, read and change the database, make sandboxes'
 * folders.  It may not and need not: touch Docker, the broker, the network.
 * nginx admits only callers with the nodes' key.  Each request is checked all
 * the same.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "server/master.h"
#include "server/serve.h"

#include "base/basics.h"
#include "base/config.h"
#include "base/text.h"
#include "move/parcel.h"
#include "protocol/node_ask.h"
#include "protocol/node_table.h"
#include "store/db.h"
#include "store/moves.h"
#include "store/job.h"

/* nginx lets four people arrive at one time (nginx/node.conf). */
#define CHILDREN 6
#define STOP_MS 8000
#define WHOLE_MS 60000 /* for the whole answer, one line */

/* The state of a process.  All requests come from other nodes. */
struct node {
	const struct config *config;
	struct node_table *table;
	struct db *db; /* NULL: it does not open just now */
	int base;      /* IL_BASE_DIR; -1 */
};

/* ---- code of a shared message, for a user of another node ---- */

/* The node that the view's owner has moved to; NULL: none.  A request that
 * another node has sent here is not sent on. */
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

static void
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

	if (user != NULL && text_parse_snowflake(user, &user_id) &&
	    text_parse_snowflake(id, &view_id))
		found = view_find(node->db, view_id, &view, &texts, &err);
	if (found < 0)
		log_err("%s", err.text);
	/* The rule is that of a worker for people of this host: another
	 * person's view must be shared.  A view without code is about a file,
	 * which no other sandbox has. */
	else if (found == 0 && view.kind == JOB_PY && *texts.text != '\0' &&
	    (view.user_id == user_id || view.share != 0))
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

/* ---- people who move here ---- */

/* Refuse a slot that this host has given away: no node would answer for a
 * person who comes here. */
static int
check_slot(struct node *node, int slot, struct err *err)
{
	char to[MOVES_NODE_MAX + 1];

	switch (moves_find(node->db, slot, MOVES_ALL, to, err)) {
	case MOVE_NONE:
	case MOVE_LEAVING:
	case MOVE_COME:
		return 0;
	case MOVE_GONE:
		return err_set(err, ERR_CONFLICT,
		    "this host has given slot %d to %s", slot, to);
	case MOVE_UNKNOWN:
		break;
	}
	return -1;
}

static int
read_parcel(void *arg, void *data, size_t len, struct err *err)
{
	char *at = data;

	while (len > 0) {
		ssize_t n = http_read(arg, at, len);

		if (n <= 0)
			return err_set(err, ERR_INPUT, "it was cut short");
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

/* 1: the person was here before. */
static int
receive_person(const struct node *node, struct http_request *req,
    int64_t user_id, struct err *err)
{
	struct parcel p;
	int result;

	parcel_init(&p);
	result = parcel_receive(&p, (int64_t)req->unread, read_parcel, req,
	    err);
	if (result == 0 && strcmp(p.head.node, node->config->node) != 0)
		result = err_set(err, ERR_NOT_FOUND,
		    "this host is %s, not %s: the table of nodes has a wrong "
		    "address",
		    node->config->node, p.head.node);
	if (result == 0)
		result = arrival_store(node->db, node->base, user_id, &p, err);
	parcel_release(&p);
	return result;
}

/* Receive a parcel (sandbox/move/parcel.h).  200: the person is here; 500: that
 * is not known; 400, 409, 503 and 507: the person is not here, and nothing is
 * left of the parcel.  The body is one line, the reason. */
static void
people_put(struct node *node, struct http_request *req, const char *id)
{
	struct err err = { 0 };
	int64_t user_id = 0;
	int result;

	http_allow_slow_reader(req, WHOLE_MS);
	if (!text_parse_snowflake(id, &user_id))
		result = err_set(&err, ERR_INPUT, "no user's id");
	else if (check_slot(node, slot_of(user_id), &err) != 0)
		result = -1;
	else
		result = receive_person(node, req, user_id, &err);
	if (result < 0)
		log_warn("not taken in: %s user=%" PRId64, err.text, user_id);
	else
		log_info("%s user=%" PRId64,
		    result == 0 ? "arrived" : "was here before", user_id);
	http_answer(req, result < 0 ? arrival_status(err.code) : 200,
	    "text/plain", NULL, err.text, strlen(err.text));
}

/* The slot can come back only if our table, too, says that it is another
 * node's.  Then our note of its move is removed. */
static int
expect_slot(struct node *node, int slot, struct err *err)
{
	node_table_refresh(node->table, clock_monotonic_ms());
	if (node_table_other(node->table, slot) != NULL)
		return moves_forget(node->db, slot, err);
	return check_slot(node, slot, err) == 0 ?
	    0 :
	    err_wrap(err, "its table of nodes is old");
}

/* A late request must not take back a slot that was given away again. */
static int
own_slot(struct node *node, int slot, struct err *err)
{
	if (check_slot(node, slot, err) != 0)
		return -1;
	node_table_refresh(node->table, clock_monotonic_ms());
	return node_table_other(node->table, slot) == NULL ?
	    0 :
	    moves_come_slot(node->db, slot, node_table_version(node->table),
		err);
}

static void
put_slot(struct node *node, struct http_request *req, const char *id,
    int (*note)(struct node *node, int slot, struct err *err))
{
	struct err err = { 0 };
	int64_t slot = 0;
	int result = text_parse_int(id, 0, SLOTS - 1, &slot) ?
	    note(node, (int)slot, &err) :
	    err_set(&err, ERR_INPUT, "no slot");

	if (result != 0)
		log_warn("the slot is not taken: %s", err.text);
	http_answer(req, result != 0 ? arrival_status(err.code) : 200,
	    "text/plain", NULL, err.text, strlen(err.text));
}

/* ---- the program ---- */

static const struct route {
	const char *method;
	const char *path;
	void (*answer)(struct node *node, struct http_request *req,
	    const char *id);
	/* Note that a slot comes.  409: this node has given it away. */
	int (*note)(struct node *node, int slot, struct err *err);
} routes[] = {
	{ "GET", NODE_VIEWS, views_get, NULL },
	{ "PUT", "/nodes/people/", people_put, NULL },
	/* its people are about to come; all of them have come */
	{ "PUT", "/nodes/slots/", NULL, expect_slot },
	{ "PUT", "/nodes/come/", NULL, own_slot },
};

/* Open database and folder when they are needed: the database may have been
 * replaced, or its disk be back. */
static bool
open_node(struct node *node)
{
	struct err err;

	if (node->db == NULL)
		node->db = db_start(node->config->database, DB_NODE, &err);
	if (node->db == NULL) {
		log_err("database: %s", err.text);
		return false;
	}
	if (node->base < 0)
		node->base = open(node->config->base_dir,
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (node->base < 0)
		log_err("%s: %m", node->config->base_dir);
	return node->base >= 0;
}

static bool
answer_node(void *arg, struct http_request *req, size_t index)
{
	const struct route *route = routes;
	const struct route *end = routes + sizeof(routes) / sizeof(*routes);

	(void)index;
	while (route < end &&
	    (strcmp(route->method, req->method) != 0 ||
		strncmp(route->path, req->path, strlen(route->path)) != 0))
		route++;
	if (route == end || !http_is_from_node(req))
		http_answer(req, 404, NULL, NULL, "", 0);
	else if (!open_node(arg))
		http_answer(req, 503, NULL, NULL, "", 0);
	else if (route->note != NULL)
		put_slot(arg, req, req->path + strlen(route->path),
		    route->note);
	else
		route->answer(arg, req, req->path + strlen(route->path));
	return false;
}

/* Returns after SIGTERM. */
static int
serve_nodes(const struct config *config, struct err *err)
{
	static const struct serve_socket socket = { "node.sock", SERVE_BACKLOG,
		CHILDREN, NULL };
	struct node node = { .config = config, .base = -1 };
	const struct serve serve = {
		.sockets = &socket,
		.socket_count = 1,
		.arg = &node,
		.answer = answer_node,
		.stop_ms = STOP_MS,
	};
	int result;

	if (node_table_open(&node.table, config, err) != 0)
		return -1;
	if (node.table == NULL) {
		log_info("IL_NODES is empty: there is no other node");
		return 0;
	}
	result = db_claim(config, err);
	if (result == 0)
		result = master_run(&serve, config, err);
	node_table_free(node.table);
	return result;
}

int
main(int argc, char **argv)
{
	auto_config struct config config = { 0 };
	const char *given[CONFIG_OPTIONS] = { NULL };
	struct err err;

	if (sodium_init() < 0)
		log_fatal(1, "libsodium does not start");
	config_begin(&config, "il-node",
	    "tve:", "usage: il-node [-tv] [-e envfile]\n", argc, argv, given);
	if (given['t'] == NULL) {
		if (serve_nodes(&config, &err) < 0)
			log_fatal(err.code == ERR_CONFIG ? 78 : 1, "%s",
			    err.text);
		log_info("ended");
	}
	return 0;
}
