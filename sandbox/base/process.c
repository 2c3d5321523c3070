/* SPDX-License-Identifier: MIT */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <dirent.h>
#include <stddef.h>

#include "base/basics.h"
#include "base/text.h"

#define SLICE_NS 100000 /* the least that the kernel gives */
#define FIRST (-10)
#define FIRST_TEXT "-10"

#define CHUNK 16384
/* Most bytes to read once the program is dead: a process that escaped its group
 * may write for ever, and a pipe holds 64 KiB (1 MiB when enlarged). */
#define DRAIN_MAX (2 * 1024 * 1024)

/* The three pipes of a program, by the descriptor that it has, and the one that
 * reports a failed exec. */
enum { PIPE_IN, PIPE_OUT, PIPE_ERR, PIPE_STATUS, PIPES };

struct pipes {
	int ends[PIPES][2];
};

static void
process_pipes_release(struct pipes *pipes)
{
	for (int i = 0; i < PIPES; i++) {
		cleanup_close(&pipes->ends[i][0]);
		cleanup_close(&pipes->ends[i][1]);
	}
}

/* Without input the program reads /dev/null. */
static bool
process_pipes_open(struct pipes *pipes, bool with_input)
{
	bool good = true;

	for (int i = 0; i < PIPES; i++) {
		int *ends = pipes->ends[i];

		ends[0] = ends[1] = -1;
		if (i == PIPE_IN && !with_input)
			ends[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		else
			(void)!pipe2(ends, O_CLOEXEC);
		good = good && ends[0] >= 0;
	}
	return good;
}

/* In the child: only 0, 1, 2 stay.  Above 2 first, so that none of the four is
 * overwritten before it is in place (we may have been started without 0-2). */
static int
process_child_descriptors(const struct pipes *pipes)
{
	int moved[PIPES];

	for (int i = 0; i < PIPES; i++) {
		moved[i] = fcntl(pipes->ends[i][i == PIPE_IN ? 0 : 1],
		    F_DUPFD_CLOEXEC, 3);
		if (moved[i] < 0)
			_exit(127);
	}
	for (int i = PIPE_IN; i <= PIPE_ERR; i++)
		if (dup2(moved[i], i) < 0)
			_exit(127);
	(void)syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */);
	return moved[PIPE_STATUS];
}

/* In the child: become the program. */
static void __attribute__((noreturn))
process_child(const struct process_spec *spec, const struct pipes *pipes,
    pid_t parent)
{
	/* exec does not write there; its argument only has no const. */
	union {
		const char *const *in;
		char *const *out;
	} argv = { .in = spec->argv };
	int status = process_child_descriptors(pipes);
	struct sigaction standard = { .sa_handler = SIG_DFL };
	sigset_t none;
	int why;

	(void)setpgid(0, 0);
	/* It may have died between fork and prctl. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		_exit(127);
	/* Signals are as every program expects to find them. */
	for (int number = 1; number < NSIG; number++)
		(void)sigaction(number, &standard, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)execvp(argv.out[0], argv.out);
	why = errno;
	(void)!write(status, &why, sizeof(why));
	_exit(127);
}

/* Wait until exec closed the pipe, or the reason why it did not come. */
static int
process_wait_exec(int status, const char *program, struct err *err)
{
	int why = 0;
	ssize_t n = TEMP_FAILURE_RETRY(read(status, &why, sizeof(why)));

	if (n == 0)
		return 0;
	errno = n == (ssize_t)sizeof(why) ? why : EIO;
	(void)err_system(err, "start %s", program);
	if (errno == ENOENT)
		err->code = ERR_NOT_FOUND;
	return -1;
}

/* The end: reap it, and close all that is ours of it. */
static void
process_reap(struct process *p)
{
	(void)TEMP_FAILURE_RETRY(waitpid(p->pid, NULL, 0));
	p->pid = -1;
	cleanup_close(&p->in_fd);
	cleanup_close(&p->out_fd);
	cleanup_close(&p->err_fd);
	cleanup_close(&p->pidfd);
}

/* Pipes, fork, and then the answer whether exec came. */
int
process_start(struct process *p, const struct process_spec *spec,
    struct err *err)
{
	__attribute__((cleanup(process_pipes_release))) struct pipes pipes;
	pid_t parent = getpid();
	int rc;

