#include "render.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/config.h"
#include "../../base/text.h"

#define NAME_MOST 32 /* code points of a name in a list */
#define RENAMED_MOST 4
#define LEFT_MOST 6
#define LOG_SHOWN (64 * 1024) /* bytes of a log that can matter */
#define OUTPUT_NAME "output.txt"

/* ---- pieces ---- */

void
render_add_duration(struct buf *out, int64_t us)
{
	if (us < 0)
		us = 0;
	if (us < 1000)
		buf_addf(out, "%.1f ms", (double)us / 1e3);
	else if (us < 1000000)
		buf_addf(out, "%" PRId64 " ms", us / 1000);
	else if (us < 60000000)
		buf_addf(out, "%.2f s", (double)us / 1e6);
	else
		buf_addf(out, "%" PRId64 " min %" PRId64 " s", us / 60000000,
		    us / 1000000 % 60);
}

static void
add_signal(struct buf *out, int number)
{
	const char *name = sigabbrev_np(number);

	if (name != NULL)
		buf_addf(out, "killed by SIG%s", name);
	else
		buf_addf(out, "killed by signal %d", number);
}

static void
add_limit(struct buf *out, const char *what, int64_t bytes)
{
	buf_addf(out, "stopped at the %s limit of ", what);
	text_add_size(out, bytes);
}

/* Why it ended, in a few words. */
static void
add_reason(struct buf *out, const struct cell_result *result,
    const struct config *config, int64_t wall_ms)
{
	switch (result->reason) {
	case REASON_EXIT:
		buf_addf(out, "exit %d", result->status);
		break;
	case REASON_SIGNAL:
		add_signal(out, result->signal);
		break;
	case REASON_TIME:
		buf_addf(out, "stopped at the time limit of %g s",
		    (double)wall_ms / 1e3);
		break;
	case REASON_MEMORY:
		add_limit(out, "memory", config->memory);
		break;
	case REASON_OUTPUT:
		add_limit(out, "output", config->output_limit);
		break;
	case REASON_ERROR:
		buf_adds(out, "not run");
		break;
	}
}

static void
add_measures(struct buf *out, const struct cell_result *result)
{
	buf_adds(out, " · ");
	render_add_duration(out, result->wall_us);
	if (result->max_rss > 0) {
		buf_adds(out, " · ");
		text_add_size(out, result->max_rss);
	}
}

/* How it went, small when it simply ended: the output is what counts. */
static void
add_result(struct buf *out, const struct cell_result *result,
    const struct config *config, int64_t wall_ms)
{
	if (result->reason == REASON_EXIT)
		buf_adds(out, "-# ");
	add_reason(out, result, config, wall_ms);
	add_measures(out, result);
}

static bool
has_failed(const struct cell_result *result)
{
	return result->reason != REASON_EXIT || result->status != 0;
}

/* ---- the end of a run ---- */

static void
add_end(struct message *m, const struct run_outcome *outcome,
    const struct render_env *env)
{
	struct buf *tail = &m->tail;

	switch (outcome->end) {
	case RUN_RESULT:
		add_result(tail, &outcome->result, env->config,
		    env->config->timeout_ms);
		if (outcome->result.disk_full && has_failed(&outcome->result)) {
			buf_adds(tail, "\nThe disk quota is used up (");
			text_add_size(tail, env->config->quota);
			buf_adds(tail, ", ");
			render_add_count(tail, env->config->files, "file");
			buf_adds(tail, "): `/il rm` makes room.");
		}
		break;
	case RUN_STOPPED:
		buf_addf(tail,
		    "Interrupted: Inline is being restarted. "
		    "Run it again in a moment. (reference %" PRId64 ")",
		    env->reference);
		break;
	case RUN_OVERDUE:
	case RUN_BROKEN:
		buf_addf(tail,
		    "The sandbox failed while this ran, so it was "
		    "ended. Sandbox error, reference %" PRId64 ".",
		    env->reference);
		break;
	case RUN_REFUSED:
	case RUN_TOO_LATE:
	case RUN_TAKEN:
		break; /* render_not_done */
	}
}

/* ---- its files ---- */

static bool
is_renamed(const char *path, const char *name)
{
	return strcmp(path_name(path), name) != 0;
}

