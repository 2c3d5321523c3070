#ifndef RUN_PROCESS_H
#define RUN_PROCESS_H

struct supervisor;

/*
 * In the process that will be a run: a clone, which has no supervisor.state.
 */

/* Be confined, wait for the lease, read the request, become its run: see
 * supervisor_enclose().  SUPERVISOR_FAST or SUPERVISOR_RUN. */
int run_process_live(struct supervisor *k);

#endif
