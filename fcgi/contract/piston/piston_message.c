/* SPDX-License-Identifier: MIT */
#include "contract/piston/piston_message.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contract/run_files.h"

#include "protocol/frame_limits.h"

#define COMPILE_MS 10000 /* of the contract; nothing is compiled */
#define NAME_DIGITS 32	 /* of "file0.code" */
#define NAME_SHOWN 200	 /* code points of a client's text in an error */
#define MEMORY_MAX ((double)((int64_t)1 << 50)) /* as good as none */
/* U+FFFD has three bytes. */
#define TEXT_MAX (3 * PISTON_OUTPUT_MAX)
#define SIGNALS_END 32 /* the signals of real time follow */
#define UNSET (-1)     /* a limit that was not asked for */

/* ---- languages in their versions ---- */

static const char *
piston_language_name(const struct piston_runtime *runtime)
{
	return runtime->language == PISTON_BASH ? "bash" : "python";
}

/* Names of a runtime beside its language's.  Python's are those of the program,
 * and the operator's name. */
static json_t *
list_aliases(const struct piston_runtime *runtime)
{
	json_auto_t *own = json_sprintf("python%s", runtime->interpreter);
	json_t *minor;
	json_t *all;

	if (runtime->language == PISTON_BASH)
		return json_pack("[s]", "sh");
	minor = json_sprintf("python%" PRId64 ".%" PRId64,
	    runtime->version.major, runtime->version.minor);
	all = json_pack("[s,s,s,o]", "py", "py3", "python3", minor);
	if (!json_equal(minor, own))
		(void)json_array_append(all, own);
	return all;
}

/* Is that a name of the runtime? */
static bool
answers_to(const struct piston_runtime *runtime, const char *name)
{
	bool found = strcmp(name, piston_language_name(runtime)) == 0;
	json_auto_t *aliases = list_aliases(runtime);
	const json_t *alias;
	size_t i;

	json_array_foreach(aliases, i, alias)
		found = found || jtree_is(alias, name);
	return found;
}

static json_t *
piston_pack_version(const struct piston_runtime *runtime)
{
	return json_sprintf("%" PRId64 ".%" PRId64 ".%" PRId64,
	    runtime->version.major, runtime->version.minor,
	    runtime->version.patch);
}

json_t *
piston_pack_list(const struct piston_offer *offer, bool packages)
{
	json_t *list = json_array();

	for (size_t i = 0; i < offer->count; i++) {
		const struct piston_runtime *runtime = &offer->items[i];

		(void)json_array_append_new(list,
		    json_pack("{s:s,s:o,s:o}", "language",
			piston_language_name(runtime),
			packages ? "language_version" : "version",
			piston_pack_version(runtime),
			packages ? "installed" : "aliases",
			packages ? json_true() : list_aliases(runtime)));
	}
	return list;
}

/* ---- the tables of a request ---- */

struct piston_file {
	struct cell_bytes content;
	const char *name;
	const char *encoding;
};

struct piston_body {
	struct cell_bytes language;
	struct cell_bytes version;
	struct field_list files;
	struct cell_bytes input;
	const json_t *args;
	double limits[4]; /* in the order of limit_names */
	double memory[2];
};

static const struct field file_rows[] = {
	{ "content", FIELD_TEXT, offsetof(struct piston_file, content),
	    .required = true },
	{ "name", FIELD_STRING, offsetof(struct piston_file, name),
	    .nullable = true },
	{ "encoding", FIELD_STRING, offsetof(struct piston_file, encoding),
	    .nullable = true },
	{ .name = NULL },
};

static const char *const limit_names[] = { "compile_timeout", "run_timeout",
	"compile_cpu_time", "run_cpu_time" };

#define AT(member) offsetof(struct piston_body, member)
#define LIMIT(name, member, least) \
	{ \
		name, FIELD_NUMBER, AT(member), \
		    .nullable = true, .standard = UNSET, .min = (least) \
	}

