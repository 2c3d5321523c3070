#include "render.h"

#include <inttypes.h>

#include "../../base/config.h"
#include "../../base/text.h"
#include "../../store/sandbox.h"

static void
add_reference(struct message *m, int64_t reference)
{
	message_leadf(m, " (reference %" PRId64 ")", reference);
}

void
render_error(struct message *message, int64_t reference)
{
	message_leadf(message,
	    "Sandbox error, reference %" PRId64 ". This "
	    "is our fault, not yours; trying again may help.",
	    reference);
}

void
render_refusal(struct message *message, enum refusal refusal, int64_t reference)
{
	const char *text = NULL;
	bool ours = true;

	switch (refusal) {
	case REFUSAL_BUSY:
		text = "Your sandbox is still busy with something else. Try "
		       "again in a moment.";
		ours = false;
		break;
	case REFUSAL_FULL:
	case REFUSAL_TIME:
		text = "Too much is running at the moment, no sandbox became "
		       "free. Nothing was run; try again in a minute.";
		ours = false;
		break;
	case REFUSAL_ENGINE:
		text = "Docker does not answer at the moment, so nothing was "
		       "run. Try again in a few minutes.";
		break;
	case REFUSAL_IMAGE:
		text = "The image that sandboxes are started from is missing, "
		       "so nothing was run. Try again in a few minutes.";
		break;
	case REFUSAL_NO_WORKSPACE:
		text = "The files of your sandbox are not where they should "
		       "be. `/il create` makes it anew.";
		break;
	case REFUSAL_DISK:
		text = "The server's disk is nearly full, so nothing was "
		       "written or installed. `/il look`, `/il get` and "
		       "`/il rm` work; try again later.";
		break;
	case REFUSAL_SANDBOXES:
		text = "There are as many sandboxes here as there may be, so "
		       "none was made. Try again when others have expired.";
		break;
	case REFUSAL_START:
		text = "Your sandbox could not be started, so nothing was "
		       "run. Try again in a minute.";
		break;
	case REFUSAL_UNREACHABLE:
		text = "The sandboxes are being restarted, so nothing was "
		       "run. Try again in a moment.";
		break;
	case REFUSAL_NONE:
	case REFUSAL_INPUT:
	case REFUSAL_INTERPRETER:
		break;
	}
	if (text == NULL) {
		render_error(message, reference);
		return;
	}
	message_leadf(message, "%s", text);
	if (ours)
		add_reference(message, reference);
}

static void
name_path(struct message *m, const char *path)
{
	if (path[0] == '\0')
		buf_adds(&m->lead, "Your sandbox");
	else
		render_add_path(&m->lead, path);
}

static void
fail_large(struct message *m, const struct cell_result *result,
    const struct render_env *env)
{
	buf_adds(&m->lead, " is too large");
	if (result->total > 0) {
		buf_adds(&m->lead, " (");
		text_add_size(&m->lead, result->total);
		buf_addc(&m->lead, ')');
	}
	buf_adds(&m->lead, ": here a file may have ");
	text_add_size(&m->lead, env->file_most);
	buf_addc(&m->lead, '.');
}

static void
render_cell_error(struct message *m, const struct cell_result *result,
    const char *path, const struct render_env *env)
{
	struct buf *lead = &m->lead;

	switch (result->error) {
	case ERROR_NOT_INSIDE:
		render_path(m, PATH_OUTSIDE);
		return;
	case ERROR_NO_SPACE:
		buf_adds(lead,
		    "There is no room for that: your sandbox may "
		    "hold ");
		text_add_size(lead, env->config->quota);
		buf_adds(lead, " in ");
		render_add_count(lead, env->config->files, "file");
		buf_adds(lead, ". `/il rm` makes room.");
		return;
	case ERROR_READ_ONLY:
		buf_adds(lead,
		    path_in_packages(path) != NULL ?
			"What is installed cannot be changed that way: "
			"`/il pip` installs, `/il rm` removes." :
			"Nothing can be written there at the moment.");
		return;
	case ERROR_REQUEST:
	case ERROR_FAILED:
		render_error(m, env->reference);
		return;
	case ERROR_NOT_FOUND:
	case ERROR_IS_DIRECTORY:
	case ERROR_NOT_DIRECTORY:
	case ERROR_TOO_LARGE:
	case ERROR_NOT_EMPTY:
	case ERROR_NOT_REGULAR:
	case ERROR_PERMISSION:
		break;
	}
	name_path(m, path);
	if (result->error == ERROR_NOT_FOUND)
		buf_adds(lead, " does not exist. `/il look` shows what does.");
	else if (result->error == ERROR_IS_DIRECTORY)
		buf_adds(lead, " is a directory.");
	else if (result->error == ERROR_NOT_DIRECTORY)
		buf_adds(lead, " is not a directory, or a part of it is not.");
	else if (result->error == ERROR_TOO_LARGE)
		fail_large(m, result, env);
	else if (result->error == ERROR_NOT_EMPTY)
		buf_adds(lead,
		    " is a directory: `recursive:True` removes it "
		    "with everything in it.");
	else if (result->error == ERROR_NOT_REGULAR)
		buf_adds(lead, " is neither a file nor a directory.");
	else
		buf_adds(lead, " does not allow that.");
}

