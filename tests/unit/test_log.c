/* SPDX-License-Identifier: MIT */
#include "base/basics.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

static char captured[8192];

/* Run fn with standard error in a pipe; what it wrote is in captured. */
static void
capture(void (*fn)(void))
{
	int pipes[2];
	int saved = dup(STDERR_FILENO);
	ssize_t n;

	if (saved < 0 || pipe2(pipes, O_CLOEXEC) != 0)
		exit(1);
	(void)dup2(pipes[1], STDERR_FILENO);
	(void)close(pipes[1]);
	fn();
	(void)dup2(saved, STDERR_FILENO);
	(void)close(saved);
	n = read(pipes[0], captured, sizeof(captured) - 1);
	captured[n > 0 ? n : 0] = '\0';
	(void)close(pipes[0]);
}

static void
write_levels(void)
{
	errno = EDOM;
	log_err("e %d", 1);
	log_warn("w");
	log_info("i key=%s", "v");
	log_debug("d");
}

static void
write_hostile(void)
{
	log_err("a\nb\033[1m\x7f\xff|\xc3\xa4\xe2\x82|");
}

static void
write_long(void)
{
	char text[3000];

	memset(text, '\n', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_err("%s", text);
}

static void
write_fatal(void)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		log_fatal(78, "bad %s", "thing");
	(void)waitpid(pid, &status, 0);
	is_int(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 78,
	    "log_fatal exits with its code");
}

int
main(void)
{
	log_init("tester", LOG_LEVEL_INFO);
	capture(write_levels);
	is_str(captured, "<3>tester: e 1\n<4>tester: w\n<6>tester: i key=v\n",
	    "priority, program and text; debug is below the level");
	is_int(errno, EDOM, "errno is kept");
	log_init("tester", LOG_LEVEL_DEBUG);
	capture(write_levels);
	ok(strstr(captured, "<7>tester: d\n") != NULL, "debug when asked for");
	capture(write_hostile);
	is_str(captured,
	    "<3>tester: a\\x0ab\\x1b[1m\\x7f\\xff|\xc3\xa4\\xe2\\x82|\n",
	    "control and invalid bytes are escaped, UTF-8 is not");
	capture(write_long);
	ok(strlen(captured) <= 1001 && strlen(captured) > 990,
	    "a line is cut at 1,000 bytes");
	ok(strchr(captured, '\n') == captured + strlen(captured) - 1,
	    "and stays one line");
	capture(write_fatal);
	is_str(captured, "<3>tester: bad thing\n", "log_fatal logs");
	return tap_done();
}
