/* SPDX-License-Identifier: MIT */
#include "target.h"

#include <stdlib.h>
#include <string.h>

#include "base/basics.h"
#include "base/loop.h"

#define FILE_MOST (16 << 20)
#define EXCERPT 120
#define LATE_MS 60000.0
#define WATCH_MS 1000

static const struct target_type *const types[] = { &target_eval, &target_post,
	&target_ping, &target_ack, &target_command, &target_spawn };

static _Noreturn void
usage(const char *spec)
{
	fprintf(stderr, "bench_load: what is %s?\n", spec);
	exit(64);
}

static void
read_file(struct buf *out, const char *path)
{
	FILE *file = fopen(path, "re");
	char *room = buf_reserve(out, FILE_MOST);

	if (file == NULL) {
		perror(path);
		exit(1);
	}
	buf_commit(out, fread(room, 1, FILE_MOST, file));
	(void)fclose(file);
}

static void
split(struct target *target, const char *text)
{
	for (int i = 0; i < target->type->words; i++) {
		size_t len = strcspn(text, ":");

		target->words[i] = xstrndup(text, len);
		buf_init(&target->files[i], FILE_MOST + 1);
		if (*target->words[i] == '/')
			read_file(&target->files[i], target->words[i]);
		text += len;
		text += *text == ':';
	}
	if (*text != '\0')
		usage(target->spec);
}

void
target_open(struct target *target, const char *spec)
{
	size_t len = strcspn(spec, ":");

	*target = (struct target){ .spec = spec };
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strlen(types[i]->name) == len &&
		    strncmp(types[i]->name, spec, len) == 0)
			target->type = types[i];
	}
	if (target->type == NULL || spec[len] == '\0')
		usage(spec);
	split(target, spec + len + 1);
}

void
target_release(struct target *target)
{
	for (int i = 0; i < target->type->words; i++) {
		free(target->words[i]);
		buf_release(&target->files[i]);
	}
	samples_release(&target->whole);
	samples_release(&target->first);
}

static void
print_string(const char *text, FILE *out)
{
	(void)fputc('"', out);
	for (const char *p = text; *p != '\0'; p++) {
		unsigned char c = (unsigned char)*p;

		if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
			fprintf(out, "\\u%04x", c);
		else
			(void)fputc(c, out);
	}
	(void)fputc('"', out);
}

void
target_print(struct target *target, FILE *out)
{
	fprintf(out, "{\"spec\":");
	print_string(target->spec, out);
	fprintf(out,
	    ",\"errors\":%llu,\"error\":", (unsigned long long)target->errors);
	print_string(target->error, out);
	fprintf(out,
	    ",\"counted\":%llu,\"seconds\":%.4f,\"cpu_s\":%.4f,"
	    "\"whole\":",
	    (unsigned long long)target->counted, target->seconds,
	    target->cpu_s);
	samples_print(&target->whole, out);
	fprintf(out, ",\"first\":");
	samples_print(&target->first, out);
	fprintf(out, "}");
}

static void
on_watch(void *arg)
{
	struct bench *bench = arg;

	for (size_t i = 0; i < bench->lane_count; i++) {
		const struct lane *lane = bench->lanes[i];

		if (lane == NULL || !lane->busy || lane_ms(lane) < LATE_MS)
			continue;
		fprintf(stderr, "bench_load: no end for a minute: %s\n",
		    lane->target->spec);
		exit(1);
	}
	bench_watch(bench);
}

void
bench_watch(struct bench *bench)
{
	loop_timer_set(bench->loop, NULL, WATCH_MS, on_watch, bench);
}

struct lane *
lane_new(struct bench *bench, struct target *target, size_t index)
{
	struct lane *lane = xcalloc(1, sizeof(*lane));

	lane->bench = bench;
	lane->target = target;
	lane->index = index;
	lane->number = bench->lane_count;
	bench->lanes = xrealloc(bench->lanes,
	    (bench->lane_count + 1) * sizeof(*bench->lanes));
	bench->lanes[bench->lane_count++] = lane;
	lane->state = target->type->open(lane);
	return lane;
}

void
lane_free(struct lane *lane)
{
	lane->bench->lanes[lane->number] = NULL;
	lane->target->type->release(lane);
	free(lane);
}

void
lane_prepare(struct lane *lane)
{
	if (lane->target->type->prepare != NULL)
		lane->target->type->prepare(lane);
}

void
lane_start(struct lane *lane)
{
	lane->ended_us = 0;
	lane->started_us = clock_monotonic_us();
	lane->busy = true;
	lane->target->type->start(lane);
}

double
lane_ms(const struct lane *lane)
{
	int64_t ended_us = lane->ended_us != 0 ? lane->ended_us :
						 clock_monotonic_us();

	return (double)(ended_us - lane->started_us) / 1000.0;
}

void
lane_done(struct lane *lane, const char *error)
{
	struct target *target = lane->target;

	lane->busy = false;
	if (error == NULL) {
		samples_add(&target->whole, lane_ms(lane));
	} else if (target->errors++ == 0) {
		(void)snprintf(target->error, sizeof(target->error), "%s",
		    error);
	}
	lane->done(lane->arg, lane);
}

void
lane_fail(struct lane *lane, const char *what, const char *text, size_t len)
{
	char error[200];

	(void)snprintf(error, sizeof(error), "%s: %.*s", what,
	    len < EXCERPT ? (int)len : EXCERPT, text != NULL ? text : "");
	lane_done(lane, error);
}