	*p = (struct process){ .pid = -1,
		.pidfd = -1,
		.in_fd = -1,
		.out_fd = -1,
		.err_fd = -1,
		.deadline_ms = -1,
		.input = spec->input,
		.input_left = spec->input != NULL ? spec->input_len : 0 };
	buf_init(&p->result.out, spec->output_max);
	buf_init(&p->result.err, spec->output_max);
	if (!process_pipes_open(&pipes, p->input_left > 0))
		return err_system(err, "make pipes");
	p->pid = fork();
	if (p->pid == 0)
		process_child(spec, &pipes, parent);
	if (p->pid < 0)
		return err_system(err, "fork for %s", spec->argv[0]);
	/* Our ends go into p, nonblocking. */
	p->in_fd = steal_fd(&pipes.ends[PIPE_IN][1]);
	p->out_fd = steal_fd(&pipes.ends[PIPE_OUT][0]);
	p->err_fd = steal_fd(&pipes.ends[PIPE_ERR][0]);
	if (p->in_fd >= 0)
		(void)fcntl(p->in_fd, F_SETFL, O_NONBLOCK);
	(void)fcntl(p->out_fd, F_SETFL, O_NONBLOCK);
	(void)fcntl(p->err_fd, F_SETFL, O_NONBLOCK);
	cleanup_close(&pipes.ends[PIPE_STATUS][1]);
	rc = process_wait_exec(pipes.ends[PIPE_STATUS][0], spec->argv[0], err);
	if (rc == 0) {
		p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
		if (p->pidfd < 0)
			rc = err_system(err, "pidfd_open");
	}
	if (rc != 0) {
		process_release(p);
		return -1;
	}
	if (p->input_left > 0)
		(void)signal(SIGPIPE, SIG_IGN); /* it may stop reading */
	if (spec->timeout_ms > 0)
		p->deadline_ms = clock_monotonic_ms() + spec->timeout_ms;
	return 0;
}

/* Write what the pipe takes of the input; at its end close it. */
static void
process_feed(struct process *p)
{
	while (p->in_fd >= 0 && p->input_left > 0) {
		ssize_t n = TEMP_FAILURE_RETRY(write(p->in_fd, p->input,
		    p->input_left));

		if (n < 0 && errno == EAGAIN)
			return;
		/* A program may stop reading: no error. */
		if (n < 0)
			break;
		p->input += n;
		p->input_left -= (size_t)n;
	}
	cleanup_close(&p->in_fd);
}

/* Read what is there, keep the first max bytes and drop the rest. */
static void
process_drain(int *fd, struct buf *b)
{
	char data[CHUNK];

	for (size_t total = 0; *fd >= 0 && total < DRAIN_MAX;) {
		ssize_t n = TEMP_FAILURE_RETRY(read(*fd, data, sizeof(data)));
		size_t room = b->max - b->len;

		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			cleanup_close(fd);
			return;
		}
		buf_add(b, data, (size_t)n < room ? (size_t)n : room);
		b->overflow = b->overflow || (size_t)n > room;
		total += (size_t)n;
	}
}

bool
process_pump(struct process *p)
{
	siginfo_t info = { 0 };
	bool ended;

	if (p->pid < 0)
		return true;
	process_feed(p);
	/* Asked before reading: all that it wrote is in the pipes by then.  It
	 * is not reaped yet, so that its id and its group's cannot be
	 * another's. */
	ended = waitid(P_PID, (id_t)p->pid, &info,
		    WEXITED | WNOHANG | WNOWAIT) != 0 ||
	    info.si_pid == p->pid;
	process_drain(&p->out_fd, &p->result.out);
	process_drain(&p->err_fd, &p->result.err);
	if (!ended) {
		if (p->deadline_ms < 0 || clock_monotonic_ms() < p->deadline_ms)
			return false;
		(void)kill(-p->pid, SIGKILL);
		p->result.outcome = PROCESS_TIMED_OUT;
		p->deadline_ms = -1;
		return false;
	}
	/* The rest of the group is killed, then the program is reaped. */
	(void)kill(-p->pid, SIGKILL);
	process_reap(p);
	if (p->result.outcome != PROCESS_TIMED_OUT &&
	    info.si_code != CLD_EXITED)
		p->result.outcome = PROCESS_SIGNALED;
	p->result.code = info.si_status;
	return true;
}

void
process_release(struct process *p)
{
	if (p == NULL)
		return;
	if (p->pid > 0) {
		(void)kill(-p->pid, SIGKILL);
		process_reap(p);
	}
	process_result_release(&p->result);
}

int
process_run(const struct process_spec *spec, struct process_result *result,
    struct err *err)
{
	struct process p;

	*result = (struct process_result){ 0 };
	if (process_start(&p, spec, err) != 0)
		return -1;
	while (!process_pump(&p)) {
		struct pollfd items[] = {
			{ .fd = p.pidfd, .events = POLLIN },
			{ .fd = p.out_fd, .events = POLLIN },
			{ .fd = p.err_fd, .events = POLLIN },
			{ .fd = p.in_fd, .events = POLLOUT },
		};

		(void)poll(items, 4, clock_poll_timeout(p.deadline_ms));
	}
	*result = p.result;
	return 0;
}

void
process_result_release(struct process_result *result)
{
	if (result == NULL)
		return;
	buf_release(&result->out);
	buf_release(&result->err);
}

bool
process_succeeded(const struct process_result *result)
{
	return result->outcome == PROCESS_EXITED && result->code == 0;
}

