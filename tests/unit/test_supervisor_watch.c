/* SPDX-License-Identifier: MIT */
/* The process that is watched is a real one; deadlines are only there so that
 * this ends. */
#include "cell/supervisor/watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "protocol/frame.h"
#include "tap.h"

#define LONG_MS 600000
#define MUCH 1000000

/* ---- a process and who has to do with it ---- */

static struct watch watch;
static int client;
static int broker;
static pid_t process;
static size_t got[1 + WATCH_STREAMS]; /* bytes of each stream, the client has */
static char got_last[64];

static void
must(int result)
{
	if (result >= 0)
		return;
	perror("set up");
	exit(1);
}

static void
make_ends(int *ours, int *theirs)
{
	int ends[2];

	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	*ours = ends[0];
	*theirs = ends[1];
}

static void
make_pipe(int *ours, int *theirs, int which)
{
	int ends[2];

	must(pipe2(ends, O_CLOEXEC));
	*ours = ends[which];
	*theirs = ends[1 - which];
	must(fcntl(*ours, F_SETFL, O_NONBLOCK));
}

/* A process that does it, and a watch over it; input: bytes in its file. */
static void
begin(void (*what)(void), size_t input)
{
	static char bytes[MUCH];
	int theirs[3];

	make_ends(&watch.control, &broker);
	make_ends(&watch.lease, &client);
	make_pipe(&watch.feed, &theirs[0], 1);
	make_pipe(&watch.outputs[0], &theirs[1], 0);
	make_pipe(&watch.outputs[1], &theirs[2], 0);
	must(watch.file = memfd_create("input", MFD_CLOEXEC));
	memset(bytes, 'x', sizeof(bytes));
	must((int)write(watch.file, bytes, input));
	watch.file_at = 0;
	watch.file_end = (int64_t)input;
	memset(got, 0, sizeof(got));
	must(process = fork());
	if (process == 0) {
		must(setpgid(0, 0));
		for (int i = 0; i < 3; i++)
			must(dup2(theirs[i], i));
		must((int)syscall(SYS_close_range, 3, ~0U, 0));
		what();
		_exit(7);
	}
	(void)setpgid(process, process); /* or the child */
	for (int i = 0; i < 3; i++)
		(void)close(theirs[i]);
	must(watch.process = (int)syscall(SYS_pidfd_open, process, 0));
}

/* Read the client's end: what is there, or all until its end. */
static void
take(int fd, int how)
{
	static unsigned char packet[FRAME_MAX];
	const unsigned char *data = NULL;
	struct frame_view view;
	int64_t stream = 0;
	ssize_t len;
	size_t size = 0;

	while ((len = recv(fd, packet, sizeof(packet), how)) > 0) {
		if (!frame_parse(&view, packet, (size_t)len) ||
		    view.kind != FRAME_OUTPUT ||
		    !frame_get_int(&view, TAG_STREAM, &stream) || stream < 1 ||
		    stream > WATCH_STREAMS ||
		    !frame_get_bytes(&view, TAG_DATA, &data, &size) ||
		    size == 0) {
			ok(false, "the client gets output and nothing else");
			return;
		}
		got[stream] += size;
		(void)snprintf(got_last, sizeof(got_last), "%.*s", (int)size,
		    (const char *)data);
	}
}

/* Returns the process's wait status. */
static int
end(void)
{
	int status = -1;

	(void)kill(-process, SIGKILL);
	(void)waitpid(process, &status, 0);
	watch_close(&watch);
	watch_close(&watch);
	ok(watch.feed == -1 && watch.outputs[0] == -1 &&
		watch.outputs[1] == -1 && watch.file == -1,
	    "all is closed");
	(void)close(watch.process);
	(void)close(watch.control);
	(void)close(watch.lease);
	if (client >= 0)
		(void)close(client);
	if (broker >= 0)
		(void)close(broker);
	return status;
}

/* To the end, as the supervisor does it.  The client takes nothing before: what
 * it is sent must fit into its socket. */
