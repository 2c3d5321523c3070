/* SPDX-License-Identifier: MIT */
#include "cell/supervisor/base.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "cell/supervisor/kept.h"
#include "cell/supervisor/run_process.h"
#include "protocol/frame.h"
#include "tap.h"

static struct run_state own;
static struct supervisor supervisor = { .state = &own,
	.ooms = -1,
	.control = -1 };

/* ---- text ---- */

static void
test_text(void)
{
	static char step[300];
	char why[SUPERVISOR_WHY_MAX];

	is_int(base_number("0"), 0, "nought");
	is_int(base_number(" \t10 20"), 10, "ten, after blanks");
	is_int(base_number("x1"), 0, "no number");
	ok(base_number("99999999999999999999999") > 0, "a number that is long");
	is_int(base_describe(why, "mount", 13), 8, "length of a reason");
	is_str(why, "mount 13", "a reason");
	memset(step, 'x', sizeof(step) - 1);
	ok(base_describe(why, step, -1) < sizeof(why), "a reason that is long");
	is_int(why[strlen(why) - 1], '1', "keeps its number");
	errno = EPERM;
	is_int(base_fail(&supervisor, "step"), SUPERVISOR_FAILED, "a failure");
	is_str(supervisor.why, "step 1", "says why");
}

static int
write_counter(const char *text)
{
	int fd = memfd_create("counter", MFD_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		exit(1);
	return fd;
}

static void
test_ooms(void)
{
	static const struct {
		const char *text;
		int64_t count;
	} files[] = {
		{ "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\n"
		  "oom_group_kill 6\n",
		    5 },
		{ "oom_kill_disable 1\nunder_oom 2\noom_kill 3\n", 3 },
		{ "oom_kill 7", 7 },
		{ "oom_kill_disable 1\n", 0 },
		{ "xoom_kill 1\n", 0 },
		{ "", 0 },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		supervisor.ooms = write_counter(files[i].text);
		is_int(run_state_count_ooms(&supervisor), files[i].count,
		    "kills by the memory limit");
		base_close(&supervisor.ooms);
	}
	is_int(run_state_count_ooms(&supervisor), 0, "without a counter");
}

/* ---- children ---- */

static int hooks;

static void
note_before(void)
{
	hooks = hooks * 10 + 1;
}

static void
note_parent(void)
{
	hooks = hooks * 10 + 2;
	errno = ENOENT;
}

static void
note_child(void)
{
	hooks = hooks * 10 + 3;
}

static pid_t
start(int status, int number)
{
	pid_t pid = children_clone(&supervisor);

	if (pid == 0 && number != 0)
		(void)raise(number);
	while (pid == 0 && status < 0)
		(void)pause();
	if (pid == 0)
		_exit(hooks == 13 ? status : 99);
	hooks = 0;
	return pid;
}

static void
test_children(void)
{
	supervisor.before_fork = note_before;
	supervisor.in_parent = note_parent;
	supervisor.in_child = note_child;
	errno = EAGAIN;
	own.run = children_clone(&supervisor);
	if (own.run == 0)
		_exit(hooks == 13 ? 5 : 99);
	is_int(hooks, 12, "the interpreter is told of a fork");
	is_int(errno, EAGAIN, "and its errno is not");
	hooks = 0;
	own.status = -1;
	is_int(children_reap(&own, 0), own.run, "reaped");
	is_int(own.status, 5 << 8, "its status");
	is_int(children_reap(&own, 0), -1, "there is no other");
	own.run = start(0, SIGKILL);
	own.init = start(-1, 0);
	(void)start(0, 0);
	children_kill_all(&own);
	is_int(own.init, 0, "the jail's init has been ended");
	is_int(own.status, SIGKILL, "the run had come to its own end");
	is_int(children_reap(&own, WNOHANG), -1, "nobody is left");
	children_kill_all(&own);
	ok(true, "which may be said twice");
}

/* A child with one task, which ends with this status. */
static int
send_child(int status)
{
	int done = kept_do(&supervisor);

	if (done == 0)
		_exit(status);
	return done;
}

static void
test_tasks(void)
{
	is_int(send_child(0), 1, "a task that is done");
	is_int(send_child(3), -1, "one that is not");
	own.cpu_us = own.rss_kib = 0;
	own.run = start(0, 0);
	(void)start(0, 0);
	children_kill_all(&own);
	ok(own.cpu_us > 0 && own.rss_kib > 0, "all that was reaped counts");
}

/* ---- the channels ---- */

static void
make_ends(int *ours, int *theirs)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		exit(1);
	*ours = ends[0];
	*theirs = ends[1];
}

static void
test_hear(void)
{
	static char big[4 * RUN_STATE_SAID_MAX];
	int broker;
	int run;

	make_ends(&supervisor.control, &broker);
	make_ends(&own.channel, &run);
	ok(send(broker, "x", 1, 0) == 1 && send(run, "12", 2, 0) == 2, "said");
	is_int(enclose_hear(&supervisor), 2,
	    "a lease that waits is in nobody's way");
	is_str(own.said, "12", "what is heard");
	memset(big, 'x', sizeof(big));
	ok(send(run, big, sizeof(big), 0) > 0, "a flood");
	is_int(enclose_hear(&supervisor), RUN_STATE_SAID_MAX - 1, "is cut off");
	is_int(own.said[RUN_STATE_SAID_MAX - 1], '\0', "and ends");
	base_close(&run);
	is_int(enclose_hear(&supervisor), 0, "it has ended");
	is_str(own.said, "", "nothing");
	base_close(&own.channel);
	base_close(&broker);
	base_close(&supervisor.control);
}

