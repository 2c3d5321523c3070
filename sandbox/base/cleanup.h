/* SPDX-License-Identifier: MIT */
#ifndef CLEANUP_H
#define CLEANUP_H

/*
 * Scope-bound ownership: a variable with one of these attributes is released
 * when its scope ends, however it ends.  Such a variable must be initialised
 * where it is declared.
 */
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

static inline void
cleanup_free(void *p)
{
	free(*(void **)p);
}

/* Close it, if it is open; it is -1 afterwards. */
static inline void
cleanup_close(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static inline void
cleanup_dir(DIR **dir)
{
	if (*dir != NULL)
		(void)closedir(*dir);
}

/* A heap pointer of any type: free() at the end of the scope. */
#define auto_free __attribute__((cleanup(cleanup_free)))
/* A descriptor, -1 when there is none: close() at the end of the scope. */
#define auto_close __attribute__((cleanup(cleanup_close)))
/* A list of a folder, NULL when there is none: closedir() likewise. */
#define auto_dir __attribute__((cleanup(cleanup_dir)))

/* Take a descriptor out of its auto_close variable: the caller owns it now. */
static inline int
steal_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

#endif
