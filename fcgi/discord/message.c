/* SPDX-License-Identifier: MIT */
/* What is run of a message or of an upload: text that a worker finds the code
 * in, and Python files that it fetches. */
#include "submit.h"

#include <inttypes.h>
#include <string.h>

#include "../../sandbox/base/text.h"
#include "../../sandbox/protocol/frame_limits.h"

#define URL_MAX 2048
#define MESSAGE_POINTS 4000 /* that Discord lets people write, with Nitro */
#define BLANKS " \t\r\n"

/* ---- files ---- */

static bool
refuse_size(struct context *c, const char *name)
{
	return submit_refuse(c, TEXT_SCRIPT_TOO_LARGE, name, "too-large");
}

/* One more of the job's files, which are kept in lines. */
static bool
take_script(struct context *c, const struct interaction_attachment *a)
{
	if (strlen(a->url) > URL_MAX || strlen(a->name) > LIMIT_NAME ||
	    strchr(a->url, '\n') != NULL || strchr(a->name, '\n') != NULL)
		return submit_refuse(c, TEXT_TOO_LONG, "attachment",
		    "too-long");
	/* before anybody fetches a byte of it */
	if (a->size > COMMAND_SCRIPT_MAX ||
	    c->job.attachment_size + a->size > COMMAND_SCRIPTS_MAX)
		return refuse_size(c, a->name);
	if (c->links.len > 0) {
		buf_addc(&c->links, '\n');
		buf_addc(&c->names, '\n');
	}
	buf_adds(&c->links, a->url);
	buf_adds(&c->names, a->name);
	c->job.attachment_size += a->size;
	return true;
}

static bool
is_python(const char *name)
{
	size_t len = strlen(name);

	return len > 3 && text_is(name + len - 3, 3, ".py");
}

/* The Python files among the attachments, by their names: what Discord says of
 * their type is what the sender's computer thought. */
static bool
take_scripts(struct context *c)
{
	int count = 0;

	for (size_t i = 0; i < c->in->attachment_count; i++) {
		const struct interaction_attachment *a = &c->in->attachments[i];

		if (!is_python(a->name))
			continue;
		if (++count > COMMAND_SCRIPT_COUNT)
			return submit_refuse(c, TEXT_TOO_MANY_SCRIPTS, "",
			    "too-many-files");
		if (!take_script(c, a))
			return false;
	}
	if (count > 0) {
		c->job.attachment_url = c->links.data;
		c->job.attachment_name = c->names.data;
	}
	return true;
}

bool
message_check_upload(struct context *c)
{
	return c->job.attachment_size <= COMMAND_SCRIPT_MAX ||
	    refuse_size(c, c->job.attachment_name);
}

/* ---- messages ---- */

/* Whoever chose it sees the message, so say what is wrong with that. */
static bool
refuse_empty(struct context *c)
{
	const struct interaction *in = c->in;

	if (in->attachment_count > 0)
		return submit_refuse(c, TEXT_MESSAGE_NO_SCRIPT, "",
		    "no-script");
	if (in->message.shows)
		return submit_refuse(c, TEXT_MESSAGE_EMBED, "", "embed-only");
	return submit_refuse(c, TEXT_MESSAGE_EMPTY, "", "empty");
}

bool
message_take(struct context *c)
{
	const struct interaction_message *m = &c->in->message;

	buf_init(&c->links, COMMAND_SCRIPT_COUNT * (URL_MAX + 1));
	buf_init(&c->names, COMMAND_SCRIPT_COUNT * (LIMIT_NAME + 1));
	if (!m->found)
		return submit_refuse(c, TEXT_MESSAGE_GONE, "", "gone");
	if (strlen(m->text) != m->len)
		return submit_refuse(c, TEXT_NUL, "message", "nul");
	if (text_codepoints(m->text, m->len) > MESSAGE_POINTS)
		return submit_refuse(c, TEXT_MESSAGE_LONG, "", "too-long");
	if (!take_scripts(c))
		return false;
	c->job.has_text = m->text[strspn(m->text, BLANKS)] != '\0';
	if (!c->job.has_text && c->job.attachment_url == NULL)
		return refuse_empty(c);
	c->job.text = m->text;
	return true;
}

/* A worker opens the editor, as it knows what is code.  Should that take too
 * long, a button opens it, with what has been found by then. */
bool
message_take_to_edit(struct context *c)
{
	if (!message_take(c))
		return false;
	c->job.answer = ANSWER_EDITOR;
	c->action = ACTION_MESSAGE_OPEN;
	c->view.kind = JOB_MESSAGE_EDIT;
	if (!submit_view(c, &c->view))
		return false;
	c->job.view_id = c->view.id;
	return true;
}
