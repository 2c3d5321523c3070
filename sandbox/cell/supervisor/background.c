/* SPDX-License-Identifier: MIT */
#include "background.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base.h"
#include "children.h"
#include "processes.h"
#include "run_state.h"

#define MS_NS 1000000
#define QUIET_MS 1000

bool
background_stays(const struct supervisor *k)
{
	return k->lasts != 0 && k->once != 0 && k->state->plan.end_all == 0;
}

/* ---- a command that was cut short ---- */

/* Returns when the command began, in ticks; it has not been reaped. */
static int64_t
began(const struct supervisor *k)
{
	char name[21];
	char text[PROCESSES_TEXT_MAX];

	name[base_decimal(name, (uint64_t)k->state->run)] = '\0';
	(void)processes_read(k, name, "/stat", text);
	return processes_number(processes_field(text, STAT_STARTED));
}

/* Kill what the command has begun.  It leads a session (run_process.c); a
 * process that has left that has a later one, and is no older.  Processes that
 * an earlier command's begin meanwhile are told by their parents.  One signal
 * stops all, so that none makes another meanwhile. */
static void
end_its(struct supervisor *k)
{
	int64_t until = watch_now() + (int64_t)QUIET_MS * MS_NS;
	int64_t since = began(k);
	struct timespec moment = { .tv_nsec = MS_NS };
	static const sigset_t none;

	(void)kill(-1, SIGSTOP);
	while (processes_kill(k, 0, k->state->run, since) > 0) {
		if (watch_now() >= until) {
			children_kill_all(k->state);
			return;
		}
		(void)ppoll(NULL, 0, &moment, &none);
	}
	(void)kill(-1, SIGCONT);
}

void
background_reap(struct supervisor *k)
{
	while (children_reap(k->state, WNOHANG) > 0)
		;
}

/* The command's process is dead, or dies. */
void
background_settle(struct supervisor *k, bool cut)
{
	struct run_state *state = k->state;

	if (cut) {
		state->spares = false;
		end_its(k);
	}
	while (state->run > 0 && state->status == -1 &&
	    children_reap(state, 0) > 0)
		;
	background_reap(k);
}

/* ---- its pipes ---- */

/* Neither the broker nor the client can be spoken to from here. */
static void
keep_only(const int fds[WATCH_STREAMS])
{
	for (int i = 0; i < WATCH_STREAMS; i++)
		if (fds[i] >= 0)
			(void)dup2(fds[i], i);
		else
			(void)close(i);
	(void)syscall(SYS_close_range, WATCH_STREAMS, ~0U, 0);
}

static _Noreturn void
read_for_nobody(void)
{
	static char bytes[4096];
	struct pollfd p[WATCH_STREAMS];
	int open = WATCH_STREAMS;

	for (int i = 0; i < WATCH_STREAMS; i++)
		p[i] = (struct pollfd){ i, POLLIN, 0 };
	while (open > 0) {
		(void)poll(p, WATCH_STREAMS, -1);
		for (int i = 0; i < WATCH_STREAMS; i++) {
			if (p[i].fd < 0 || p[i].revents == 0 ||
			    ((p[i].revents & POLLIN) != 0 &&
				read(i, bytes, sizeof(bytes)) != 0))
				continue;
			p[i].fd = -1;
			open--;
		}
	}
	_exit(0);
}

void
background_release(struct supervisor *k)
{
	struct watch *watch = &k->state->watch;
	int fds[WATCH_STREAMS];
	int open = 0;

	for (int i = 0; i < WATCH_STREAMS; i++) {
		fds[i] = watch->outputs[i];
		open += fds[i] >= 0;
	}
	if (open == 0 || children_reap(k->state, WNOHANG) < 0)
		return;
	if (children_clone(k) == 0) { /* which has no state */
		keep_only(fds);
		read_for_nobody();
	}
}
