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
#include "../contract/librechat/libre_request.h"
#include "../server/http.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/config.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/base/text.h"
#include "../../sandbox/protocol/node_key.h"

#define PIECE 65536
#define READER_MS 60000
#define HEADERS_MAX 8192

_Static_assert(FILESTORE_NODE_LEN == NODES_TAG_LEN, "a tag");

int
nodes_open(struct api_app *app, struct err *err)
{
	if (node_table_open(&app->nodes, app->config, err) != 0)
		return -1;
	if (app->nodes != NULL) {
		node_table_mark(app->nodes, app->tag);
		app->store.node = app->tag;
		app->nodes_socket = config_state_path(app->config,
		    NODES_SOCKET);
	}
	return 0;
}

/* Another node, by its tag; NULL: it is this one's, or nobody's. */
static const struct node_entry *
find_other(const struct api_app *app, const char *tag)
{
	const struct node_entry *node = node_table_tagged(app->nodes, tag);

	return node != node_table_own(app->nodes) ? node : NULL;
}

/* The tag in an id of whatever form, or NULL. */
static const char *
find_tag(const char *id)
{
	const size_t prefix = strlen(SESSION_PREFIX);
	size_t len = strlen(id);

	if (text_is_uuid(id, len))
		return id + FILESTORE_ID_LEN - NODES_TAG_LEN;
	if (strncmp(id, SESSION_PREFIX, prefix) == 0)
		return len == prefix + SESSION_DIGITS ? id + prefix : NULL;
	return libre_is_id(id, len) ? id : NULL;
}

bool
nodes_pass_on(const struct api_app *app, struct http_request *req,
    const char *id, const char *location)
{
	const char *tag = app->nodes != NULL ? find_tag(id) : NULL;
	const struct node_entry *node;
	char headers[128 + NODES_ADDRESS_MAX];

	if (tag == NULL || http_is_from_node(req) ||
	    http_says(req, "INLINE_NODE_AWAY"))
		return false;
	node = find_other(app, tag);
	if (node == NULL)
		return false;
	(void)snprintf(headers, sizeof(headers),
	    "X-Accel-Redirect: %s\r\nInline-Node: %s\r\n", location,
	    node->address);
	http_answer(req, 200, NULL, headers, "", 0);
	return true;
}

int
nodes_get_file(struct api_app *app, const struct http_request *req,
    const char *id, size_t len, struct filestore_entry *entry, struct err *err)
{
	const struct node_entry *node = NULL;
	int fd;

	if (text_is_uuid(id, len))
		node = find_other(app, id + FILESTORE_ID_LEN - NODES_TAG_LEN);
	if (node == NULL)
		return filestore_get(&app->store, id, len, entry, err);
	/* A request may name a thousand files of it. */
	if (strcmp(app->away, node->tag) == 0)
		return err_set(err, ERR_NOT_FOUND, "its node was asked before");
	fd = node_fetch(app, req, node, id, entry, err);
	if (fd < 0)
		log_warn("a file of node %s: %s", node->name, err->text);
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

/* NODE_FILES and the id, for an owner in hex. */
bool
nodes_serve_file(struct api_app *app, struct http_request *req)
{
	const char *owner = http_param(req, "INLINE_OWNER");

	if (!http_is_from_node(req) ||
	    strncmp(req->path, NODE_FILES, strlen(NODE_FILES)) != 0)
		return false;
	if (owner == NULL || strcmp(req->method, "GET") != 0 ||
	    !text_parse_hex(owner, strlen(owner), app->owner,
		sizeof(app->owner)))
		http_answer(req, 404, NULL, NULL, "", 0);
	else
		send_file(app, req, req->path + strlen(NODE_FILES));
	return true;
}
