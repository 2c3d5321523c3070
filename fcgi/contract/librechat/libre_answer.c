/* SPDX-License-Identifier: MIT */
#include "contract/librechat/libre_answer.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "contract/librechat/libre_request.h"
#include "contract/json.h"
#include "contract/media.h"

#include "base/text.h"
#include "protocol/cell.h"

/* Append an answer and release it. */
static void
add_answer(struct buf *out, json_t *answer)
{
	jtext_add(out, answer, JSON_COMPACT);
	json_decref(answer);
}

static json_t *
pack_text(const char *text)
{
	return jtext_pack(text, strlen(text));
}

void
libre_add_error(struct buf *out, const char *error, const char *details)
{
	add_answer(out,
	    json_pack("{s:o,s:o*}", "error", pack_text(error), "details",
		details == NULL ? NULL : pack_text(details)));
}

void
libre_add_rate_limited(struct buf *out, const char *message, int64_t seconds)
{
	add_answer(out,
	    json_pack("{s:s,s:o,s:I}", "error", "rate_limited", "message",
		pack_text(message), "retry_after_seconds",
		(json_int_t)seconds));
}

/* ---- a run ---- */

void
libre_stream_add(struct libre_stream *s, const void *data, size_t len)
{
	size_t left = s->text.max - s->text.len;

	s->over = s->over || len > left;
	buf_add(&s->text, data, len < left ? len : left);
}

/* A line of ours after what the program has written. */
static void __attribute__((format(printf, 2, 3)))
libre_add_line(struct buf *text, const char *fmt, ...)
{
	va_list ap;

	if (text->len > 0 && text->data[text->len - 1] != '\n')
		buf_addc(text, '\n');
	buf_adds(text, "[sandbox] ");
	va_start(ap, fmt);
	buf_addv(text, fmt, ap);
	va_end(ap);
	buf_addc(text, '\n');
}

/* Add a line that says how the run ended, unless its status does. */
static void
libre_add_end(struct buf *text, const struct libre_outcome *o)
{
	const struct cell_result *cell = o->cell;
	const char *name = sigabbrev_np((int)cell->signal);

	if (cell->reason == REASON_TIME)
		libre_add_line(text, "Time limit exceeded: ended after %.3g s",
		    (double)o->timeout_ms / 1000);
	else if (cell->reason == REASON_MEMORY)
		libre_add_line(text, "Out of memory: the program was ended");
	else if (cell->reason == REASON_SIGNAL)
		libre_add_line(text, "The program was ended by SIG%s",
		    name == NULL ? "?" : name);
}

/* Standard error, and below it the lines of ours. */
static json_t *
pack_errors(const struct libre_outcome *o)
{
	auto_buf struct buf text = BUF_INIT(LIBRE_ANSWER_MAX);

	buf_add(&text, buf_str(&o->err->text), o->err->text.len);
	if (o->err->over)
		libre_add_line(&text,
		    "stderr length exceeded: cut after %zu bytes",
		    o->err->text.max);
	if (o->out->over)
		libre_add_line(&text,
		    "stdout length exceeded: cut after %zu bytes",
		    o->out->text.max);
	libre_add_end(&text, o);
	for (size_t i = 0; o->missing != NULL && o->missing[i] != NULL; i++)
		libre_add_line(&text, "This input is not kept any more: %s",
		    o->missing[i]);
	for (size_t i = 0; i < o->files->count; i++)
		if (o->files->items[i].why != NULL)
			libre_add_line(&text,
			    "This file does not come back, %s: %s",
			    o->files->items[i].why, o->files->items[i].path);
	if (o->cell->cut)
		libre_add_line(&text, "There are more files than these");
	if (o->note != NULL)
		libre_add_line(&text, "%s", o->note);
	return jtext_pack(buf_str(&text), text.len);
}

