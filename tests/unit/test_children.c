/* SPDX-License-Identifier: MIT */
/* Children: started again after a backoff, and ended stage by stage. */
#include "base/children.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/basics.h"
#include "tap.h"

#define STAGE_MS 300

/* What the children do. */
enum { QUICK, STUBBORN, LAST, KINDS };

static struct child of[KINDS] = {
	[QUICK] = { .name = "quick", .stage = 0, .end_signal = SIGTERM },
	[STUBBORN] = { .name = "stubborn", .stage = 0, .end_signal = SIGQUIT },
	[LAST] = { .name = "last", .stage = 1, .end_signal = SIGTERM },
};
static const struct children_stage stages[] = { { STAGE_MS, 1 },
	{ STAGE_MS, 1 } };
static struct children children;
static int ends[KINDS];
static siginfo_t how[KINDS];
static int ended_last; /* the index */
static int64_t ticks;
static int64_t end_after; /* ticks */

static void
become(void *arg, size_t index, pid_t parent)
{
	sigset_t none;

	(void)arg;
	(void)sigemptyset(&none);
	if (index == STUBBORN) {
		(void)signal(SIGQUIT, SIG_IGN);
		(void)signal(SIGTERM, SIG_DFL);
	}
	(void)setpgid(0, 0);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (index == QUICK || getppid() != parent)
		_exit(3);
	for (;;)
		(void)pause();
}

static void
ended(void *arg, size_t index, const siginfo_t *end)
{
	(void)arg;
	/* the first end: a later one may be ours, at the end of the test */
	if (ends[index]++ == 0)
		how[index] = *end;
	ended_last = (int)index;
}

static void
tick(void *arg)
{
	(void)arg;
	if (++ticks == end_after)
		(void)kill(getpid(), SIGTERM);
}

static void
signalled(void *arg)
{
	(void)arg;
}

static int
run(struct err *err)
{
	children = (struct children){
		.of = of,
		.count = KINDS,
		.stages = stages,
		.stage_count = 2,
		.first_ms = 40,
		.most_ms = 80,
		.steady_ms = 5000,
		.again_ms = 40,
		.become = become,
		.ended = ended,
		.tick = tick,
		.tick_ms = 50,
		.signalled = signalled,
	};
	for (size_t i = 0; i < KINDS; i++) {
		of[i].at_ms = 0;
		of[i].failures = 0;
	}
	memset(ends, 0, sizeof(ends));
	ticks = 0;
	return children_run(&children, err);
}

int
main(void)
{
	struct err err = { 0 };
	int64_t since_ms = clock_monotonic_ms();
	pid_t stranger = fork();

	if (stranger == 0)
		_exit(0);
	end_after = 10;
	is_int(run(&err), 0, "a signal ends all of them");
	ok(ends[QUICK] > 3 && ends[QUICK] < 13,
	    "a child that ends is started again, after pauses");
	is_int(how[QUICK].si_status, 3, "and its status is told");
	is_int(ends[STUBBORN], 1, "others are left alone");
	is_int(how[STUBBORN].si_status, SIGKILL,
	    "one that does not end in time is killed");
	is_int(how[LAST].si_status, SIGTERM, "one that ends is not");
	is_int(ended_last, LAST, "the stages end in their order");
	ok(clock_monotonic_ms() - since_ms >= STAGE_MS,
	    "which have their time");
	ok(waitpid(stranger, NULL, 0) == -1, "strangers are reaped, too");

	children_end(&children);
	is_int(children_run(&children, &err), 0, "nothing is left to end");

	end_after = 1;
	since_ms = clock_monotonic_ms();
	is_int(run(&err), 0, "asked at once");
	ok(clock_monotonic_ms() - since_ms < 10 * STAGE_MS, "they end");
	return tap_done();
}
