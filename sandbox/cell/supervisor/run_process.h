#ifndef RUN_PROCESS_H
#define RUN_PROCESS_H

struct supervisor;

/*
 * In the process that will be a run: a clone, which has no supervisor.state.
 */

/* Be confined, and tell the supervisor. */
void run_process_begin(struct supervisor *k);

/* Wait for the lease, read the request, become its run: see supervisor_take().
 * SUPERVISOR_FAST or SUPERVISOR_RUN. */
int run_process_take(struct supervisor *k);

/* Become the run that k->plan, merge, limits and cwd describe.  Ends the
 * process when that cannot be, and says why on standard error. */
void run_process_become(struct supervisor *k);

#endif
