/* SPDX-License-Identifier: MIT */
/*
 * LibreChat's files: downloads, lists and removals; POST /librechat/upload and
 * /librechat/upload/batch, forms whose first fields say whose the files are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/app.h"
#include "api/librechat_who.h"
#include "api/gate.h"
#include "api/routes.h"
#include "api/run.h"
#include "contract/media.h"
#include "contract/multipart.h"
#include "server/serve.h"

#include "base/basics.h"
#include "base/text.h"

#define NAME_SENT_MAX 1024 /* bytes of a name in a header */
#define FILE_MAX (INT64_C(100) << 20)
#define FILES_MAX 200
#define TOO_LARGE "File size limit exceeded"
#define FAILED "Error uploading files"

/* From now on the files are those of the resource in the query,
 * ?kind=skill&id=…&version=…; without one they are the user's.  False: it is
 * malformed, which was answered. */
static bool
use_asked(struct api_app *app, struct http_request *req)
{
	static const char *const names[] = { "kind", "id", "version" };
	char texts[3][LIBRE_RESOURCE_MAX + 1];
	bool sent[3];
	struct libre_resource resource;

	for (size_t i = 0; i < 3; i++)
		sent[i] = libre_query_get(req->query, names[i], texts[i]);
	resource = (struct libre_resource){ sent[0] ? texts[0] : NULL,
		sent[1] ? texts[1] : NULL, sent[2] ? texts[2] : NULL };
	if (libre_resource_fault(&resource) == NULL) {
		librechat_use(app, &resource);
		return true;
	}
	reply_librechat(req, 400, NULL, "Bad request", NULL);
	return false;
}

/* The file that the path names, or -1: it was answered. */
static int
open_asked(struct api_app *app, struct http_request *req,
    struct filestore_entry *entry, const char *details)
{
	int fd;

	if (!libre_is_id(app->id) || !libre_is_id(app->second_id)) {
		reply_librechat(req, 400, NULL, "Bad request", NULL);
		return -1;
	}
	if (!use_asked(app, req))
		return -1;
	fd = librechat_file(app, req, app->id, app->second_id, entry);
	if (fd < 0)
		reply_librechat(req, 404, NULL, "File not found", details);
	return fd;
}

void
api_librechat_download(struct api_app *app, struct http_request *req)
{
	auto_buf struct buf disposition = BUF_INIT(8 * NAME_SENT_MAX);
	struct filestore_entry entry;
	auto_close int fd = open_asked(app, req, &entry,
	    "It was never here, or its time is over");
	const char *name;

	if (fd < 0)
		return;
	name = libre_name_base(entry.name);
	buf_adds(&disposition, "attachment; filename*=UTF-8''");
	text_add_escaped(&disposition, name, strnlen(name, NAME_SENT_MAX),
	    "-._~");
	reply_download(req, media_of_name(name), buf_str(&disposition), fd,
	    entry.size);
	free(entry.name);
}

static json_t *
pack_entry(const struct filestore_entry *entry, const char *session,
    enum libre_detail detail)
{
	return libre_pack_stored(session, entry->id, entry->name, entry->size,
	    entry->uploaded_ms,
	    entry->note[LIBRE_ID_LEN] == LIBRECHAT_READ_ONLY, detail);
}