static enum watch_end
run_to_end(uint64_t wall_ms, uint64_t output_max, bool drains)
{
	enum watch_end ended;

	watch_start(&watch, wall_ms, output_max, drains);
	ended = watch_run(&watch);
	(void)kill(process, SIGKILL);
	if (ended != WATCH_GONE)
		ok(watch_drain(&watch), "what is left");
	take(client, MSG_DONTWAIT);
	return ended;
}

/* ---- actions ---- */

static void
put(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0) {
		ssize_t written = write(fd, at, len);

		if (written < 0)
			_exit(1);
		at += written;
		len -= (size_t)written;
	}
}

static void
say_both(void)
{
	put(1, "out", 3);
	put(2, "error", 5);
}

static void
say_ten(void)
{
	put(1, "12345", 5);
	put(2, "67890", 5);
}

static void
say_much(void)
{
	static char bytes[MUCH];

	put(1, bytes, sizeof(bytes));
	put(2, bytes, sizeof(bytes));
}

static void
wait_for_ever(void)
{
	for (;;)
		(void)pause();
}

static void
say_without_end(void)
{
	for (;;)
		put(1, "x", 1);
}

static void
close_and_wait(void)
{
	char byte;

	(void)close(1);
	(void)close(2);
	while (read(0, &byte, 1) > 0)
		;
}

static void
count_input(void)
{
	static char bytes[MUCH];
	size_t count = 0;
	ssize_t len;
	char text[32];

	while ((len = read(0, bytes, sizeof(bytes))) > 0)
		count += (size_t)len;
	put(1, text, (size_t)snprintf(text, sizeof(text), "%zu", count));
}

static void
close_input(void)
{
	(void)close(0);
	put(1, "closed", 6);
}

static void
leave_one_behind(void)
{
	if (fork() == 0)
		wait_for_ever();
	put(1, "leader", 6);
}

/* ---- tests ---- */

static void
test_output(void)
{
	begin(say_both, 0);
	is_int(run_to_end(LONG_MS, 1000, false), WATCH_ENDED, "it has ended");
	is_int(got[1], 3, "its output");
	is_int(got[2], 5, "its error output");
	is_str(got_last, "error", "the bytes");
	ok(!watch.over && watch.left[0] == 992, "both count together");
	is_int(end(), 7 << 8, "its status is still there");
	begin(close_and_wait, 0);
	is_int(run_to_end(LONG_MS, 1000, false), WATCH_ENDED,
	    "one that closes its output ends, too");
	(void)end();
	begin(leave_one_behind, 0);
	is_int(run_to_end(LONG_MS, 1000, false), WATCH_ENDED,
	    "a child of its is not waited for");
	is_str(got_last, "leader", "what the leader has said");
	(void)end();
}

static void
test_limits(void)
{
	begin(say_ten, 0);
	is_int(run_to_end(LONG_MS, 10, false), WATCH_ENDED, "to the byte");
	is_int(got[1] + got[2], 10, "all of it");
	(void)end();
	begin(say_ten, 0);
	(void)run_to_end(LONG_MS, 9, false);
	ok(watch.over, "a byte more");
	is_int(got[1] + got[2], 9, "is cut off");
	(void)end();
	begin(say_without_end, 0);
	is_int(run_to_end(LONG_MS, 1000, false), WATCH_OUTPUT,
	    "output ends it");
	is_int(got[1], 1000, "at the limit");
	(void)end();
	begin(say_much, 0);
	is_int(run_to_end(LONG_MS, 1000, true), WATCH_ENDED, "or is dropped");
	is_int(got[1], 1000, "behind the limit");
	is_int(got[2], 1000, "of each stream");
	ok(!watch.over, "and that is no fault");
	(void)end();
	begin(say_ten, 0);
	is_int(run_to_end(LONG_MS, 0, true), WATCH_ENDED, "no output at all");
	is_int(got[1] + got[2], 0, "is nothing");
	(void)end();
	begin(say_both, 0);
	is_int(run_to_end(LONG_MS, UINT64_MAX, true), WATCH_ENDED,
	    "the largest limit");
	is_int(got[1] + got[2], 8, "is none");
	(void)end();
}

