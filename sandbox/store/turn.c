#include "turn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/clock.h"

#define MODE 0660 /* fronts and workers are one group */
#define PATH_BYTES 8192
/* A signal may fall between the timer and the wait: it comes again. */
#define AGAIN_NS 50000000L

static void
on_timer(int signal_number)
{
	(void)signal_number;
}

/* A wait for a lock is ended by nothing but a signal. */
static int
make_timer(timer_t *timer)
{
	struct sigaction action = { .sa_handler = on_timer };
	struct sigevent event = {
		.sigev_notify = SIGEV_SIGNAL,
		.sigev_signo = SIGRTMIN,
	};

	if (sigaction(SIGRTMIN, &action, NULL) != 0)
		return -1;
	return timer_create(CLOCK_MONOTONIC, &event, timer);
}

void
turn_open(struct turn *turn, const char *database)
{
	auto_buf struct buf path = BUF_INIT(PATH_BYTES);

	*turn = (struct turn){ .fd = -1 };
	buf_addf(&path, "%s-turn", database);
	if (make_timer(&turn->timer) != 0)
		return;
	turn->fd = open(buf_str(&path),
	    O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, MODE);
	if (turn->fd < 0)
		(void)timer_delete(turn->timer);
	else
		(void)fchmod(turn->fd, MODE); /* whatever the umask is */
}

void
turn_close(struct turn *turn)
{
	if (turn->fd < 0)
		return;
	(void)close(turn->fd);
	(void)timer_delete(turn->timer);
	turn->fd = -1;
}

static void
set_timer(struct turn *turn, int timeout_ms)
{
	struct itimerspec when = {
		.it_value = { .tv_sec = timeout_ms / 1000,
		    .tv_nsec = timeout_ms % 1000 * 1000000L },
		.it_interval = { .tv_nsec = timeout_ms > 0 ? AGAIN_NS : 0 },
	};

	(void)timer_settime(turn->timer, 0, &when, NULL);
}

static bool
wait_for_it(struct turn *turn, int timeout_ms)
{
	int64_t until_ms = clock_monotonic_ms() + timeout_ms;
	bool taken;

	set_timer(turn, timeout_ms);
	do
		taken = flock(turn->fd, LOCK_EX) == 0;
	while (!taken && errno == EINTR && clock_monotonic_ms() < until_ms);
	set_timer(turn, 0);
	return taken;
}

bool
turn_take(struct turn *turn, int timeout_ms)
{
	if (turn->fd < 0 || turn->held)
		return true;
	turn->held = flock(turn->fd, LOCK_EX | LOCK_NB) == 0 ||
	    (errno == EWOULDBLOCK && wait_for_it(turn, timeout_ms));
	return turn->held;
}

void
turn_give(struct turn *turn)
{
	if (!turn->held)
		return;
	(void)flock(turn->fd, LOCK_UN);
	turn->held = false;
}
