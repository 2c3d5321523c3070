/* SPDX-License-Identifier: MIT */
/* Messages made of what a cell sends: within Discord's limits, valid, and with
 * a block that ends where we end it. */
#include "fuzz.h"

#include <string.h>

#include <jansson.h>

#include "base/config.h"
#include "base/text.h"
#include "worker/render/render_files.h"

static const struct config config = { .timeout_ms = 30000,
	.memory = 256 << 20,
	.output_limit = 1 << 20,
	.quota = 256 << 20,
	.files = 10000,
	.pip_quota = 1 << 20 };

struct input {
	const uint8_t *data;
	size_t len;
};

static unsigned
take_byte(struct input *in)
{
	if (in->len == 0)
		return 0;
	in->len--;
	return *in->data++;
}

/* At most n of what is left. */
static struct input
take(struct input *in, size_t n)
{
	struct input piece = { in->data, in->len < n ? in->len : n };

	in->data += piece.len;
	in->len -= piece.len;
	return piece;
}

/* A name as cell.c lets it through: no NUL, not empty. */
static void
take_name(struct input *in, char *name, size_t size)
{
	struct input piece = take(in, take_byte(in) * 4 % (size - 1) + 1);

	memset(name, 0, size);
	for (size_t i = 0; i < piece.len; i++)
		name[i] = piece.data[i] == 0 ? '0' : (char)piece.data[i];
	if (name[0] == '\0')
		name[0] = 'x';
}

static size_t
count(const char *text, const char *what)
{
	size_t n = 0;

	for (text = strstr(text, what); text != NULL;
	     text = strstr(text + 1, what))
		n++;
	return n;
}

static void
check_json(const struct message *m, bool with_files)
{
	char *text = message_json(m, with_files);
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	const json_t *mentions = json_object_get(root, "allowed_mentions");
	const char *content = json_string_value(json_object_get(root,
	    "content"));
	size_t fences;

	fuzz_holds(content != NULL, "there is a content");
	fuzz_holds(text_codepoints(content, strlen(content)) <= 2000,
	    "at most 2,000 code points");
	fences = count(content, "```");
	fuzz_holds(fences == 0 || fences == 2, "one block, whole");
	fuzz_holds(json_is_array(json_object_get(mentions, "parse")) &&
		json_array_size(json_object_get(mentions, "parse")) == 0,
	    "nobody is mentioned");
	json_decref(root);
	free(text);
}

static void
collect_all(struct collect *c, struct input *in)
{
	struct cell_event event;

	while (in->len > 0) {
		struct input piece;

		memset(&event, 0, sizeof(event));
		event.kind = (enum cell_event_kind)(take_byte(in) % 6);
		event.why = (enum left_out)(take_byte(in) % 4 + 1);
		event.entry_kind = (enum entry_kind)(take_byte(in) % 4 + 1);
		event.size = take_byte(in);
		event.mtime = (int64_t)event.size << take_byte(in) % 55;
		take_name(in, event.name, sizeof(event.name));
		piece = take(in, take_byte(in) * 16);
		event.data = piece.data;
		event.len = piece.len;
		collect_event(c, &event);
	}
}

static void
render(struct message *m, struct collect *c, struct input *in)
{
	bool may_attach = take_byte(in) % 2;
	unsigned which = take_byte(in) % 4;
	struct run_outcome outcome = {
		.end = take_byte(in) % 2 ?
		    RUN_RESULT :
		    (enum run_end)(RUN_BROKEN + take_byte(in) % 6),
		.refusal = (enum refusal)(take_byte(in) % 11),
		.result = {
			.reason = (enum run_reason)(take_byte(in) % 6 + 1),
			.signal = (int)take_byte(in) % 65,
			.error = (enum cell_error)(take_byte(in) % 11 + 1),
			.disk_full = (enum disk_full)(take_byte(in) % 3),
			.used_bytes = take_byte(in),
			.total = 40,
		},
	};
	char path[1025];
	char *words[] = { path, NULL };
	struct render_env env = { .message = m,
		.run = &outcome,
		.collect = c,
		.path = path,
		.config = &config,
		.reference = 1,
		.file_most = 100,
		.may_attach = may_attach };

	take_name(in, path, sizeof(path));
	collect_all(c, in);
	if (which == 0) {
		render_run(&env);
	} else if (which == 1) {
		render_pip(&env, words);
	} else if (which == 2 && c->file_count > 0) {
		render_file(&env);
	} else {
		struct render_listing l = {
			.page = 1, .pages = 2, .view_id = 1
		};

		render_listing(&env, &l);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	struct message m;
	struct collect c;

	m = (struct message)MESSAGE_INIT;
	collect_init(&c, 8192, 4096);
	render(&m, &c, &in);
	check_json(&m, true);
	check_json(&m, false);
	collect_release(&c);
	message_release(&m);
	return 0;
}