static void
attach_one(struct message *m, struct collect *c, struct collected_file *file,
    size_t *renamed)
{
	size_t len = 0;
	const char *name = NULL;
	char *data = buf_steal(&file->data, &len);

	if (!message_attach(m, file->path, data, len, &name)) {
		collect_leave_out(c, file->path, file->size, LEFT_OUT_TOTAL);
		return;
	}
	buf_adds(&m->without, m->without.len > 0 ? ", " : "");
	message_add_name(&m->without, file->path, NAME_MOST);
	if (!is_renamed(file->path, name) || ++*renamed > RENAMED_MOST)
		return;
	buf_adds(&m->tail,
	    *renamed == 1 ? "\nAttached under another name: " : ", ");
	message_add_name(&m->tail, path_name(file->path), NAME_MOST);
	buf_addf(&m->tail, " as `%s`", name);
}

/* Images go first: that is where Discord shows them.  One place is kept for
 * the output when it must go as a file.  An empty file is only named. */
static void
attach_files(struct message *m, struct collect *c, size_t most)
{
	size_t renamed = 0;
	size_t before;

	for (int images = 1; images >= 0; images--) {
		for (size_t i = 0; i < c->file_count; i++) {
			struct collected_file *file = &c->files[i];

			if (filename_is_image(file->path) != (images == 1))
				continue;
			before = m->file_count;
			if (before < most && file->size > 0)
				attach_one(m, c, file, &renamed);
			else
				collect_leave_out(c, file->path, file->size,
				    LEFT_OUT_COUNT);
		}
	}
	if (renamed > RENAMED_MOST)
		buf_addf(&m->tail, " and %zu more", renamed - RENAMED_MOST);
	if (m->without.len > 0)
		buf_adds(&m->without,
		    " could not be attached: still in your "
		    "sandbox, `/il get` sends it.");
}

/* That there are too many need not be said of each. */
static const char *
left_out_reason(enum left_out why)
{
	switch (why) {
	case LEFT_OUT_COUNT:
		return NULL;
	case LEFT_OUT_SIZE:
		return "too large";
	case LEFT_OUT_TOTAL:
		return "too much together";
	case LEFT_OUT_UNREADABLE:
		return "not readable";
	case LEFT_OUT_TIME:
		return "no time was left";
	case LEFT_OUT_PATH:
		return "path too long";
	}
	return NULL;
}

static void
name_one_left_out(struct buf *out, const struct collected_left *left,
    bool may_attach)
{
	const char *reason = may_attach ? left_out_reason(left->why) : NULL;

	message_add_name(out, left->path, NAME_MOST);
	if (left->size == 0) {
		buf_adds(out, " (empty)");
	} else if (reason != NULL || !may_attach) {
		buf_adds(out, " (");
		text_add_size(out, left->size);
		buf_adds(out, reason != NULL ? ", " : "");
		buf_adds(out, reason != NULL ? reason : "");
		buf_addc(out, ')');
	}
}

static void
name_left_out(struct message *m, const struct collect *c, bool may_attach)
{
	size_t more = c->left_more;
	bool many = false;

	if (c->left_count == 0)
		return;
	buf_adds(&m->tail,
	    may_attach ? "\nNot attached: " :
			 "\nMade or changed (I may not attach files here): ");
	for (size_t i = 0; i < c->left_count; i++) {
		const struct collected_left *left = &c->left[i];

		many = many || (left->why == LEFT_OUT_COUNT && left->size > 0);
		if (i >= LEFT_MOST) {
			more++;
			continue;
		}
		buf_adds(&m->tail, i > 0 ? ", " : "");
		name_one_left_out(&m->tail, left, may_attach);
	}
	if (more > 0)
		buf_addf(&m->tail, " and %zu more", more);
	if (many && may_attach)
		buf_addf(&m->tail,
		    ". A message takes %d files; `/il get` "
		    "sends any other.",
		    MESSAGE_FILES_MAX);
}

/* Nothing is attached where nothing may be: then files are only named. */
static void
move_all_out(struct collect *c)
{
	for (size_t i = 0; i < c->file_count; i++)
		collect_leave_out(c, c->files[i].path, c->files[i].size,
		    LEFT_OUT_COUNT);
}

/* ---- its output ---- */

static void
attach_output(struct message *m, struct collect *c,
    const struct render_env *env)
{
	size_t len = c->output.len;
	const char *name = NULL;
	char *data;

	if (!env->may_attach) {
		buf_adds(&m->tail,
		    "\nThe output is cut, and I may not attach "
		    "files here.");
		return;
	}
	if ((int64_t)len > env->file_most)
		len = (size_t)env->file_most;
	data = xmalloc(len + 1);
	memcpy(data, buf_str(&c->output), len);
	if (!message_attach(m, OUTPUT_NAME, data, len, &name)) {
		buf_adds(&m->tail, "\nThe output is cut.");
		return;
	}
	buf_addf(&m->tail, "\nThe output is cut here, `%s` has %s.", name,
	    len < c->output.len ? "more" : "all of it");
	buf_addf(&m->without, "%s`%s` could not be attached.",
	    m->without.len > 0 ? " " : "", name);
}