static const struct field body_rows[] = {
	{ "language", FIELD_WORD, AT(language), .required = true },
	{ "version", FIELD_WORD, AT(version), .required = true },
	{ "files", FIELD_LIST, AT(files), .required = true, .items = file_rows,
	    .size = sizeof(struct piston_file) },
	LIMIT("compile_memory_limit", memory[0], INT64_MIN),
	LIMIT("run_memory_limit", memory[1], INT64_MIN),
	LIMIT("compile_timeout", limits[0], 0),
	LIMIT("run_timeout", limits[1], 0),
	LIMIT("compile_cpu_time", limits[2], 0),
	LIMIT("run_cpu_time", limits[3], 0),
	{ "stdin", FIELD_TEXT, AT(input), .nullable = true,
	    .max = LIMIT_PART - 1 },
	{ "args", FIELD_ANY, AT(args), .nullable = true },
	{ .name = NULL },
};

/* ---- the runtime of a request ---- */

/* The newest runtime of a language, or of one of its aliases, whose version
 * matches; the first one of equal versions.  nearest: the one nearest to the
 * version that is asked for.  NULL: there is none. */
static const struct piston_runtime *
find_runtime(const struct piston_offer *offer, const struct piston_body *body,
    bool nearest)
{
	const struct cell_bytes *asked = &body->version;
	const struct piston_runtime *found = NULL;
	struct semver wanted = { 0 };

	if (nearest && !semver_read_wanted(&wanted, asked->data, asked->len))
		return NULL;
	for (size_t i = 0; i < offer->count; i++) {
		const struct piston_runtime *one = &offer->items[i];
		const struct semver *best = found == NULL ? NULL :
							    &found->version;

		if (!answers_to(one, body->language.data))
			continue;
		if (nearest ? semver_is_nearer(&one->version, best, &wanted) :
			      semver_matches(&one->version, asked->data,
				  asked->len) &&
			    (best == NULL ||
				semver_compare(&one->version, best) > 0))
			found = one;
	}
	return found;
}

static bool
set_runtime(struct piston_request *req, const struct piston_offer *offer,
    const struct piston_body *body, struct api_error *error)
{
	const struct cell_bytes *language = &body->language;
	const struct cell_bytes *version = &body->version;

	req->runtime = find_runtime(offer, body, false);
	if (req->runtime == NULL && !offer->strict) {
		req->runtime = find_runtime(offer, body, true);
		req->stands_in = true;
	}
	return req->runtime != NULL ||
	    api_error_set(error, 400, "%.*s-%.*s runtime is unknown",
		(int)text_prefix(language->data, language->len, NAME_SHOWN),
		language->data,
		(int)text_prefix(version->data, version->len, NAME_SHOWN),
		version->data);
}

/* ---- the files of a request ---- */

enum encoding { ENCODING_UTF8, ENCODING_BASE64, ENCODING_HEX, ENCODING_OTHER };

/* Without a name it is UTF-8. */
static enum encoding
encoding_of(const struct piston_file *file)
{
	static const char *const names[] = { "utf8", "base64", "hex" };
	enum encoding i = ENCODING_UTF8;

	if (file->encoding == NULL || file->encoding[0] == '\0')
		return ENCODING_UTF8;
	while (i < ENCODING_OTHER && strcmp(names[i], file->encoding) != 0)
		i++;
	return i;
}

/* Decode what a file holds in its place; hex as far as the text is hex, as
 * Buffer.from() does.  False: it is no base64. */
static bool
decode_content(const struct piston_file *file, struct cell_bytes *decoded)
{
	char *text = (char *)(uintptr_t)file->content.data;
	size_t len = file->content.len;
	unsigned char byte;
	size_t n = 0;

	if (encoding_of(file) == ENCODING_BASE64 &&
	    !base64_decode(text, len, false, text, &len))
		return false;
	if (encoding_of(file) == ENCODING_HEX) {
		for (; 2 * n + 1 < len &&
		     text_parse_hex(text + 2 * n, 2, &byte, 1);
		     n++)
			text[n] = (char)byte;
		len = n;
	}
	*decoded = (struct cell_bytes){ text, len };
	return true;
}

