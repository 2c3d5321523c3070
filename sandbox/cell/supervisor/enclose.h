#ifndef ENCLOSE_H
#define ENCLOSE_H

struct supervisor;

/*
 * One jail after another: what must be there before a lease, and its end.
 */

/* Make a jail and the process of its next run: an enum supervisor_role. */
int enclose_jail(struct supervisor *k);

/* Our next children are beside us again.  NULL, or the step that failed. */
const char *enclose_come_back(struct supervisor *k);

/* Nothing of the jail is left.  Harmless when it is called again. */
void enclose_end(struct supervisor *k);

#endif
