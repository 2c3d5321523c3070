/* SPDX-License-Identifier: MIT */
#ifndef BESIDE_H
#define BESIDE_H

#include <stdbool.h>

/*
 * Looks beside a run: a person's files are listed and read while their code
 * runs.  Each has a process of its own, a clone of PID 1 with the rights of the
 * run beside it and no descriptor but its socket.  The run can end it, and
 * cannot reach into it.  It is ended with the run, and when the next one comes
 * after LOOK_MS.
 */
struct supervisor;

/* In the course of a run, in PID 1: the broker has sent something.  True in the
 * child that is to serve k->lease; where there can be none, whoever waits for
 * it is hung up on. */
bool beside_begin(struct supervisor *k);

#endif
