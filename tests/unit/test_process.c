/* SPDX-License-Identifier: MIT */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/basics.h"
#include "tap.h"

static struct process_result result;
static struct err err;

/* Run a shell script: the tests may, the product never does. */
static int
run_script(const char *script, const char *input, int timeout_ms, size_t max)
{
	auto_free char *text = xstrdup(script);
	const char *const argv[] = { "sh", "-c", text, NULL };
	const struct process_spec spec = { .argv = argv,
		.input = input,
		.input_len = input != NULL ? strlen(input) : 0,
		.output_max = max,
		.timeout_ms = timeout_ms };

	process_result_release(&result);
	return process_run(&spec, &result, &err);
}

static void
is_described(const char *want)
{
	is_str(process_describe(&result).text, want, want);
}

/* Gone, or dead and only waiting for init; looks again for up to 5 s. */
static bool
dies(pid_t pid)
{
	char path[64];
	char line[256];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	for (int tries = 0; tries < 500; tries++) {
		FILE *file = fopen(path, "re");
		const char *state;

		if (file == NULL)
			return true;
		state = fgets(line, sizeof(line), file);
		(void)fclose(file);
		state = state != NULL ? strrchr(line, ')') : NULL;
		if (state == NULL || state[2] == 'Z' || state[2] == 'X')
			return true;
		(void)usleep(10000);
	}
	return false;
}

static void
test_outcomes(void)
{
	is_int(run_script("echo out; echo err >&2", NULL, 0, 100), 0, "runs");
	ok(process_succeeded(&result), "succeeds");
	is_str(buf_str(&result.out), "out\n", "standard output");
	is_str(buf_str(&result.err), "err\n", "standard error");
	(void)run_script("printf '\\n\\033[1mno such\\nthing' >&2; exit 125",
	    NULL, 0, 100);
	ok(result.outcome == PROCESS_EXITED && result.code == 125, "status");
	ok(!process_succeeded(&result), "125 is no success");
	is_described("exited with 125: no such");
	(void)run_script("kill -9 $$", NULL, 0, 100);
	ok(result.outcome == PROCESS_SIGNALED && result.code == SIGKILL,
	    "signal");
	is_described("killed by signal 9");
}

static void
test_not_found(void)
{
	const char *const argv[] = { "inline-no-such-program", NULL };
	const struct process_spec spec = { .argv = argv };

	process_result_release(&result);
	is_int(process_run(&spec, &result, &err), -1, "no such program");
	is_int(err.code, ERR_NOT_FOUND, "is not found");
	ok(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "none is left");
}

static void
test_timeout(void)
{
	int64_t start = clock_monotonic_ms();

	(void)run_script("echo early; trap '' TERM; while :; do sleep 9; done",
	    NULL, 200, 100);
	is_int(result.outcome, PROCESS_TIMED_OUT, "times out");
	ok(clock_monotonic_ms() - start >= 200, "not before the time");
	is_str(buf_str(&result.out), "early\n", "what it wrote is kept");
	is_described("timed out");
}

static void
test_input(void)
{
	static char big[500001];

	memset(big, 'x', sizeof(big) - 1);
	(void)run_script("cat", big, 0, sizeof(big));
	is_str(buf_str(&result.out), big, "large input comes back");
	(void)run_script("exec <&-; sleep 0.1", big, 0, 100);
	ok(process_succeeded(&result), "a program may ignore its input");
	(void)run_script("cat", NULL, 0, 100);
	ok(process_succeeded(&result) && result.out.len == 0,
	    "without input there is /dev/null");
}

static void
test_bound(void)
{
	(void)run_script("printf 1234567890; echo more >&2", NULL, 0, 4);
	is_str(buf_str(&result.out), "1234", "output is cut at the bound");
	ok(result.out.overflow && result.err.overflow, "which is marked");
	(void)run_script("yes | head -c 3000000", NULL, 0, 1000);
	ok(process_succeeded(&result), "the rest is read all the same");
	is_int(result.out.len, 1000, "and dropped");
}