static json_t *
pack_made(const struct libre_outcome *o, const struct run_file *file)
{
	const struct libre_file *was = file->was;
	char id[LIBRE_ID_LEN + 1] = "";
	json_t *before = was == NULL || file->unchanged ?
	    NULL :
	    json_pack("{s:s,s:s}", "id", was->id, "storage_session_id",
		was->session);

	if (file->id != NULL)
		libre_id_of_file(id, file->id);
	return json_pack("{s:s,s:o,s:s,s:o*,s:o*}", "id",
	    file->unchanged ? was->id : id, "name", pack_text(file->path),
	    "storage_session_id", file->unchanged ? was->session : o->session,
	    "inherited", file->unchanged ? json_true() : NULL, "modified_from",
	    before);
}

/* The members for how it ended. */
static json_t *
pack_status(const struct libre_outcome *o)
{
	static const struct {
		const char *message;
		const char *status;
	} words[] = {
		[REASON_SIGNAL] = { NULL, "SG" },
		[REASON_TIME] = { "Time limit exceeded", "TO" },
		[REASON_MEMORY] = { "Out of memory", "SG" },
		[REASON_ERROR] = { NULL, NULL },
	};
	const struct cell_result *cell = o->cell;
	bool exited = cell->reason == REASON_EXIT;
	const char *name = cell->reason == REASON_SIGNAL ?
	    sigabbrev_np((int)cell->signal) :
	    "KILL";

	return json_pack("{s:o,s:o,s:s?,s:s?,s:I}", "code",
	    exited ? json_integer(cell->status) : json_null(), "signal",
	    exited ? json_null() :
		     json_sprintf("SIG%s", name == NULL ? "?" : name),
	    "message", words[cell->reason].message, "status",
	    words[cell->reason].status, "wall_time", (json_int_t)o->wall_ms);
}

static json_t *
pack_streams(const struct libre_outcome *o)
{
	const struct buf *text = &o->out->text;

	return json_pack("{s:s,s:o,s:o}", "session_id", o->session, "stdout",
	    jtext_pack(buf_str(text), text->len), "stderr", pack_errors(o));
}

/* The count of files that the store did not take; NULL: none. */
static json_t *
pack_delivery(const struct libre_outcome *o)
{
	json_int_t kept = 0;
	json_int_t failed = 0;

	for (size_t i = 0; i < o->files->count; i++) {
		failed += o->files->items[i].refused;
		kept += o->files->items[i].why == NULL &&
		    !o->files->items[i].unchanged;
	}
	return failed == 0 ?
	    NULL :
	    json_pack("{s:s,s:s,s:I,s:I,s:I}", "code",
		"artifact_delivery_failed", "status",
		kept > 0 ? "partial" : "failed", "attempted", kept + failed,
		"delivered", kept, "failed", failed);
}

/* Inputs come first: the client keeps the order, in which the last one
 * counts. */
static json_t *
pack_files(const struct libre_outcome *o)
{
	json_t *files = json_array();
	json_t *deleted = json_array();

	for (int inherited = 1; inherited >= 0; inherited--)
		for (size_t i = 0; i < o->files->count; i++) {
			const struct run_file *file = &o->files->items[i];

			if (file->why == NULL &&
			    file->unchanged == (inherited == 1))
				(void)json_array_append_new(files,
				    pack_made(o, file));
		}
	for (size_t i = 0; o->deleted != NULL && o->deleted[i] != NULL; i++)
		(void)json_array_append_new(deleted, pack_text(o->deleted[i]));
	if (json_array_size(deleted) == 0) {
		json_decref(deleted);
		deleted = NULL;
	}
	return json_pack("{s:o,s:o*,s:o*}", "files", files, "artifact_delivery",
	    pack_delivery(o), "deleted_files", deleted);
}

void
libre_add_outcome(struct buf *out, const struct libre_outcome *o)
{
	json_t *answer = pack_streams(o);

	(void)json_object_update_new(answer, pack_files(o));
	if (o->runtime != NULL)
		(void)json_object_update_new(answer,
		    json_pack("{s:s,s:s}", "runtime_session_id", o->runtime,
			"runtime_status", o->runtime_new ? "new" : "reused"));
	(void)json_object_update_new(answer, pack_status(o));
	add_answer(out, answer);
}

/* ---- a program that calls tools ---- */

