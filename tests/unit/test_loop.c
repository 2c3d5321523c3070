/* SPDX-License-Identifier: MIT */
#include "base/loop.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/basics.h"
#include "tap.h"

static struct loop *loop;
static struct buf seen = BUF_INIT(1000);
static struct loop_timer *timers[8];
static int pipes[2][2];

static void
on_stop(void *arg)
{
	(void)arg;
	loop_stop(loop);
}

static void
on_letter(void *arg)
{
	buf_adds(&seen, arg);
}

static void
run_for(int ms)
{
	loop_timer_set(loop, NULL, ms, on_stop, NULL);
	loop_run(loop);
}

static void
on_cancel_itself(void *arg)
{
	(void)arg;
	buf_adds(&seen, "x");
	loop_timer_clear(loop, &timers[0]); /* itself: nothing happens */
	loop_timer_clear(loop, &timers[1]); /* due, but not fired yet */
}

static void
test_timers(void)
{
	int64_t now = clock_monotonic_ms();

	loop_timer_set(loop, NULL, 30, on_letter, (char[]){ "c" });
	loop_timer_set(loop, &timers[0], 10, on_letter, (char[]){ "a" });
	loop_timer_set(loop, NULL, 10, on_letter, (char[]){ "b" });
	loop_timer_set(loop, NULL, -5, on_letter, (char[]){ "0" });
	ok(timers[0] != NULL, "a timer that is set has a mark");
	run_for(60);
	is_str(buf_str(&seen), "0abc", "timers fire in order");
	ok(clock_monotonic_ms() - now >= 60, "not before their time");
	buf_reset(&seen);
	ok(timers[0] == NULL, "which is gone when it has fired");
	loop_timer_set(loop, &timers[0], 0, on_cancel_itself, NULL);
	loop_timer_set(loop, &timers[1], 0, on_letter, (char[]){ "y" });
	loop_timer_set(loop, NULL, 0, on_letter, (char[]){ "z" });
	run_for(10);
	is_str(buf_str(&seen), "xz", "a timer cancels another, and itself");
	buf_reset(&seen);
	loop_timer_set(loop, &timers[0], 0, on_letter, (char[]){ "1" });
	loop_timer_set(loop, &timers[0], 1, on_letter, (char[]){ "2" });
	run_for(10);
	is_str(buf_str(&seen), "2", "a timer replaces the one before it");
	buf_reset(&seen);
	loop_timer_clear(loop, &timers[0]);
}

static void
on_renew(void *arg)
{
	if (write(pipes[0][1], "!", 1) != 1)
		exit(1);
	loop_timer_set(loop, NULL, 0, on_renew, arg);
}

/* Three times, each time as one that is long due. */
static void
on_overdue(void *arg)
{
	static int times;

	buf_adds(&seen, arg);
	if (++times < 3)
		loop_timer_set(loop, NULL, -1000, on_overdue, arg);
}

static void
on_read(void *arg, int fd, uint32_t events)
{
	char c = '?';

	if ((events & EPOLLIN) != 0 && read(fd, &c, 1) == 1)
		buf_addc(&seen, c);
	if (arg != NULL)
		loop_stop(arg);
}

static void
test_starving(void)
{
	loop_timer_set(loop, NULL, 0, on_renew, NULL);
	loop_add(loop, pipes[0][0], EPOLLIN, on_read, loop);
	loop_run(loop);
	ok(strchr(buf_str(&seen), '!') != NULL,
	    "a timer without delay does not starve descriptors");
	loop_remove(loop, pipes[0][0]);
	buf_reset(&seen);
	loop_free(loop);
	loop = loop_new();
	loop_timer_set(loop, NULL, 0, on_overdue, (char[]){ "r" });
	loop_timer_set(loop, NULL, 0, on_letter, (char[]){ "b" });
	run_for(10);
	is_str(buf_str(&seen), "rbrr", "and one that is overdue no timer");
	buf_reset(&seen);
}

/* Whichever is called first removes the other, whose event is pending. */
static void
on_remove_other(void *arg, int fd, uint32_t events)
{
	int other = fd == pipes[0][0] ? pipes[1][0] : pipes[0][0];

	(void)arg;
	(void)events;
	buf_adds(&seen, "r");
	loop_remove(loop, other);
	loop_remove(loop, fd);
}

static void
on_stale(void *arg, int fd, uint32_t events)
{
	(void)arg;
	(void)fd;
	if ((events & EPOLLIN) != 0)
		buf_adds(&seen, "s");
}

/* Whichever is first replaces the other by a new watch of the same number. */
static void
on_replace_other(void *arg, int fd, uint32_t events)
{
	int other = fd == pipes[0][0] ? pipes[1][0] : pipes[0][0];
	int fresh[2];

	(void)arg;
	(void)events;
	buf_adds(&seen, "n");
	loop_remove(loop, fd);
	loop_remove(loop, other);
	if (pipe2(fresh, O_CLOEXEC) != 0)
		exit(1);
	(void)dup3(fresh[0], other, O_CLOEXEC);
	(void)close(fresh[0]);
	(void)close(fresh[1]);
	loop_add(loop, other, 0, on_stale, NULL);
}

static void
test_descriptors(void)
{
	for (int i = 0; i < 2; i++)
		loop_add(loop, pipes[i][0], EPOLLIN, on_read, NULL);
	ok(write(pipes[1][1], "ab", 2) == 2, "two bytes");
	run_for(30);
	is_str(buf_str(&seen), "ab", "a callback for each, level-triggered");
	buf_reset(&seen);
	loop_remove(loop, pipes[0][0]);
	loop_remove(loop, pipes[0][0]);
	loop_remove(loop, pipes[1][0]);
	for (int i = 0; i < 2; i++)
		loop_add(loop, pipes[i][0], EPOLLIN, on_remove_other, NULL);
	ok(write(pipes[0][1], "d", 1) + write(pipes[1][1], "e", 1) == 2,
	    "both are ready at one time");
	run_for(10);
	is_str(buf_str(&seen), "r", "a removed one is not called");
	buf_reset(&seen);
	for (int i = 0; i < 2; i++)
		loop_add(loop, pipes[i][0], EPOLLIN, on_replace_other, NULL);
	run_for(10);
	is_str(buf_str(&seen), "n",
	    "a stale event does not reach a new watch of the same number");
	buf_reset(&seen);
}

static void
test_stop_first(void)
{
	loop_stop(loop);
	loop_run(loop);
	ok(true, "a loop that was stopped before does not run");
}

int
main(void)
{
	for (int i = 0; i < 2; i++)
		if (pipe2(pipes[i], O_CLOEXEC | O_NONBLOCK) != 0)
			return 1;
	loop = loop_new();
	test_timers();
	test_starving();
	test_descriptors();
	test_stop_first();
	loop_timer_set(loop, &timers[0], INT64_MAX, on_stop, NULL);
	loop_free(loop);
	loop_free(NULL);
	buf_release(&seen);
	return tap_done();
}
