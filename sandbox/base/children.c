/* SPDX-License-Identifier: MIT */
#include "base/children.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/fd.h"

static bool
is_end(const siginfo_t *change)
{
	return change->si_code == CLD_EXITED || change->si_code == CLD_KILLED ||
	    change->si_code == CLD_DUMPED;
}

/* A child has changed.  After its end it is due after a pause, which grows
 * while it keeps ending soon after its start. */
static void
child_note(struct children *c, size_t index, const siginfo_t *change)
{
	struct child *child = &c->of[index];
	int64_t now_ms = clock_monotonic_ms();
	int64_t pause_ms = c->again_ms;

	child->stopped = change->si_code == CLD_STOPPED;
	/* Only an end that was not asked for is worth a warning. */
	log_at(c->asked > 0 && child->stage <= c->stage ? LOG_LEVEL_DEBUG :
							  LOG_LEVEL_WARN,
	    change->si_code == CLD_EXITED ? "%s ended with status %d" :
		is_end(change)		  ? "%s was ended by signal %d" :
		child->stopped		  ? "%s was stopped by signal %d" :
					    "%s goes on after signal %d",
	    child->name, change->si_status);
	if (!is_end(change))
		return;
	child->pid = 0;
	c->ended(c->arg, index, change);
	if (now_ms - child->at_ms > c->steady_ms)
		child->failures = 0;
	else
		pause_ms = clock_backoff_ms(c->first_ms, c->most_ms,
		    child->failures++);
	child->at_ms = now_ms + pause_ms;
	if (c->asked == 0)
		log_info("%s starts again in %lld ms", child->name,
		    (long long)pause_ms);
}

/* Children of ours that are not in the table are reaped, too. */
static void
children_collect(struct children *c)
{
	const int changes = WSTOPPED | WCONTINUED;
	siginfo_t info = { 0 };
	size_t i;

	while (waitid(P_ALL, 0, &info, changes | WEXITED | WNOHANG | WNOWAIT) ==
		0 &&
	    info.si_pid != 0) {
		for (i = 0; i < c->count && c->of[i].pid != info.si_pid; i++)
			;
		if (i < c->count && is_end(&info))
			(void)kill(-info.si_pid, SIGKILL);
		if (waitid(P_PID, (id_t)info.si_pid, &info,
			WNOHANG | (is_end(&info) ? WEXITED : changes)) == 0 &&
		    info.si_pid != 0 && i < c->count)
			child_note(c, i, &info);
		info.si_pid = 0;
	}
}

/* Start the children that are due.  Returns when the next one is. */
static int64_t
children_start(struct children *c, int signals)
{
	int64_t now_ms = clock_monotonic_ms();
	int64_t next_ms = INT64_MAX;
	pid_t parent = getpid();

	for (size_t i = 0; i < c->count; i++) {
		struct child *child = &c->of[i];

		if (child->pid == 0 && child->at_ms <= now_ms) {
			child->pid = fork();
			child->at_ms = now_ms;
			if (child->pid == 0) {
				(void)close(signals);
				c->become(c->arg, i, parent);
			}
		}
		if (child->pid < 0) {
			log_err("%s: fork: %m", child->name);
			child->pid = 0;
			child->at_ms = now_ms + c->most_ms;
		}
		if (child->pid == 0 && child->at_ms < next_ms)
			next_ms = child->at_ms;
	}
	return next_ms;
}

/* Send a signal to all of the stage that is being ended: 0, which only counts
 * them, SIGKILL, or the one that each child has for its end. */
static size_t
stage_signal(const struct children *c, int number)
{
	size_t left = 0;

	for (size_t i = 0; i < c->count; i++) {
		const struct child *child = &c->of[i];

		if (child->pid == 0 || child->stage != c->stage)
			continue;
		left++;
		if (number == SIGKILL)
			log_warn("%s did not end in time: killed", child->name);
		(void)kill(child->pid,
		    number == SIGTERM ? child->end_signal : number);
	}
	return left;
}

/* Signal the first stage that has any left.  Returns its deadline; -1: there is
 * no stage left. */
static int64_t
children_stop(struct children *c)
{
	const struct children_stage *stage;
	int64_t now_ms = clock_monotonic_ms();
	bool late;

	while (stage_signal(c, 0) == 0) {
		c->told = 0;
		if (++c->stage >= c->stage_count)
			return -1;
	}
	stage = &c->stages[c->stage];
	late = c->told == c->asked && now_ms >= c->deadline_ms;
	if (late || c->told < c->asked) {
		(void)stage_signal(c,
		    late || c->asked > stage->calm ? SIGKILL : SIGTERM);
		c->told = c->asked;
		c->deadline_ms = now_ms + stage->ms;
	}
	return c->deadline_ms;
}

void
children_end(struct children *children)
{
	children->by_itself = children->asked == 0;
	children->asked++;
}

/* Wait for a signal until then.  True: it asks for the end. */
static bool
children_wait(struct children *c, int signals, int64_t until_ms)
{
	struct pollfd p[] = { { .fd = signals, .events = POLLIN },
		{ .fd = c->watched > 0 ? c->watched : -1, .events = POLLIN } };
	struct signalfd_siginfo info;
	int count = poll(p, 2, clock_poll_timeout(until_ms));

	c->news = count > 0 && p[1].revents != 0;
	return count > 0 && p[0].revents != 0 &&
	    read(signals, &info, sizeof(info)) == sizeof(info) &&
	    info.ssi_signo != SIGCHLD && !fd_signal_is_echo(&c->asked_ms);
}

int
children_run(struct children *c, struct err *err)
{
	auto_close int signals = fd_signals(true, err);
	int64_t tick_at_ms = 0;
	int64_t next_ms = signals < 0 ? -1 : 0;

	while (next_ms >= 0 && (c->asked == 0 || !c->linger)) {
		if (children_wait(c, signals, next_ms)) {
			if (!c->by_itself) {
				c->signalled(c->arg);
				c->asked++;
			}
			c->by_itself = false;
		}
		children_collect(c);
		next_ms = c->asked > 0 ? children_stop(c) :
					 children_start(c, signals);
		if (c->asked > 0 || (c->tick_ms == 0 && c->watched == 0))
			continue;
		if (c->news || clock_monotonic_ms() >= tick_at_ms) {
			c->tick(c->arg);
			tick_at_ms = c->tick_ms > 0 ?
			    clock_monotonic_ms() + c->tick_ms :
			    INT64_MAX;
		}
		if (next_ms > tick_at_ms)
			next_ms = tick_at_ms;
	}
	return signals < 0 ? -1 : 0;
}
