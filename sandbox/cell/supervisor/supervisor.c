/* SPDX-License-Identifier: MIT */
#include "cell/supervisor/supervisor.h"

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

#include "cell/supervisor/base.h"
#include "cell/supervisor/fast_path.h"
#include "cell/supervisor/jail.h"
#include "cell/supervisor/kept.h"
#include "cell/supervisor/run_process.h"

#include "protocol/frame.h"

#define DELIVERY_MS 2
#define MS_NS 1000000
#define SHOWS_AHEAD 8

const uint64_t supervisor_size = sizeof(struct supervisor);

int
supervisor_map_user(struct supervisor *k)
{
	return base_fail(k, jail_map_user(k, k->uid, k->gid));
}

int
supervisor_surrender(struct supervisor *k, int goes_first)
{
	/* beside a kept process it must stay out of reach of that */
	const char *failed = goes_first != 0 && k->kept == 0 ?
	    jail_go_first(k) :
	    NULL;

	if (failed == NULL)
		failed = jail_surrender(k, 0);
	return base_fail(k, failed);
}

/* Map the memory that no clone gets. */
static const char *
make_state(struct supervisor *k)
{
	size_t size = sizeof(*k->state);
	void *state = mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (state == MAP_FAILED)
		return "mmap";
	k->state = state;
	if (madvise(state, size, MADV_DONTFORK) < 0)
		return "madvise";
	k->state->channel = k->state->mounts = k->state->kept.channel = -1;
	for (int i = 0; i < NETWORK_FILES; i++)
		k->state->network.files[i] = -1;
	for (int i = 0; i < SUPERVISOR_FOLDER_COUNT; i++)
		k->state->folders[i] = -1;
	k->state->watch = (struct watch){ .control = k->control,
		.lease = -1,
		.process = -1,
		.word = -1,
		.feed = -1,
		.outputs = { -1, -1 },
		.file = -1 };
	return NULL;
}

int
supervisor_init(struct supervisor *k)
{
	const char *failed = k->jailed != 0 ? jail_keep_little() : NULL;

	if (failed == NULL && k->jailed != 0) {
		k->pids = openat(k->proc, "self/ns/pid", O_RDONLY | O_CLOEXEC);
		failed = k->pids < 0 ? "ns/pid" : NULL;
	}
	if (failed == NULL)
		failed = make_state(k);
	if (failed != NULL)
		return base_fail(k, failed);
	(void)signal(SIGCHLD, SIG_DFL);
	if (k->jailed == 0)
		children_adopt_all(k->state);
	return SUPERVISOR_DONE;
}

/*
 * ---- readers beside a run ----
 *
 * A person's files can be listed and read while their code runs.  Each reader
 * is a process of its own, a clone of PID 1 with the rights of the run and no
 * descriptor but its socket.  The run can kill it, and cannot reach into it.  A
 * reader ends with the run, or when another one comes after LIMIT_LOOK_MS.
 */

/* Returns a free slot, or NULL.  A reader ends by an alarm: one that is still
 * there after that was stopped by the run. */
static struct reader *
find_reader_slot(struct run_state *state)
{
	int64_t before = watch_now() - (int64_t)LIMIT_LOOK_MS * MS_NS;
	struct reader *slot = NULL;

	for (int i = 0; i < RUN_STATE_READERS; i++) {
		struct reader *reader = &state->readers[i];

		if (reader->pid == 0)
			slot = reader;
		else if (reader->since < before)
			(void)kill(reader->pid, SIGKILL);
	}
	return slot;
}

/* Make a reader for the socket that the broker has sent.  True in the child,
 * which is to serve k->lease.  If none can be made the socket is closed. */
