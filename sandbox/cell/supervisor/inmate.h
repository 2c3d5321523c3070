#ifndef INMATE_H
#define INMATE_H

struct keeper;

/*
 * In the process that will be a run: a clone, which has no keeper.own.
 */

/* Be confined, wait for the lease, read the request, become its run: see
 * keeper_enclose().  KEEPER_USUAL or KEEPER_RUN. */
int inmate_live(struct keeper *k);

#endif
