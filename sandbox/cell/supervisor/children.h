#ifndef CHILDREN_H
#define CHILDREN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The keeper's children: a jail's init, its run, the one that sends files.
 */
struct keeper;
struct keeper_own;

/* fork(), with what the interpreter wants to do before and after. */
pid_t children_clone(const struct keeper *k);

/* Wait for pid, -1: whoever comes first.  False: there is none. */
bool children_reap(struct keeper_own *own, pid_t pid);

/* End the jail: with its init, the kernel ends all that is in it.  Returns when
 * there is no child any more. */
void children_kill_all(struct keeper_own *own);

/* How many processes the memory limit has killed so far. */
int64_t children_count_ooms(const struct keeper *k);

#endif
