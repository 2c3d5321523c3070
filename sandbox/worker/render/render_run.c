/* SPDX-License-Identifier: MIT */
#include "worker/render/render.h"
#include "worker/render/render_files.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/basics.h"
#include "base/config.h"
#include "base/text.h"
#include "base/utf8.h"
#include "worker/render/terminal.h"

#define NAME_MOST 32 /* code points of a name in a list */
#define LEFT_MOST 6
#define OTHERS_MOST 3	      /* files that are attached, beside images */
#define LOG_SHOWN (64 * 1024) /* bytes of a log that can matter */
#define OUTPUT_NAME "output.txt"
#define LOG_NAME "pip.log"
/* Time and memory up to which an answer does not name them. */
#define TIME_QUIET_US 1000000
#define MEMORY_QUIET (INT64_C(64) << 20)

static bool
line_begins(const char *line, const char *text)
{
	return strncmp(line, text, strlen(text)) == 0;
}

/* ---- code that Python does not understand ---- */

static const char *const slips[] = {
#define SLIP(kind, text) [SLIP_##kind] = (text),
#include "worker/render/texts.def"
};

/* Explain a syntax error by the likely mistake in the code. */
static void
explain_slip(struct buf *out, const char *line, const struct slip *slip)
{
	bool tabs = line_begins(line, "TabError");

	if (!tabs && !line_begins(line, "SyntaxError") &&
	    !line_begins(line, "IndentationError") &&
	    (slip->kind != SLIP_LANGUAGE || !line_begins(line, "NameError")))
		return;
	if (slip->kind != SLIP_NONE && slip->kind != SLIP_STRING)
		render_put(out, _(slips[slip->kind]),
		    slip->kind == SLIP_LANGUAGE ?
			slip->word :
			phrase_number(slip->line).text,
		    phrase_words("%04X", (unsigned)slip->point).text, NULL);
	/* a TabError can come from a file, too */
	if (tabs && slip->kind != SLIP_TABS)
		buf_adds(out, _(slips[SLIP_TABS]));
}

/* ---- limits of the sandbox ---- */

/* Has the text one of these, which '|' divides? */
static bool
line_has(const char *text, size_t len, const char *words)
{
	for (size_t n; *words != '\0'; words += n + (words[n] == '|')) {
		n = strcspn(words, "|");
		if (memmem(text, len, words, n) != NULL)
			return true;
	}
	return false;
}

static void
explain_error(const struct render_env *env, const char *line)
{
	struct buf *out = &env->message->tail;
	const struct cell_result *result = &env->run->result;
	const struct config *config = env->config;

	/* about the network: C libraries differ in their texts, not in the
	 * number */
	if (line_has(line, strlen(line),
		"[Errno -2]|[Errno -3]|[Errno -5]|[Errno 101]"
		"|NameResolutionError|Temporary failure in name resolution"
		"|Name or service not known"))
		render_add(out, NOTE_NETWORK, NULL);
	else if (strcmp(line, RENDER_NO_INPUT) == 0)
		render_add(out,
		    env->has_input ? NOTE_MORE_INPUT : NOTE_NO_INPUT, NULL);
	else if (line_begins(line, "MemoryError"))
		render_add(out, NOTE_LESS_MEMORY, NULL);
	else if (strstr(line, "[Errno 28]") == NULL || result->disk_full != 0)
		return;
	else if (result->used_bytes / 3 >= config->quota / 4)
		/* there may be room, but not for the last write */
		render_quota_used(env);
	else
		render_add(out, NOTE_TMP_FULL,
		    phrase_size(config->tmp_size).text,
		    phrase_size(config->quota).text, NULL);
}

/* Append a line end and a sentence about the limit that was reached, or about
 * the error that the output ends in; or nothing. */