bool
libre_has_failed(const struct libre_outcome *o, struct buf *error)
{
	if (o->out->over)
		buf_adds(error, "stdout length exceeded");
	else if (o->err->over)
		buf_adds(error, "stderr length exceeded");
	else if (o->cell->reason == REASON_TIME)
		buf_adds(error, "Time limit exceeded");
	else if (o->cell->reason == REASON_MEMORY)
		buf_adds(error, "Out of memory");
	else if (o->cell->reason != REASON_EXIT)
		buf_adds(error, LIBRE_FAILED);
	else if (o->cell->status != 0)
		buf_addf(error, "Sandbox exited with code %" PRId64,
		    o->cell->status);
	return error->len > 0;
}

void
libre_add_completed(struct buf *out, const struct libre_outcome *o)
{
	json_t *answer = json_pack("{s:s}", "status", "completed");

	(void)json_object_update_new(answer, pack_streams(o));
	(void)json_object_update_new(answer, pack_files(o));
	add_answer(out, answer);
}

void
libre_add_failed(struct buf *out, const struct libre_outcome *o,
    const char *error)
{
	json_t *answer = json_pack("{s:s,s:o}", "status", "error", "error",
	    pack_text(error));

	(void)json_object_update_new(answer, pack_streams(o));
	add_answer(out, answer);
}

/* Output of a stream; NULL: there is none. */
static json_t *
pack_partial(const struct libre_stream *s)
{
	return s->text.len == 0 ? NULL :
				  jtext_pack(buf_str(&s->text), s->text.len);
}

void
libre_add_calls(struct buf *out, const struct libre_outcome *o, json_t *calls,
    const char *token)
{
	add_answer(out,
	    json_pack("{s:s,s:s,s:s,s:O,s:o*,s:o*}", "status",
		"tool_call_required", "session_id", o->session,
		"continuation_token", token, "tool_calls", calls,
		"partial_stdout", pack_partial(o->out), "partial_stderr",
		pack_partial(o->err)));
}

/* ---- files ---- */

void
libre_add_uploaded(struct buf *out, const char *id, const char *name,
    const char *error, bool batch)
{
	const char *status = error == NULL ? "success" : "error";

	add_answer(out,
	    json_pack("{s:s*,s:s*,s:o,s:s*}", "status", batch ? status : NULL,
		"fileId", error == NULL ? id : NULL, "filename",
		pack_text(name), "error", error));
}

/* "2026-08-07T12:00:00.000Z" */
static json_t *
pack_time(int64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm = { 0 };
	char text[40] = "";

	if (gmtime_r(&seconds, &tm) != NULL)
		(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	return json_sprintf("%s.%03dZ", text, (int)(ms % 1000));
}

/* "S/F.csv": clients take the id from before the first dot. */
static json_t *
pack_path(const struct libre_stored *file)
{
	return json_sprintf("%s/%s%s", file->session, file->id,
	    libre_name_extension(file->name));
}

void
libre_add_object(struct buf *out, const struct libre_stored *file)
{
	add_answer(out,
	    json_pack("{s:o,s:o,s:I,s:o,s:s,s:s,s:b}", "name", pack_path(file),
		"originalFilename", pack_text(file->name), "size",
		(json_int_t)file->size, "lastModified",
		pack_time(file->uploaded_ms), "etag", file->id, "contentType",
		media_of_name(file->name), "readOnly", file->read_only));
}

void
libre_add_listed(struct buf *out, const struct libre_stored *file,
    enum libre_detail detail)
{
	const char *type = media_of_name(file->name);
	json_t *answer;

	if (detail == LIBRE_SIMPLE) {
		add_answer(out, pack_path(file));
		return;
	}
	answer = json_pack("{s:o,s:I,s:o,s:s}", "name", pack_path(file), "size",
	    (json_int_t)file->size, "lastModified",
	    pack_time(file->uploaded_ms), "etag", file->id);
	if (detail == LIBRE_FULL)
		(void)json_object_update_new(answer,
		    json_pack("{s:{s:s,s:o},s:s}", "metadata", "content-type",
			type, "original-filename", pack_text(file->name),
			"contentType", type));
	add_answer(out, answer);
}
