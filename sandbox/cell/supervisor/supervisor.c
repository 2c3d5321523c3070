#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base.h"
#include "children.h"
#include "enclose.h"
#include "jail.h"
#include "run_state.h"
#include "result.h"

#include "../../protocol/frame.h"

size_t
supervisor_size(void)
{
	return sizeof(struct supervisor);
}

int
supervisor_map_user(struct supervisor *k)
{
	const char *failed = jail_map_user(k, k->uid, k->gid);

	return failed == NULL ? SUPERVISOR_DONE : base_fail(k, failed);
}

int
supervisor_surrender(struct supervisor *k, int goes_first)
{
	const char *failed = goes_first != 0 ? jail_go_first(k) : NULL;

	if (failed == NULL)
		failed = jail_surrender(k);
	return failed == NULL ? SUPERVISOR_DONE : base_fail(k, failed);
}

int
supervisor_init(struct supervisor *k)
{
	size_t size = sizeof(*k->state);
	const char *failed = jail_keep_little();
	void *state;

	if (failed != NULL)
		return base_fail(k, failed);
	k->pids = openat(k->proc, "self/ns/pid", O_RDONLY | O_CLOEXEC);
	if (k->pids < 0)
		return base_fail(k, "ns/pid");
	state = mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (state == MAP_FAILED)
		return base_fail(k, "mmap");
	k->state = state;
	if (madvise(state, size, MADV_DONTFORK) < 0)
		return base_fail(k, "madvise");
	k->state->channel = k->state->mounts = -1;
	for (int i = 0; i < SUPERVISOR_FOLDER_COUNT; i++)
		k->state->folders[i] = -1;
	k->state->watch = (struct watch){ .control = k->control,
		.lease = -1,
		.process = -1,
		.feed = -1,
		.outputs = { -1, -1 },
		.file = -1 };
	(void)signal(SIGCHLD, SIG_DFL);
	return SUPERVISOR_DONE;
}

int
supervisor_enclose(struct supervisor *k)
{
	return enclose_jail(k);
}

void
supervisor_release(struct supervisor *k)
{
	enclose_end(k);
}

/* ---- one lease ---- */

/* What becomes of a cell after it. */
enum next {
	NEXT_GO_ON,
	NEXT_RETIRE,
	NEXT_AGAIN, /* the lease still waits: no process was there to take it */
	NEXT_HARVEST, /* in a child */
};

/* Send what the run has left, and the result, from a child. */
static enum next
harvest(struct supervisor *k, bool retire)
{
	struct run_state *state = k->state;
	struct pollfd p[2] = { { .fd = k->control, .events = POLLIN } };
	bool sent = false;
	pid_t pid;

	if (enclose_come_back(k) != NULL)
		return NEXT_RETIRE;
	k->plan = state->plan;
	k->lease = state->watch.lease;
	k->folder = state->folders[state->plan.folder];
	k->file = state->watch.file;
	if (state->watch.frame.len > sizeof(k->result))
		return NEXT_RETIRE; /* not with ten numbers */
	k->result_len = (uint32_t)state->watch.frame.len;
	memcpy(k->result, state->watch.frame.data, state->watch.frame.len);
	pid = children_clone(k);
	if (pid == 0)
		return NEXT_HARVEST; /* without a run state */
	state->run = pid;
	/* the next clone is not to see it */
	memset(&k->plan, 0, sizeof(k->plan));
	memset(k->result, 0, sizeof(k->result));
	state->status = -1;
	p[1].fd = pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
	p[1].events = POLLIN;
	if (p[1].fd >= 0) {
		while (poll(p, 2, -1) < 0 && errno == EINTR)
			;
		if (p[0].revents != 0)
			base_leave();
		sent = children_reap(state, pid) && state->status == 0;
		(void)close(p[1].fd);
	}
	return sent && !retire ? NEXT_GO_ON : NEXT_RETIRE;
}

/* A run, from its start to its result. */
static enum next
oversee(struct supervisor *k)
{
	struct run_state *state = k->state;
	const struct supervisor_plan *plan = &state->plan;
	struct watch *watch = &state->watch;
	enum watch_end end;
	enum watch_end drained;
	int64_t wall;
	bool retire;

	watch->process = (int)syscall(SYS_pidfd_open, state->run, 0);
	if (watch->process < 0)
		return NEXT_RETIRE;
	watch->file_at = 0;
	watch->file_end = (int64_t)plan->input;
	watch_start(watch, plan->wall_ms, plan->output_max, plan->drains != 0);
	end = watch_run(watch);
	if (end == WATCH_LEAVE)
		base_leave();
	wall = watch_now() - watch->started;
	children_kill_all(state);
	if (end == WATCH_GONE)
		return NEXT_RETIRE;
	drained = watch_drain(watch);
	if (drained == WATCH_LEAVE)
		base_leave();
	if (drained == WATCH_GONE)
		return NEXT_RETIRE;
	result_begin(k, end, wall);
	retire = result_is_bad(k, end);
	if (result_add_disk(k, state->folders[plan->folder]) > 0 &&
	    plan->files > 0)
		return harvest(k, retire);
	if (plan->files > 0)
		frame_add_int(&watch->frame, TAG_TOTAL, 0);
	end = watch_send(watch);
	if (end == WATCH_LEAVE)
		base_leave();
	return retire || end == WATCH_GONE ? NEXT_RETIRE : NEXT_GO_ON;
}

static bool
is_plan(const struct supervisor_plan *plan, size_t len)
{
	return len == sizeof(*plan) && plan->folder < SUPERVISOR_FOLDER_COUNT &&
	    plan->wall_ms <= LIMIT_WALL_MS && plan->input <= INT64_MAX / 2 &&
	    plan->notes <= INT64_MAX / 2;
}

/* Hand the next lease to the jail, and wait for the jail's end. */
static enum next
serve_one(struct supervisor *k)
{
	struct run_state *state = k->state;
	size_t len;

	state->watch.lease = base_next_lease(k, MSG_PEEK);
	/* a host that has no memory left takes that process first */
	if (send(state->channel, "1", 1, MSG_NOSIGNAL) < 0)
		return NEXT_AGAIN;
	len = run_state_hear(k);
	if (len > 0) {
		memcpy(&state->plan, state->said, sizeof(state->plan));
		return is_plan(&state->plan, len) ? oversee(k) : NEXT_RETIRE;
	}
	children_kill_all(state);
	if (WIFSIGNALED(state->status)) {
		result_of_nothing(k);
		(void)watch_send(&state->watch);
	}
	return state->status == 0 ? NEXT_GO_ON : NEXT_RETIRE;
}

static void
say_idle(struct supervisor *k, bool retire)
{
	struct frame *frame = &k->state->watch.frame;

	frame_start(frame, FRAME_IDLE);
	if (retire)
		frame_add_int(frame, TAG_RETIRE, 1);
	if (send(k->control, frame->data, frame->len, MSG_NOSIGNAL) < 0)
		base_leave();
}

int
supervisor_keep(struct supervisor *k)
{
	for (;;) {
		enum next next = serve_one(k);
		int role;

		if (next == NEXT_HARVEST)
			return SUPERVISOR_HARVEST;
		enclose_end(k);
		role = enclose_jail(k);
		if (role != SUPERVISOR_DONE)
			return role;
		if (next != NEXT_AGAIN)
			say_idle(k, next == NEXT_RETIRE);
	}
}