static void
render_hint(const struct render_env *env)
{
	struct buf *out = &env->message->tail;
	const struct cell_result *result = &env->run->result;
	auto_free char *line = render_last_line(&env->collect->output);

	/* code in quotes is a string, which is no error */
	if (env->slip.kind == SLIP_STRING && result->reason == REASON_EXIT)
		buf_adds(out, _(slips[SLIP_STRING]));
	if (result->reason == REASON_EXIT && result->status != 0) {
		explain_slip(out, line, &env->slip);
		explain_error(env, line);
	} else if (result->reason == REASON_TIME) {
		/* on a busy host any run waits, but not most of its time */
		render_add(out,
		    result->cpu_us >= result->wall_us / 10 ? NOTE_SPLIT_WORK :
							     NOTE_WAITED,
		    NULL);
	} else if (result->reason == REASON_MEMORY) {
		render_add(out, NOTE_LESS_MEMORY, NULL);
	} else if (result->reason == REASON_OUTPUT) {
		render_add(out, NOTE_PRINT_LESS, NULL);
	}
}

/* ---- the end of a run ---- */

/* Append the reason of an end that is no success.  It is small after an exit,
 * as the output matters more. */
static void
add_reason(const struct render_env *env, int64_t memory, int64_t wall_ms)
{
	static const char *const ends[] = {
#define STOPPED(reason, text) [REASON_##reason] = (text),
#include "worker/render/texts.def"
	};
	struct buf *out = &env->message->tail;
	const struct cell_result *result = &env->run->result;
	const char *name = sigabbrev_np((int)result->signal);
	bool signal = result->reason == REASON_SIGNAL;
	struct phrase what = phrase_number(signal ? result->signal :
						    result->status);

	if (result->reason == REASON_TIME)
		what = phrase_thousandths(wall_ms);
	else if (result->reason == REASON_MEMORY)
		what = phrase_size(memory);
	else if (result->reason == REASON_OUTPUT)
		what = phrase_size(env->config->output_limit);
	if (signal && name == NULL)
		render_add(out, NOTE_SIGNAL, what.text, NULL);
	else
		render_put(out, _(ends[result->reason]),
		    signal ? name : what.text, NULL);
}

/* Append the reason of the end, and time and memory if they are large; nothing
 * if all is well. */
static void
add_run_result(const struct render_env *env, int64_t memory, int64_t wall_ms)
{
	struct buf *out = &env->message->tail;
	const struct cell_result *result = &env->run->result;
	const char *between = "-# ";

	if (!outcome_succeeded(env->run)) {
		add_reason(env, memory, wall_ms);
		between = " · ";
	}
	if (result->wall_us > TIME_QUIET_US) {
		buf_addf(out, "%s%s", between,
		    phrase_duration(result->wall_us).text);
		between = " · ";
	}
	if (result->max_rss > MEMORY_QUIET)
		buf_addf(out, "%s%s", between,
		    phrase_size(result->max_rss).text);
}

/* Append the version of Python to the line of the result. */
static void
add_version(const struct render_env *env)
{
	struct buf *tail = &env->message->tail;

	if (env->version != NULL)
		buf_addf(tail, "%sPython %s", tail->len > 0 ? " · " : "-# ",
		    env->version);
}

/* Has its owner ended the run, which did not succeed all the same? */
static bool
is_cancelled(const struct run_outcome *run)
{
	return run->cancelled && !outcome_succeeded(run);
}

/* Say how the run ended, and by which Python it was done.  False: no more is to
 * be said, as its owner has ended it, or it has no result. */
static bool
add_end(const struct render_env *env, int64_t memory, int64_t wall_ms)
{
	struct buf *tail = &env->message->tail;
	const struct run_outcome *run = env->run;
	bool cancelled = is_cancelled(run);

	if (cancelled && run->end == RUN_RESULT)
		buf_addf(tail, "%s · %s", _("-# cancelled"),
		    phrase_duration(run->result.wall_us).text);
	else if (cancelled)
		buf_adds(tail, _("-# cancelled"));
	else if (run->end != RUN_RESULT)
		render_add(tail,
		    run->end == RUN_STOPPED ? NOTE_INTERRUPTED : NOTE_BROKEN,
		    phrase_number(env->reference).text, NULL);
	else
		add_run_result(env, memory, wall_ms);
	if (cancelled || run->end == RUN_RESULT)
		add_version(env);
	return !cancelled && run->end == RUN_RESULT;
}

