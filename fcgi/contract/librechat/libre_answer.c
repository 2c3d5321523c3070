/* SPDX-License-Identifier: MIT */
#include "contract/librechat/libre_answer.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "contract/librechat/libre_request.h"
#include "contract/jtext.h"

#include "base/text.h"
#include "protocol/cell.h"

void
libre_add_error(struct buf *out, const char *error, const char *details)
{
	jtext_addf(out, JTEXT_UTF8, "{\"error\":\"%s\"", error);
	if (details != NULL)
		jtext_addf(out, JTEXT_UTF8, ",\"details\":\"%s\"", details);
	buf_addc(out, '}');
}

void
libre_add_rate_limited(struct buf *out, const char *message, int64_t seconds)
{
	jtext_addf(out, JTEXT_UTF8,
	    "{\"error\":\"rate_limited\",\"message\":\"%s\","
	    "\"retry_after_seconds\":%" PRId64 "}",
	    message, seconds);
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

/* Append a member after a comma; its text may hold anything. */
static void
libre_add_text(struct buf *out, const char *name, const struct buf *text)
{
	jtext_addf(out, JTEXT_UTF8, ",\"%s\":\"%.*s\"", name, (int)text->len,
	    buf_str(text));
}

/* Append standard error, and below it the lines of ours. */
static void
add_errors(struct buf *out, const struct libre_outcome *o)
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
	libre_add_text(out, "stderr", &text);
}

static void
libre_add_made(struct buf *out, const struct libre_outcome *o,
    const struct run_file *file)
{
	const struct libre_file *was = file->was;
	char id[LIBRE_ID_LEN + 1] = "";

	if (file->id != NULL)
		libre_id_of_file(id, file->id);
	jtext_addf(out, JTEXT_UTF8,
	    "{\"id\":\"%s\",\"name\":\"%s\",\"storage_session_id\":\"%s\"",
	    file->unchanged ? was->id : id, file->path,
	    file->unchanged ? was->session : o->session);
	if (file->unchanged)
		buf_adds(out, ",\"inherited\":true");
	else if (was != NULL)
		buf_addf(out,
		    ",\"modified_from\":{\"id\":\"%s\","
		    "\"storage_session_id\":\"%s\"}",
		    was->id, was->session);
	buf_addc(out, '}');
}

/* Append status and signal. */
static void
add_status(struct buf *out, const struct libre_outcome *o)
{
	const struct cell_result *cell = o->cell;
	const char *name = cell->reason == REASON_SIGNAL ?
	    sigabbrev_np((int)cell->signal) :
	    "KILL";
	const char *message = cell->reason == REASON_TIME ?
	    "Time limit exceeded" :
	    cell->reason == REASON_MEMORY ? "Out of memory" :
					    NULL;

	if (cell->reason == REASON_EXIT)
		buf_addf(out, ",\"code\":%" PRId64 ",\"signal\":null",
		    cell->status);
	else
		buf_addf(out, ",\"code\":null,\"signal\":\"SIG%s\"",
		    name == NULL ? "?" : name);
	if (message != NULL)
		buf_addf(out, ",\"message\":\"%s\",\"status\":\"%s\"", message,
		    cell->reason == REASON_TIME ? "TO" : "SG");
	else
		buf_adds(out,
		    cell->reason == REASON_SIGNAL ?
			",\"message\":null,\"status\":\"SG\"" :
			",\"message\":null,\"status\":null");
	buf_addf(out, ",\"wall_time\":%" PRId64 "}", o->wall_ms);
}

static void
add_streams(struct buf *out, const struct libre_outcome *o)
{
	buf_addf(out, "\"session_id\":\"%s\"", o->session);
	libre_add_text(out, "stdout", &o->out->text);
	add_errors(out, o);
}

static void
add_those(struct buf *out, const struct libre_outcome *o, bool inherited,
    const char **comma)
{
	for (size_t i = 0; i < o->files->count; i++) {
		const struct run_file *file = &o->files->items[i];

		if (file->why != NULL || file->unchanged != inherited)
			continue;
		buf_adds(out, *comma);
		*comma = ",";
		libre_add_made(out, o, file);
	}
}

/* Append the count of files that the store did not take, if there are any. */
static void
add_delivery(struct buf *out, const struct libre_outcome *o)
{
	size_t kept = 0;
	size_t failed = 0;

	for (size_t i = 0; i < o->files->count; i++) {
		failed += o->files->items[i].refused;
		kept += o->files->items[i].why == NULL &&
		    !o->files->items[i].unchanged;
	}
	if (failed > 0)
		buf_addf(out,
		    ",\"artifact_delivery\":{\"code\":"
		    "\"artifact_delivery_failed\",\"status\":\"%s\","
		    "\"attempted\":%zu,\"delivered\":%zu,\"failed\":%zu}",
		    kept > 0 ? "partial" : "failed", kept + failed, kept,
		    failed);
}