/* The first line that says something. */
struct process_end
process_describe(const struct process_result *result)
{
	auto_buf struct buf clean = BUF_INIT(4096);
	size_t len = result->err.len < 1000 ? result->err.len : 1000;
	bool exited = result->outcome == PROCESS_EXITED;
	struct process_end end;
	char what[40];
	const char *line;

	if (exited || result->outcome == PROCESS_SIGNALED)
		(void)snprintf(what, sizeof(what), "%s %d",
		    exited ? "exited with" : "killed by signal", result->code);
	else
		(void)snprintf(what, sizeof(what), "%s",
		    result->outcome == PROCESS_TIMED_OUT ? "timed out" :
							   "did not start");
	text_add_clean(&clean, buf_str(&result->err), len);
	line = buf_str(&clean);
	line += strspn(line, " \t\n");
	len = strcspn(line, "\n");
	(void)snprintf(end.text, sizeof(end.text), "%s%s%.*s", what,
	    len > 0 ? ": " : "", (int)len, line);
	return end;
}

int
process_of_peer(int sock)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
		return -1;
	if (peer.pid <= 0) {
		errno = EXDEV;
		return -1;
	}
	return (int)syscall(SYS_pidfd_open, peer.pid, 0);
}

void
process_extend_path(void)
{
	const char *old = getenv("PATH");
	auto_free char *path = xprintf("%s:/usr/local/sbin:/usr/sbin:/sbin",
	    old != NULL && *old != '\0' ? old : "/usr/local/bin:/usr/bin:/bin");

	(void)setenv("PATH", path, 1);
}

/* ---- this process ---- */

void
process_take_short_slices(void)
{
	struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = SCHED_NORMAL,
		.sched_nice = getpriority(PRIO_PROCESS, 0),
		.sched_runtime = SLICE_NS,
	};

	(void)syscall(SYS_sched_setattr, 0, &attr, 0);
}

/*
 * Outside of control groups the kernel makes a group of each session (sched(7),
 * "The autogroup feature").  A nice value counts inside of it only; beside
 * containers, the group's counts.
 */
void
process_come_first(void)
{
	auto_close int group = open("/proc/self/autogroup",
	    O_WRONLY | O_CLOEXEC);

	(void)setpriority(PRIO_PROCESS, 0, FIRST);
	if (group >= 0)
		(void)!write(group, FIRST_TEXT, sizeof(FIRST_TEXT) - 1);
}

/* ---- the Docker CLI ---- */

#define VERSION_MS 3000
#define VERSION_MAX 1024

bool
docker_cli_forgets_rates(const char *text)
{
	const char *version = strstr(text, "version ");
	int major = 0;
	int minor = 0;
	int patch = 0;

	if (version == NULL)
		return false;
	/* NOLINTNEXTLINE(cert-err34-c): four digits do not overflow */
	if (sscanf(version, "version %4d.%4d.%4d", &major, &minor, &patch) != 3)
		return false;
	return (major == 25 && minor == 0 && patch < 7) || major == 26 ||
	    (major == 27 && (minor == 0 || (minor == 1 && patch < 2)));
}

int
docker_cli_check(const char *binary, bool *forgets_rates, struct err *err)
{
	const char *const argv[] = { binary, "--version", NULL };
	struct process_spec spec = { .argv = argv,
		.output_max = VERSION_MAX,
		.timeout_ms = VERSION_MS };
	auto_result struct process_result result = { 0 };
	struct err failure;

	*forgets_rates = false;
	if (process_run(&spec, &result, &failure) != 0)
		return 0;
	*forgets_rates = docker_cli_forgets_rates(buf_str(&result.out));
	if (strcasestr(buf_str(&result.out), "podman") == NULL)
		return 0;
	return err_set(err, ERR_CONFIG,
	    "DOCKER_BINARY: podman is not supported: it refuses the options by "
	    "which a sandbox's quota holds (a volume with volume-nocopy, a "
	    "tmpfs with nr_inodes)");
}

/* ---- AppArmor ---- */

/*
 * The kernel's list `profiles` beside it is for root alone; this folder, which
 * has an entry NAME.NUMBER for each profile, may be listed by all.
 */
#define LOADED "/sys/kernel/security/apparmor/policy/profiles"

bool
apparmor_is_in(const char *folder, const char *profile)
{
	size_t len = strlen(profile);
	auto_dir DIR *dir = opendir(folder);
	const struct dirent *entry;
	bool found = false;

	while (dir != NULL && !found && (entry = readdir(dir)) != NULL) {
		const char *number = entry->d_name + len + 1;

		found = strncmp(entry->d_name, profile, len) == 0 &&
		    entry->d_name[len] == '.' && *number != '\0' &&
		    number[strspn(number, "0123456789")] == '\0';
	}
	return found;
}

bool
apparmor_is_loaded(const char *profile)
{
	return apparmor_is_in(LOADED, profile);
}

const char *
apparmor_choose(const char *wanted)
{
	if (*wanted != '\0')
		return wanted;
	return apparmor_is_loaded(APPARMOR_PROFILE) ? APPARMOR_PROFILE : "";
}
