/* SPDX-License-Identifier: MIT */
#include "protocol/counters.h"

#include <assert.h>
#include <libgen.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/config.h"
#include "base/fd.h"
#include "base/file.h"

static_assert(ATOMIC_LLONG_LOCK_FREE == 2,
    "other processes must see whole numbers");

/* A file of another version may have other places. */
#define VERSION "-" INLINE_VERSION

/* Folders that their programs may write to. */
static const struct {
	const char *path;
	mode_t folder; /* if it is missing */
} files[COUNTERS_PROGRAMS] = {
	[COUNTERS_OF_API] = { "sessions/counters" VERSION, 0700 },
	[COUNTERS_OF_BROKER] = { "broker/counters" VERSION, 0755 },
	[COUNTERS_OF_FRONT] = { "front/counters" VERSION, 0750 },
	[COUNTERS_OF_WORKER] = { "worker/counters" VERSION, 0755 },
};

#define WORD(name, word) [name] = (word),
#define LABEL(set, COUNT, key, words) \
	const char *const set##_words[COUNTERS_##set + 1] = { words };
#define LIST(set, count, key, ...) \
	const char *const set##_words[COUNTERS_##set + 1] = { __VA_ARGS__ };
#include "protocol/counters.def"
#undef WORD

const int64_t histogram_ends_ms[HISTOGRAM_ENDS] = { 1, 2, 5, 10, 20, 50, 100,
	200, 500, 1000, 2000, 5000, 20000, 60000 };

struct counters *
counters_open(const struct config *config, enum counters_of program)
{
	static struct counters unseen;
	auto_free char *path = config_state_path(config, files[program].path);
	auto_free char *copy = xstrdup(path);
	struct counters *counters = NULL;
	struct err err;

	if (fd_make_dirs(dirname(copy), files[program].folder, &err) == 0)
		counters = shared_file_open(path, sizeof(*counters), &err);
	/* A file that is none of ours is begun anew. */
	if (counters == NULL && err.code == ERR_CONFIG && unlink(path) == 0)
		counters = shared_file_open(path, sizeof(*counters), &err);
	if (counters != NULL)
		return counters;
	log_warn("nothing is counted: %s", err.text);
	return &unseen;
}

/* The file is not mapped here: the program that owns it could cut it off. */
int
counters_read(const struct config *config, enum counters_of program,
    struct counters *copy, struct err *err)
{
	auto_free char *path = config_state_path(config, files[program].path);
	auto_buf struct buf bytes = BUF_INIT(sizeof(*copy));

	if (file_read(path, &bytes, err) != 0)
		return -1;
	if (bytes.len != sizeof(*copy))
		return err_set(err, ERR_CONFIG, "%s: of another size", path);
	memcpy(copy, bytes.data, sizeof(*copy));
	return 0;
}

/* The bucket is the first one that is large enough. */
void
histogram_observe(struct histogram *h, int64_t us)
{
	size_t bucket = 0;

	if (us < 0)
		us = 0; /* the clock was set back */
	while (bucket < HISTOGRAM_ENDS && us > histogram_ends_ms[bucket] * 1000)
		bucket++;
	h->buckets[bucket]++;
	h->sum_us += us;
}

size_t
counters_status(const char *const *words, int status)
{
	size_t i = 0;
	char word[16] = "none";

	if (status != 0)
		(void)snprintf(word, sizeof(word), "%d", status);
	while (strcmp(words[i], word) != 0 && words[i + 1] != NULL)
		i++;
	return i;
}
