#ifndef CHILDREN_H
#define CHILDREN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The supervisor's children: a jail's init, its run, the one that sends files.
 */
struct supervisor;
struct run_state;

/* fork(), with what the interpreter wants to do before and after. */
pid_t children_clone(const struct supervisor *k);

/* Wait for pid, -1: whoever comes first.  False: there is none. */
bool children_reap(struct run_state *state, pid_t pid);

/* End the jail: with its init, the kernel ends all that is in it.  Returns when
 * there is no child any more. */
void children_kill_all(struct run_state *state);

/* How many processes the memory limit has killed so far. */
int64_t children_count_ooms(const struct supervisor *k);

#endif
