/* SPDX-License-Identifier: MIT */
#ifndef PRIORITY_H
#define PRIORITY_H

/*
 * When this process, and what it starts, comes to its turn on a processor.
 * Neither function fails: without it, things are slower beside endless loops.
 */

/*
 * Ask for the shortest time slices from here on.  Nobody's share changes; but
 * who wakes with a shorter slice than the one who is running, and is not ahead
 * of its share, need not wait for the end of that one's.  Linux has this from
 * 6.12 on (its Documentation/scheduler/sched-eevdf.rst), and ignores it before.
 */
void priority_take_short_slices(void);

/* Run before what has the ordinary priority.  Only root may.  The process must
 * lead a session that its programs do not share with strangers. */
void priority_come_first(void);

#endif
