/* SPDX-License-Identifier: MIT */
/* sandbox/rest/limiter.c, with a clock that is made up: what one process learns
 * holds for all, whoever is killed, whatever stands in the file. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/basics.h"
#include "rest/limiter.h"
#include "tap.h"

#define NOW INT64_C(1800000000000) /* a whole minute */
#define MINUTE INT64_C(60000)
#define WORKERS 256 /* slots 0 to 255 */
#define BAN 10000   /* Discord's */

static char path[128];

static struct limiter *
open_anew(void)
{
	struct err err = { 0 };

	(void)unlink(path);
	return limiter_open(path, &err);
}

static int64_t
left(const struct limiter *limiter, int64_t now_ms)
{
	return limiter_read_state(limiter, now_ms).blocked_ms;
}

static void
test_block(void)
{
	struct limiter *limiter = open_anew();

	is_int(left(limiter, NOW), 0, "nothing is blocked at first");
	ok(!limiter_is_over(limiter, NOW), "and no block has ended");
	ok(limiter_block(limiter, NOW, 5000), "a block begins");
	is_int(left(limiter, NOW + 4000), 1000, "and lasts");
	ok(!limiter_block(limiter, NOW + 1000, 2000), "a shorter one is in it");
	is_int(left(limiter, NOW + 4000), 1000, "and changes nothing");
	ok(!limiter_block(limiter, NOW + 1000, 9000), "a longer one goes on");
	is_int(left(limiter, NOW + 4000), 6000, "for longer");
	ok(!limiter_is_over(limiter, NOW + 9999), "it has not ended");
	is_int(left(limiter, NOW + 10000), 0, "until it is over");
	ok(limiter_is_over(limiter, NOW + 10000),
	    "somebody is told of the end");
	ok(!limiter_is_over(limiter, NOW + 10000), "and nobody else");
	ok(limiter_block(limiter, NOW, INT64_MAX), "whatever is asked for");
	is_int(left(limiter, NOW), LIMITER_BLOCK_MOST_MS,
	    "an hour is the most");
	limiter_close(limiter);
}

static void
test_window(void)
{
	struct limiter *limiter = open_anew();

	for (int i = 0; i < 7; i++)
		(void)limiter_count(limiter, NOW + 59999);
	(void)limiter_count(limiter, NOW + 3 * MINUTE);
	is_int(limiter_read_state(limiter, NOW + 3 * MINUTE).invalid, 8,
	    "counted");
	is_int(limiter_read_state(limiter, NOW + 10 * MINUTE + 59998).invalid,
	    8, "for ten minutes at least");
	is_int(limiter_read_state(limiter, NOW + 11 * MINUTE).invalid, 1,
	    "and a minute more at most");
	is_int(limiter_read_state(limiter, NOW).invalid, 7,
	    "what is to come does not count, should the clock be set back");
	limiter_close(limiter);
}

static void
test_halt(void)
{
	struct limiter *limiter = open_anew();
	int began = 0;

	for (int i = 0; i < LIMITER_HALT; i++)
		began += limiter_count(limiter, NOW);
	is_int(began, 0, "so many stop nobody");
	is_int(left(limiter, NOW), 0, "and block nothing");
	ok(limiter_count(limiter, NOW), "one more begins a block");
	is_int(left(limiter, NOW), LIMITER_HALT_MS, "of a minute");
	ok(limiter_count(limiter, NOW + 2 * MINUTE),
	    "and the next one another");
	is_int(left(limiter, NOW + 2 * MINUTE), LIMITER_HALT_MS, "of a minute");
	limiter_close(limiter);
}

/* Each request of as many workers as there may be is invalid, for two hours: an
 * exchange takes 20 ms, and all begin before any has ended. */
static void
test_never_near_the_ban(void)
{
	enum { STEP = 20, SPAN = 10 * 60 * 1000 / STEP };
	struct limiter *limiter = open_anew();
	int *sent = calloc(SPAN, sizeof(*sent));
	int window = 0;
	int most = 0;

	for (int step = 0; step < 12 * SPAN; step++) {
		int64_t now_ms = NOW + (int64_t)step * STEP;

		window -= sent[step % SPAN];
		sent[step % SPAN] = 0;
		if (left(limiter, now_ms) == 0)
			sent[step % SPAN] = WORKERS;
		for (int i = 0; i < sent[step % SPAN]; i++)
			(void)limiter_count(limiter, now_ms);
		window += sent[step % SPAN];
		most = window > most ? window : most;
	}
	ok(most > LIMITER_HALT && most < BAN / 2,
	    "all workers together stay far from the ban");
	printf("# %d in ten minutes at most\n", most);
	free(sent);
	limiter_close(limiter);
}

