/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISE_H
#define SUPERVISE_H

struct config;
struct plan;

/* Files in the state folder that appear when the programs accept requests; up
 * to a NULL. */
extern const char *const supervise_signs[];

/*
 * Start every program of the plan, watch them, start again what ends, and end
 * all of them in order on SIGINT, SIGTERM or SIGHUP; a second signal hurries,
 * a third kills.  Signals must come through signals_fd (fd_signals).
 *
 * ready: called once, when all of them accept requests; standin_fd: readable
 * when the stand-in does, -1: there is none (it is closed here).
 *
 * Returns the exit code: 0 after a signal, 64 or 78 when a program ended with
 * that and so would end again, 1 after an error of our own.
 */
int supervise(struct plan *plan, const struct config *config, int signals_fd,
    int standin_fd, void (*ready)(void *arg), void *arg);

#endif
