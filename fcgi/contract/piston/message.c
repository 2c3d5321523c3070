/* SPDX-License-Identifier: MIT */
#include "message.h"

#include <inttypes.h>
#include <string.h>

#include "answer.h"
#include "files.h"
#include "refusal.h"
#include "request.h"
#include "../../pytext/pydump.h"

#include "../../../sandbox/base/buf.h"

/* ---- theirs ---- */

static bool
is_text(const struct pyvalue *value, const char *text)
{
	return value != NULL && value->type == PYVALUE_STRING &&
	    value->count == strlen(text) &&
	    memcmp(value->u.text, text, value->count) == 0;
}

static enum piston_message
wrong(struct piston_said *said, struct piston_refusal *refusal,
    const char *text)
{
	pyjson_release(&said->doc);
	(void)piston_refuse(refusal, 400, "%s", text);
	return PISTON_WRONG;
}

static enum piston_message
hear_data(struct piston_said *said, struct piston_refusal *refusal)
{
	const struct pyvalue *root = &said->doc.root;
	const struct pyvalue *data = pyvalue_get(root, "data");
	const struct pyvalue *eof = pyvalue_get(root, "eof");

	said->is_input = is_text(pyvalue_get(root, "stream"), "stdin");
	said->eof = eof != NULL && eof->type == PYVALUE_BOOL && eof->u.truth;
	if (!said->is_input)
		return PISTON_DATA;
	if (data == NULL || data->type != PYVALUE_STRING)
		return wrong(said, refusal, "data must be a string");
	piston_make_text(data->u.text, data->count);
	said->text = data->u.text;
	said->len = data->count;
	return PISTON_DATA;
}

enum piston_message
piston_hear(struct piston_said *said, const char *data, size_t len,
    struct piston_refusal *refusal)
{
	const struct pyvalue *type;
	const struct pyvalue *name;

	*said = (struct piston_said){ .text = "" };
	if (!piston_parse(&said->doc, data, len, refusal))
		return PISTON_WRONG;
	type = pyvalue_get(&said->doc.root, "type");
	if (is_text(type, "init"))
		return PISTON_INIT;
	if (is_text(type, "data"))
		return hear_data(said, refusal);
	if (!is_text(type, "signal"))
		return PISTON_OTHER;
	name = pyvalue_get(&said->doc.root, "signal");
	if (name != NULL && name->type == PYVALUE_STRING)
		said->number = piston_signal_number(name->u.text, name->count);
	return PISTON_SIGNAL;
}

/* ---- ours ---- */

void
piston_say_runtime(struct buf *out, const struct piston_runtime *runtime)
{
	buf_addf(out,
	    "{\"type\":\"runtime\",\"language\":\"%s\",\"version\":\"",
	    piston_language_name(runtime->language));
	piston_add_version(out, &runtime->version);
	buf_adds(out, "\"}");
}

void
piston_say_stage(struct buf *out)
{
	buf_adds(out, "{\"type\":\"stage\",\"stage\":\"run\"}");
}

void
piston_say_data(struct buf *out, int64_t stream, const char *text, size_t len)
{
	buf_addf(out, "{\"type\":\"data\",\"stream\":\"%s\",\"data\":",
	    stream == 2 ? "stderr" : "stdout");
	pydump_add_string(out, text, len, PYDUMP_UTF8);
	buf_adds(out, "}");
}

void
piston_say_exit(struct buf *out, const struct piston_end *end)
{
	buf_adds(out, "{\"type\":\"exit\",\"stage\":\"run\",\"code\":");
	if (end->code < 0)
		buf_adds(out, "null");
	else
		buf_addf(out, "%" PRId64, end->code);
	if (end->signal == NULL)
		buf_adds(out, ",\"signal\":null}");
	else
		buf_addf(out, ",\"signal\":\"%s\"}", end->signal);
}

void
piston_say_error(struct buf *out, const struct piston_refusal *refusal)
{
	buf_adds(out, "{\"type\":\"error\",");
	/* what follows its brace */
	buf_add(out, refusal->body.data + 1, refusal->body.len - 1);
}