static bool
start_reader(struct supervisor *k)
{
	struct reader *slot;
	pid_t pid = -1;
	int fd;

	if (k->reads != SUPERVISOR_READS_SOURCE)
		base_leave(); /* not in a cell of this class */
	fd = base_receive_reader(k);
	slot = find_reader_slot(k->state);
	if (fd >= 0 && slot != NULL)
		pid = children_clone(k);
	if (pid == 0) { /* there is no k->state */
		/* the reader must reach neither the broker nor the client */
		base_close_others(fd);
		k->lease = fd;
		return true;
	}
	if (pid > 0)
		*slot = (struct reader){ pid, watch_now() };
	base_close(&fd);
	return false;
}

/* ---- one run ---- */

/* The next step of a cell after a run. */
enum next {
	NEXT_GO_ON,
	NEXT_RETIRE,  /* a step of ours has failed */
	NEXT_OVER,    /* the lease ends, even if its client has a request */
	NEXT_AGAIN,   /* the lease still waits: its process had died */
	NEXT_HARVEST, /* in a child */
	NEXT_TIDY,
	NEXT_BESIDE,
};

/* Send a result for a request whose process died before it was the run. */
static enum next
report_failure(struct supervisor *k)
{
	run_state_fail_result(k);
	(void)watch_send(&k->state->watch);
	return NEXT_RETIRE;
}

/* Have a child send the files of the run, and the result. */
static enum next
harvest(struct supervisor *k)
{
	struct run_state *state = k->state;
	int done;

	if (jail_leave(k) != NULL)
		return NEXT_RETIRE;
	k->plan = state->plan;
	k->lease = state->watch.lease;
	k->folder = state->folders[state->plan.folder];
	k->file = state->watch.file;
	if (state->watch.frame.len > sizeof(k->result))
		return NEXT_RETIRE; /* not with ten numbers */
	k->result_len = (uint32_t)state->watch.frame.len;
	memcpy(k->result, state->watch.frame.data, state->watch.frame.len);
	done = kept_do(k);
	if (done < 0 && kept_make_room(k))
		done = kept_do(k);
	if (done == 0)
		return NEXT_HARVEST; /* there is no k->state */
	/* hide it from the next clone */
	memset(&k->plan, 0, sizeof(k->plan));
	memset(k->result, 0, sizeof(k->result));
	if (done < 0)
		return report_failure(k);
	return NEXT_GO_ON;
}

/* Is there any file that harvest() would send? */
static bool
leaves_files(struct supervisor *k)
{
	struct supervisor_plan *plan = &k->state->plan;
	int folder = k->state->folders[plan->folder];
	int64_t more;

	if (plan->files == 0)
		return false;
	if (plan->after == SUPERVISOR_IF_ANY)
		return run_state_used_files(k, folder) > 0 &&
		    (plan->inode == 0 || !fast_file_alone(folder, plan));
	if (plan->after == SUPERVISOR_ALWAYS)
		return true;
	more = listing_compare(folder, k->state->watch.file,
	    (int64_t)plan->input, (int64_t)plan->notes);
	/* nothing has changed: the second notes equal the first */
	if (more == 0 && listing_has_name(SUPERVISOR_CODE, SUPERVISOR_PICTURE))
		more = (int64_t)plan->notes;
	if (more > 0)
		plan->notes += (uint64_t)more;
	return more != 0;
}

/* Wait until the run is over.  WATCH_BESIDE: this process is a reader beside
 * it. */
static enum watch_end
await_end(struct supervisor *k)
{
	enum watch_end end;

	for (;;) {
		/* as PID 1 reap orphans, which would fill the container */
		children_reap_ended(k->state);
		end = watch_run(&k->state->watch);
		if (end == WATCH_BESIDE ? start_reader(k) : end != WATCH_CHILD)
			return end;
	}
}

/* Report kept_make_room() among the command's output; a client that is gone is
 * noticed later. */
static void
report_crowded(struct run_state *state)
{
	static const char text[] =
	    "sandbox: earlier commands have left too many processes; all of "
	    "them have been ended\n";
	struct frame *frame = &state->watch.frame;

	frame_start(frame, FRAME_OUTPUT);
	frame_add_int(frame, TAG_STREAM, 2);
	frame_add_bytes(frame, TAG_DATA, text, sizeof(text) - 1);
	(void)watch_send(&state->watch);
	state->crowded = false;
}

