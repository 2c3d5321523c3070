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
/* For an answer, and for a file what it takes at 32 bytes a ms besides. */
#define READER_MS 120000
#define READER_BYTES_A_MS 32

static bool
refuse_id(struct http_request *req, const char *id)
{
	struct detail detail;

	(void)detail_text(&detail, 404, "File with ID '%s' not found", id);
	reply_refuse(req, &detail);
	return false;
}

/* ---- upload ---- */

struct arrival {
	struct filestore *store;
	struct filestore_new file;
	struct err err; /* why it was not kept; ERR_NONE: it was */
};

static bool
arrival_fail(struct arrival *a)
{
	log_warn("upload: %s", a->err.text);
	filestore_abort(&a->file);
	return false;
}

/* Of several files the last one counts; after a failure none does. */
static bool
arrival_begin(void *arg)
{
	struct arrival *a = arg;

	if (a->err.code != ERR_NONE)
		return false;
	return (a->file.store != NULL ?
		       filestore_restart(&a->file, &a->err) :
		       filestore_begin(a->store, &a->file, &a->err)) == 0 ||
	    arrival_fail(a);
}

static bool
arrival_data(void *arg, const void *data, size_t len)
{
	struct arrival *a = arg;

	if (a->err.code != ERR_NONE)
		return false;
	return filestore_write(&a->file, data, len, &a->err) == 0 ||
	    arrival_fail(a);
}

static void
answer_failure(struct http_request *req, const struct arrival *a)
{
	if (a->err.code == ERR_LIMIT)
		reply_detail(req, 507, NULL, "The file store is full");
	else if (a->err.code == ERR_QUOTA)
		reply_detail(req, 507, NULL,
		    "This token's share of the file store is full");
	else if (a->err.code == ERR_UNAVAILABLE)
		reply_detail(req, 503, "Retry-After: 1\r\n",
		    "The file store cannot write just now");
	else
		reply_failed(req);
}

/* The body is read to its end in any case, since the client sends it before it
 * looks at the answer.  False: the client is gone. */
static bool
receive(struct http_request *req, struct upload *up)
{
	char piece[PIECE];
	bool wanted = true;
	ssize_t n;

	while ((n = http_read(req, piece, sizeof(piece))) > 0)
		wanted = wanted && upload_add(up, piece, (size_t)n);
	return n == 0;
}

static void
finish(struct http_request *req, struct arrival *a, const struct upload *up)
{
	auto_buf struct buf body = BUF_INIT(ANSWER_MAX);
	char id[FILESTORE_ID_LEN + 1];

	memcpy(id, a->file.id, sizeof(id));
	if (filestore_commit(&a->file, buf_str(&up->name), &a->err) != 0) {
		(void)arrival_fail(a);
		answer_failure(req, a);
		return;
	}
	execute_add_uploaded(&body, id, buf_str(&up->name), up->size);
	http_answer(req, 201, REPLY_JSON, NULL, buf_str(&body), body.len);
}

static void
answer_upload(struct http_request *req, struct arrival *a, struct upload *up)
{
	struct detail detail;
	bool good = upload_end(up, &detail);

	if (a->err.code == ERR_NONE && good) {
		finish(req, a, up);
	} else if (a->err.code == ERR_NONE) {
		reply_refuse(req, &detail);
	} else {
		answer_failure(req, a);
		if (!good)
			detail_release(&detail);
	}
}

void
api_upload(struct api_app *app, struct http_request *req, const char *id)
{
	static const struct upload_sink sink = { arrival_begin, arrival_data };
	struct arrival arrival = { .store = &app->store };
	struct detail detail;
	struct upload up;

	(void)id;
	if (!upload_open(&up, http_param(req, "CONTENT_TYPE"), FILE_MAX, &sink,
		&arrival, &detail)) {
		reply_refuse(req, &detail);
		return;
	}
	if (receive(req, &up))
		answer_upload(req, &arrival, &up);
	filestore_abort(&arrival.file);
	upload_release(&up);
}

/* ---- the rest ---- */

/* The list is written as the folder is read: it may be long. */
struct listing {
	struct http_request *req;
	struct buf piece;
	bool any;
};

static void
send_piece(struct listing *l)
{
	if (!l->req->begun) {
		http_allow_slow_reader(l->req, READER_MS);
		http_begin(l->req, 200, REPLY_JSON, NULL);
	}
	http_write(l->req, buf_str(&l->piece), l->piece.len);
	buf_reset(&l->piece);
}

static bool
list_entry(void *arg, const struct filestore_entry *entry)
{
	struct listing *l = arg;

	if (l->any)
		buf_addc(&l->piece, ',');
	l->any = true;
	execute_add_entry(&l->piece, entry->id, entry->name, entry->size,
	    entry->uploaded_ms);
	if (l->piece.len > PIECE)
		send_piece(l);
	return !l->req->failed;
}

void
api_list(struct api_app *app, struct http_request *req, const char *id)
{
	struct listing l = { .req = req,
		.piece = BUF_INIT(PIECE + ANSWER_MAX) };
	struct err err;

	(void)id;
	buf_adds(&l.piece, "{\"files\":[");
	if (filestore_each(&app->store, list_entry, &l, &err) == 0) {
		buf_adds(&l.piece, "]}");
		send_piece(&l);
	} else {
		log_warn("list: %s", err.text);
		reply_failed(req);
	}
	buf_release(&l.piece);
}

void
api_download(struct api_app *app, struct http_request *req, const char *id)
{
	auto_buf struct buf headers = BUF_INIT(ANSWER_MAX);
	struct filestore_entry entry;
	struct err err;
	auto_close int fd = filestore_get(&app->store, id, strlen(id), &entry,
	    &err);
	char piece[PIECE];
	ssize_t n;

	if (fd < 0) {
		(void)refuse_id(req, id);
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
api_delete(struct api_app *app, struct http_request *req, const char *id)
{
	struct err err;

	if (filestore_delete(&app->store, id, strlen(id), &err) != 0)
		(void)refuse_id(req, id);
	else
		http_answer(req, 204, NULL, NULL, "", 0);
}
