/* SPDX-License-Identifier: MIT */
/*
 * /v1/files: the store, over HTTP.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "reply.h"
#include "routes.h"
#include "../contract/detail.h"
#include "../contract/disposition.h"
#include "../contract/execute_answer.h"
#include "../contract/upload.h"
#include "../server/http.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"

#define FILE_MAX (INT64_C(100) << 20) /* MAX_FILE_SIZE_MB of the contract */
#define ANSWER_MAX ((size_t)8 * FILESTORE_NAME_MAX)
#define PIECE 65536
#define NO_FILE "File with ID '%s' not found"
/* For an answer, and for a file what it takes at 32 bytes a ms besides. */
#define READER_MS 120000
#define READER_BYTES_A_MS 32

/* ---- upload ---- */

struct arrival {
	struct filestore *store;
	struct filestore_new file;
	struct err err; /* why it was not kept; ERR_NONE: it was */
};

static void
arrival_fail(struct arrival *a)
{
	log_warn("upload: %s", a->err.text);
	filestore_abort(&a->file);
}

/* Of several files the last one counts; after a failure none does. */
static bool
arrival_begin(void *arg)
{
	struct arrival *a = arg;

	if (a->err.code == ERR_NONE &&
	    (a->file.store != NULL ?
		    filestore_restart(&a->file, &a->err) :
		    filestore_begin(a->store, &a->file, &a->err)) != 0)
		arrival_fail(a);
	return a->err.code == ERR_NONE;
}

static bool
arrival_data(void *arg, const void *data, size_t len)
{
	struct arrival *a = arg;

	if (a->err.code == ERR_NONE &&
	    filestore_write(&a->file, data, len, &a->err) != 0)
		arrival_fail(a);
	return a->err.code == ERR_NONE;
}

static void
answer_failure(struct http_request *req, enum err_code code)
{
	if (code == ERR_LIMIT)
		reply_detail(req, 507, NULL, "The file store is full");
	else if (code == ERR_QUOTA)
		reply_detail(req, 507, NULL,
		    "This token's share of the file store is full");
	else if (code == ERR_UNAVAILABLE)
		reply_detail(req, 503, "Retry-After: 1\r\n",
		    "The file store cannot write just now");
	else
		reply_failed(req, NULL);
}

/* The form has come: the file gets its name and is there. */
static void
answer_upload(struct http_request *req, struct arrival *a, struct upload *up)
{
	auto_buf struct buf body = BUF_INIT(ANSWER_MAX);
	struct detail detail;
	bool good = upload_end(up, &detail);

	if (good && a->err.code == ERR_NONE &&
	    filestore_commit(&a->file, buf_str(&up->name), &a->err) != 0)
		arrival_fail(a);
	if (a->err.code != ERR_NONE) {
		answer_failure(req, a->err.code);
		if (!good)
			detail_release(&detail);
	} else if (!good) {
		reply_refuse(req, NULL, &detail);
	} else {
		execute_add_uploaded(&body, a->file.id, buf_str(&up->name),
		    up->size);
		reply_text(req, 201, NULL, buf_str(&body));
	}
}

void
api_upload(struct api_app *app, struct http_request *req)
{
	static const struct upload_sink sink = { arrival_begin, arrival_data };
	struct arrival arrival = { .store = &app->store };
	struct detail detail;
	struct upload up;
	char piece[PIECE];
	bool wanted = true;
	ssize_t n;

	if (!upload_open(&up, http_param(req, "CONTENT_TYPE"), FILE_MAX, &sink,
		&arrival, &detail)) {
		reply_refuse(req, NULL, &detail);
		return;
	}
	/* The body is read to its end in any case, since the client sends it
	 * before it looks at the answer. */
	while ((n = http_read(req, piece, sizeof(piece))) > 0)
		wanted = wanted && upload_add(&up, piece, (size_t)n);
	if (n == 0) /* else the client is gone */
		answer_upload(req, &arrival, &up);
	filestore_abort(&arrival.file);
	upload_release(&up);
}

/* ---- the rest ---- */

/* The list is written as the folder is read: it may be long. */
static void
begin_list(struct http_request *req)
{
	http_allow_slow_reader(req, READER_MS);
	http_begin(req, 200, REPLY_JSON, NULL);
	http_write(req, "{\"files\":[", 10);
}

static bool
list_entry(void *arg, const struct filestore_entry *entry)
{
	struct http_request *req = arg;
	auto_buf struct buf item = BUF_INIT(ANSWER_MAX);

	if (req->begun)
		buf_addc(&item, ',');
	else
		begin_list(req);
	execute_add_entry(&item, entry->id, entry->name, entry->size,
	    entry->uploaded_ms);
	http_write(req, buf_str(&item), item.len);
	return !req->failed;
}

void
api_list(struct api_app *app, struct http_request *req)
{
	struct err err;

	if (filestore_each(&app->store, list_entry, req, &err) != 0) {
		log_warn("list: %s", err.text);
		reply_failed(req, NULL);
		return;
	}
	if (!req->begun)
		begin_list(req);
	http_write(req, "]}", 2);
}

void
api_download(struct api_app *app, struct http_request *req)
{
	auto_buf struct buf headers = BUF_INIT(ANSWER_MAX);
	struct filestore_entry entry;
	struct err err;
	auto_close int fd = filestore_get(&app->store, app->id, strlen(app->id),
	    &entry, &err);
	char piece[PIECE];
	ssize_t n;

	if (fd < 0) {
		reply_detail(req, 404, NULL, NO_FILE, app->id);
		return;
	}
	buf_addf(&headers,
	    "Content-Length: %lld\r\nX-Content-Type-Options: nosniff\r\n"
	    "Content-Disposition: ",
	    (long long)entry.size);
	disposition_add(&headers, entry.name);
	buf_adds(&headers, "\r\n");
	http_allow_slow_reader(req, READER_MS + entry.size / READER_BYTES_A_MS);
	http_begin(req, 200, "application/octet-stream", buf_str(&headers));
	while (!req->failed && (n = read(fd, piece, sizeof(piece))) > 0)
		http_write(req, piece, (size_t)n);
	free(entry.name);
}

void
api_delete(struct api_app *app, struct http_request *req)
{
	struct err err;

	if (filestore_delete(&app->store, app->id, strlen(app->id), &err) == 0)
		http_answer(req, 204, NULL, NULL, "", 0);
	else
		reply_detail(req, 404, NULL, NO_FILE, app->id);
}
