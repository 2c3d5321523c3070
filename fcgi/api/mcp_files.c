/* SPDX-License-Identifier: MIT */
/*
 * The file store as the resources of the Model Context Protocol.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "mcp.h"
#include "nodes.h"
#include "../contract/mcp/mcp_answer.h"
#include "../contract/mcp/mcp_media.h"

#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/fd.h"
#include "../../sandbox/base/log.h"

#define LISTED_MAX 100

/* ---- the list: the newest ones ---- */

struct listed {
	struct filestore_entry items[LISTED_MAX]; /* the newest first */
	size_t count;
};

/* Takes the entry's name. */
static void
keep_newest(struct listed *list, const struct filestore_entry *entry)
{
	size_t i = list->count;

	while (i > 0 && list->items[i - 1].uploaded_ms < entry->uploaded_ms)
		i--;
	if (i == LISTED_MAX) {
		free(entry->name);
		return;
	}
	if (list->count == LISTED_MAX)
		free(list->items[--list->count].name);
	memmove(&list->items[i + 1], &list->items[i],
	    (list->count - i) * sizeof(list->items[0]));
	list->items[i] = *entry;
	list->count++;
}

void
mcp_list_resources(struct mcp_exchange *x)
{
	struct filestore *store = &x->app->store;
	auto_free struct listed *list = xcalloc(1, sizeof(*list));
	struct filestore_entry entry;
	struct err err;
	auto_dir DIR *folder = NULL;

	if (!mcp_enter_reader(x))
		return;
	folder = filestore_open_folder(store, &err);
	if (folder == NULL) {
		log_warn("list: %s", err.text);
		mcp_failed(x);
		return;
	}
	while (filestore_next(store, folder, &entry))
		keep_newest(list, &entry);
	mcp_begin(&x->body, &x->m, 0, false);
	buf_adds(&x->body, ",\"resources\":[");
	for (size_t i = 0; i < list->count; i++) {
		buf_adds(&x->body, i == 0 ? "" : ",");
		mcp_add_resource(&x->body, list->items[i].id,
		    list->items[i].name, list->items[i].size);
		free(list->items[i].name);
	}
	buf_addc(&x->body, ']');
	mcp_end(&x->body);
	mcp_send(x);
}

/* ---- one of them ---- */

/* Never an empty answer for what is not there. */
static void
refuse(struct mcp_exchange *x, const struct pyvalue *uri, const char *text)
{
	struct mcp_fault fault;

	(void)mcp_refuse_request(&x->m, &fault, 400,
	    x->m.era == MCP_LEGACY ? MCP_NO_RESOURCE : MCP_BAD_PARAMS, "%s",
	    text);
	fault.uri = uri;
	mcp_fault(x, &fault);
}

static void
answer_content(struct mcp_exchange *x, const struct pyvalue *uri,
    const char *name, int fd, int64_t size)
{
	auto_buf struct buf content = BUF_INIT(MCP_RESOURCE_MAX);
	char *room = buf_reserve(&content, (size_t)size);
	ssize_t n = 1;

	while (room != NULL && n > 0 && (int64_t)content.len < size) {
		n = read(fd, room + content.len, (size_t)size - content.len);
		if (n > 0)
			buf_commit(&content, (size_t)n);
	}
	if ((int64_t)content.len < size) {
		log_err("the file store: a file is shorter than it was");
		mcp_failed(x);
		return;
	}
	mcp_add_contents(&x->body, &x->m, uri, name, buf_str(&content),
	    content.len);
	mcp_send(x);
}

void
mcp_read_resource(struct mcp_exchange *x)
{
	const struct pyvalue *uri = mcp_member(x->m.params, "uri");
	struct filestore_entry entry;
	struct mcp_fault fault;
	char own_id[FILESTORE_ID_LEN + 1] = "";
	const char *id = NULL;
	size_t len = 0;
	struct err err;
	auto_close int fd = -1;

	if (uri == NULL || uri->type != PYVALUE_STRING ||
	    uri->count > MCP_URI_MAX) {
		(void)mcp_refuse_request(&x->m, &fault, 400, MCP_BAD_PARAMS,
		    "Invalid params: uri must be a string of at most %zu bytes",
		    MCP_URI_MAX);
		mcp_fault(x, &fault);
		return;
	}
	len = mcp_uri_id(uri->u.text, uri->count, &id);
	if (len == FILESTORE_ID_LEN) {
		memcpy(own_id, id, len);
		fd = nodes_get_file(x->app, x->req, own_id, len, &entry, &err);
	}
	if (fd < 0) {
		refuse(x, uri,
		    "Resource not found: it was never there, or its time is "
		    "over");
		return;
	}
	if (entry.size > (int64_t)MCP_RESOURCE_MAX)
		refuse(x, uri,
		    "Resource too large: over 8 MiB; GET /v1/files/ID has it");
	else if (mcp_enter_reader(x))
		answer_content(x, uri, entry.name, fd, entry.size);
	free(entry.name);
}