void
api_librechat_object(struct api_app *app, struct http_request *req)
{
	struct filestore_entry entry;
	auto_close int fd = open_asked(app, req, &entry, NULL);

	if (fd < 0)
		return;
	reply_value(req, 200, NULL, pack_entry(&entry, app->id, LIBRE_OBJECT));
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

void
api_librechat_list(struct api_app *app, struct http_request *req)
{
	enum libre_detail detail = detail_of(req);
	struct filestore_entry entry;
	auto_dir DIR *folder = NULL;
	json_t *list;
	struct err err;

	if (!use_asked(app, req))
		return;
	folder = filestore_open_folder(&app->store, &err);
	if (folder == NULL) {
		log_warn("list: %s", err.text);
		reply_failed(req, NULL);
		return;
	}
	list = json_array();
	while (filestore_next(&app->store, folder, &entry)) {
		if (librechat_is_of(&entry, app->id))
			(void)json_array_append_new(list,
			    pack_entry(&entry, app->id, detail));
		free(entry.name);
	}
	http_allow_slow_reader(req, REPLY_READER_MS);
	reply_value(req, 200, NULL, list);
}

void
api_librechat_delete(struct api_app *app, struct http_request *req)
{
	struct filestore_entry entry;
	auto_close int fd = open_asked(app, req, &entry, NULL);
	struct err err;

	if (fd < 0)
		return;
	free(entry.name);
	if (filestore_delete(&app->store, entry.id, strlen(entry.id), &err) !=
	    0)
		reply_librechat(req, 404, NULL, "File not found", NULL);
	else
		reply_value(req, 200, NULL,
		    json_pack("{s:s,s:s,s:s}", "message",
			"File deleted successfully", "session_id", app->id,
			"fileId", app->second_id));
}

/* A field of the form that says something of its files. */
enum { OF_KIND, OF_ID, OF_VERSION, OF_READ_ONLY, FIELDS };

static const char *const field_names[FIELDS] = { "kind", "id", "version",
	"read_only" };

struct form {
	struct api_app *app;
	struct multipart parts;
	char session[LIBRE_ID_LEN + 1];
	struct buf fields[FIELDS];  /* LIBRE_RESOURCE_MAX; what is longer is
				    * known by its overflow */
	struct buf *field;	    /* that comes in; NULL: none */
	struct filestore_new fresh; /* the file that comes in */
	struct buf name;	    /* its name */
	const char *error;	    /* of that file; NULL: none */
	const char *first_error;    /* of all of them */
	bool in_file;
	json_t *entries; /* of the answer */
	bool batch;
	size_t kept;
	size_t failed;
	bool limit;	     /* there were more than FILES_MAX */
	struct err err;	     /* of the store: the last one */
	const char *refusal; /* of the form as a whole: 400; NULL: none */
	char ids[FILES_MAX][FILESTORE_ID_LEN + 1]; /* of the stored files */
};

/* ---- upload: one file ---- */

/* The file has failed. */
static void
form_fail(struct form *f, const char *why)
{
	if (why == NULL) {
		log_warn("upload: %s", f->err.text);
		why = FAILED;
	}
	filestore_abort(&f->fresh);
	f->error = why;
	if (f->first_error == NULL)
		f->first_error = why;
}

/* The file has ended, whole or not: it has its entry in the answer. */
static void
form_end_file(struct form *f)
{
	char id[LIBRE_ID_LEN + 1] = "";

	if (!f->in_file)
		return;
	f->in_file = false;
	if (f->error == NULL &&
	    filestore_commit(&f->fresh, buf_str(&f->name), &f->err) != 0)
		form_fail(f, NULL);
	if (f->error != NULL) {
		f->failed++;
	} else {
		memcpy(f->ids[f->kept++], f->fresh.id, sizeof(f->ids[0]));
		libre_id_of_file(id, f->fresh.id);
	}
	(void)json_array_append_new(f->entries,
	    json_pack("{s:s*,s:s*,s:o,s:s*}", "status",
		!f->batch	     ? NULL :
		    f->error == NULL ? "success" :
				       "error",
		"fileId", f->error == NULL ? id : NULL, "filename",
		jtext_pack(buf_str(&f->name), f->name.len), "error", f->error));
}

/* The resource that the files of this form belong to. */
static bool
set_resource(struct form *f, struct libre_resource *resource)
{
	const char *kind = buf_str(&f->fields[OF_KIND]);

	*resource = (struct libre_resource){ kind[0] == '\0' ? NULL : kind,
		buf_str(&f->fields[OF_ID]), buf_str(&f->fields[OF_VERSION]) };
	f->refusal = libre_resource_fault(resource);
	for (size_t i = 0; i < FIELDS; i++)
		if (f->fields[i].overflow)
			f->refusal = "A field of the form is too long";
	return f->refusal == NULL;
}

static void
form_begin_file(struct form *f)
{
	struct libre_resource resource;
	bool read_only = strcmp(buf_str(&f->fields[OF_READ_ONLY]), "true") == 0;

	if (f->kept + f->failed == FILES_MAX)
		f->limit = true;
	if (f->limit || !set_resource(f, &resource))
		return;
	f->in_file = true;
	f->error = NULL;
	buf_reset(&f->name);
	buf_adds(&f->name, buf_str(&f->parts.filename));
	librechat_use(f->app, &resource);
	if (libre_name_fault(buf_str(&f->name)) != NULL)
		form_fail(f, "Invalid filename");
	else if (filestore_begin(&f->app->store, &f->fresh, &f->err) != 0)
		form_fail(f, NULL);
	else
		(void)snprintf(f->fresh.note, sizeof(f->fresh.note), "%s%s",
		    f->session,
		    read_only ? (char[]){ LIBRECHAT_READ_ONLY, '\0' } : "");
}

static void
add_slice(struct form *f)
{
	const struct multipart *m = &f->parts;

	if (f->field != NULL)
		buf_add(f->field, m->data, m->data_len);
	if (!f->in_file || f->error != NULL)
		return;
	if (f->fresh.size + (int64_t)f->fresh.piece.len + (int64_t)m->data_len >
	    FILE_MAX)
		form_fail(f, TOO_LARGE);
	else if (filestore_write(&f->fresh, m->data, m->data_len, &f->err) != 0)
		form_fail(f, NULL);
}

/* A part begins, which ends the one before. */
static void
librechat_begin_part(struct form *f)
{
	const struct multipart *m = &f->parts;

	form_end_file(f);
	f->field = NULL;
	if (m->is_file && strcmp(buf_str(&m->name), "file") == 0) {
		form_begin_file(f);
		return;
	}
	/* A field after the first file is ignored: all files of a form belong
	 * to one resource. */
	for (size_t i = 0;
	     i < FIELDS && !m->is_file && f->kept + f->failed == 0; i++)
		if (strcmp(buf_str(&m->name), field_names[i]) == 0)
			f->field = &f->fields[i];
	if (f->field != NULL)
		buf_reset(f->field);
}

static bool
form_event(void *arg, bool part)
{
	struct form *f = arg;

	if (part)
		librechat_begin_part(f);
	else
		add_slice(f);
	return f->refusal == NULL;
}

/* ---- upload: the answer ---- */

/* Remove the files that were kept, since no client learns their ids. */
static void
forget_kept(struct form *f)
{
	struct err err;

	for (size_t i = 0; i < f->kept; i++)
		(void)filestore_delete(&f->app->store, f->ids[i],
		    strlen(f->ids[i]), &err);
}

/* A single upload is whole or nothing. */
static void
refuse_single(struct form *f, struct http_request *req)
{
	forget_kept(f);
	if (strcmp(f->first_error, TOO_LARGE) == 0)
		reply_librechat(req, 413, NULL, TOO_LARGE, NULL);
	else if (f->err.code == ERR_LIMIT || f->err.code == ERR_QUOTA)
		reply_librechat(req, 507, NULL, FAILED,
		    "The file store is full");
	else if (f->err.code == ERR_UNAVAILABLE)
		reply_librechat(req, 503, "Retry-After: 1\r\n", FAILED,
		    "The file store cannot write just now");
	else if (f->err.code != ERR_NONE)
		reply_librechat(req, 500, NULL, FAILED, NULL);
	else
		reply_librechat(req, 400, NULL, f->first_error, NULL);
}

static void
answer_kept(struct form *f, struct http_request *req)
{
	json_t *answer = json_pack("{s:s,s:s,s:s*,s:O}", "message",
	    f->failed == 0   ? "success" :
		f->kept == 0 ? "error" :
			       "partial_success",
	    "storage_session_id", f->session, "session_id",
	    f->batch ? NULL : f->session, "files", f->entries);

	if (f->batch)
		(void)json_object_update_new(answer,
		    json_pack("{s:i,s:i}", "succeeded", (int)f->kept, "failed",
			(int)f->failed));
	if (f->limit)
		(void)json_object_update_new(answer,
		    json_pack("{s:b,s:i}", "filesLimitReached", 1, "maxFiles",
			FILES_MAX));
	reply_value(req, f->kept == 0 ? 400 : 200, NULL, answer);
}

static void
answer_form(struct form *f, struct http_request *req)
{
	const char *wrong = multipart_end(&f->parts);

	if (f->refusal != NULL || wrong != NULL) {
		forget_kept(f);
		reply_librechat(req, 400, NULL,
		    f->refusal != NULL ? f->refusal : "Bad request",
		    f->refusal != NULL ? NULL : wrong);
		return;
	}
	form_end_file(f);
	if (f->kept + f->failed == 0)
		reply_librechat(req, 400, NULL, "No files provided", NULL);
	else if (!f->batch && f->failed > 0)
		refuse_single(f, req);
	else
		answer_kept(f, req);
}

/* ---- upload: the request ---- */

static void
form_release(struct form *f)
{
	filestore_abort(&f->fresh);
	multipart_release(&f->parts);
	buf_release(&f->name);
	json_decref(f->entries);
	for (size_t i = 0; i < FIELDS; i++)
		buf_release(&f->fields[i]);
}

static void
upload(struct api_app *app, struct http_request *req, bool batch)
{
	static const char form[] = "multipart/form-data";
	const char *type = http_param(req, "CONTENT_TYPE");
	struct form f = { .app = app,
		.batch = batch,
		.name = BUF_INIT(2 * MULTIPART_HEAD_MAX) };

	if (type == NULL || strncasecmp(type, form, strlen(form)) != 0 ||
	    !multipart_open(&f.parts, type)) {
		reply_librechat(req, 400, NULL,
		    "Invalid content type. Must be multipart/form-data.", NULL);
		return;
	}
	f.parts.whole_names = true;
	f.entries = json_array();
	for (size_t i = 0; i < FIELDS; i++)
		buf_init(&f.fields[i], LIBRE_RESOURCE_MAX);
	librechat_make_session(app, f.session);
	if (api_read_form(req, &f.parts, form_event, &f))
		answer_form(&f, req);
	else /* the client is gone */
		forget_kept(&f);
	form_release(&f);
}

void
api_librechat_upload(struct api_app *app, struct http_request *req)
{
	upload(app, req, false);
}

void
api_librechat_upload_batch(struct api_app *app, struct http_request *req)
{
	upload(app, req, true);
}
