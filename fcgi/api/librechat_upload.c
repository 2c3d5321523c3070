/* SPDX-License-Identifier: MIT */
/*
 * POST /librechat/upload and /librechat/upload/batch: files of a form, which
 * has said before whose they are.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "app.h"
#include "librechat_who.h"
#include "reply.h"
#include "routes.h"
#include "../contract/librechat/libre_answer.h"
#include "../contract/librechat/libre_name.h"
#include "../contract/multipart.h"
#include "../server/http.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"

#define FILE_MAX (INT64_C(100) << 20)
#define FILES_MAX 200
/* Of one file in the answer: a name whose every byte is escaped in six. */
#define ENTRY_MAX (6 * MULTIPART_HEAD_MAX + 256)
#define ENTRIES_MAX ((size_t)FILES_MAX * ENTRY_MAX)
#define ANSWER_MAX (ENTRIES_MAX + 1024)
#define TOO_LARGE "File size limit exceeded"
#define FAILED "Error uploading files"

/* A field of the form that says something of its files. */
enum field { FIELD_KIND, FIELD_ID, FIELD_VERSION, FIELD_READ_ONLY, FIELDS };

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
	char (*ids)[FILESTORE_ID_LEN + 1]; /* of those that are kept */
	const char *refusal; /* of the form as a whole: 400; NULL: none */
};

/* ---- one file ---- */

/* Its bytes have come, or will not: it has its line in the answer. */
static void
end_file(struct form *f)
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

/* Whose the files of this form are. */
static bool
take_resource(struct form *f, struct libre_resource *resource)
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
begin_file(struct form *f)
{
	struct libre_resource resource;
	bool read_only = strcmp(buf_str(&f->fields[FIELD_READ_ONLY]), "true") ==
	    0;
	size_t len = strlen(f->session);

	if (f->kept + f->failed == FILES_MAX)
		f->limit = true;
	if (f->limit || !take_resource(f, &resource))
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
take_slice(struct form *f)
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
take_part(struct form *f)
{
	const struct multipart *m = &f->parts;

	end_file(f);
	f->field = NULL;
	if (m->is_file && strcmp(buf_str(&m->name), "file") == 0) {
		begin_file(f);
		return;
	}
	/* What comes after a file says nothing of it, nor of others: all files
	 * of a form are one resource's. */
	for (size_t i = 0;
	     i < FIELDS && !m->is_file && f->kept + f->failed == 0; i++)
		if (strcmp(buf_str(&m->name), field_names[i]) == 0)
			f->field = &f->fields[i];
	if (f->field != NULL)
		buf_reset(f->field);
}

/* What has come of the form.  False: no more is wanted. */
static bool
take_events(struct form *f)
{
	while (f->refusal == NULL) {
		switch (multipart_next(&f->parts)) {
		case MULTIPART_MORE:
			return true;
		case MULTIPART_FAILED:
			return false;
		case MULTIPART_PART:
			take_part(f);
			break;
		case MULTIPART_SLICE:
			take_slice(f);
			break;
		}
	}
	return false;
}

/* ---- the answer ---- */

/* Nobody will ever know the ids of these. */
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
	auto_buf struct buf body = BUF_INIT(ANSWER_MAX);

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
	end_file(f);
	if (f->kept + f->failed == 0)
		reply_librechat(req, 400, NULL, "No files provided", NULL);
	else if (!f->batch && f->failed > 0)
		refuse_single(f, req);
	else
		answer_kept(f, req);
}

/* ---- the request ---- */

static void
release(struct form *f)
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
	char piece[MULTIPART_PIECE];
	bool wanted = true;
	ssize_t n;

	if (!is_form(type) || !multipart_open(&f.parts, type)) {
		reply_librechat(req, 400, NULL,
		    "Invalid content type. Must be multipart/form-data.", NULL);
		return;
	}
	f.parts.whole_names = true;
	for (size_t i = 0; i < FIELDS; i++)
		buf_init(&f.fields[i], LIBRE_RESOURCE_MAX);
	f.ids = xcalloc(FILES_MAX, sizeof(*f.ids));
	librechat_make_session(app, f.session);
	/* The body is read to its end in any case, since the client sends it
	 * before it looks at the answer. */
	while ((n = http_read(req, piece, sizeof(piece))) > 0) {
		if (!wanted)
			continue;
		multipart_add(&f.parts, piece, (size_t)n);
		wanted = take_events(&f);
	}
	if (n == 0)
		answer_form(&f, req);
	else /* the client is gone */
		forget_kept(&f);
	release(&f);
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