/* A block that a killed process noted holds for all processes, also for later
 * ones. */
static void
test_processes(void)
{
	struct limiter *limiter = open_anew();
	struct limiter_state state = { 0 };
	struct err err = { 0 };
	char byte = 'x';
	int pipes[2];
	pid_t pid;

	(void)!pipe(pipes);
	pid = fork();
	if (pid == 0) {
		struct limiter *own = limiter_open(path, &err);

		for (int i = 0; i < 300; i++)
			(void)limiter_count(own, NOW);
		(void)limiter_block(own, NOW, 7000);
		(void)!write(pipes[1], &byte, 1);
		for (;;)
			(void)limiter_block(own, NOW, 7000);
	}
	(void)!read(pipes[0], &byte, 1);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	is_int(left(limiter, NOW), 7000, "a block that another has learnt");
	is_int(limiter_read_state(limiter, NOW).invalid, 300, "its count");
	limiter_close(limiter);
	limiter = limiter_open(path, &err);
	is_int(left(limiter, NOW), 7000, "the same for the next process");
	is_int(limiter_read_file(path, NOW, &state, &err), 0, "an operator");
	is_int(state.blocked_ms, 7000, "sees the block");
	is_int(state.invalid, 300, "and the count");
	limiter_close(limiter);
	(void)close(pipes[0]);
	(void)close(pipes[1]);
}

/* Every byte may be wrong. */
static void
test_contents(void)
{
	struct limiter *limiter = open_anew();
	struct err err = { 0 };
	int64_t worst = 0;

	limiter_close(limiter);
	srandom(1);
	for (int round = 0; round < 2000; round++) {
		int64_t words[12];
		int fd = open(path, O_WRONLY | O_CLOEXEC);

		for (size_t i = 0; i < 12; i++) {
			words[i] = ((int64_t)random() << 32) ^ random();
			if (round % 3 == 1)
				words[i] = NOW + words[i] % (1 << 28);
			if (round % 3 == 2)
				words[i] = -1;
		}
		(void)!write(fd, words, sizeof(words));
		(void)close(fd);
		limiter = limiter_open(path, &err);
		(void)limiter_count(limiter, NOW);
		if (left(limiter, NOW) > worst)
			worst = left(limiter, NOW);
		(void)limiter_is_over(limiter, NOW);
		(void)limiter_block(limiter, NOW, 1);
		if (left(limiter, NOW) == 0)
			worst = INT64_MAX;
		limiter_close(limiter);
	}
	ok(worst > 0 && worst <= LIMITER_BLOCK_MOST_MS,
	    "no contents block for more than an hour");
}

static bool
opens(void)
{
	struct err err = { 0 };
	struct limiter *limiter = limiter_open(path, &err);

	limiter_close(limiter);
	return limiter != NULL;
}

static void
test_files(void)
{
	struct limiter_state state;
	struct err err = { 0 };
	struct limiter *own = limiter_open(NULL, &err);
	char other[160];

	(void)limiter_block(own, NOW, 1000);
	is_int(left(own, NOW), 1000, "one without a file works the same");
	limiter_close(own);

	(void)unlink(path);
	ok(limiter_read_file(path, NOW, &state, &err) < 0,
	    "nothing to read yet");
	ok(opens() && opens(), "made, and opened again");
	ok(truncate(path, 0) == 0 && opens(), "empty: its maker was killed");
	ok(truncate(path, 95) == 0 && !opens(), "not another size");
	ok(limiter_read_file(path, NOW, &state, &err) < 0,
	    "nor for an operator");
	if (geteuid() == 0) {
		(void)unlink(path);
		ok(opens() && chown(path, 1, 1) == 0 && !opens(),
		    "not another's");
		is_int(limiter_read_file(path, NOW, &state, &err), 0,
		    "which an operator may read");
	}
	(void)unlink(path);
	(void)snprintf(other, sizeof(other), "%s.other", path);
	(void)close(open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	ok(symlink(other, path) == 0 && !opens(), "no link");
	(void)unlink(path);
	ok(mkfifo(path, 0600) == 0 && !opens(), "no FIFO");
	(void)unlink(path);
	ok(mkdir(path, 0700) == 0 && !opens(), "no folder");
	(void)rmdir(path);
}

int
main(void)
{
	(void)snprintf(path, sizeof(path), "%s/brake", tap_folder());
	test_block();
	test_window();
	test_halt();
	test_never_near_the_ban();
	test_processes();
	test_contents();
	test_files();
	return tap_done();
}
