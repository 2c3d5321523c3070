/* SPDX-License-Identifier: MIT */
#ifndef VIEW_H
#define VIEW_H

/*
 * A run's own /proc: its processes, and beside them what jail.py has put there.
 * The kernel's is mounted with subset=pid, so it has nothing but processes, and
 * with hidepid, so none but those of the run.
 *
 * Functions return NULL, or the step that failed, and errno.
 */
/* The process of a run makes it while it has no namespaces but that of pids.
 * It has no place yet.  shown is O_PATH of what stands beside the processes. */
const char *view_make(int shown);

/* The same process puts it in its place when its namespaces are its own. */
const char *view_show(void);

/* Let go of it, wherever it is. */
void view_close(void);

#endif
