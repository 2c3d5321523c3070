/* SPDX-License-Identifier: MIT */
#include "answer.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "request.h"
#include "../../pytext/pydump.h"

/* U+FFFD has three bytes. */
#define TEXT_MAX (3 * PISTON_OUTPUT_MAX)

/* ---- output ---- */

void
piston_output_init(struct piston_output *output)
{
	*output = (struct piston_output){ .all = BUF_INIT(2 * TEXT_MAX + 16) };
	for (int i = 0; i < 2; i++)
		output->streams[i] = (struct piston_stream){
			.text = BUF_INIT(TEXT_MAX + 16),
			.left = PISTON_OUTPUT_MAX,
		};
}

void
piston_output_release(struct piston_output *output)
{
	buf_release(&output->all);
	for (int i = 0; i < 2; i++)
		buf_release(&output->streams[i].text);
}

bool
piston_output_add(struct piston_output *output, int64_t stream,
    const void *data, size_t len)
{
	struct piston_stream *s = &output->streams[stream == 2 ? 1 : 0];

	if (output->full != 0)
		return false;
	if (len > s->left) {
		len = s->left;
		output->full = stream == 2 ? 2 : 1;
	}
	s->left -= len;
	pyutf8_add(&s->decoder, &s->text, data, len);
	pyutf8_add(&s->both, &output->all, data, len);
	return output->full == 0;
}

/* What a stream has begun and not ended is a fault, but where we cut it. */
static void
end_output(struct piston_output *output)
{
	for (int i = 0; i < 2; i++) {
		struct piston_stream *s = &output->streams[i];

		if (output->full == i + 1)
			continue;
		pyutf8_end(&s->decoder, &s->text);
		pyutf8_end(&s->both, &output->all);
	}
}

/* ---- signals ---- */

static const char *const signals[] = {
	[SIGHUP] = "SIGHUP",
	[SIGINT] = "SIGINT",
	[SIGQUIT] = "SIGQUIT",
	[SIGILL] = "SIGILL",
	[SIGTRAP] = "SIGTRAP",
	[SIGABRT] = "SIGABRT",
	[SIGBUS] = "SIGBUS",
	[SIGFPE] = "SIGFPE",
	[SIGKILL] = "SIGKILL",
	[SIGUSR1] = "SIGUSR1",
	[SIGSEGV] = "SIGSEGV",
	[SIGUSR2] = "SIGUSR2",
	[SIGPIPE] = "SIGPIPE",
	[SIGALRM] = "SIGALRM",
	[SIGTERM] = "SIGTERM",
	[SIGSTKFLT] = "SIGSTKFLT",
	[SIGCHLD] = "SIGCHLD",
	[SIGCONT] = "SIGCONT",
	[SIGSTOP] = "SIGSTOP",
	[SIGTSTP] = "SIGTSTP",
	[SIGTTIN] = "SIGTTIN",
	[SIGTTOU] = "SIGTTOU",
	[SIGURG] = "SIGURG",
	[SIGXCPU] = "SIGXCPU",
	[SIGXFSZ] = "SIGXFSZ",
	[SIGVTALRM] = "SIGVTALRM",
	[SIGPROF] = "SIGPROF",
	[SIGWINCH] = "SIGWINCH",
	[SIGIO] = "SIGIO",
	[SIGPWR] = "SIGPWR",
	[SIGSYS] = "SIGSYS",
};
#define SIGNALS ((int64_t)(sizeof(signals) / sizeof(signals[0])))

const char *
piston_signal_name(int64_t number)
{
	if (number > 0 && number < SIGNALS)
		return signals[number];
	return number >= 32 ? "SIGRTMIN" : "SIG";
}

int
piston_signal_number(const char *name, size_t len)
{
	for (int i = 1; i < SIGNALS; i++)
		if (strlen(signals[i]) == len &&
		    memcmp(signals[i], name, len) == 0)
			return i;
	return 0;
}

/* ---- the end ---- */

static void
set_end(struct piston_end *end, int64_t number, const char *status,
    const char *message)
{
	*end = (struct piston_end){ .signal = piston_signal_name(number),
		.code = -1,
		.status = status };
	(void)snprintf(end->message, sizeof(end->message), "%s", message);
}

/* It has ended by itself. */
static void
set_exit(struct piston_end *end, int64_t code)
{
	*end = (struct piston_end){ .code = code };
	if (code == 0)
		return;
	end->status = "RE";
	(void)snprintf(end->message, sizeof(end->message),
	    "Exited with error status %" PRId64, code);
}

void
piston_end(struct piston_end *end, const struct piston_request *req,
    const struct cell_result *cell, int full)
{
	char text[sizeof(end->message)];

	if (full != 0 || cell->reason == REASON_OUTPUT) {
		set_end(end, SIGKILL, full == 2 ? "EL" : "OL",
		    full == 2 ? "stderr length exceeded" :
				"stdout length exceeded");
	} else if (cell->reason == REASON_TIME) {
		set_end(end, SIGKILL, "TO", "Time limit exceeded (wall clock)");
	} else if (cell->reason == REASON_MEMORY) {
		set_end(end, SIGKILL, "SG", "Memory limit exceeded");
	} else if (cell->cpu_us > req->cpu_us) {
		/* The kernel counts whole seconds of one process; here it is
		 * all of them, to the microsecond. */
		set_end(end, SIGKILL, "TO", "Time limit exceeded");
	} else if (cell->reason == REASON_SIGNAL) {
		(void)snprintf(text, sizeof(text),
		    "Caught fatal signal %" PRId64, cell->signal);
		set_end(end, cell->signal, "SG", text);
	} else {
		set_exit(end, cell->status);
	}
}

/* A text of JSON, or null where there is none. */
static void
add_text(struct buf *out, const char *name, const char *text)
{
	if (text == NULL || text[0] == '\0')
		buf_addf(out, ",\"%s\":null", name);
	else
		buf_addf(out, ",\"%s\":\"%s\"", name, text);
}

static void
add_output(struct buf *out, const char *name, const struct buf *text)
{
	buf_addf(out, ",\"%s\":", name);
	pydump_add_string(out, buf_str(text), text->len, PYDUMP_UTF8);
}

void
piston_add_answer(struct buf *out, const struct piston_request *req,
    struct piston_output *output, const struct cell_result *cell)
{
	struct piston_end end;

	end_output(output);
	piston_end(&end, req, cell, output->full);
	if (end.signal == NULL)
		buf_adds(out, "{\"run\":{\"signal\":null");
	else
		buf_addf(out, "{\"run\":{\"signal\":\"%s\"", end.signal);
	add_output(out, "stdout", &output->streams[0].text);
	add_output(out, "stderr", &output->streams[1].text);
	if (end.code < 0)
		buf_adds(out, ",\"code\":null");
	else
		buf_addf(out, ",\"code\":%" PRId64, end.code);
	add_output(out, "output", &output->all);
	buf_addf(out, ",\"memory\":%" PRId64, cell->max_rss);
	add_text(out, "message", end.message);
	add_text(out, "status", end.status);
	buf_addf(out, ",\"cpu_time\":%" PRId64 ",\"wall_time\":%" PRId64,
	    cell->cpu_us / 1000, cell->wall_us / 1000);
	buf_addf(out, "},\"language\":\"%s\",\"version\":\"",
	    piston_language_name(req->runtime->language));
	piston_add_version(out, &req->runtime->version);
	buf_adds(out, "\"}");
}
