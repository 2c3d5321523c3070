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

/* In a new user namespace: become SUPERVISOR_ID, which is uid and gid outside.
 * Leaves us dumpable. */
const char *jail_map_user(const struct supervisor *k, uint32_t uid,
    uint32_t gid);

/* Drop all capabilities but those over namespaces, for good. */
const char *jail_keep_little(void);

/* In the supervisor: a fresh pid namespace for its next children, with an
 * init. */
const char *jail_open(pid_t *init);

/* In the supervisor: its next children are in its own pid namespace again. */
const char *jail_leave(const struct supervisor *k);

/* In a child: all privileged steps but jail_narrow().  From here on the
 * supervisor can open its files (/proc/PID/root). */
const char *jail_confine(const struct supervisor *k);

/* Has the run of this lease a /proc? */
bool jail_has_proc(const struct supervisor *k);

/* In that child, after the broker's terms and before the first byte of a
 * client: mount read-only all folders that the lease is not for, then drop the
 * last capability.  A trial does it as for a lease of no folder. */
const char *jail_narrow(const struct supervisor *k);

/* Be the first process to be killed when memory runs out.  Leaves us
 * dumpable. */
const char *jail_go_first(const struct supervisor *k);

/* Give up all capabilities but these bits, and all system calls that the filter
 * refuses. */
const char *jail_surrender(const struct supervisor *k, uint32_t keep);

#endif