static void
test_time(void)
{
	begin(wait_for_ever, 0);
	is_int(run_to_end(50, 1000, false), WATCH_TIME, "its time is over");
	(void)end();
	begin(say_without_end, 0);
	is_int(run_to_end(50, 1000, true), WATCH_TIME,
	    "also when it never rests");
	(void)end();
	begin(wait_for_ever, 0);
	is_int(run_to_end(0, 1000, false), WATCH_TIME, "no time at all");
	(void)end();
}

static void
do_nothing(int number)
{
	(void)number;
}

/* A child may end at any moment before the wait begins. */
static void
test_child(void)
{
	static const struct sigaction action = { .sa_handler = do_nothing };
	sigset_t set;

	must(sigaction(SIGCHLD, &action, NULL));
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	begin(wait_for_ever, 0);
	must(sigprocmask(SIG_BLOCK, &set, NULL));
	must(raise(SIGCHLD));
	is_int(run_to_end(300, 1000, false), WATCH_CHILD,
	    "a child that has ended before interrupts the wait");
	(void)end();
	must(sigprocmask(SIG_UNBLOCK, &set, NULL));
	(void)signal(SIGCHLD, SIG_DFL);
}

/* The wait status of a process that does what ends the cell: 0 when it does. */
static int
status_of(void (*what)(void))
{
	pid_t pid = fork();
	int status = -1;

	must(pid);
	if (pid == 0) {
		what();
		_exit(9);
	}
	(void)waitpid(pid, &status, 0);
	return status;
}

static void
drain(void)
{
	(void)watch_drain(&watch);
}

static void
watch_it(void)
{
	watch_start(&watch, LONG_MS, 1000, false);
	/* the process may not have let go of the broker's end yet */
	while (watch_run(&watch) == WATCH_BESIDE)
		;
}

/* A client that takes all, in a process of its own: how much of stream 1? */
static pid_t
start_taking(void)
{
	pid_t pid = fork();

	must(pid);
	if (pid == 0) {
		(void)close(watch.lease);
		take(client, 0);
		_exit(got[1] == MUCH && got[2] == MUCH ? 0 : 1);
	}
	return pid;
}

static void
test_slow_client(void)
{
	int status = -1;
	pid_t taker;

	begin(say_much, 0);
	watch_start(&watch, 200, UINT64_MAX, false);
	is_int(watch_run(&watch), WATCH_TIME,
	    "a client that takes nothing stops no clock");
	ok(watch.pending, "a frame waits");
	(void)close(broker);
	broker = -1;
	is_int(status_of(drain), 0, "until the broker is gone");
	(void)end();

	begin(say_much, 0);
	watch_start(&watch, 200, UINT64_MAX, false);
	is_int(watch_run(&watch), WATCH_TIME, "a frame waits again");
	taker = start_taking();
	watch.deadline += (int64_t)LONG_MS * 1000000;
	is_int(watch_run(&watch), WATCH_ENDED, "all that one can say");
	ok(watch_drain(&watch), "and what is left");
	(void)end(); /* closes the lease: the client sees the end */
	(void)waitpid(taker, &status, 0);
	is_int(status, 0, "goes to the client");
}

static void
test_client_speaks(void)
{
	static const uint8_t enough = FRAME_ENOUGH;
	static const uint8_t go = FRAME_GO;
	static struct frame signal_frame;

	begin(wait_for_ever, 0);
	must((int)send(client, &enough, 1, 0));
	is_int(run_to_end(LONG_MS, 1000, false), WATCH_OUTPUT, "enough");
	(void)end();
	begin(wait_for_ever, 0);
	for (int i = 0; i < 50; i++)
		must((int)send(client, &enough, 1, 0));
	is_int(run_to_end(LONG_MS, 1000, false), WATCH_OUTPUT,
	    "more than enough");
	(void)end();
	begin(wait_for_ever, 0);
	must((int)send(client, &go, 1, 0));
	is_int(run_to_end(LONG_MS, 1000, false), WATCH_GONE, "anything else");
	(void)end();
	frame_start(&signal_frame, FRAME_SIGNAL);
	frame_add_int(&signal_frame, TAG_SIGNAL, SIGTERM);
	begin(wait_for_ever, 0);
	watch.leader = process;
	must((int)send(client, signal_frame.data, signal_frame.len, 0));
	is_int(run_to_end(LONG_MS, 1000, false), WATCH_ENDED, "a signal");
	is_int(WTERMSIG(end()), SIGTERM, "is that of the client's");
	begin(wait_for_ever, 0);
	must(shutdown(client, SHUT_WR));
	is_int(run_to_end(LONG_MS, 1000, false), WATCH_GONE, "half a hang-up");
	(void)end();
}