static void
test_grandchild(void)
{
	int64_t start = clock_monotonic_ms();
	pid_t pid;

	(void)run_script("sleep 30 & echo $!", NULL, 0, 100);
	ok(clock_monotonic_ms() - start < 20000,
	    "a grandchild with the pipe open is not waited for");
	pid = (pid_t)strtol(buf_str(&result.out), NULL, 10);
	ok(pid > 0 && dies(pid), "it is killed with the group");
	start = clock_monotonic_ms();
	(void)run_script("setsid sleep 30 & echo $!; exit 3", NULL, 0, 100);
	ok(clock_monotonic_ms() - start < 20000 && result.code == 3,
	    "one that left the group is not waited for, too");
	pid = (pid_t)strtol(buf_str(&result.out), NULL, 10);
	if (pid > 0)
		(void)kill(pid, SIGKILL);
}

static void
test_environment(void)
{
	const char *const argv[] = { "sh", "-c",
		"echo $A; ls /proc/self/fd | wc -l; "
		"kill -PIPE $$; echo survived",
		NULL };
	const struct process_spec spec = { .argv = argv, .output_max = 100 };
	auto_close int leak = open("/dev/null", O_RDONLY); /* no CLOEXEC */
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGPIPE);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	ok(leak > 2, "a descriptor that could leak");
	process_result_release(&result);
	(void)setenv("A", "b", 1);
	(void)process_run(&spec, &result, &err);
	/* ls has 0, 1, 2 and the folder itself. */
	is_str(buf_str(&result.out), "b\n4\n",
	    "our environment, and descriptors of its own");
	ok(result.outcome == PROCESS_SIGNALED && result.code == SIGPIPE,
	    "signals are the default ones and not blocked");
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void
test_release(void)
{
	const char *const argv[] = { "sleep", "60", NULL };
	const struct process_spec spec = { .argv = argv };
	struct process p;
	pid_t pid;

	is_int(process_start(&p, &spec, &err), 0, "start");
	pid = p.pid;
	ok(!process_pump(&p), "still running");
	process_release(&p);
	ok(kill(pid, 0) != 0, "release ends and reaps it");
	process_release(&p);
	is_int(p.pid, -1, "twice is harmless");
	process_release(NULL);
}

/* A program of ours does not outlive us when we are killed. */
static void
test_parent_dies(void)
{
	const char *const argv[] = { "sleep", "60", NULL };
	const struct process_spec spec = { .argv = argv };
	struct process p;
	int pipes[2];
	pid_t grandchild = 0;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) != 0)
		exit(1);
	pid = fork();
	if (pid == 0) {
		if (process_start(&p, &spec, &err) != 0 ||
		    write(pipes[1], &p.pid, sizeof(p.pid)) < 0)
			_exit(1);
		(void)raise(SIGKILL);
	}
	(void)waitpid(pid, NULL, 0);
	ok(read(pipes[0], &grandchild, sizeof(grandchild)) > 0 &&
		grandchild > 0,
	    "it was started");
	ok(dies(grandchild), "and it died with us");
	(void)close(pipes[0]);
	(void)close(pipes[1]);
}

/* Standard descriptors may be missing in us. */
static void
test_closed_descriptors(void)
{
	int saved = dup(0);

	(void)close(0);
	is_int(run_script("cat; echo done", "in ", 0, 100), 0, "without fd 0");
	is_str(buf_str(&result.out), "in done\n", "the pipes are in place");
	(void)dup2(saved, 0);
	(void)close(saved);
}

int
main(void)
{
	test_outcomes();
	test_not_found();
	test_timeout();
	test_input();
	test_bound();
	test_grandchild();
	test_environment();
	test_release();
	test_parent_dies();
	test_closed_descriptors();
	process_result_release(&result);
	return tap_done();
}