/* An operation on files that the limits ended is our fault: they are far above
 * what it needs. */
static void
render_op_result(struct message *m, const struct cell_result *result,
    const char *path, const struct render_env *env)
{
	if (result->reason == REASON_ERROR)
		render_cell_error(m, result, path, env);
	else
		render_error(m, env->reference);
}

void
render_not_done(struct message *message, const struct run_outcome *outcome,
    const char *path, const struct render_env *env)
{
	switch (outcome->end) {
	case RUN_RESULT:
		render_op_result(message, &outcome->result, path, env);
		break;
	case RUN_REFUSED:
		render_refusal(message, outcome->refusal, env->reference);
		break;
	case RUN_TOO_LATE:
		render_too_late(message);
		break;
	case RUN_STOPPED:
		message_leadf(message,
		    "Interrupted: Inline is being "
		    "restarted. Try again in a moment.");
		add_reference(message, env->reference);
		break;
	case RUN_OVERDUE:
	case RUN_BROKEN:
	case RUN_TAKEN:
		render_error(message, env->reference);
		break;
	}
}

void
render_lost(struct message *message, enum job_kind kind, int64_t reference)
{
	const char *hint = "It is not run again by itself; do so when you are "
			   "ready.";

	if (kind == JOB_PIP)
		hint = "Install it again to be sure that it is whole.";
	else if (kind == JOB_WRITE || kind == JOB_PUT || kind == JOB_RM)
		hint = "`/il look` shows whether it was done.";
	else if (kind == JOB_DELETE)
		hint = "Press the button of a new `/il delete` to be sure.";
	message_leadf(message,
	    "This was interrupted: Inline was restarted "
	    "while it ran. %s (reference %" PRId64 ")",
	    hint, reference);
}

void
render_too_late(struct message *message)
{
	message_leadf(message,
	    "This had to wait too long for its turn and "
	    "was not run. Please try again.");
}

void
render_unknown(struct message *message)
{
	message_leadf(message,
	    "Inline is being updated, and that command is too new for the part "
	    "that took it. It was not run. Try again in a moment.");
}

void
render_no_sandbox(struct message *message)
{
	message_leadf(message,
	    "You have no sandbox yet. `/il create` makes "
	    "one.");
}

void
render_expired(struct message *message, const struct sandbox *sandbox)
{
	message_leadf(message,
	    "Your sandbox expired <t:%" PRId64 ":R> and its "
	    "files are gone. `/il create` makes a new one.",
	    sandbox->expires_at);
}

void
render_path(struct message *message, enum path_result result)
{
	if (result == PATH_TOO_LONG)
		message_leadf(message,
		    "That path is not inside your sandbox: "
		    "a path may have %d bytes, a name %d.",
		    LIMIT_PATH, LIMIT_NAME);
	else
		message_leadf(message,
		    "That is not inside your sandbox. Paths "
		    "are relative to the current directory, `~` is the top.");
}

void
render_not_editable(struct message *message, const char *path)
{
	render_add_path(&message->lead, path);
	message_leadf(message,
	    " cannot be edited here: it is not text, or has "
	    "more than 4,000 characters. `/il get` sends it, `/il put` takes "
	    "it back.");
}

void
render_too_large(struct message *message, int64_t size, int64_t most)
{
	message_leadf(message, "That file is too large (");
	text_add_size(&message->lead, size);
	message_leadf(message, "): it may have ");
	text_add_size(&message->lead, most);
	message_leadf(message, ".");
}

void
render_not_fetched(struct message *message, bool gone)
{
	message_leadf(message,
	    gone ?
		"Discord does not have that file any more. Upload it again." :
		"The file could not be fetched from Discord. Try again in a "
		"moment.");
}

void
render_bad_requirements(struct message *message,
    enum requirements_result result, const char *word)
{
	switch (result) {
	case REQUIREMENTS_OK:
	case REQUIREMENTS_NONE:
		message_leadf(message,
		    "Name at least one package, as in "
		    "`/il pip requests`.");
		break;
	case REQUIREMENTS_QUOTE:
		message_leadf(message, "A quote in that is not closed.");
		break;
	case REQUIREMENTS_TOO_MANY:
		message_leadf(message, "At most %d packages at one time.",
		    REQUIREMENTS_MAX);
		break;
	case REQUIREMENTS_BAD:
		message_add_name(&message->lead, word, 60);
		message_leadf(message,
		    " is not a requirement. Give names, "
		    "with versions if you like: `requests`, `numpy>=1.26,<2`. "
		    "Options, paths, files and URLs are not "
		    "taken.");
		break;
	}
}