const char *
render_word(const struct run_outcome *outcome, char word[WORD_SIZE])
{
	const struct cell_result *result = &outcome->result;
	const char *kind = outcome_kind(outcome)->word;
	int64_t number = result->status;

	if (is_cancelled(outcome))
		return "cancelled";
	if (outcome->end == RUN_REFUSED) {
		(void)snprintf(word, WORD_SIZE, "%s %s", kind,
		    render_refusal_word(outcome->refusal));
		return word;
	}
	if (outcome->end != RUN_RESULT || strchr(kind, ' ') != NULL)
		return kind;
	if (result->reason == REASON_SIGNAL)
		number = result->signal;
	else if (result->reason == REASON_ERROR)
		number = (int64_t)result->error;
	(void)snprintf(word, WORD_SIZE, "%s %" PRId64, kind, number);
	return word;
}

void
render_session_ended(struct message *message, enum kept_end why)
{
	static const char *const reasons[] = {
#define ENDED(why, text) [KEPT_##why] = (text),
#include "worker/render/texts.def"
	};

	if (why < KEPT_RESTED || why > KEPT_PROCESSES)
		return;
	buf_addf(&message->tail,
	    _("\n-# The session had ended: %s. This run began a new one."),
	    _(reasons[why]));
}

/* ---- files ---- */

/* Attach a file.  Displayed pictures are only counted, as their names are
 * ours. */
static void
attach_one(const struct render_env *env, struct collected *file,
    size_t *pictures)
{
	struct message *m = env->message;

	if (message_attach(m, file->path, &file->data) == NULL) {
		collect_leave_out(env->collect, file, LEFT_OUT_TOTAL);
		return;
	}
	if (file->displayed) {
		++*pictures;
		return;
	}
	if (filename_is_image(file->path))
		message_describe(m, _("picture made by this run: "),
		    path_name(file->path));
	buf_addf(&m->without, "%s%s", m->without.len > 0 ? ", " : "",
	    phrase_name(file->path, NAME_MOST).text);
}

/* Count files that are no pictures in one line, if there are more than a
 * few. */
static void
fold_files(const struct render_env *env)
{
	struct collect *c = env->collect;
	/* the cell need not have named all of them */
	int64_t count = env->run->end == RUN_RESULT ?
	    env->run->result.total - (int64_t)c->images :
	    0;

	if (c->others <= OTHERS_MOST)
		return;
	collect_fold(c);
	if (count < (int64_t)c->others)
		count = (int64_t)c->others;
	buf_addf(&env->message->tail,
	    Q_("\n%s new or changed file in %s",
		"\n%s new or changed files in %s", count),
	    phrase_count(count).text, phrase_path(c->folder).text);
}

/* Images go first, where Discord shows them.  An empty file is only named.
 * most: files that may be attached. */
static void
attach_files(const struct render_env *env, size_t most)
{
	struct message *m = env->message;
	struct collect *c = env->collect;
	size_t pictures = 0;

	for (size_t i = 0; i < 2 * c->file_count; i++) {
		struct collected *file = &c->files[i % c->file_count];

		if (filename_is_image(file->path) != (i < c->file_count) ||
		    collect_is_folded(c, file))
			continue;
		if (m->file_count < most && file->size > 0)
			attach_one(env, file, &pictures);
		else
			collect_leave_out(c, file, LEFT_OUT_COUNT);
	}
	if (m->without.len > 0)
		buf_adds(&m->without,
		    _(" could not be attached: still in your sandbox, `/il "
		      "get` sends it."));
	if (pictures > 0)
		buf_addf(&m->without,
		    Q_("%s%zu picture could not be attached.",
			"%s%zu pictures could not be attached.",
			(int64_t)pictures),
		    m->without.len > 0 ? " " : "", pictures);
}

