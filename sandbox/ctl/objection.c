/* SPDX-License-Identifier: MIT */
#include "objection.h"

#include <string.h>

#include <jansson.h>

#include "../base/buf.h"
#include "../base/text.h"

#define DEPTH_MAX 12
#define LINES_MAX 25
#define PATH_MAX_BYTES 256
#define TEXT_MOST 300 /* code points of what stands in a line */

/* Where the walk through "errors" is, and how many lines may still come. */
struct walk {
	FILE *out;
	struct buf path; /* "0.options.3" */
	int lines;
};

/* One line of what is not ours. */
static void
print_clean(FILE *out, const char *text)
{
	size_t len = text_prefix(text, strlen(text), TEXT_MOST);
	auto_buf struct buf clean = BUF_INIT(16 * len + 1);

	text_add_clean(&clean, text, len);
	for (size_t i = 0; i < clean.len; i++)
		if (clean.data[i] == '\n' || clean.data[i] == '\t')
			clean.data[i] = ' ';
	(void)fputs(buf_str(&clean), out);
}

/* What is wrong with the value at the path: [{"code", "message"}, …]. */
static void
print_errors(struct walk *w, const json_t *errors)
{
	size_t i;
	json_t *one;

	json_array_foreach(errors, i, one) {
		const char *message = json_string_value(json_object_get(one,
		    "message"));
		const char *code = json_string_value(json_object_get(one,
		    "code"));

		if (w->lines-- <= 0)
			return;
		(void)fputs("  ", w->out);
		if (w->path.len > 0) {
			print_clean(w->out, buf_str(&w->path));
			(void)fputs(": ", w->out);
		}
		print_clean(w->out, message != NULL ? message : "no message");
		if (code != NULL) {
			(void)fputs(" (", w->out);
			print_clean(w->out, code);
			(void)fputs(")", w->out);
		}
		(void)fputs("\n", w->out);
	}
}

/* An object has its errors, and those of its members. */
static void
walk_errors(struct walk *w, json_t *node, int depth)
{
	const char *key;
	json_t *below;

	json_object_foreach(node, key, below) {
		size_t len = w->path.len;

		if (depth == 0 || w->lines <= 0)
			return;
		if (strcmp(key, "_errors") == 0) {
			print_errors(w, below);
			continue;
		}
		buf_addf(&w->path, "%s%s", len > 0 ? "." : "", key);
		if (!w->path.overflow)
			walk_errors(w, below, depth - 1);
		w->path.overflow = false;
		buf_cut(&w->path, len);
	}
}

void
objection_print(FILE *out, const char *answer)
{
	json_auto_t *root = json_loads(answer, 0, NULL);
	const char *message = json_string_value(json_object_get(root,
	    "message"));
	struct walk walk = {
		.out = out,
		.path = BUF_INIT(PATH_MAX_BYTES),
		.lines = LINES_MAX,
	};

	if (message != NULL) {
		(void)fputs("  ", out);
		print_clean(out, message);
		(void)fputs("\n", out);
	}
	walk_errors(&walk, json_object_get(root, "errors"), DEPTH_MAX);
	if (walk.lines <= 0)
		(void)fputs("  …\n", out);
	buf_release(&walk.path);
}
