/* SPDX-License-Identifier: MIT */
#include "worker/render/render_files.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/config.h"
#include "base/text.h"

#define OBJECTION_MOST 80 /* code points */

/* Whole answers. */
static const struct {
	const char *outcome;
	const char *text;
} says[] = {
#define SAY(id, outcome, text) [SAY_##id] = { outcome, text },
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

const char *
render_say(struct message *message, enum say id, const char *argument)
{
	const char *text = _(says[id].text);
	const char *place = strstr(text, "{}");

	if (place == NULL)
		buf_adds(&message->lead, text);
	else
		buf_addf(&message->lead, "%.*s%s%s", (int)(place - text), text,
		    argument, place + strlen("{}"));
	return says[id].outcome;
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
	buf_addf(&message->lead,
	    _("Sandbox error, reference %" PRId64
	      ". This is our fault, not yours; trying again may help."),
	    reference);
}

static void
add_no_space(const struct render_env *env)
{
	const struct config *config = env->config;

	buf_addf(&env->message->lead,
	    _("There is no room for that: your sandbox may hold %s in %s. `/il "
	      "rm` makes room."),
	    phrase_size(config->quota).text, phrase_files(config->files).text);
	render_space(env);
}

/* Most errors are about a path, and their texts follow its name. */
static void
render_cell_error(const struct render_env *env)
{
	const struct cell_result *result = &env->run->result;
	struct buf *lead = &env->message->lead;

	if (result->error == ERROR_NOT_INSIDE)
		render_path(env->message, PATH_OUTSIDE);
	else if (result->error == ERROR_NO_SPACE)
		add_no_space(env);
	else if (result->error == ERROR_READ_ONLY)
		buf_adds(lead,
		    path_in_packages(env->path) != NULL ?
			_("Installed packages cannot be changed that way: `/il "
			  "pip` installs them, `/il rm` removes them.") :
			_("Nothing can be written there at the moment."));
	else if (errors[result->error] == NULL)
		render_error(env->message, env->reference);
	else
		buf_addf(lead, "%s%s", phrase_path(env->path).text,
		    _(errors[result->error]));
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
render_blocked(struct message *message, enum rule_subject who,
    const char *reason)
{
	buf_adds(&message->lead,
	    who == RULE_USER ?
		_("The operator of this app does not let you use it "
		  "any more.") :
		_("The operator of this app does not let it be used in this "
		  "server."));
	if (*reason != '\0')
		rule_add_text(&message->lead, reason);
}

/* Text for an end without a result; NULL: a fault of ours.  *ours: it has a
 * reference, as the operator's log says more. */
static const char *
text_of_end(const struct run_outcome *run, bool *ours)
{
	*ours = run->end == RUN_STOPPED ||
	    (run->end == RUN_REFUSED && refusals[run->refusal].whose == OURS);
	if (run->end == RUN_REFUSED)
		return refusals[run->refusal].text;
	if (run->end == RUN_TOO_LATE)
		return N_("Your command waited too long for its turn and was "
			  "not run. Please try again.");
	if (run->end == RUN_CANCELLED)
		return N_("Cancelled before it began.");
	return run->end == RUN_STOPPED ?
	    N_("Interrupted: Inline is being restarted. Try again in a "
	       "moment.") :
	    NULL;
}

void
render_not_done(const struct render_env *env)
{
	struct buf *lead = &env->message->lead;
	bool ours;
	const char *text = text_of_end(env->run, &ours);

	if (env->run->end == RUN_RESULT &&
	    env->run->result.reason == REASON_ERROR)
		render_cell_error(env);
	else if (text == NULL)
		/* limits are far above the needs of an operation on files */
		render_error(env->message, env->reference);
	else
		buf_adds(lead, _(text));
	if (text != NULL && ours)
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
	buf_adds(&message->lead,
	    _("Discord refused this answer as a message. Here it is as a "
	      "file."));
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
	buf_addf(&message->lead,
	    _(" (code %" PRId64 "). Your command was carried out, though. "
	      "(reference %" PRId64 ")"),
	    reply->code, reference);
}

/* The hint says how to see whether an interrupted command took effect. */
void
render_lost(struct message *message, enum job_kind kind, int64_t reference)
{
	const char *hint = _("It is not run again automatically; run it again "
			     "when you are ready.");

	if (kind == JOB_PIP)
		hint = _("Install it again to be sure that it is whole.");
	else if (kind == JOB_WRITE || kind == JOB_PUT || kind == JOB_RM)
		hint = _("`/il look` shows whether it was done.");
	else if (kind == JOB_DELETE)
		hint = _("Press the button of a new `/il delete` to be sure.");
	buf_addf(&message->lead,
	    _("This was interrupted: Inline was restarted while it ran. %s "
	      "(reference %" PRId64 ")"),
	    hint, reference);
}

void
render_no_version(struct message *message, const char *version,
    const char *list)
{
	auto_buf struct buf names = BUF_INIT(4096);
	struct image_entry entry;

	for (size_t pos = 0; images_next(list, &pos, &entry);)
		buf_addf(&names, "%s`%s`", names.len > 0 ? ", " : "",
		    entry.name);
	buf_addf(&message->lead,
	    _("Python %s is not available here. Choose from: %s."),
	    phrase_name(version, COMMAND_VERSION_MAX).text, buf_str(&names));
}

void
render_path(struct message *message, enum path_result result)
{
	if (result == PATH_TOO_LONG)
		buf_addf(&message->lead,
		    _("That path is not inside your sandbox: a path may have "
		      "%d bytes, a name %d."),
		    LIMIT_PATH, LIMIT_NAME);
	else
		buf_adds(&message->lead,
		    _("That is not inside your sandbox. Paths are relative to "
		      "the current directory, `~` is the top."));
}

void
render_bad_requirements(struct message *message,
    enum requirements_result result, const struct requirements *words)
{
	struct buf *lead = &message->lead;

	if (result == REQUIREMENTS_NONE)
		buf_adds(lead,
		    _("Name at least one package, as in `/il pip requests`."));
	else if (result == REQUIREMENTS_QUOTE)
		buf_adds(lead, _("A quote in that is not closed."));
	else if (result == REQUIREMENTS_TOO_MANY)
		buf_addf(lead, _("At most %d packages at one time."),
		    REQUIREMENTS_MAX);
	else
		buf_addf(lead,
		    _("%s is not a requirement. Give names, with versions if "
		      "you like: `requests`, `numpy>=1.26,<2`. Options, paths, "
		      "files and URLs are not taken."),
		    phrase_name(words->bad, 60).text);
}

/* ---- code that was not run ---- */

/* "`js`, `c`, `go`": an "and" would have to be translated by itself; heap. */
static char *
list_languages(const struct slip *others, size_t count)
{
	auto_buf struct buf list = BUF_INIT(MESSAGE_PART_MAX);

	for (size_t i = 0; i < count; i++)
		buf_addf(&list, "%s`%s`", i == 0 ? "" : ", ", others[i].word);
	return buf_steal(&list, NULL);
}

void
render_no_code(struct message *message, const struct slip *others, size_t count)
{
	auto_free char *languages = list_languages(others, count);

	if (count > 0)
		buf_addf(&message->lead,
		    _("The code in that message is marked %s, and only Python "
		      "runs here."),
		    languages);
	else
		buf_adds(&message->lead,
		    _("I found no code in that message. Put it "
		      "between three back-ticks, or attach a "
		      "`.py` file or a notebook."));
}

void
render_left_out(struct message *message, const struct slip *others,
    size_t count)
{
	auto_free char *languages = list_languages(others, count);

	buf_addf(&message->tail,
	    _("\n-# Left out, as only Python runs here: %s"), languages);
}

void
render_not_python(struct message *message, const char *name,
    const struct slip *others, size_t count)
{
	auto_free char *languages = list_languages(others, count);
	struct phrase as = phrase_name(name, SCRIPT_SHOWN);

	if (count > 0)
		buf_addf(&message->lead,
		    _("The code in %s is marked %s, but only Python runs "
		      "here."),
		    as.text, languages);
	else
		buf_addf(&message->lead,
		    _("%s does not look like Python, so it was not run. Is it "
		      "Python? Then give it a name that ends in `.py`."),
		    as.text);
}

void
render_not_notebook(struct message *message, const char *name,
    enum source_fault fault, int line)
{
	struct phrase as = phrase_name(name, SCRIPT_SHOWN);
	struct buf *lead = &message->lead;

	if (fault == SOURCE_NOT_JSON)
		buf_addf(lead,
		    _("%s is a broken notebook: its JSON has an error in line "
		      "%d. Save it in Jupyter once more, then upload it "
		      "again."),
		    as.text, line);
	else if (fault == SOURCE_NO_CELLS)
		buf_addf(lead,
		    _("%s is no notebook: it has no list of cells. Save it in "
		      "Jupyter once more, then upload it again."),
		    as.text);
	else if (fault == SOURCE_NO_CODE)
		buf_addf(lead,
		    _("%s is a notebook without a code cell, so nothing was "
		      "run."),
		    as.text);
	else if (fault == SOURCE_TOO_DEEP)
		buf_addf(lead,
		    _("%s has more parts than I can read. Clear its outputs in "
		      "Jupyter and save it, then upload it again."),
		    as.text);
}