static void
name_one_left_out(struct buf *out, const struct collected *left,
    bool may_attach)
{
	/* LEFT_OUT_COUNT has no text for each file */
	static const char *const reasons[] = {
		[LEFT_OUT_SIZE] = N_(", too large"),
		[LEFT_OUT_TOTAL] = N_(", too much together"),
		[LEFT_OUT_UNREADABLE] = N_(", not readable"),
		[LEFT_OUT_TIME] = N_(", no time was left"),
		[LEFT_OUT_PATH] = N_(", path too long"),
		[LEFT_OUT_KIND] = N_(", not readable"),
		[LEFT_OUT_GONE] = N_(", not readable"),
	};

	message_add_name(out, left->path, NAME_MOST);
	if (left->size == 0)
		buf_adds(out, _(" (empty)"));
	else if (!may_attach)
		buf_addf(out, " (%s)", phrase_size(left->size).text);
	else if (left->why != LEFT_OUT_COUNT)
		buf_addf(out, " (%s%s)", phrase_size(left->size).text,
		    _(reasons[left->why]));
}

/* Name the first few files that are not in the message, with their reasons and
 * the limits that they did not meet. */
static void
name_left_out(const struct render_env *env)
{
	struct buf *tail = &env->message->tail;
	const struct collect *c = env->collect;
	bool why[LEFT_OUT_GONE + 1] = { false };
	size_t more = c->left_more;
	bool lost = false;

	for (size_t i = 0; i < c->left_count; i++) {
		const struct collected *left = &c->left[i];

		/* a file that is empty is none of too many */
		if (left->why != LEFT_OUT_COUNT ||
		    (left->size > 0 && !left->displayed))
			why[left->why] = env->may_attach;
		lost = lost || left->displayed;
		if (i >= LEFT_MOST) {
			more++;
			continue;
		}
		buf_adds(tail,
		    i > 0		? ", " :
			env->may_attach ? _("\nNot attached: ") :
					  _("\nMade or changed (I may not "
					    "attach files here): "));
		name_one_left_out(tail, left, env->may_attach);
	}
	if (more > 0)
		buf_addf(tail, _(" and %zu more"), more);
	if (why[LEFT_OUT_COUNT])
		render_add(tail, NOTE_MANY_FILES,
		    phrase_count(MESSAGE_FILES_MAX).text, NULL);
	/* a displayed picture is in no sandbox; both names are matplotlib's and
	 * Pillow's */
	if (lost)
		render_add(tail, NOTE_PICTURE_LOST, NULL);
	if (why[LEFT_OUT_SIZE])
		buf_addf(tail,
		    message_part(tail, _(". An attached file may have %s.")),
		    phrase_size(env->file_most).text);
	if (why[LEFT_OUT_TOTAL])
		buf_addf(tail,
		    message_part(tail,
			_(". All files of a message may have %s.")),
		    phrase_size(MESSAGE_BYTES_MAX).text);
}

/* ---- output ---- */

/* Attach the output, or as much of it as may be sent, as a terminal shows it.
 * It has no colours, since people open it in an editor.  Returns the file's
 * name; NULL: there is no room for it. */
static const char *
attach_printed(const struct render_env *env, const char *as, bool *all)
{
	struct message *m = env->message;
	const struct buf *printed = &env->collect->output;
	auto_buf struct buf shown = BUF_INIT(TERMINAL_SHOWN_MAX(printed->len));
	size_t most = printed->max;
	const char *name;

	(void)terminal_show(&shown, buf_str(printed), printed->len,
	    TERMINAL_PLAIN);
	/* the run's files have left room for its output */
	if ((int64_t)most > env->file_most)
		most = (size_t)env->file_most;
	*all = shown.len <= most;
	while (!*all && most > 0 && utf8_is_tail(shown.data[most]))
		most--;
	if (!*all)
		buf_cut(&shown, most);
	name = message_attach(m, as, &shown);
	if (name != NULL)
		buf_addf(&m->without, _("%s`%s` could not be attached."),
		    m->without.len > 0 ? " " : "", name);
	return name;
}

/* Say that the output is cut, and attach it. */
static void
attach_output(const struct render_env *env)
{
	struct buf *tail = &env->message->tail;
	bool all = false;
	const char *name = env->may_attach ?
	    attach_printed(env, OUTPUT_NAME, &all) :
	    NULL;

	if (name != NULL)
		render_add(tail, all ? NOTE_OUTPUT_WHOLE : NOTE_OUTPUT_MORE,
		    name, NULL);
	else
		render_add(tail,
		    env->may_attach ? NOTE_OUTPUT_CUT : NOTE_OUTPUT_ALONE,
		    NULL);
}

