/* SPDX-License-Identifier: MIT */
/* A program in a message or in an upload: a worker finds the code in the text,
 * and fetches the files. */
#include "submit.h"

#include <inttypes.h>
#include <string.h>

#include "../../sandbox/base/text.h"
#include "../../sandbox/protocol/frame_limits.h"
#include "../../sandbox/store/script.h"

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
take_script(struct context *c, const struct interaction_attachment *a,
    int64_t most)
{
	if (strlen(a->url) > URL_MAX || strlen(a->name) > LIMIT_NAME ||
	    strchr(a->url, '\n') != NULL || strchr(a->name, '\n') != NULL)
		return submit_refuse(c, TEXT_TOO_LONG, "attachment",
		    "too-long");
	/* before anybody fetches a byte of it */
	if (a->size > script_most(script_of(a->name)) ||
	    c->job.attachment_size + a->size > most)
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
is_blank(const struct interaction_message *message)
{
	return message->text[strspn(message->text, BLANKS)] == '\0';
}

/* Choose files that are Python by their names and, if there is none, other ones
 * that a worker looks into: texts, else those of unknown names. */
static bool
choose_scripts(const struct interaction *in, bool wanted[], int64_t *most)
{
	enum script best = SCRIPT_BINARY;
	bool found = false;

	*most = SCRIPT_ALL_MAX;
	for (size_t i = 0; i < in->attachment_count; i++) {
		enum script script = script_of(in->attachments[i].name);

		if (script < best)
			best = script;
		if (script_all_most(script) > *most)
			*most = script_all_most(script);
	}
	for (size_t i = 0; i < in->attachment_count; i++) {
		enum script script = script_of(in->attachments[i].name);

		/* beside text one that is too large need not be code */
		wanted[i] = script < SCRIPT_TEXT ||
		    (script == best && script < SCRIPT_BINARY &&
			(in->attachments[i].size <= script_most(script) ||
			    is_blank(&in->message)));
		found = found || wanted[i];
	}
	return found;
}

static bool
take_scripts(struct context *c)
{
	bool wanted[INTERACTION_ATTACHMENTS_MAX] = { false };
	int64_t most;
	int count = 0;

	if (!choose_scripts(c->in, wanted, &most))
		return true;
	for (size_t i = 0; i < c->in->attachment_count; i++) {
		if (!wanted[i])
			continue;
		if (++count > SCRIPT_COUNT_MAX)
			return submit_refuse(c, TEXT_TOO_MANY_SCRIPTS, "",
			    "too-many-files");
		if (!take_script(c, &c->in->attachments[i], most))
			return false;
	}
	c->job.attachment_url = c->links.data;
	c->job.attachment_name = c->names.data;
	return true;
}

bool
message_check_upload(struct context *c)
{
	const struct job *job = &c->job;

	return job->attachment_url == NULL ||
	    job->attachment_size <=
	    script_most(script_of(job->attachment_name)) ||
	    refuse_size(c, job->attachment_name);
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

	buf_init(&c->links, SCRIPT_COUNT_MAX * (URL_MAX + 1));
	buf_init(&c->names, SCRIPT_COUNT_MAX * (LIMIT_NAME + 1));
	if (!m->found)
		return submit_refuse(c, TEXT_MESSAGE_GONE, "", "gone");
	if (strlen(m->text) != m->len)
		return submit_refuse(c, TEXT_NUL, "message", "nul");
	if (text_codepoints(m->text, m->len) > MESSAGE_POINTS)
		return submit_refuse(c, TEXT_MESSAGE_LONG, "", "too-long");
	if (!take_scripts(c))
		return false;
	c->job.has_text = !is_blank(m);
	if (!c->job.has_text && c->job.attachment_url == NULL &&
	    m->view_id == 0)
		return refuse_empty(c);
	c->job.text = m->text;
	/* its code is there, and whether this person may have it */
	c->job.view_id = m->view_id;
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
	c->view.page = c->in->message.view_id;
	if (!submit_view(c, &c->view))
		return false;
	c->job.view_id = c->view.id;
	return true;
}
