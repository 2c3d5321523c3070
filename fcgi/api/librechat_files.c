/* SPDX-License-Identifier: MIT */
/*
 * LibreChat's files: what it asks of them.  librechat_upload.c takes them.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "librechat_who.h"
#include "reply.h"
#include "routes.h"
#include "../contract/librechat/libre_answer.h"
#include "../contract/librechat/libre_name.h"
#include "../server/http.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/base/text.h"

#define ANSWER_MAX ((size_t)8 * FILESTORE_NAME_MAX)
#define PIECE 65536
#define NAME_SENT_MAX 1024 /* bytes of a name in a header */
/* For an answer, and for a file what it takes at 32 bytes a ms besides. */
#define READER_MS 120000
#define READER_BYTES_A_MS 32

/* Whose the request says the file is: ?kind=skill&id=…&version=…  A query that
 * says nothing of it means the user's.  The texts stay in these. */
struct asked {
	struct libre_resource resource;
	char id[LIBRE_RESOURCE_MAX + 1];
	char version[LIBRE_RESOURCE_MAX + 1];
};

static bool
take_query(struct asked *asked, const struct http_request *req)
{
	char kind[LIBRE_RESOURCE_MAX + 1];
	bool has_kind = libre_query_get(req->query, "kind", kind);

	if (!libre_query_get(req->query, "id", asked->id))
		asked->id[0] = '\0';
	if (!libre_query_get(req->query, "version", asked->version))
		asked->version[0] = '\0';
	asked->resource = (struct libre_resource){ .id = asked->id,
		.version = asked->version };
	return libre_kind_parse(has_kind ? kind : NULL, &asked->resource.kind);
}

/* The file that the path names, or -1: it was answered. */
static int
open_asked(struct api_app *app, struct http_request *req,
    struct filestore_entry *entry, const char *details)
{
	struct asked asked;
	struct err err;
	int fd;

	if (!libre_is_id(app->id, strlen(app->id)) ||
	    !libre_is_id(app->second_id, strlen(app->second_id)) ||
	    !take_query(&asked, req)) {
		reply_librechat(req, 400, NULL, "Bad request", NULL);
		return -1;
	}
	fd = librechat_file(app, req, &asked.resource, app->id, app->second_id,
	    entry, &err);
	if (fd < 0)
		reply_librechat(req, 404, NULL, "File not found", details);
	return fd;
}

void
api_librechat_download(struct api_app *app, struct http_request *req)
{
	auto_buf struct buf headers = BUF_INIT(ANSWER_MAX);
	struct filestore_entry entry;
	auto_close int fd = open_asked(app, req, &entry,
	    "It was never here, or its time is over");
	const char *name;
	char piece[PIECE];
	ssize_t n;

	if (fd < 0)
		return;
	name = libre_name_base(entry.name);
	buf_addf(&headers,
	    "Content-Length: %lld\r\nX-Content-Type-Options: nosniff\r\n"
	    "Content-Disposition: attachment; filename*=UTF-8''",
	    (long long)entry.size);
	text_add_escaped(&headers, name, strnlen(name, NAME_SENT_MAX), "-._~");
	buf_adds(&headers, "\r\n");
	http_allow_slow_reader(req, READER_MS + entry.size / READER_BYTES_A_MS);
	http_begin(req, 200, libre_name_type(name), buf_str(&headers));
	while (!req->failed && (n = read(fd, piece, sizeof(piece))) > 0)
		http_write(req, piece, (size_t)n);
	free(entry.name);
}

/* As the contract tells of one; borrows from the entry. */
static struct libre_stored
stored(const struct filestore_entry *entry, const char *session,
    char id[LIBRE_ID_LEN + 1])
{
	libre_id_of_file(id, entry->id);
	return (struct libre_stored){
		.session = session,
		.id = id,
		.name = entry->name,
		.size = entry->size,
		.uploaded_ms = entry->uploaded_ms,
		.read_only = entry->note[LIBRE_ID_LEN] == LIBRECHAT_READ_ONLY,
	};
}

void
api_librechat_object(struct api_app *app, struct http_request *req)
{
	auto_buf struct buf body = BUF_INIT(ANSWER_MAX);
	struct filestore_entry entry;
	auto_close int fd = open_asked(app, req, &entry, NULL);
	struct libre_stored file;
	char id[LIBRE_ID_LEN + 1];

	if (fd < 0)
		return;
	file = stored(&entry, app->id, id);
	libre_add_object(&body, &file);
	reply_text(req, 200, NULL, buf_str(&body));
	free(entry.name);
}

static enum libre_detail
detail_of(const struct http_request *req)
{
	char detail[LIBRE_RESOURCE_MAX + 1];

	if (!libre_query_get(req->query, "detail", detail))
		return LIBRE_SIMPLE;
	return strcmp(detail, "full") == 0 ? LIBRE_FULL :
	    strcmp(detail, "summary") == 0 ? LIBRE_SUMMARY :
					     LIBRE_SIMPLE;
}

/* The list is written as the folder is read: it may be long. */
static void
list(struct api_app *app, struct http_request *req, DIR *folder)
{
	enum libre_detail detail = detail_of(req);
	struct filestore_entry entry;
	const char *comma = "";

	http_allow_slow_reader(req, READER_MS);
	http_begin(req, 200, REPLY_JSON, NULL);
	http_write(req, "[", 1);
	while (!req->failed && filestore_next(&app->store, folder, &entry)) {
		auto_buf struct buf item = BUF_INIT(ANSWER_MAX);
		struct libre_stored file;
		char id[LIBRE_ID_LEN + 1];

		if (strlen(app->id) == LIBRE_ID_LEN &&
		    strncmp(entry.note, app->id, LIBRE_ID_LEN) == 0) {
			file = stored(&entry, app->id, id);
			buf_adds(&item, comma);
			comma = ",";
			libre_add_listed(&item, &file, detail);
			http_write(req, buf_str(&item), item.len);
		}
		free(entry.name);
	}
	http_write(req, "]", 1);
}

void
api_librechat_list(struct api_app *app, struct http_request *req)
{
	struct asked asked;
	struct err err;
	auto_dir DIR *folder = NULL;

	if (!take_query(&asked, req)) {
		reply_librechat(req, 400, NULL, "Bad request", NULL);
		return;
	}
	folder = filestore_open_folder(&app->store, &err);
	if (folder == NULL) {
		log_warn("list: %s", err.text);
		reply_failed(req, NULL);
		return;
	}
	librechat_use(app, &asked.resource);
	list(app, req, folder);
	librechat_use_own(app);
}

void
api_librechat_delete(struct api_app *app, struct http_request *req)
{
	auto_buf struct buf body = BUF_INIT(1024);
	struct filestore_entry entry;
	struct asked asked;
	auto_close int fd = open_asked(app, req, &entry, NULL);
	struct err err;

	if (fd < 0)
		return;
	free(entry.name);
	(void)take_query(&asked, req);
	librechat_use(app, &asked.resource);
	if (filestore_delete(&app->store, entry.id, strlen(entry.id), &err) !=
	    0) {
		reply_librechat(req, 404, NULL, "File not found", NULL);
	} else {
		buf_addf(&body,
		    "{\"message\":\"File deleted successfully\","
		    "\"session_id\":\"%s\",\"fileId\":\"%s\"}",
		    app->id, app->second_id);
		reply_text(req, 200, NULL, buf_str(&body));
	}
	librechat_use_own(app);
}
