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
/* In the process of a run, when it has no namespaces but that of pids: make
 * it.  It is nowhere yet.  shown: what is beside the processes, O_PATH. */
const char *view_make(int shown);

/* There, when its namespaces are its own: put it in its place. */
const char *view_show(void);

/* Let go of it, wherever it is. */
void view_close(void);

#endif
