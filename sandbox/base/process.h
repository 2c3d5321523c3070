/* SPDX-License-Identifier: MIT */
#ifndef PROCESS_H
#define PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/basics.h"

struct err;

/*
 * Programs that we start (the Docker CLI, mkfs, nginx).  Never a shell: argv is
 * an array, and argv[0] is looked up in PATH.  The child gets default signals,
 * our environment, its own process group, no descriptor but 0, 1, 2, and dies
 * with us (PR_SET_PDEATHSIG).  When it ends, what is left of its group is
 * killed.
 */
/* clang-format off */
struct process_spec {
	const char *const *argv; /* NULL-terminated */
	const void *input;	 /* standard input, borrowed until the program
				  * has ended; NULL: /dev/null */
	size_t input_len;
	size_t output_max;	 /* stdout and stderr each; more is dropped */
	int timeout_ms;		 /* <= 0: none */
};

enum process_outcome {
	PROCESS_EXITED,	   /* code is the exit status */
	PROCESS_SIGNALED,  /* code is the signal */
	PROCESS_TIMED_OUT, /* it was killed with its whole group */
	PROCESS_NOT_STARTED, /* only where a loop tells of it: broker/host.h */
};
/* clang-format on */

struct process_result {
	enum process_outcome outcome;
	int code;
	struct buf out; /* both: initialised by process_start */
	struct buf err;
};

/* A started program; one owner, process_release() ends and reaps it at any
 * stage (SIGKILL to its group). */
struct process {
	pid_t pid;
	int pidfd;
	int in_fd; /* our ends, nonblocking; -1 when closed */
	int out_fd;
	int err_fd;
	const char *input;
	size_t input_left;
	int64_t deadline_ms; /* monotonic; -1: none */
	struct process_result result;
};

/* After -1 there is nothing to release; ERR_NOT_FOUND: no such program.  With
 * input, SIGPIPE is ignored from then on. */
int process_start(struct process *p, const struct process_spec *spec,
    struct err *err);
/* For an event loop: whenever a descriptor of p is ready or the deadline is
 * due, call this; it moves bytes without blocking, and closes a pipe at its end
 * (its descriptor here is then -1; take them out of the loop before).  Returns
 * true when the program has ended, been reaped and p->result is final. */
bool process_pump(struct process *p);
void process_release(struct process *p);

/* Start, pump to the end, hand over the result (release with
 * process_result_release).  -1 only when it could not be started. */
int process_run(const struct process_spec *spec, struct process_result *result,
    struct err *err);
void process_result_release(struct process_result *result);
#define auto_result __attribute__((cleanup(process_result_release)))

/* True when it exited with status 0. */
bool process_succeeded(const struct process_result *result);
/* "exited with 125: <first line of stderr, cleaned>": for logs and errors. */
struct process_end {
	char text[160];
};
struct process_end process_describe(const struct process_result *result);

/* mkfs.ext4, nginx and their like live in sbin, which is not in everybody's
 * PATH: look there, too. */
void process_extend_path(void);

/* A pidfd of the process that connected to a unix socket; the caller closes it.
 * -1 and errno when there is none: ESRCH, the process has ended; EXDEV, its pid
 * namespace is not seen from here. */
int process_of_peer(int sock);

/*
 * When this process, and what it starts, comes to its turn on a processor.
 * Neither function fails: without it, things are slower beside endless loops.
 */

/*
 * Ask for the shortest time slices from here on.  All shares stay; but a
 * process that wakes with a shorter slice than the running one, and is not
 * ahead of its share, need not wait for the end of that one's.  Linux has this
 * from 6.12 on (its Documentation/scheduler/sched-eevdf.rst), and ignores it
 * before.
 */
void process_take_short_slices(void);

/* Run before what has the ordinary priority.  Only root may.  The process must
 * lead a session that its programs do not share with strangers. */
void process_come_first(void);

/* ---- the Docker CLI ---- */

/*
 * The program that DOCKER_BINARY names, asked what it is; no engine is needed
 * for that.  ERR_CONFIG "DOCKER_BINARY: reason" when it is one that passes for
 * Docker and cannot hold a sandbox.  A program that does
 * not answer within 3 s, or cannot be started, passes here: the first call of
 * the engine reports it.
 */
int docker_cli_check(const char *binary, bool *forgets_rates, struct err *err);
/* Text of `docker --version`: does this version take the limits of a device's
 * throughput and forget them?  25.0.0 to 25.0.6, all of 26, 27.0.0 to 27.1.1
 * (docker/cli, issue 5321). */
bool docker_cli_forgets_rates(const char *text);

/* ---- AppArmor ---- */

/*
 * The AppArmor profile for the containers of the HTTP APIs, which comes with
 * us (systemd/apparmor/): Docker's own, and what the runs' namespaces need.
 */
#define APPARMOR_PROFILE "inline-api"

/* Is this profile in the kernel?  Anybody may ask; false where there is no
 * AppArmor. */
bool apparmor_is_loaded(const char *profile);

/*
 * The profile to start an API container with: that of IL_TUNE_API_APPARMOR, or
 * ours where that is empty and ours is loaded; "" the engine's own.  Borrowed
 * from `wanted`, or static.
 */
const char *apparmor_choose(const char *wanted);

/* For tests: the same, in another folder than the kernel's. */
bool apparmor_is_in(const char *folder, const char *profile);

#endif
