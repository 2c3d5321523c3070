#ifndef ENCLOSE_H
#define ENCLOSE_H

struct supervisor;

/*
 * One process after another, each in a jail where there are jails: what must be
 * there before a run, and its end.
 */

/* Make a jail and the process of the next run: an enum supervisor_role.  A
 * lease that goes on, state->watch.lease, is its own from the start. */
int enclose_jail(struct supervisor *k);

/* Our next children are beside us again.  NULL, or the step that failed. */
const char *enclose_come_back(struct supervisor *k);

/* Nothing of the run is left, but the lease.  Harmless when it is called again.
 */
void enclose_end(struct supervisor *k);

#endif