void
render_run(struct message *message, const struct run_outcome *outcome,
    struct collect *collect, const struct render_env *env)
{
	struct message *m = message;
	bool cut;

	message_set_block(m, buf_str(&collect->output), collect->output.len, "",
	    MESSAGE_CUT_MIDDLE);
	if (m->block.len == 0)
		buf_adds(&m->lead, "No output.");
	add_end(m, outcome, env);
	if (outcome->read_only)
		buf_adds(&m->tail,
		    "\nThe server's disk is nearly full: this run could read "
		    "your files, but not write any. `/il rm` makes room.");
	cut = !message_fits(m);
	if (env->may_attach)
		attach_files(m, collect, MESSAGE_FILES_MAX - (cut ? 1 : 0));
	else
		move_all_out(collect);
	name_left_out(m, collect, env->may_attach);
	/* the names of files may have taken the room that the output had */
	if (cut || !message_fits(m))
		attach_output(m, collect, env);
}

/* ---- pip ---- */

static void
set_log(struct message *m, const struct buf *log)
{
	const char *text = buf_str(log);
	size_t len = log->len;

	if (len > LOG_SHOWN) {
		text += len - LOG_SHOWN;
		len = LOG_SHOWN;
	}
	message_set_block(m, text, len, "", MESSAGE_CUT_START);
}

void
render_pip_progress(struct message *message, const struct buf *log,
    int64_t elapsed_ms)
{
	message_leadf(message, "Installing … %" PRId64 " s", elapsed_ms / 1000);
	set_log(message, log);
}

static bool
log_has(const struct buf *log, const char *text)
{
	return memmem(buf_str(log), log->len, text, strlen(text)) != NULL;
}

/* What the log of a failed installation means, as far as it can be told. */
static void
explain_pip(struct buf *out, const struct buf *log,
    const struct cell_result *result, const struct config *config)
{
	if (result->disk_full || log_has(log, "No space left on device") ||
	    log_has(log, "File too large")) {
		buf_adds(out, "\nThe room for packages is used up (");
		text_add_size(out, config->pip_quota);
		buf_adds(out,
		    "): `/il rm .site-packages recursive:True` "
		    "empties it.");
	} else if (log_has(log, "Failed to establish a new connection") ||
	    log_has(log, "Temporary failure in name resolution") ||
	    log_has(log, "Connection refused") || log_has(log, "SSLError") ||
	    log_has(log, "Read timed out")) {
		buf_adds(out,
		    "\nThe package index cannot be reached from "
		    "here at the moment.");
	} else if (log_has(log, "No matching distribution found")) {
		buf_adds(out, "\nThere is no such package or version");
		if (!config->pip_allow_sdist)
			buf_adds(out,
			    " as a wheel for this Python: packages "
			    "that must be built are not installed here");
		buf_addc(out, '.');
	}
}

static void
add_words(struct buf *out, char *const *words)
{
	for (size_t i = 0; words[i] != NULL; i++) {
		if (i == LEFT_MOST) {
			buf_adds(out, " …");
			return;
		}
		buf_adds(out, i > 0 ? ", " : "");
		message_add_name(out, words[i], NAME_MOST);
	}
}

static void
add_pip_end(struct message *m, const struct run_outcome *outcome,
    const struct buf *log, const struct render_env *env)
{
	struct buf *tail = &m->tail;

	if (outcome->end != RUN_RESULT) {
		add_end(m, outcome, env);
		return;
	}
	if (outcome->result.reason == REASON_MEMORY) {
		add_limit(tail, "memory", env->config->pip_memory);
		add_measures(tail, &outcome->result);
	} else {
		add_result(tail, &outcome->result, env->config,
		    env->config->pip_timeout_ms);
	}
	if (has_failed(&outcome->result))
		explain_pip(tail, log, &outcome->result, env->config);
}

void
render_pip(struct message *message, const struct run_outcome *outcome,
    const struct buf *log, char *const *words, const struct render_env *env)
{
	buf_adds(&message->lead,
	    outcome_succeeded(outcome) ? "Installed " : "Not installed: ");
	add_words(&message->lead, words);
	buf_addc(&message->lead, '.');
	set_log(message, log);
	add_pip_end(message, outcome, log, env);
}