/* Set the path to write to.  NULL, or the fault of the name. */
static const char *
stage_name(struct jtree *doc, struct stage *stage, const char *name,
    size_t index, struct cell_input *input)
{
	static const char *const wrong[] = {
		[STAGE_FINE] = NULL,
		[STAGE_EMPTY] = "is no name of a file",
		[STAGE_LONG] = "is too long",
		[STAGE_FULL] = "is one too many",
		[STAGE_IS_FOLDER] = "is the folder of another file",
		[STAGE_PARENT_IS_FILE] = "lies below another file",
		[STAGE_ABOVE_IS_FILE] = "lies below another file",
	};
	size_t len = name == NULL ? 0 : strlen(name);
	char *path = jtree_array(doc, len + NAME_DIGITS, 1);
	enum stage_up up = STAGE_DOWN;

	if (len == 0)
		(void)snprintf(path, NAME_DIGITS, "file%zu.code", index);
	else
		(void)stage_resolve(name, len, path, 0, &up);
	input->path = path;
	return up == STAGE_OUT ? "leads out of the folder" :
				 wrong[stage_add(stage, path)];
}

/* The first word is the main file's path, written so that it is no option. */
static void
set_main(struct jtree *doc, struct cell_bytes *word, const char *path)
{
	size_t size = strlen(path) + 3;
	char *text = jtree_array(doc, size, 1);

	(void)snprintf(text, size, "%s%s", path[0] == '-' ? "./" : "", path);
	*word = (struct cell_bytes){ text, strlen(text) };
}

/* Check the names, decode what the files hold in its place, and find the
 * program, whose word is main. */
static bool
set_files(struct piston_request *req, const struct field_list *list,
    struct cell_bytes *main, struct api_error *error)
{
	auto_stage struct stage stage = { .count = 0 };
	const struct piston_file *files = list->items;
	struct cell_input *inputs = jtree_array(&req->doc, list->count + 1,
	    sizeof(*inputs));
	bool found = false;

	req->cell.inputs = inputs;
	req->cell.input_count = list->count;
	for (size_t i = 0; i < list->count; i++) {
		enum encoding encoding = encoding_of(&files[i]);
		const char *wrong = stage_name(&req->doc, &stage, files[i].name,
		    i, &inputs[i]);

		if (wrong != NULL)
			return api_error_set(error, 400, "files[%zu].name %s",
			    i, wrong);
		inputs[i].mtime = -1;
		if (!decode_content(&files[i], &inputs[i].content))
			return api_error_set(error, 400,
			    "files[%zu].content must be base64", i);
		if (main->data == NULL &&
		    (encoding == ENCODING_UTF8 || encoding == ENCODING_OTHER))
			set_main(&req->doc, main, inputs[i].path);
		found = found || encoding == ENCODING_UTF8;
	}
	return found ||
	    api_error_set(error, 400,
		"files must include at least one utf8 encoded file");
}

/* ---- limits, input and arguments of a request ---- */

static bool
set_limits(struct piston_request *req, double limits[4], double memory,
    const struct piston_offer *offer, struct api_error *error)
{
	for (size_t i = 0; i < 4; i++) {
		int64_t most = i % 2 == 0 ? COMPILE_MS : offer->run_ms;

		if (limits[i] == UNSET)
			limits[i] = (double)most;
		if (limits[i] > (double)most)
			return api_error_set(error, 400,
			    "%s cannot exceed the configured limit of %" PRId64,
			    limit_names[i], most);
	}
	req->cell.wall_ms = (int64_t)limits[1];
	/* A part of one counts, and at least one is needed to end the run. */
	if ((double)req->cell.wall_ms < limits[1] || req->cell.wall_ms < 1)
		req->cell.wall_ms++;
	req->cpu_us = (int64_t)(limits[3] * 1000);
	if (memory > 0 && memory <= MEMORY_MAX)
		req->cell.limit_memory = (int64_t)memory;
	return true;
}

/* Standard input ends with a newline. */
static void
set_input(struct piston_request *req, const struct cell_bytes *input)
{
	size_t len = input->len;
	char *text = jtree_array(&req->doc, len + 2, 1);

	if (len > 0)
		memcpy(text, input->data, len);
	if (len == 0 || text[len - 1] != '\n')
		text[len++] = '\n';
	req->cell.input = text;
	req->cell.input_len = len;
}

/* Read an argument; one that is no string stands as JSON.  False: it is a list
 * or an object, or has a NUL. */
