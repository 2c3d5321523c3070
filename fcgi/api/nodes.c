/* SPDX-License-Identifier: MIT */
#include "nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "node_answer.h"
#include "node_fetch.h"
#include "session_holder.h"
#include "../server/http.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/config.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/base/text.h"
#include "../../sandbox/protocol/node_key.h"

#define SERVED_PREFIX "/nodes/"
#define SERVED_LEN \
	(strlen(SERVED_PREFIX) + NODES_TAG_LEN + 1 + FILESTORE_ID_LEN)
#define PIECE 65536
#define READER_MS 60000
#define HEADERS_MAX 8192

_Static_assert(FILESTORE_NODE_LEN == NODES_TAG_LEN, "a tag");

int
nodes_open(struct api_app *app, struct err *err)
{
	const struct config *config = app->config;
	int result = nodes_own(config->nodes, config->node,
	    config->nodes_key_file, &app->node, err);

	if (result < 0)
		return -1;
	if (result > 0) {
		app->store.node = app->node.tag;
		app->nodes_socket = config_state_path(config, NODES_SOCKET);
	}
	return 0;
}

/* Is it the tag of another node? */
static bool
is_other(const struct api_app *app, const char *tag, struct node_entry *entry)
{
	return app->nodes_socket != NULL &&
	    strncmp(tag, app->node.tag, NODES_TAG_LEN) != 0 &&
	    nodes_find(app->config->nodes, tag, entry);
}

/* nginx knows it by the key that it has shown. */
static bool
is_from_node(const struct http_request *req)
{
	const char *from = http_param(req, "INLINE_FROM_NODE");

	return from != NULL && strcmp(from, "1") == 0;
}

bool
nodes_pass_on(const struct api_app *app, struct http_request *req,
    const char *session, const char *location)
{
	const size_t prefix = strlen(SESSION_PREFIX);
	struct node_entry node;
	char headers[256];

	if (strlen(session) != prefix + SESSION_DIGITS ||
	    strncmp(session, SESSION_PREFIX, prefix) != 0 ||
	    is_from_node(req) || !is_other(app, session + prefix, &node))
		return false;
	(void)snprintf(headers, sizeof(headers),
	    "X-Accel-Redirect: %s\r\nInline-Node: %s\r\n", location, node.tag);
	http_answer(req, 200, NULL, headers, "", 0);
	return true;
}

int
nodes_get_file(struct api_app *app, const struct http_request *req,
    const char *id, size_t len, struct filestore_entry *entry, struct err *err)
{
	struct node_entry node;
	int fd;

	if (!text_is_uuid(id, len) ||
	    !is_other(app, id + FILESTORE_ID_LEN - NODES_TAG_LEN, &node))
		return filestore_get(&app->store, id, len, entry, err);
	/* A request may name a thousand files of it. */
	if (strcmp(app->away, node.tag) == 0)
		return err_set(err, ERR_NOT_FOUND, "its node was asked before");
	fd = node_fetch(app, req, &node, id, entry, err);
	if (fd < 0)
		log_warn("a file of node %s: %s", node.name, err->text);
	return fd;
}

/* ---- for the others ---- */

static void
send_file(struct api_app *app, struct http_request *req, const char *id)
{
	auto_buf struct buf headers = BUF_INIT(HEADERS_MAX);
	struct filestore_entry entry;
	struct err err;
	auto_close int fd = filestore_get(&app->store, id, strlen(id), &entry,
	    &err);
	char piece[PIECE];
	ssize_t n;

	if (fd < 0) {
		http_answer(req, 404, NULL, NULL, "", 0);
		return;
	}
	buf_addf(&headers, "Content-Length: %lld\r\n", (long long)entry.size);
	node_answer_add(&headers, entry.name, entry.note);
	free(entry.name);
	http_allow_slow_reader(req, READER_MS);
	http_begin(req, 200, "application/octet-stream", buf_str(&headers));
	while (!req->failed && (n = read(fd, piece, sizeof(piece))) > 0)
		http_write(req, piece, (size_t)n);
}

/* /nodes/TAG/ID, for an owner in hex. */
bool
nodes_serve_file(struct api_app *app, struct http_request *req)
{
	const char *owner = http_param(req, "HTTP_INLINE_OWNER");
	const char *tag = req->path + strlen(SERVED_PREFIX);
	const char *id = tag + NODES_TAG_LEN + 1;

	if (!is_from_node(req) || strlen(req->path) != SERVED_LEN ||
	    strncmp(req->path, SERVED_PREFIX, strlen(SERVED_PREFIX)) != 0)
		return false;
	/* It names this node, or the two do not have the same IL_NODES. */
	if (owner == NULL || strcmp(req->method, "GET") != 0 ||
	    strncmp(tag, app->node.tag, NODES_TAG_LEN) != 0 ||
	    !text_parse_hex(owner, strlen(owner), app->owner,
		sizeof(app->owner)))
		http_answer(req, 404, NULL, NULL, "", 0);
	else
		send_file(app, req, id);
	return true;
}