/* Begin to watch the run: its output is read, and its time counts.  False: that
 * failed. */
static bool
oversee_begin(struct supervisor *k)
{
	struct run_state *state = k->state;
	const struct supervisor_plan *plan = &state->plan;
	struct watch *watch = &state->watch;

	watch->process = (int)syscall(SYS_pidfd_open, state->run, 0);
	if (watch->process < 0)
		return false;
	enclose_find_folders(k);
	watch->leader = state->run;
	watch->word = plan->keep != 0 ? state->channel : -1;
	watch->file_at = 0;
	watch->file_end = (int64_t)plan->input;
	watch_start(watch, plan->wall_ms, plan->output_max, plan->drains != 0);
	if (state->crowded)
		report_crowded(state);
	return true;
}

/* A run, from its start to its result. */
static enum next
oversee(struct supervisor *k)
{
	struct run_state *state = k->state;
	const struct supervisor_plan *plan = &state->plan;
	struct watch *watch = &state->watch;
	enum watch_end end;
	int64_t wall;
	bool rests;

	if (!oversee_begin(k))
		return NEXT_RETIRE;
	end = await_end(k);
	if (end == WATCH_BESIDE)
		return NEXT_BESIDE;
	wall = watch_now() - watch->started;
	/* before the last output is read, end or stop all writers */
	rests = end == WATCH_RESTS && kept_stop(k);
	if (background_stays(k) && end != WATCH_GONE)
		background_settle(k, end != WATCH_ENDED);
	else if (!rests)
		children_kill_all(state);
	if (end == WATCH_GONE || !watch_drain(watch)) {
		kept_kill(k, KEPT_BROKEN_OFF);
		return NEXT_OVER;
	}
	if (background_stays(k))
		background_release(k);
	if (watch->over)
		kept_kill(k, 0);
	k->kept = state->kept.pid > 0;
	run_state_begin_result(k, end, wall);
	kept_report(k);
	/* the files: no process can change them any more */
	if (leaves_files(k))
		return harvest(k);
	run_state_add_disk(k, state->folders[plan->folder]);
	if (plan->files > 0)
		frame_add_int(&watch->frame, TAG_TOTAL, 0);
	return watch_send(watch) ? NEXT_GO_ON : NEXT_OVER;
}

/* The sender of a plan has read bytes of a client: check it. */
static bool
is_plan(const struct supervisor_plan *plan, size_t len)
{
	return len == sizeof(*plan) && plan->folder < SUPERVISOR_FOLDER_COUNT &&
	    plan->wall_ms <= LIMIT_WALL_MS && plan->input <= INT64_MAX / 2 &&
	    plan->notes <= INT64_MAX / 2 && plan->keep <= 1;
}

/* Has the waiting process a /proc, if the lease's run needs one?  After such a
 * lease SHOWS_AHEAD more processes get one: that costs little, and to replace a
 * process costs as much as a run. */
static bool
has_its_proc(struct supervisor *k)
{
	bool has = k->shows > 0;

	if (k->shown < 0)
		return true;
	if (!jail_has_proc(k)) {
		k->shows -= has;
		return true;
	}
	k->shows = SHOWS_AHEAD;
	return has;
}

/* Hand the next lease to the waiting process, unless it has one, and oversee
 * its run. */
static enum next
serve_lease(struct supervisor *k)
{
	struct run_state *state = k->state;
	size_t len;

	if (state->watch.lease < 0) {
		do {
			if (state->kept.pid > 0)
				kept_wait(k, -1, 0, k->control, POLLIN);
			state->watch.lease = base_next_lease(k, MSG_PEEK);
		} while (state->watch.lease < 0);
		if (!has_its_proc(k))
			return NEXT_AGAIN;
		/* the host may have killed it, for want of memory */
		if (send(state->channel, "1", 1, MSG_NOSIGNAL) < 0)
			return NEXT_AGAIN;
	}
	/* the process sends its plan, or ends without one */
	len = enclose_hear(k);
	if (len > 0) {
		memcpy(&state->plan, state->said, sizeof(state->plan));
		if (!is_plan(&state->plan, len))
			return NEXT_RETIRE;
		kept_begin(k);
		return oversee(k);
	}
	kept_end_others(k);
	return state->status == 0 ? NEXT_OVER : report_failure(k);
}

