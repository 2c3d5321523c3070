/* SPDX-License-Identifier: MIT */
#include "api/app.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "api/gate.h"
#include "contract/librechat/libre_message.h"
#include "server/serve.h"

#include "base/basics.h"
#include "base/text.h"
#include "protocol/node_ask.h"
#include "protocol/node_table.h"

#define PIECE 65536
#define READER_MS 60000
#define HEADERS_MAX 8192
/* nginx gives up on a node after a second that does not take a connection. */
#define HEAD_MS 10000
#define WHOLE_MS 60000
/* Bytes of all files of a request together: the work folder of a run takes
 * less. */
#define TOGETHER_MAX API_BODY_MAX

_Static_assert(FILESTORE_NODE_LEN == NODES_TAG_LEN, "a tag");
_Static_assert(FILESTORE_NOTE_MAX == NODE_NOTE_MAX, "a note");

int
nodes_open(struct api_app *app, struct err *err)
{
	if (node_table_open(&app->nodes, app->config, err) != 0)
		return -1;
	if (app->nodes != NULL) {
		node_table_mark(app->nodes, app->tag);
		app->store.node = app->tag;
	}
	return 0;
}

/* Another node, by its tag; NULL: the tag is this node's or no node's. */
static const struct node_entry *
find_other(const struct api_app *app, const char *tag)
{
	const struct node_entry *node = node_table_tagged(app->nodes, tag);

	return node != node_table_own(app->nodes) ? node : NULL;
}

/* The tag in an id of any kind, or NULL. */
static const char *
find_tag(const char *id)
{
	const size_t prefix = strlen(SESSION_PREFIX);
	size_t len = strlen(id);

	if (text_is_uuid(id, len))
		return id + FILESTORE_ID_LEN - NODES_TAG_LEN;
	if (strncmp(id, SESSION_PREFIX, prefix) == 0)
		return len == prefix + SESSION_DIGITS ? id + prefix : NULL;
	return libre_is_id(id) ? id : NULL;
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

/* ---- a file of another node ---- */

static int
nodes_ask(struct node_ask *ask, const struct api_app *app,
    const struct node_entry *node, const char *id, struct err *err)
{
	auto_free char *request = xprintf("GET " NODE_FILES "%s", id);
	char headers[32 + 2 * TOKENS_HASH_LEN] = "Inline-Owner: ";
	size_t len = strlen(headers);
	int status;

	(void)sodium_bin2hex(headers + len, sizeof(headers) - len,
	    app->store.owner, TOKENS_HASH_LEN);
	memcpy(headers + strlen(headers), "\r\n", 3);
	if (node_ask_begin(ask, app->config, node->address, request, headers,
		err) != 0 ||
	    node_ask_head(ask, err) != 0)
		return -1;
	status = ask->answer.status;
	/* 502 and 504 are our nginx's: it cannot reach the node. */
	if (status == 404 || status == 502 || status == 504)
		return err_set(err, ERR_NOT_FOUND,
		    status == 404 ? "it is not there" :
				    "the node cannot be reached");
	if (status != 200 || ask->answer.length < 0)
		return err_set(err, ERR_UNAVAILABLE, "the answer is %d",
		    status);
	return 0;
}

/* Write the announced number of bytes to the file. */
static int
nodes_receive(struct node_ask *ask, struct filestore_new *file, struct err *err)
{
	int64_t left = ask->answer.length;

	for (;;) {
		size_t len = ask->body.len;
		ssize_t n;

		if ((int64_t)len > left)
			return err_set(err, ERR_UNAVAILABLE,
			    "more bytes than were announced");
		left -= (int64_t)len;
		if (filestore_write(file, buf_str(&ask->body), len, err) != 0)
			return -1;
		buf_reset(&ask->body);
		if (left == 0)
			return 0;
		n = node_ask_receive(ask, err);
		if (n == 0)
			return err_set(err, ERR_UNAVAILABLE,
			    "fewer bytes than were announced");
		if (n < 0)
			return -1;
	}
}

/* Write the answer into a file of our store that has no name. */
static int
nodes_store(struct node_ask *ask, struct api_app *app, struct err *err)
{
	const unsigned char *owner = app->store.owner;
	struct filestore_new file;
	int fd = -1;

	if (ask->answer.length > (int64_t)TOGETHER_MAX - app->fetched)
		return err_set(err, ERR_LIMIT,
		    "a request's files of other nodes are too large together");
	app->fetched += ask->answer.length;
	ask->until_ms += WHOLE_MS - HEAD_MS;
	/* The file does not count as the owner's here. */
	app->store.owner = NULL;
	if (filestore_begin(&app->store, &file, err) == 0) {
		if (nodes_receive(ask, &file, err) == 0)
			fd = filestore_detach(&file, err);
		filestore_abort(&file);
	}
	app->store.owner = owner;
	/* If our store has no room, that is not the request's fault. */
	if (fd < 0 && err->code != ERR_TIMEOUT)
		err->code = ERR_UNAVAILABLE;
	return fd;
}

static int
nodes_fetch(struct api_app *app, const struct http_request *req,
    const struct node_entry *node, const char *id,
    struct filestore_entry *entry, struct err *err)
{
	auto_node_ask struct node_ask a = NODE_ASK_INIT(PIECE,
	    clock_monotonic_ms() + HEAD_MS);
	int fd = -1;

	a.unless = (struct pollfd){ .fd = http_fd(req), .events = POLLRDHUP };
	if (nodes_ask(&a, app, node, id, err) == 0)
		fd = nodes_store(&a, app, err);
	/* A node that does not answer now does not answer for the next file. */
	if (fd < 0 && a.answer.status != 404 &&
	    (err->code == ERR_NOT_FOUND || err->code == ERR_UNAVAILABLE))
		memcpy(app->away, node->tag, sizeof(app->away));
	if (fd >= 0 && entry != NULL) {
		*entry = (struct filestore_entry){ .size = a.answer.length };
		memcpy(entry->id, id, FILESTORE_ID_LEN);
		memcpy(entry->note, a.answer.note, sizeof(entry->note));
		entry->name = xstrdup(a.answer.name[0] != '\0' ? a.answer.name :
								 "unnamed");
	}
	return fd;
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
	/* A request may name a thousand files of that node. */
	if (strcmp(app->away, node->tag) == 0)
		return err_set(err, ERR_NOT_FOUND, "its node was asked before");
	fd = nodes_fetch(app, req, node, id, entry, err);
	if (fd < 0)
		log_warn("a file of node %s: %s", node->name, err->text);
	return fd;
}

/* ---- a file for another node ---- */

static void
send_file(struct api_app *app, struct http_request *req, const char *id)
{
	auto_buf struct buf headers = BUF_INIT(HEADERS_MAX);
	struct filestore_entry entry;
	struct err err;
	auto_close int fd = filestore_get(&app->store, id, strlen(id), &entry,
	    &err);

	if (fd < 0) {
		http_answer(req, 404, NULL, NULL, "", 0);
		return;
	}
	node_answer_add(&headers, entry.name, entry.note);
	free(entry.name);
	reply_file(req, "application/octet-stream", buf_str(&headers), fd,
	    entry.size, READER_MS);
}

/* The path is NODE_FILES and the id; the owner is in hex. */
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
