/* SPDX-License-Identifier: MIT */
#ifndef JAIL_H
#define JAIL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Namespaces for the runs of an api cell, and what a process gives up.
 *
 *	PID 1, the warden	has nothing to do but to end with the supervisor
 *	 +- the supervisor	in a user, a mount and a pid namespace of its
 *	    |			own, where /proc and /sys are covered
 *	      +- a jail's init	in a fresh pid namespace; it waits for ever
 *	      +- the run	in the same, and in fresh user, mount, ipc and
 *				uts namespaces with memory file systems of its
 *				own; and all that it starts
 *
 * The run is a clone of the supervisor, which has never seen a byte of any
 * client's.  It is as unprivileged as it will ever be when the first one is
 * read: without a capability, and under the filter that filter.py makes.
 *
 * Functions that return a string return NULL, or the step that failed, and
 * errno.
 */
struct supervisor;

/* In a new user namespace: be SUPERVISOR_ID, who is uid and gid in the one
 * outside. Leaves us dumpable. */
const char *jail_map_user(const struct supervisor *k, uint32_t uid,
    uint32_t gid);

/* Keep no capability but those over namespaces, for good. */
const char *jail_keep_little(void);

/* In the supervisor: a fresh pid namespace for its next children; its init. */
const char *jail_open(pid_t *init);

/* In the supervisor: its next children are beside it again, if they were not.
 */
const char *jail_leave(const struct supervisor *k);

/* In a child: the privileged steps but one.  The supervisor can look into it
 * (/proc/PID/root) from here on. */
const char *jail_confine(const struct supervisor *k);

/* Is the lease one whose run has a /proc? */
bool jail_is_seen(const struct supervisor *k);

/* There, when the broker's terms have come and nothing of the client's: what is
 * not for the folder of the lease can only be read from now on; then no right
 * is left.  Where only the steps are tried, as for a folder of nobody's. */
const char *jail_narrow(const struct supervisor *k);

/* When memory runs out, be the one that goes.  Leaves us dumpable. */
const char *jail_go_first(const struct supervisor *k);

/* Give up all capabilities but these bits, and all system calls that the filter
 * refuses. */
const char *jail_surrender(const struct supervisor *k, uint32_t keep);

#endif
