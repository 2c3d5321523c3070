/* SPDX-License-Identifier: MIT */
/*
 * LibreChat's files: downloads, lists and removals; POST /librechat/upload and
 * /librechat/upload/batch, forms whose first fields say whose the files are.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "api/app.h"
#include "api/librechat_who.h"
#include "api/gate.h"
#include "api/routes.h"
#include "api/run.h"
#include "contract/librechat/libre_answer.h"
#include "contract/librechat/libre_request.h"
#include "contract/media.h"
#include "contract/multipart.h"
#include "server/serve.h"

#include "base/basics.h"
#include "base/text.h"

#define ANSWER_MAX ((size_t)8 * FILESTORE_NAME_MAX)
#define NAME_SENT_MAX 1024 /* bytes of a name in a header */
#define FILE_MAX (INT64_C(100) << 20)
#define FILES_MAX 200
/* Bytes of a file's entry in the answer: every byte of its name may be escaped
 * in six. */
#define ENTRY_MAX (6 * MULTIPART_HEAD_MAX + 256)
#define ENTRIES_MAX ((size_t)FILES_MAX * ENTRY_MAX)
#define KEPT_MAX (ENTRIES_MAX + 1024)
#define TOO_LARGE "File size limit exceeded"
#define FAILED "Error uploading files"

/* The file's resource in the query: ?kind=skill&id=…&version=…  Without one the
 * file is the user's.  The resource's texts lie here. */
struct asked {
	struct libre_resource resource;
	char id[LIBRE_RESOURCE_MAX + 1];
	char version[LIBRE_RESOURCE_MAX + 1];
};