static bool
set_word(struct jtree *doc, const json_t *value, struct cell_bytes *word)
{
	auto_buf struct buf text = BUF_INIT(64);
	char *copy;

	*word = (struct cell_bytes){ json_string_value(value),
		json_string_length(value) };
	if (json_is_string(value))
		return strlen(word->data) == word->len;
	if (json_is_array(value) || json_is_object(value))
		return false;
	/* the shortest text that is read as the same number */
	for (size_t digits = 15; digits <= 17; digits++) {
		buf_reset(&text);
		jtext_add(&text, value, JSON_REAL_PRECISION(digits));
		if (!json_is_real(value) ||
		    strtod(buf_str(&text), NULL) == json_real_value(value))
			break;
	}
	copy = jtree_array(doc, text.len + 1, 1);
	memcpy(copy, buf_str(&text), text.len);
	*word = (struct cell_bytes){ copy, text.len };
	return true;
}

/* words: room for all of them; the first one is the main file's. */
static bool
set_words(struct piston_request *req, const json_t *args,
    struct cell_bytes *words, struct api_error *error)
{
	const json_t *arg;
	size_t i;

	if (args != NULL && !json_is_array(args))
		return api_error_set(error, 400, "args must be an array");
	req->cell.words = words;
	req->cell.word_count = json_array_size(args) + 1;
	json_array_foreach(args, i, arg)
		if (!set_word(&req->doc, arg, &words[i + 1]))
			return api_error_set(error, 400,
			    "args[%zu] must be a string without NUL characters",
			    i);
	return true;
}

/* ---- requests ---- */

bool
piston_parse(struct jtree *doc, const char *body, size_t len,
    struct api_error *error)
{
	struct jtree_error fault;

	if (len == 0) {
		body = "{}";
		len = 2;
	}
	return jtree_parse(doc, body, len, &fault) ||
	    api_error_set(error, 400, "The body is no JSON: %s", fault.text);
}

bool
piston_accept(struct piston_request *req, const struct piston_offer *offer,
    struct api_error *error)
{
	struct piston_body body = { .args = NULL };
	struct cell_bytes *words;

	if (fields_accept(&req->doc, body_rows, &body, error) &&
	    set_runtime(req, offer, &body, error) &&
	    set_limits(req, body.limits, body.memory[1], offer, error)) {
		set_input(req, &body.input);
		words = jtree_array(&req->doc, json_array_size(body.args) + 1,
		    sizeof(*words));
		if (set_words(req, body.args, words, error) &&
		    set_files(req, &body.files, words, error))
			return true;
	}
	jtree_release(&req->doc);
	return false;
}

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
	buf_release(&output->streams[0].text);
	buf_release(&output->streams[1].text);
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
struct text_short
piston_signal_name(int64_t number)
{
	const char *known = number == SIGIO ? "IO" :
	    number >= SIGNALS_END	    ? "RTMIN" :
	    number > 0			    ? sigabbrev_np((int)number) :
					      NULL;
	struct text_short name;

	(void)snprintf(name.text, sizeof(name.text), "SIG%s",
	    known == NULL ? "" : known);
	return name;
}

int
piston_signal_number(const char *name)
{
	for (int i = 1; name != NULL && i < SIGNALS_END; i++)
		if (strcmp(name, piston_signal_name(i).text) == 0)
			return i;
	return 0;
}

/* ---- the end ---- */

#define KILLED(status, message) \
	((struct piston_end){ { "SIGKILL" }, -1, status, message })

