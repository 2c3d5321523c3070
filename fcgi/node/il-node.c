/* SPDX-License-Identifier: MIT */
/*
 * il-node: answers other nodes of IL_NODES.
 *
 *	another node's ilctl, il-worker ──▶ its nginx ──key──▶ our nginx ──▶
 *		node.sock ──▶ 6 children ──▶ SQLite, IL_BASE_DIR
 *
 * It gives a worker of another node what a shared message refers to (views.c),
 * and takes in people who move here (people.c).  Where IL_NODES is empty there
 * is nothing to do: it ends at once, and well.
 *
 * It may: listen on its socket, read and change the database, make sandboxes'
 * folders.  It may not and need not: touch Docker, the broker, the network.
 * nginx lets nobody here who does not know the nodes' key; what comes is
 * checked all the same.
 *
 * Its first process removes what arrivals have left that were killed.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "node.h"
#include "../server/http.h"
#include "../server/serve.h"

#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/config.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/move/arrival.h"
#include "../../sandbox/protocol/node_table.h"
#include "../../sandbox/protocol/node_ask.h"
#include "../../sandbox/store/db.h"

/* nginx lets four people arrive at one time (nginx/node.conf). */
#define CHILDREN 6
#define STOP_MS 8000
#define TIDY_MS 10000

static const struct route {
	const char *method;
	const char *path;
	void (*answer)(struct node *node, struct http_request *req,
	    const char *id);
} routes[] = {
	{ "GET", NODE_VIEWS, views_get },
	{ "PUT", "/nodes/slots/", slots_put },
	{ "PUT", "/nodes/people/", people_put },
};

/* Opened when it is needed: it may have been replaced, or its disk be back. */
static bool
is_open(struct node *node)
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
answer(void *arg, struct http_request *req, size_t index)
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
	else if (!is_open(arg))
		http_answer(req, 503, NULL, NULL, "", 0);
	else
		route->answer(arg, req, req->path + strlen(route->path));
	return false;
}

/* In the first process, which keeps nothing open. */
static void
tidy(void *arg)
{
	const struct node *node = arg;
	auto_close int base = open(node->config->base_dir,
	    O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (base >= 0)
		arrival_sweep(base);
}

/* Returns when it was told to end. */
static int
run(const struct config *config, struct err *err)
{
	static const struct serve_socket socket = { "node.sock", SERVE_BACKLOG,
		CHILDREN, NULL };
	struct node node = { .config = config, .base = -1 };
	const struct serve serve = {
		.sockets = &socket,
		.socket_count = 1,
		.arg = &node,
		.take = answer,
		.tick = tidy,
		.tick_ms = TIDY_MS,
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
	struct err err;

	if (sodium_init() < 0)
		log_fatal(1, "libsodium does not start");
	if (!master_begin("il-node", argc, argv, &config, NULL)) {
		if (run(&config, &err) < 0)
			log_fatal(err.code == ERR_CONFIG ? 78 : 1, "%s",
			    err.text);
		log_info("ended");
	}
	return 0;
}