/* ---- one lease after another ---- */

/* Report to the broker that the next lease may come. */
static void
say_idle(struct supervisor *k, bool retire)
{
	struct frame *frame = &k->state->watch.frame;
	uint8_t stale;

	/* drop a lease whose process died before it received it */
	while (recv(k->control, &stale, 1, MSG_DONTWAIT) > 0)
		;
	frame_start(frame, FRAME_IDLE);
	if (k->state->kept.pid > 0)
		frame_add_int(frame, TAG_KEPT, 1);
	if (retire)
		frame_add_int(frame, TAG_RETIRE, 1);
	if (send(k->control, frame->data, frame->len, MSG_NOSIGNAL) < 0)
		base_leave();
}

/* Wait for the client's next request.  False: it has hung up. */
static bool
has_next_request(struct supervisor *k)
{
	int lease = k->state->watch.lease;
	uint8_t kind;

	kept_wait(k, k->control, 0, lease, POLLIN);
	return recv(lease, &kind, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Remove the files of a lease.  GO_ON, or TIDY in the child that removes
 * folders. */
static enum next
tidy_folders(struct supervisor *k)
{
	bool empty = k->tidies == 0;
	int done = 1;

	empty = listing_empty_folder("/tmp") && empty;
	empty = listing_empty_folder("/dev/shm") && empty;
	empty = listing_empty_folder(SUPERVISOR_CODE) && empty;
	if (!empty)
		done = kept_do(k);
	if (done < 0)
		_exit(1); /* the next lease would find them */
	return done == 0 ? NEXT_TIDY : NEXT_GO_ON;
}

/* The end of a lease in a cell without jails. */
static enum next
end_lease(struct supervisor *k)
{
	struct pollfd p = { .fd = k->control, .events = POLLIN };

	base_close(&k->state->watch.lease);
	/* folders in memory are the kept process's, too */
	if (k->state->kept.pid == 0 && tidy_folders(k) == NEXT_TIDY)
		return NEXT_TIDY;
	say_idle(k, k->lasts == 0);
	/* Let the answer travel first: a processor that forks runs no other
	 * process. */
	(void)TEMP_FAILURE_RETRY(poll(&p, 1, k->once != 0 ? -1 : DELIVERY_MS));
	if (k->once != 0)
		base_leave(); /* the broker has hung up */
	return NEXT_AGAIN;
}

int
supervisor_keep(struct supervisor *k)
{
	struct run_state *state = k->state;
	enum next next = NEXT_AGAIN;
	int role;

	for (;;) {
		/* the process of the next run, before its lease */
		role = state->run > 0 ? SUPERVISOR_DONE : enclose_jail(k);
		if (role != SUPERVISOR_DONE)
			return role;
		if (next != NEXT_AGAIN && k->jailed != 0)
			say_idle(k, next == NEXT_RETIRE);
		next = serve_lease(k);
		if (next == NEXT_HARVEST)
			return SUPERVISOR_HARVEST;
		if (next == NEXT_BESIDE)
			return SUPERVISOR_BESIDE;
		/* the run is over; is the lease, too? */
		enclose_end(k);
		if (k->jailed != 0 || next == NEXT_AGAIN)
			base_close(&state->watch.lease);
		else if (next != NEXT_GO_ON || k->lasts == 0 ||
		    !has_next_request(k))
			next = end_lease(k);
		if (next == NEXT_TIDY)
			return SUPERVISOR_TIDY;
	}
}