/* The client keeps their order, in which the last one counts. */
static void
libre_add_files(struct buf *out, const struct libre_outcome *o)
{
	const char *comma = "";

	buf_adds(out, ",\"files\":[");
	add_those(out, o, true, &comma);
	add_those(out, o, false, &comma);
	buf_addc(out, ']');
	add_delivery(out, o);
	if (o->deleted == NULL || o->deleted[0] == NULL)
		return;
	buf_adds(out, ",\"deleted_files\":[");
	for (size_t i = 0; o->deleted[i] != NULL; i++)
		jtext_addf(out, JTEXT_UTF8, "%s\"%s\"", i == 0 ? "" : ",",
		    o->deleted[i]);
	buf_addc(out, ']');
}

void
libre_add_outcome(struct buf *out, const struct libre_outcome *o)
{
	buf_addc(out, '{');
	add_streams(out, o);
	libre_add_files(out, o);
	if (o->runtime != NULL)
		buf_addf(out,
		    ",\"runtime_session_id\":\"%s\",\"runtime_status\":\"%s\"",
		    o->runtime, o->runtime_new ? "new" : "reused");
	add_status(out, o);
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
	buf_adds(out, "{\"status\":\"completed\",");
	add_streams(out, o);
	libre_add_files(out, o);
	buf_addc(out, '}');
}

void
libre_add_failed(struct buf *out, const struct libre_outcome *o,
    const char *error)
{
	jtext_addf(out, JTEXT_UTF8, "{\"status\":\"error\",\"error\":\"%s\",",
	    error);
	add_streams(out, o);
	buf_addc(out, '}');
}

void
libre_add_calls(struct buf *out, const struct libre_outcome *o,
    const json_t *calls, const char *token)
{
	jtext_addf(out, JTEXT_UTF8,
	    "{\"status\":\"tool_call_required\",\"session_id\":\"%s\","
	    "\"continuation_token\":\"%s\",\"tool_calls\":",
	    o->session, token);
	jtext_add(out, calls, JSON_COMPACT);
	if (o->out->text.len > 0)
		libre_add_text(out, "partial_stdout", &o->out->text);
	if (o->err->text.len > 0)
		libre_add_text(out, "partial_stderr", &o->err->text);
	buf_addc(out, '}');
}

/* ---- files ---- */

void
libre_add_uploaded(struct buf *out, const char *id, const char *name,
    const char *error, bool batch)
{
	buf_addc(out, '{');
	if (batch)
		buf_addf(out, "\"status\":\"%s\",",
		    error == NULL ? "success" : "error");
	if (error == NULL)
		buf_addf(out, "\"fileId\":\"%s\",", id);
	jtext_addf(out, JTEXT_UTF8, "\"filename\":\"%s\"", name);
	if (error != NULL)
		jtext_addf(out, JTEXT_UTF8, ",\"error\":\"%s\"", error);
	buf_addc(out, '}');
}

/* "2026-08-07T12:00:00.000Z", in quotes. */
static void
add_time(struct buf *out, int64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm = { 0 };
	char text[40] = "";

	if (gmtime_r(&seconds, &tm) != NULL)
		(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	buf_addf(out, "\"%s.%03dZ\"", text, (int)(ms % 1000));
}

/* "S/F.csv": clients take the id from before the first dot. */
static void
libre_add_path(struct buf *out, const struct libre_stored *file)
{
	buf_addf(out, "\"%s/%s%s\"", file->session, file->id,
	    libre_name_extension(file->name));
}

void
libre_add_object(struct buf *out, const struct libre_stored *file)
{
	buf_adds(out, "{\"name\":");
	libre_add_path(out, file);
	jtext_addf(out, JTEXT_UTF8,
	    ",\"originalFilename\":\"%s\",\"size\":%" PRId64
	    ",\"lastModified\":",
	    file->name, file->size);
	add_time(out, file->uploaded_ms);
	buf_addf(out,
	    ",\"etag\":\"%s\",\"contentType\":\"%s\",\"readOnly\":%s}",
	    file->id, libre_name_type(file->name),
	    file->read_only ? "true" : "false");
}

void
libre_add_listed(struct buf *out, const struct libre_stored *file,
    enum libre_detail detail)
{
	if (detail == LIBRE_SIMPLE) {
		libre_add_path(out, file);
		return;
	}
	buf_adds(out, "{\"name\":");
	libre_add_path(out, file);
	buf_addf(out, ",\"size\":%" PRId64 ",\"lastModified\":", file->size);
	add_time(out, file->uploaded_ms);
	buf_addf(out, ",\"etag\":\"%s\"", file->id);
	if (detail == LIBRE_FULL) {
		jtext_addf(out, JTEXT_UTF8,
		    ",\"metadata\":{\"content-type\":\"%s\","
		    "\"original-filename\":\"%s\"},\"contentType\":\"%s\"",
		    libre_name_type(file->name), file->name,
		    libre_name_type(file->name));
	}
	buf_addc(out, '}');
}
