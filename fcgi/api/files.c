/* SPDX-License-Identifier: MIT */
/*
 * /v1/files: the store, over HTTP.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "reply.h"
#include "routes.h"
#include "../contract/code_interpreter/detail.h"
#include "../contract/disposition.h"
#include "../contract/code_interpreter/execute_answer.h"
#include "../contract/code_interpreter/upload.h"
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

/* What has come of the form.  Of several files the last one counts; after a
 * failure none does.  False: no more is wanted, and why is in err or known to
 * upload_end(). */
static bool
keep(struct filestore *store, struct filestore_new *file, struct upload *up,
    struct err *err)
{
	int result = 0;

	while (result == 0) {
		switch (upload_next(up)) {
		case MULTIPART_MORE:
			return true;
		case MULTIPART_FAILED:
			return false;
		case MULTIPART_PART:
			result = file->store != NULL ?
			    filestore_restart(file, err) :
			    filestore_begin(store, file, err);
			break;
		case MULTIPART_SLICE:
			result = filestore_write(file, up->form.data,
			    up->form.data_len, err);
			break;
		}
	}
	log_warn("upload: %s", err->text);
	filestore_abort(file);
	return false;
}

/* The form has come: the file gets its name and is there. */
static void
answer_upload(struct http_request *req, struct filestore_new *file,
    struct upload *up, struct err *err)
{
	auto_buf struct buf body = BUF_INIT(ANSWER_MAX);
	struct detail detail;

	if (err->code == ERR_NONE && !upload_end(up, &detail)) {
		reply_refuse(req, NULL, &detail);
		return;
	}
	if (err->code == ERR_NONE &&
	    filestore_commit(file, buf_str(&up->name), err) != 0)
		log_warn("upload: %s", err->text);
	if (err->code == ERR_LIMIT) {
		reply_detail(req, 507, NULL, "The file store is full");
	} else if (err->code == ERR_QUOTA) {
		reply_detail(req, 507, NULL,
		    "This token's share of the file store is full");
	} else if (err->code == ERR_UNAVAILABLE) {
		reply_detail(req, 503, "Retry-After: 1\r\n",
		    "The file store cannot write just now");
	} else if (err->code != ERR_NONE) {
		reply_failed(req, NULL);
	} else {
		execute_add_file(&body, file->id, buf_str(&up->name), up->size,
		    -1);
		reply_text(req, 201, NULL, buf_str(&body));
	}
}

void
api_upload(struct api_app *app, struct http_request *req)
{
	struct filestore_new file = { .store = NULL };
	struct err err = { .code = ERR_NONE };
	struct detail detail;
	struct upload up;
	char piece[MULTIPART_PIECE];
	bool wanted = true;
	ssize_t n;

	if (!upload_open(&up, http_param(req, "CONTENT_TYPE"), FILE_MAX,
		&detail)) {
		reply_refuse(req, NULL, &detail);
		return;
	}
	/* The body is read to its end in any case, since the client sends it
	 * before it looks at the answer. */
	while ((n = http_read(req, piece, sizeof(piece))) > 0) {
		if (!wanted)
			continue;
		multipart_add(&up.form, piece, (size_t)n);
		wanted = keep(&app->store, &file, &up, &err);
	}
	if (n == 0) /* else the client is gone */
		answer_upload(req, &file, &up, &err);
	filestore_abort(&file);
	upload_release(&up);
}

/* ---- the rest ---- */

/* The list is written as the folder is read: it may be long. */
void
api_list(struct api_app *app, struct http_request *req)
{
	struct filestore_entry entry;
	struct err err;
	auto_dir DIR *folder = filestore_open_folder(&app->store, &err);
	const char *comma = "";

	if (folder == NULL) {
		log_warn("list: %s", err.text);
		reply_failed(req, NULL);
		return;
	}
	http_allow_slow_reader(req, READER_MS);
	http_begin(req, 200, REPLY_JSON, NULL);
	http_write(req, "{\"files\":[", 10);
	while (!req->failed && filestore_next(&app->store, folder, &entry)) {
		auto_buf struct buf item = BUF_INIT(ANSWER_MAX);

		if (entry.note[0] != '\0') { /* of another contract */
			free(entry.name);
			continue;
		}
		buf_adds(&item, comma);
		comma = ",";
		execute_add_file(&item, entry.id, entry.name, entry.size,
		    entry.uploaded_ms);
		http_write(req, buf_str(&item), item.len);
		free(entry.name);
	}
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
