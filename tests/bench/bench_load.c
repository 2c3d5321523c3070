/* SPDX-License-Identifier: MIT */
/*
 * The load generator of `make bench`: one process, one thread, one epoll.
 *
 *	bench_load [-c] [-a APPLICATION] [-k SEED] [-l FD] [-r ROOT] MODE …
 *
 *	alternate COUNT BLOCK GAP_MS TARGET…
 *	sustain LANES ROUNDS MS,MS… TARGET…
 *	burst LANES TARGET
 *	beside ROUNDS PHASE_MS DELAY_MS,PAUSE_MS ALONE BESIDE OTHER…
 *	people LANES EVERY_MS ROUNDS TARGET
 *	first SINCE_US MOST_MS TARGET
 *	discord				(answers edits until it is killed)
 *
 * drive.h describes the drivers, target.h the targets.  Times are taken
 * here, where the bytes leave and arrive; each answer is checked.  It prints
 * one JSON object; the status is 1 when anything was wrong.
 *
 * -c: a new connection for each request.  -k, -a: sign with this seed, as this
 * application.  -l: FD listens where Discord's REST API is expected.  -r:
 * programs are started in this root.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/loop.h"
#include "base/text.h"
#include "discord.h"
#include "drive.h"

#define TARGETS_MAX 8

struct options {
	const char *seed;
	const char *root;
	int64_t application;
	int64_t listen_fd;
	bool fresh;
};

struct words {
	int count;
	char **word;
};

static _Noreturn void
usage(const char *what)
{
	fprintf(stderr, "bench_load: %s; the head of bench_load.c tells\n",
	    what);
	exit(64);
}

static int64_t
number(const char *text)
{
	int64_t value;

	if (text == NULL || !text_parse_int(text, 0, INT64_MAX, &value))
		usage(text != NULL ? text : "a number is missing");
	return value;
}

static const char *
next(struct words *words)
{
	if (words->count == 0)
		usage("a word is missing");
	words->count--;
	return *words->word++;
}

/* token: "lane-NUMBER-…", of command_sign(). */
static void
on_edit(void *arg, const char *token, const char *body, size_t len)
{
	struct bench *bench = arg;
	struct lane *lane;
	size_t number;

	if (strncmp(token, "lane-", 5) != 0)
		return;
	number = (size_t)strtoull(token + 5, NULL, 10);
	lane = number < bench->lane_count ? bench->lanes[number] : NULL;
	if (lane != NULL && lane->target->type->edited != NULL)
		lane->target->type->edited(lane, token, body, len);
}

static size_t
open_targets(struct target *targets, struct words *words)
{
	size_t n = 0;

	while (words->count > 0) {
		if (n == TARGETS_MAX)
			usage("too many targets");
		target_open(&targets[n++], next(words));
	}
	if (n == 0)
		usage("no target");
	return n;
}

static void
enter(const char *root)
{
	if (root != NULL && (chroot(root) != 0 || chdir("/") != 0)) {
		perror(root);
		exit(1);
	}
}

/* "5000,2000": a time for each target. */
static void
parse_times(const char *text, int64_t *times, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char *end = NULL;

		times[i] = strtoll(text, &end, 10);
		if (end == text || times[i] < 0)
			usage("a time for each");
		text = *end == ',' ? end + 1 : end;
	}
}

static size_t
run_mode(struct bench *bench, struct target *targets, struct words *words,
    const char *root)
{
	const char *mode = next(words);
	const char *first = next(words);
	const char *second = strcmp(mode, "burst") == 0 ? "0" : next(words);
	const char *third = strcmp(mode, "burst") == 0 ||
		strcmp(mode, "first") == 0 ?
	    "0" :
	    next(words);
	size_t n = open_targets(targets, words);
	int64_t times[TARGETS_MAX];

	enter(root);
	if (strcmp(mode, "sustain") == 0) {
		parse_times(third, times, n);
		drive_sustain(bench, targets, n, number(first), times,
		    number(second));
	} else if (strcmp(mode, "alternate") == 0) {
		drive_alternate(bench, targets, n, number(first),
		    number(second), number(third));
	} else if (strcmp(mode, "beside") == 0 && n >= 2) {
		parse_times(third, times, 2);
		drive_beside(bench, targets, n, number(first), number(second),
		    times);
	} else if (strcmp(mode, "burst") == 0) {
		drive_burst(bench, targets, number(first));
	} else if (strcmp(mode, "people") == 0) {
		drive_people(bench, targets, number(first), number(second),
		    number(third));
	} else if (strcmp(mode, "first") == 0) {
		drive_first(bench, targets, number(first), number(second));
	} else {
		usage(mode);
	}
	return n;
}

static double
cpu_seconds(void)
{
	struct rusage usage;

	(void)getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	    (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Returns the number of errors. */
static uint64_t
report(struct target *targets, size_t n, double cpu_s, double wall_s)
{
	uint64_t errors = 0;

	printf("{\"cpu_s\":%.4f,\"wall_s\":%.4f,\"targets\":[", cpu_s, wall_s);
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			printf(",");
		target_print(&targets[i], stdout);
		errors += targets[i].errors;
		target_release(&targets[i]);
	}
	printf("]}\n");
	return errors;
}

static void
parse_options(struct options *options, int argc, char **argv)
{
	for (int c; (c = getopt(argc, argv, "+a:ck:l:r:")) != -1;) {
		switch (c) {
		case 'a':
			options->application = number(optarg);
			break;
		case 'c':
			options->fresh = true;
			break;
		case 'k':
			options->seed = optarg;
			break;
		case 'l':
			options->listen_fd = number(optarg);
			break;
		case 'r':
			options->root = optarg;
			break;
		default:
			usage("unknown option");
		}
	}
}

int
main(int argc, char **argv)
{
	struct options options = { .listen_fd = -1 };
	struct bench bench = { .loop = loop_new() };
	struct target targets[TARGETS_MAX];
	struct discord *discord = NULL;
	struct words words;
	uint64_t errors;
	int64_t started_us;
	double cpu_s;
	size_t n;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGPIPE, SIG_IGN);
	parse_options(&options, argc, argv);
	words = (struct words){ argc - optind, argv + optind };
	bench.fresh = options.fresh;
	bench.null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (options.seed != NULL &&
	    !signer_init(&bench.signer, options.seed, options.application))
		usage("a seed is 64 hex digits");
	if (options.listen_fd >= 0)
		discord = discord_new(bench.loop, (int)options.listen_fd,
		    on_edit, &bench);
	if (words.count == 1 && strcmp(words.word[0], "discord") == 0)
		loop_run(bench.loop);
	bench_watch(&bench);
	started_us = clock_monotonic_us();
	cpu_s = cpu_seconds();
	n = run_mode(&bench, targets, &words, options.root);
	errors = report(targets, n, cpu_seconds() - cpu_s,
	    (double)(clock_monotonic_us() - started_us) / 1e6);
	discord_free(discord);
	loop_free(bench.loop);
	free(bench.lanes);
	return errors == 0 ? 0 : 1;
}