static void
send_lease(int broker, uint8_t kind, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} extra = { { 0 } };
	struct iovec part = { .iov_base = &kind, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = fd < 0 ? NULL : extra.bytes,
		.msg_controllen = fd < 0 ? 0 : sizeof(extra.bytes) };

	extra.head.cmsg_level = SOL_SOCKET;
	extra.head.cmsg_type = SCM_RIGHTS;
	extra.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&extra.head), &fd, sizeof(fd));
	if (sendmsg(broker, &message, 0) != 1)
		exit(1);
}

/* The exit status of a process that asks for a lease now. */
static int
ask_for_lease(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		(void)base_next_lease(&supervisor, 0);
		_exit(77);
	}
	(void)waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void
test_lease(void)
{
	char byte = 0;
	int broker;
	int ends[2];
	int fd;

	make_ends(&supervisor.control, &broker);
	make_ends(&ends[0], &ends[1]);
	send_lease(broker, FRAME_SERVE, ends[1]);
	for (int i = 0; i < 3; i++) {
		fd = base_next_lease(&supervisor, i < 2 ? MSG_PEEK : 0);
		ok(fd >= 0 && send(fd, "x", 1, 0) == 1 &&
			recv(ends[0], &byte, 1, 0) == 1,
		    i < 2 ? "a lease, to look at" : "and to take");
		base_close(&fd);
	}
	send_lease(broker, FRAME_SERVE, -1);
	is_int(ask_for_lease(), 1, "a lease without its descriptor");
	send_lease(broker, FRAME_GRANTED, ends[1]);
	is_int(ask_for_lease(), 1, "a descriptor without its lease");
	base_close(&broker);
	is_int(ask_for_lease(), 0, "the broker is gone");
	base_close(&supervisor.control);
	base_close(&ends[0]);
	base_close(&ends[1]);
}

/* ---- results ---- */

static int64_t
told(enum frame_tag tag)
{
	const struct frame *frame = &own.watch.frame;
	struct frame_view view;
	int64_t value = -1;

	if (!frame_parse(&view, frame->data, frame->len) ||
	    view.kind != FRAME_RESULT)
		return -2;
	(void)frame_get_int(&view, tag, &value);
	return value;
}

static void
finish(enum watch_end end, int status)
{
	own.status = status;
	run_state_begin_result(&supervisor, end, 5000999);
}

static void
test_result(void)
{
	own.cpu_us = 4000006;
	own.rss_kib = 5;
	own.watch.over = false;
	supervisor.ooms = write_counter("oom_kill 3\n");
	own.ooms = 3;
	finish(WATCH_ENDED, 7 << 8);
	is_int(told(TAG_REASON), REASON_EXIT, "it has ended");
	is_int(told(TAG_STATUS), 7, "with its status");
	is_int(told(TAG_WALL_US), 5000, "after so long");
	is_int(told(TAG_CPU_US), 4000006, "with so much work");
	is_int(told(TAG_MAX_RSS), 5120, "and so much memory");
	finish(WATCH_ENDED, SIGSEGV);
	is_int(told(TAG_REASON), REASON_SIGNAL, "a signal");
	is_int(told(TAG_SIGNAL), SIGSEGV, "which");
	finish(WATCH_ENDED, SIGKILL);
	is_int(told(TAG_REASON), REASON_SIGNAL, "killed, not for memory");
	finish(WATCH_TIME, SIGKILL);
	is_int(told(TAG_REASON), REASON_TIME, "time");
	is_int(told(TAG_SIGNAL), -1, "without the signal that was ours");
	finish(WATCH_OUTPUT, SIGKILL);
	is_int(told(TAG_REASON), REASON_OUTPUT, "output");
	own.watch.over = true;
	finish(WATCH_ENDED, 0);
	is_int(told(TAG_REASON), REASON_OUTPUT, "output, seen in the end");
	own.watch.over = false;
	own.ooms = 2;
	finish(WATCH_ENDED, SIGKILL);
	is_int(told(TAG_REASON), REASON_MEMORY, "memory");
	is_int(told(TAG_SIGNAL), SIGKILL, "by this signal");
	finish(WATCH_ENDED, 0);
	is_int(told(TAG_REASON), REASON_EXIT, "memory of a child of its");
	run_state_fail_result(&supervisor);
	is_int(told(TAG_REASON), REASON_MEMORY, "killed before it began");
	own.ooms = 3;
	run_state_fail_result(&supervisor);
	is_int(told(TAG_REASON), REASON_ERROR, "by somebody else");
	base_close(&supervisor.ooms);
}

int
main(void)
{
	test_text();
	test_ooms();
	test_children();
	test_tasks();
	test_hear();
	test_lease();
	test_result();
	return tap_done();
}
