/* SPDX-License-Identifier: MIT */
/*
 * A request to a cell, as its process reads it.  The input is a row of packets,
 * each behind two bytes of length; the first is the head.  It is read twice: as
 * one to a cell of the APIs, and as one to a person's.
 */
#include "fuzz.h"

#include <string.h>

#include "cell/supervisor/fast_path.h"
#include "protocol/frame.h"

static struct supervisor k;

static void
check_name(const struct supervisor_fast *text)
{
	fuzz_holds(text->env_len > 0 && text->env_len <= 255 &&
		memchr(text->env, '/', text->env_len) == NULL &&
		memchr(text->env, '\0', text->env_len) == NULL &&
		text->env[0] != '.',
	    "the name is that of a file beside others");
}

static void
check_environment(const struct supervisor_fast *text)
{
	const char *at = text->env;
	const char *end = text->env + text->env_len;

	fuzz_holds(text->env_len > 0 && text->env_len <= sizeof(text->env) &&
		end[-1] == '\0',
	    "the environment is inside its buffer, and ends");
	while (at < end) {
		const char *equals = strchr(at, '=');

		fuzz_holds(equals != NULL && equals > at,
		    "an entry has a name and a value");
		at += strlen(at) + 1;
	}
	fuzz_holds(at == end, "the entries are all of it");
}

static void
check_head(void)
{
	const struct supervisor_plan *plan = &k.plan;

	fuzz_holds(plan->wall_ms > 0 && plan->wall_ms <= LIMIT_WALL_MS,
	    "there is an end");
	fuzz_holds(plan->folder < SUPERVISOR_FOLDER_COUNT && plan->drains <= 1,
	    "a folder and a mode of ours");
	fuzz_holds(plan->output_max <= INT64_MAX && plan->files <= INT64_MAX &&
		plan->bytes <= INT64_MAX && plan->total <= INT64_MAX &&
		plan->how <= INT64_MAX && plan->ms <= INT64_MAX &&
		plan->input == 0 && plan->notes == 0,
	    "nothing is negative");
	for (int i = 0; i < FAST_LIMITS; i++)
		fuzz_holds(k.limits[i] <= INT64_MAX, "no limit is either");
	fuzz_holds(supervisor_fast.display <= 1, "it shows pictures or not");
	if (k.reads == SUPERVISOR_READS_SOURCE) {
		fuzz_holds(supervisor_fast.display == 0,
		    "a person's always does");
		check_name(&supervisor_fast);
		return;
	}
	check_environment(&supervisor_fast);
}

/* Of the last packet, or of one before it. */
static void
check_borrowed(const void *data, size_t size, const uint8_t *packet, size_t len)
{
	const uint8_t *at = data;

	if (at != NULL && at >= packet && at < packet + len)
		fuzz_holds(size <= len - (size_t)(at - packet),
		    "what a file has is inside its packet");
}

static void
check_piece(const uint8_t *packet, size_t len)
{
	const uint8_t *input = k.input;

	check_borrowed(fast_file.name, fast_file.name_len, packet, len);
	check_borrowed(fast_file.data, fast_file.len, packet, len);
	fuzz_holds(fast_file.name_len <= LIMIT_NAME && fast_file.mode <= 0777,
	    "a file has a name and a mode");

	fuzz_holds(supervisor_fast.words_len <= sizeof(supervisor_fast.words),
	    "words are inside their buffer");
	if (input < packet || input >= packet + len)
		return;
	fuzz_holds(k.plan.input > 0 &&
		k.plan.input <= len - (size_t)(input - packet),
	    "standard input is inside its packet");
}

static void
check_whole(void)
{
	const struct supervisor_fast *text = &supervisor_fast;

	if (k.reads == SUPERVISOR_READS_SOURCE)
		return;
	fuzz_holds(text->words[text->words_len - 1] == '\0',
	    "each word has an end");
	fuzz_holds(text->env_len + text->title_len <= sizeof(text->env),
	    "a title is inside its buffer");
	if (fast_file.name != NULL) {
		fuzz_holds(strlen(text->words) == fast_file.name_len &&
			memcmp(text->words, fast_file.name,
			    fast_file.name_len) == 0,
		    "the program is the file");
		return;
	}
	fuzz_holds(text->words_len > 3 && memcmp(text->words, "-c", 3) == 0,
	    "a command");
	fuzz_holds(strlen(text->words + 3) + 3 < text->words_len,
	    "and so has the code");
}

static void
read_all(const uint8_t *data, size_t size, bool personal)
{
	const uint8_t *packet;
	size_t len;
	bool is_head = true;

	k.input = NULL;
	k.reads = personal ? SUPERVISOR_READS_SOURCE : SUPERVISOR_READS_PLAIN;
	while (fuzz_next_packet(&data, &size, &packet, &len)) {
		if (is_head ? !fast_read_head(&k, packet, len) :
			      !fast_read_piece(&k, packet, len))
			return;
		if (is_head)
			check_head();
		else
			check_piece(packet, len);
		is_head = false;
	}
	if (!is_head && fast_is_whole(&k))
		check_whole();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_all(data, size, false);
	read_all(data, size, true);
	return 0;
}