static bool
parse_query(struct asked *asked, const struct http_request *req)
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
	    !parse_query(&asked, req)) {
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
	auto_buf struct buf disposition = BUF_INIT(ANSWER_MAX);
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
librechat_write_list(struct api_app *app, struct http_request *req, DIR *folder)
{
	enum libre_detail detail = detail_of(req);
	struct filestore_entry entry;
	const char *comma = "";

	http_allow_slow_reader(req, REPLY_READER_MS);
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

	if (!parse_query(&asked, req)) {
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
	librechat_write_list(app, req, folder);
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
	(void)parse_query(&asked, req);
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

/* A field of the form that says something of its files. */
enum form_field {
	FIELD_KIND,
	FIELD_ID,
	FIELD_VERSION,
	FIELD_READ_ONLY,
	FIELDS
};

static const char *const field_names[FIELDS] = {
	[FIELD_KIND] = "kind",
	[FIELD_ID] = "id",
	[FIELD_VERSION] = "version",
	[FIELD_READ_ONLY] = "read_only",
};

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
	struct buf entries; /* of the answer, with commas between */
	bool batch;
	size_t kept;
	size_t failed;
	bool limit;			   /* there were more than FILES_MAX */
	struct err err;			   /* of the store: the last one */
	char (*ids)[FILESTORE_ID_LEN + 1]; /* of the stored files */
	const char *refusal; /* of the form as a whole: 400; NULL: none */
};

/* ---- upload: one file ---- */

/* The file has ended, whole or not: it has its line in the answer. */
static void
form_end_file(struct form *f)
{
	char id[LIBRE_ID_LEN + 1] = "";

	if (!f->in_file)
		return;
	f->in_file = false;
	if (f->error == NULL &&
	    filestore_commit(&f->fresh, buf_str(&f->name), &f->err) != 0) {
		log_warn("upload: %s", f->err.text);
		f->error = FAILED;
	}
	if (f->error != NULL) {
		filestore_abort(&f->fresh);
		f->failed++;
		if (f->first_error == NULL)
			f->first_error = f->error;
	} else {
		memcpy(f->ids[f->kept++], f->fresh.id, sizeof(f->ids[0]));
		libre_id_of_file(id, f->fresh.id);
	}
	if (f->entries.len > 0)
		buf_addc(&f->entries, ',');
	libre_add_uploaded(&f->entries, id, buf_str(&f->name), f->error,
	    f->batch);
}

/* The resource that the files of this form belong to. */
static bool
set_resource(struct form *f, struct libre_resource *resource)
{
	const struct buf *kind = &f->fields[FIELD_KIND];

	resource->id = buf_str(&f->fields[FIELD_ID]);
	resource->version = buf_str(&f->fields[FIELD_VERSION]);
	for (size_t i = 0; i < FIELDS; i++)
		if (f->fields[i].overflow)
			f->refusal = "A field of the form is too long";
	if (!libre_kind_parse(kind->len > 0 ? buf_str(kind) : NULL,
		&resource->kind))
		f->refusal = "kind must be one of: skill, agent, user";
	else if (resource->kind == LIBRE_SKILL && resource->version[0] == '\0')
		f->refusal = "version is required for kind: 'skill'";
	return f->refusal == NULL;
}

static void
form_begin_file(struct form *f)
{
	struct libre_resource resource;
	bool read_only = strcmp(buf_str(&f->fields[FIELD_READ_ONLY]), "true") ==
	    0;
	size_t len = strlen(f->session);

	if (f->kept + f->failed == FILES_MAX)
		f->limit = true;
	if (f->limit || !set_resource(f, &resource))
		return;
	f->in_file = true;
	buf_reset(&f->name);
	buf_adds(&f->name, buf_str(&f->parts.filename));
	f->error = libre_name_fault(buf_str(&f->name), f->name.len) == NULL ?
	    NULL :
	    "Invalid filename";
	if (f->error != NULL)
		return;
	librechat_use(f->app, &resource);
	if (filestore_begin(&f->app->store, &f->fresh, &f->err) != 0) {
		log_warn("upload: %s", f->err.text);
		f->error = FAILED;
		return;
	}
	memcpy(f->fresh.note, f->session, len + 1);
	if (read_only) {
		f->fresh.note[len] = LIBRECHAT_READ_ONLY;
		f->fresh.note[len + 1] = '\0';
	}
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
	    FILE_MAX) {
		f->error = TOO_LARGE;
	} else if (filestore_write(&f->fresh, m->data, m->data_len, &f->err) !=
	    0) {
		log_warn("upload: %s", f->err.text);
		f->error = FAILED;
	}
	if (f->error != NULL)
		filestore_abort(&f->fresh);
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
	auto_buf struct buf body = BUF_INIT(KEPT_MAX);

	buf_addf(&body, "{\"message\":\"%s\",\"storage_session_id\":\"%s\",",
	    f->failed == 0   ? "success" :
		f->kept == 0 ? "error" :
			       "partial_success",
	    f->session);
	if (!f->batch)
		buf_addf(&body, "\"session_id\":\"%s\",", f->session);
	buf_adds(&body, "\"files\":[");
	buf_add(&body, buf_str(&f->entries), f->entries.len);
	buf_addc(&body, ']');
	if (f->batch)
		buf_addf(&body, ",\"succeeded\":%zu,\"failed\":%zu", f->kept,
		    f->failed);
	if (f->limit)
		buf_addf(&body, ",\"filesLimitReached\":true,\"maxFiles\":%d",
		    FILES_MAX);
	buf_addc(&body, '}');
	reply_text(req, f->kept == 0 ? 400 : 200, NULL, buf_str(&body));
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
	librechat_use_own(f->app);
	multipart_release(&f->parts);
	buf_release(&f->name);
	buf_release(&f->entries);
	for (size_t i = 0; i < FIELDS; i++)
		buf_release(&f->fields[i]);
	free(f->ids);
}

static bool
is_form(const char *type)
{
	static const char form[] = "multipart/form-data";

	return type != NULL && strncasecmp(type, form, strlen(form)) == 0;
}

static void
upload(struct api_app *app, struct http_request *req, bool batch)
{
	const char *type = http_param(req, "CONTENT_TYPE");
	struct form f = { .app = app,
		.batch = batch,
		.name = BUF_INIT(2 * MULTIPART_HEAD_MAX),
		.entries = BUF_INIT(ENTRIES_MAX) };

	if (!is_form(type) || !multipart_open(&f.parts, type)) {
		reply_librechat(req, 400, NULL,
		    "Invalid content type. Must be multipart/form-data.", NULL);
		return;
	}
	for (size_t i = 0; i < FIELDS; i++)
		buf_init(&f.fields[i], LIBRE_RESOURCE_MAX);
	f.ids = xcalloc(FILES_MAX, sizeof(*f.ids));
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
