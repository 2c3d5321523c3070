/* SPDX-License-Identifier: MIT */
#include "contract/piston/piston_answer.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "contract/json.h"

/* U+FFFD has three bytes. */
#define TEXT_MAX (3 * PISTON_OUTPUT_MAX)
#define SIGNALS_END 32 /* the signals of real time follow */

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
	utf8_decoder_add(&s->decoder, &s->text, data, len);
	utf8_decoder_add(&s->both, &output->all, data, len);
	return output->full == 0;
}

void
piston_output_end(struct piston_output *output)
{
	for (int i = 0; i < 2; i++) {
		struct piston_stream *s = &output->streams[i];

		if (output->full == i + 1)
			continue;
		utf8_decoder_end(&s->decoder, &s->text);
		utf8_decoder_end(&s->both, &output->all);
	}
}

/* ---- signals ---- */

/* The C library calls SIGIO by its other name. */
void
piston_signal_name(char name[PISTON_SIGNAL_MAX], int64_t number)
{
	const char *known = number == SIGIO    ? "IO" :
	    number > 0 && number < SIGNALS_END ? sigabbrev_np((int)number) :
						 NULL;

	(void)snprintf(name, PISTON_SIGNAL_MAX, "SIG%s",
	    known != NULL	      ? known :
		number >= SIGNALS_END ? "RTMIN" :
					"");
}

int
piston_signal_number(const char *name)
{
	char text[PISTON_SIGNAL_MAX];

	for (int i = 1; name != NULL && i < SIGNALS_END; i++) {
		piston_signal_name(text, i);
		if (strcmp(name, text) == 0)
			return i;
	}
	return 0;
}

/* ---- the end ---- */

static void
set_end(struct piston_end *end, int64_t number, const char *status,
    const char *message)
{
	*end = (struct piston_end){ .code = -1, .status = status };
	piston_signal_name(end->signal, number);
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

/* A word of ours, or NULL where there is none. */
static const char *
word_of(const char *word)
{
	return word[0] == '\0' ? NULL : word;
}

static json_t *
code_of(const struct piston_end *end)
{
	return end->code < 0 ? json_null() : json_integer(end->code);
}

void
piston_add_answer(struct buf *out, const struct piston_request *req,
    struct piston_output *output, const struct cell_result *cell)
{
	const struct buf *text = &output->streams[0].text;
	const struct buf *error = &output->streams[1].text;
	json_auto_t *answer = json_object();
	struct piston_end end;

	piston_output_end(output);
	piston_end(&end, req, cell, output->full);
	(void)json_object_set_new(answer, "run",
	    json_pack("{s:s?,s:s%,s:s%,s:o,s:s%,s:I,s:s?,s:s?,s:I,s:I}",
		"signal", word_of(end.signal), "stdout", buf_str(text),
		text->len, "stderr", buf_str(error), error->len, "code",
		code_of(&end), "output", buf_str(&output->all), output->all.len,
		"memory", (json_int_t)cell->max_rss, "message",
		word_of(end.message), "status", end.status, "cpu_time",
		(json_int_t)cell->cpu_us / 1000, "wall_time",
		(json_int_t)cell->wall_us / 1000));
	(void)json_object_update_new(answer,
	    piston_pack_runtime(req->runtime, "version"));
	jtext_add(out, answer, JSON_COMPACT);
}

/* ---- messages: theirs ---- */

static enum piston_message
wrong(struct piston_said *said, struct piston_refusal *refusal,
    const char *text)
{
	jtree_release(&said->doc);
	(void)piston_refuse(refusal, 400, "%s", text);
	return PISTON_WRONG;
}

static enum piston_message
hear_data(struct piston_said *said, struct piston_refusal *refusal)
{
	const json_t *root = said->doc.root;
	const json_t *data = json_object_get(root, "data");

	said->is_input = jtree_is(json_object_get(root, "stream"), "stdin");
	said->eof = json_is_true(json_object_get(root, "eof"));
	if (!said->is_input)
		return PISTON_DATA;
	if (!json_is_string(data))
		return wrong(said, refusal, "data must be a string");
	said->text = json_string_value(data);
	said->len = json_string_length(data);
	return PISTON_DATA;
}

enum piston_message
piston_hear(struct piston_said *said, const char *data, size_t len,
    struct piston_refusal *refusal)
{
	const json_t *type;

	*said = (struct piston_said){ .text = "" };
	if (!piston_parse(&said->doc, data, len, refusal))
		return PISTON_WRONG;
	type = json_object_get(said->doc.root, "type");
	if (jtree_is(type, "init"))
		return PISTON_INIT;
	if (jtree_is(type, "data"))
		return hear_data(said, refusal);
	if (!jtree_is(type, "signal"))
		return PISTON_OTHER;
	said->number =
	    piston_signal_number(jtree_text(json_object_get(said->doc.root,
		"signal")));
	return PISTON_SIGNAL;
}

/* ---- messages: ours ---- */

/* Append a message and release it. */
static void
say(struct buf *out, json_t *message)
{
	jtext_add(out, message, JSON_COMPACT);
	json_decref(message);
}

void
piston_say_runtime(struct buf *out, const struct piston_runtime *runtime)
{
	json_t *message = json_pack("{s:s}", "type", "runtime");

	(void)json_object_update_new(message,
	    piston_pack_runtime(runtime, "version"));
	say(out, message);
}

void
piston_say_stage(struct buf *out)
{
	buf_adds(out, "{\"type\":\"stage\",\"stage\":\"run\"}");
}

void
piston_say_data(struct buf *out, int64_t stream, const char *text, size_t len)
{
	jtext_addf(out, JTEXT_UTF8,
	    "{\"type\":\"data\",\"stream\":\"%s\",\"data\":\"%.*s\"}",
	    stream == 2 ? "stderr" : "stdout", (int)len, text);
}

void
piston_say_exit(struct buf *out, const struct piston_end *end)
{
	say(out,
	    json_pack("{s:s,s:s,s:o,s:s?}", "type", "exit", "stage", "run",
		"code", code_of(end), "signal", word_of(end->signal)));
}

void
piston_say_error(struct buf *out, const struct piston_refusal *refusal)
{
	buf_adds(out, "{\"type\":\"error\",");
	/* the rest after its brace */
	buf_add(out, refusal->body.data + 1, refusal->body.len - 1);
}