struct piston_end
piston_end(const struct piston_request *req, const struct cell_result *cell,
    int full)
{
	struct piston_end end = { .code = -1 };

	if (full == 2)
		return KILLED("EL", "stderr length exceeded");
	if (full == 1 || cell->reason == REASON_OUTPUT)
		return KILLED("OL", "stdout length exceeded");
	if (cell->reason == REASON_TIME)
		return KILLED("TO", "Time limit exceeded (wall clock)");
	if (cell->reason == REASON_MEMORY)
		return KILLED("SG", "Memory limit exceeded");
	/* The kernel counts whole seconds of one process; here it is all of
	 * them, to the microsecond. */
	if (cell->cpu_us > req->cpu_us)
		return KILLED("TO", "Time limit exceeded");
	if (cell->reason == REASON_SIGNAL) {
		end.signal = piston_signal_name(cell->signal);
		end.status = "SG";
		(void)snprintf(end.message, sizeof(end.message),
		    "Caught fatal signal %" PRId64, cell->signal);
		return end;
	}
	end.code = cell->status;
	if (end.code == 0)
		return end;
	end.status = "RE";
	(void)snprintf(end.message, sizeof(end.message),
	    "Exited with error status %" PRId64, end.code);
	return end;
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

json_t *
piston_pack_answer(const struct piston_request *req,
    const struct piston_output *output, const struct cell_result *cell)
{
	const struct buf *text = &output->streams[0].text;
	const struct buf *error = &output->streams[1].text;
	const struct piston_end end = piston_end(req, cell, output->full);

	return json_pack("{s:{s:s?,s:s%,s:s%,s:o,s:s%,s:I,s:s?,s:s?,s:I,s:I},"
			 "s:s,s:o}",
	    "run", "signal", word_of(end.signal.text), "stdout", buf_str(text),
	    text->len, "stderr", buf_str(error), error->len, "code",
	    code_of(&end), "output", buf_str(&output->all), output->all.len,
	    "memory", (json_int_t)cell->max_rss, "message",
	    word_of(end.message), "status", end.status, "cpu_time",
	    (json_int_t)cell->cpu_us / 1000, "wall_time",
	    (json_int_t)cell->wall_us / 1000, "language",
	    piston_language_name(req->runtime), "version",
	    piston_pack_version(req->runtime));
}

/* ---- messages ---- */

static enum piston_message
piston_close(struct piston_said *said, int code, const char *reason)
{
	said->code = code;
	said->reason = reason;
	return PISTON_CLOSE;
}

enum piston_message
piston_hear(struct piston_said *said, const char *data, size_t len,
    bool running, struct api_error *error)
{
	static const char *const types[] = { NULL, "init", "data", "signal" };
	enum piston_message kind = PISTON_SIGNAL;
	const json_t *text;

	*said = (struct piston_said){ .text = "" };
	if (!piston_parse(&said->doc, data, len, error))
		return PISTON_WRONG;
	while (kind > PISTON_OTHER &&
	    !jtree_is(json_object_get(said->doc.root, "type"), types[kind]))
		kind--;
	if (kind == PISTON_OTHER || (kind == PISTON_INIT && !running))
		return kind;
	if (!running)
		return piston_close(said, 4003, "Not yet initialized");
	if (kind == PISTON_INIT)
		return piston_close(said, 4000, "Already Initialized");
	said->number =
	    piston_signal_number(jtree_text(json_object_get(said->doc.root,
		"signal")));
	if (kind == PISTON_SIGNAL)
		return said->number != 0 ?
		    PISTON_SIGNAL :
		    piston_close(said, 4005, "Invalid signal");
	if (!jtree_is(json_object_get(said->doc.root, "stream"), "stdin"))
		return piston_close(said, 4004, "Can only write to stdin");
	text = json_object_get(said->doc.root, "data");
	said->eof = json_is_true(json_object_get(said->doc.root, "eof"));
	said->text = json_string_value(text);
	said->len = json_string_length(text);
	if (said->text != NULL)
		return PISTON_DATA;
	(void)api_error_set(error, 400, "data must be a string");
	return PISTON_WRONG;
}

json_t *
piston_pack_runtime(const struct piston_runtime *runtime)
{
	return json_pack("{s:s,s:s,s:o}", "type", "runtime", "language",
	    piston_language_name(runtime), "version",
	    piston_pack_version(runtime));
}

json_t *
piston_pack_data(int64_t stream, const struct buf *text)
{
	return json_pack("{s:s,s:s,s:s%}", "type", "data", "stream",
	    stream == 2 ? "stderr" : "stdout", "data", buf_str(text),
	    text->len);
}

json_t *
piston_pack_exit(const struct piston_end *end)
{
	return json_pack("{s:s,s:s,s:o,s:s?}", "type", "exit", "stage", "run",
	    "code", code_of(end), "signal", word_of(end->signal.text));
}
