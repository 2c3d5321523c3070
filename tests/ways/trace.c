/* SPDX-License-Identifier: MIT */
/*
 * For a build with -finstrument-functions: each process writes the functions
 * that it enters, as their distance from the begin of its program, to the file
 * TRACES/PROGRAM.PID.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define UNTRACED __attribute__((no_instrument_function))
#define FD 200 /* programs count the small ones */

extern const char __executable_start[];
void __cyg_profile_func_enter(void *function, void *caller);
void __cyg_profile_func_exit(void *function, void *caller);

UNTRACED static void
open_trace(void)
{
	char path[4096];
	int fd;

	(void)close(FD);
	(void)snprintf(path, sizeof(path), "%s/%s.%d", TRACES,
	    program_invocation_short_name, (int)getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	(void)dup3(fd, FD, O_CLOEXEC);
	(void)close(fd);
}

UNTRACED void
__cyg_profile_func_enter(void *function, void *caller)
{
	static pid_t own;
	int error = errno;
	uint64_t place = (uintptr_t)function - (uintptr_t)__executable_start;

	(void)caller;
	if (own != getpid()) {
		own = getpid();
		open_trace();
	}
	if (write(FD, &place, sizeof(place)) < 0) {
		open_trace(); /* the program has closed what it did not know */
		(void)!write(FD, &place, sizeof(place));
	}
	errno = error;
}

UNTRACED void
__cyg_profile_func_exit(void *function, void *caller)
{
	(void)function;
	(void)caller;
}
