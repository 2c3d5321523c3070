/* SPDX-License-Identifier: MIT */
#include "worker/render/render_files.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/basics.h"
#include "base/config.h"
#include "base/text.h"

#define OBJECTION_MOST 80 /* code points */

/* Whole answers, and sentences without a word. */
static const struct {
	const char *outcome;
	const char *text;
} says[] = {
#define SAY(id, outcome, text) [SAY_##id] = { outcome, text },
#define NOTE(id, text) [NOTE_##id] = { NULL, text },
#include "worker/render/texts.def"
};

/* Reasons why there was no cell. */
static const struct {
	const char *word;
	enum { OURS, THEIRS } whose;
	const char *text; /* NULL: only a fault of ours can be the reason */
} refusals[] = {
#define REFUSED(refusal, word, whose, text) \
	[REFUSAL_##refusal] = { word, whose, text },
#include "worker/render/texts.def"
};

/* Errors of an operation on a path; NULL: a fault of ours, or another text. */
static const char *const errors[ERROR_READ_ONLY + 1] = {
#define FAILED(error, text) [ERROR_##error] = (text),
#include "worker/render/texts.def"
};

static void
put_list(struct buf *out, const char *text, va_list arguments)
{
	const char *argument;
	const char *place;

	while ((place = strstr(text, "{}")) != NULL &&
	    (argument = va_arg(arguments, const char *)) != NULL) {
		buf_add(out, text, (size_t)(place - text));
		buf_adds(out, argument);
		text = place + strlen("{}");
	}
	buf_adds(out, text);
}

void
render_put(struct buf *out, const char *text, ...)
{
	va_list arguments;

	va_start(arguments, text);
	put_list(out, text, arguments);
	va_end(arguments);
}

const char *
render_add_list(struct buf *out, enum say id, va_list arguments)
{
	put_list(out, _(says[id].text), arguments);
	return says[id].outcome;
}

void
render_add(struct buf *out, enum say id, ...)
{
	va_list arguments;

	va_start(arguments, id);
	(void)render_add_list(out, id, arguments);
	va_end(arguments);
}

const char *
render_refusal_word(enum refusal refusal)
{
	return refusals[refusal].word;
}

/* People see no more of a fault of ours; the log has the rest under this
 * number. */
void
render_error(struct message *message, int64_t reference)
{
	render_add(&message->lead, NOTE_OUR_FAULT,
	    phrase_number(reference).text, NULL);
}

/* Most errors are about a path, and their texts follow its name. */
static void
render_cell_error(const struct render_env *env)
{
	const struct cell_result *result = &env->run->result;
	struct buf *lead = &env->message->lead;

	if (result->error == ERROR_NOT_INSIDE)
		render_add(lead, SAY_PATH_OUTSIDE, NULL);
	else if (result->error == ERROR_NO_SPACE)
		render_add(lead, NOTE_NO_SPACE,
		    phrase_size(env->config->quota).text,
		    phrase_files(env->config->files).text, NULL);
	else if (result->error == ERROR_READ_ONLY)
		render_add(lead,
		    path_in_packages(env->path) != NULL ? NOTE_PACKAGES_STAY :
							  NOTE_NOT_WRITTEN,
		    NULL);
	else if (errors[result->error] == NULL)
		render_error(env->message, env->reference);
	else
		buf_addf(lead, "%s%s", phrase_path(env->path).text,
		    _(errors[result->error]));
	if (result->error == ERROR_NO_SPACE)
		render_space(env);
	/* `/il look` has just failed itself */
	if (result->error == ERROR_NOT_FOUND && env->kind != JOB_LOOK)
		buf_adds(lead, _(" `/il look` lists the files."));
	if (result->error != ERROR_TOO_LARGE)
		return;
	if (result->total > 0)
		buf_addf(lead, " (%s)", phrase_size(result->total).text);
	buf_addf(lead, _(": here a file may have %s."),
	    phrase_size(env->kind == JOB_PY ? LIMIT_PART : env->file_most)
		.text);
}

void
render_not_done(const struct render_env *env)
{
	const struct run_outcome *run = env->run;
	struct buf *lead = &env->message->lead;
	bool refused = run->end == RUN_REFUSED;

	if (run->end == RUN_RESULT && run->result.reason == REASON_ERROR)
		render_cell_error(env);
	else if (run->end == RUN_TOO_LATE)
		render_add(lead, NOTE_TOO_LATE, NULL);
	else if (run->end == RUN_CANCELLED)
		render_add(lead, NOTE_CANCELLED, NULL);
	else if (run->end == RUN_STOPPED)
		render_add(lead, NOTE_RESTARTING, NULL);
	else if (refused && refusals[run->refusal].text != NULL)
		buf_adds(lead, _(refusals[run->refusal].text));
	else
		/* limits are far above the needs of an operation on files */
		render_error(env->message, env->reference);
	if (run->end == RUN_STOPPED ||
	    (refused && refusals[run->refusal].text != NULL &&
		refusals[run->refusal].whose == OURS))
		buf_addf(lead, _(" (reference %" PRId64 ")"), env->reference);
}

void
render_as_file(struct message *message, const struct message *refused,
    const char *body, int64_t most)
{
	auto_buf struct buf text = BUF_INIT(MESSAGE_BYTES_MAX);
	json_auto_t *root = NULL;
	const char *name = NULL;

	if (refused != NULL) {
		message_add_text(&text, refused);
	} else {
		root = json_loads(body, 0, NULL);
		name = json_string_value(json_object_get(root, "content"));
		buf_adds(&text, name != NULL ? name : "");
	}
	if ((int64_t)text.len > most)
		buf_cut(&text, (size_t)most);
	render_add(&message->lead, NOTE_AS_FILE, NULL);
	(void)message_attach(message, "output.txt", &text);
}

void
render_not_accepted(struct message *message, const struct rest_reply *reply,
    int64_t reference)
{
	buf_adds(&message->lead, _("Discord did not accept the answer"));
	if (reply->message[0] != '\0')
		buf_addf(&message->lead, ": %s",
		    phrase_name(reply->message, OBJECTION_MOST).text);
	render_add(&message->lead, NOTE_CARRIED_OUT,
	    phrase_number(reply->code).text, phrase_number(reference).text,
	    NULL);
}

/* The hint says how to see whether an interrupted command took effect. */
void
render_lost(struct message *message, enum job_kind kind, int64_t reference)
{
	enum say hint = kind == JOB_PIP ? NOTE_INSTALL_AGAIN :
	    kind == JOB_WRITE || kind == JOB_PUT || kind == JOB_RM ?
					  NOTE_LOOK_SHOWS :
	    kind == JOB_DELETE ? NOTE_DELETE_AGAIN :
				 NOTE_RUN_AGAIN;

	render_add(&message->lead, NOTE_LOST, _(says[hint].text),
	    phrase_number(reference).text, NULL);
}

/* ---- code that was not run ---- */

/* An "and" would have to be translated by itself. */
char *
render_languages(const struct slip *others, size_t count)
{
	auto_buf struct buf list = BUF_INIT(MESSAGE_PART_MAX);

	for (size_t i = 0; i < count; i++)
		buf_addf(&list, "%s`%s`", i == 0 ? "" : ", ", others[i].word);
	return buf_steal(&list, NULL);
}

void
render_left_out(struct message *message, const struct slip *others,
    size_t count)
{
	auto_free char *languages = render_languages(others, count);

	buf_addf(&message->tail,
	    _("\n-# Left out, as only Python runs here: %s"), languages);
}