static void
test_gone(void)
{
	begin(wait_for_ever, 0);
	(void)close(client);
	client = -1;
	watch_start(&watch, LONG_MS, 1000, false);
	is_int(watch_run(&watch), WATCH_GONE, "the client is gone");
	frame_start(&watch.frame, FRAME_RESULT);
	ok(!watch_send(&watch), "also to a result");
	(void)end();
	begin(wait_for_ever, 0);
	(void)close(broker);
	broker = -1;
	is_int(status_of(watch_it), 0, "the broker is gone");
	(void)end();
	begin(wait_for_ever, 0);
	must((int)send(broker, "x", 1, 0));
	watch_start(&watch, LONG_MS, 1000, false);
	is_int(watch_run(&watch), WATCH_BESIDE, "the broker says something");
	frame_start(&watch.frame, FRAME_RESULT);
	ok(watch_send(&watch), "which does not hold up a result");
	(void)close(broker);
	broker = -1;
	is_int(status_of(watch_it), 0, "the broker has spoken, and is gone");
	(void)end();
}

/* The client goes while there is output that it has not been sent. */
static void
test_gone_in_the_end(void)
{
	begin(say_both, 0);
	watch_start(&watch, LONG_MS, 1000, false);
	(void)waitid(P_PID, (id_t)process, &(siginfo_t){ 0 },
	    WEXITED | WNOWAIT);
	(void)close(client);
	client = -1;
	ok(!watch_drain(&watch), "gone when all is over");
	(void)end();
}

static void
test_input(void)
{
	begin(count_input, 0);
	is_int(run_to_end(LONG_MS, 1000, false), WATCH_ENDED, "no input");
	is_str(got_last, "0", "is at its end");
	(void)end();
	begin(count_input, MUCH);
	is_int(run_to_end(LONG_MS, 1000, false), WATCH_ENDED, "much input");
	is_str(got_last, "1000000", "is all there");
	(void)end();
	begin(count_input, MUCH);
	watch.file_at = MUCH - 5;
	is_int(run_to_end(LONG_MS, 1000, false), WATCH_ENDED, "its end");
	is_str(got_last, "5", "alone");
	(void)end();
	begin(count_input, 10);
	watch.file_end = INT64_MAX / 2;
	is_int(run_to_end(LONG_MS, 1000, false), WATCH_ENDED,
	    "a file that is shorter than was said");
	is_str(got_last, "10", "ends where it ends");
	(void)end();
	begin(close_input, MUCH);
	is_int(run_to_end(LONG_MS, 1000, false), WATCH_ENDED,
	    "input that nobody wants");
	is_str(got_last, "closed", "is in nobody's way");
	(void)end();
	begin(wait_for_ever, MUCH);
	is_int(run_to_end(50, 1000, false), WATCH_TIME,
	    "nor one that reads none of it");
	(void)end();
}

static int
count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	if (dir == NULL)
		return -1;
	while (readdir(dir) != NULL)
		count++;
	(void)closedir(dir);
	return count;
}

int
main(void)
{
	int before = count_descriptors();

	(void)signal(SIGPIPE, SIG_IGN); /* as the interpreter does */
	test_output();
	test_limits();
	test_time();
	test_child();
	test_slow_client();
	test_client_speaks();
	test_gone();
	test_gone_in_the_end();
	test_input();
	is_int(count_descriptors(), before, "no descriptor is left");
	return tap_done();
}