void
render_run(const struct render_env *env)
{
	struct message *m = env->message;
	struct collect *collect = env->collect;
	const struct config *config = env->config;
	bool cut;

	render_part_prompt(env->run, &collect->output);
	message_set_output(m, buf_str(&collect->output), collect->output.len,
	    MESSAGE_CUT_MIDDLE);
	if (add_end(env, config->memory, config->timeout_ms)) {
		if (env->run->result.disk_full != 0 &&
		    !outcome_succeeded(env->run))
			render_quota_used(env);
		render_hint(env);
	}
	if (env->run->read_only)
		render_add(&m->tail, NOTE_READ_ONLY, NULL);
	fold_files(env);
	/* one of ten places is kept for the output */
	cut = !message_fits(m);
	attach_files(env,
	    env->may_attach ? MESSAGE_FILES_MAX - (cut ? 1 : 0) : 0);
	name_left_out(env);
	/* files are enough of an answer */
	if (m->block.len == 0 && !collect->folded &&
	    m->file_count + collect->left_count == 0)
		buf_adds(&m->lead, _("No output."));
	/* the names of files may leave too little room for the output */
	if (cut || !message_fits(m))
		attach_output(env);
}

/* ---- pip ---- */

/* The end of a log is what counts. */
static void
set_log(struct message *m, const struct buf *log)
{
	size_t skip = log->len > LOG_SHOWN ? log->len - LOG_SHOWN : 0;

	message_set_output(m, buf_str(log) + skip, log->len - skip,
	    MESSAGE_CUT_START);
}

void
render_progress(struct message *message, enum job_kind kind, int64_t job_id,
    const struct buf *output, int64_t elapsed_ms)
{
	buf_addf(&message->lead, "%s … %" PRId64 " s",
	    kind == JOB_PIP ? _("Installing") : _("Running"),
	    elapsed_ms / 1000);
	set_log(message, output);
	message_add_button(message, ACTION_CANCEL, job_id, _("Cancel"), 4,
	    false);
}

/* Does pip's log have one of these texts?  Only a hint depends on it. */
static bool
log_has(const struct buf *log, const char *words)
{
	return line_has(buf_str(log), log->len, words);
}

/* Explain the log of a failed installation.  False: it cannot be explained. */
static bool
explain_pip(const struct render_env *env)
{
	const struct buf *log = &env->collect->output;
	struct buf *out = &env->message->tail;

	if (env->run->result.disk_full != 0 ||
	    log_has(log, "No space left on device|File too large"))
		render_packages_full(env);
	else if (log_has(log, "CERTIFICATE_VERIFY_FAILED"))
		render_add(out, NOTE_CERTIFICATE, NULL);
	else if (log_has(log,
		     "Failed to establish a new connection|Temporary failure "
		     "in name resolution|Connection refused|SSLError|Read "
		     "timed out"))
		render_add(out, NOTE_NO_INDEX, NULL);
	else
		return render_pip_missing(env);
	return true;
}

/* A success is one line.  A failure has its log as a file, and shows its end if
 * there is no better explanation. */
void
render_pip(const struct render_env *env, char *const *words)
{
	struct message *m = env->message;
	auto_buf struct buf names = BUF_INIT(MESSAGE_PART_MAX);
	bool good = outcome_succeeded(env->run);
	bool explained;
	bool all;

	for (size_t i = 0; i <= LEFT_MOST && words[i] != NULL; i++)
		if (i == LEFT_MOST)
			buf_adds(&names, " …");
		else
			buf_addf(&names, "%s%s", i > 0 ? ", " : "",
			    phrase_name(words[i], NAME_MOST).text);
	buf_addf(&m->lead, good ? _("Installed %s.") : _("Not installed: %s."),
	    buf_str(&names));
	if (good) {
		add_version(env);
		return;
	}
	explained = add_end(env, env->config->pip_memory,
			env->config->pip_timeout_ms) &&
	    explain_pip(env);
	if (is_cancelled(env->run))
		return;
	if (!explained)
		set_log(m, &env->collect->output);
	if (env->may_attach && env->collect->output.len > 0)
		(void)attach_printed(env, LOG_NAME, &all);
}
