/* SPDX-License-Identifier: MIT */
#ifndef FRAME_LIMITS_H
#define FRAME_LIMITS_H

/*
 * Limits of what is sent over the protocol.  Both sides have them from here:
 * a longer message is refused, or breaks the protocol.  Python has them in
 * protocol.py.  A bound that one file alone needs stands in that file.
 */
#define FRAME_MAX 65536	      /* bytes of a frame */
#define FRAME_CHUNK 32768     /* payload of one FRAME_BYTES or FRAME_OUTPUT */
#define LIMIT_PART (16 << 20) /* bytes of source, words, standard input */
#define LIMIT_PATH 1024	      /* bytes of a path */
#define LIMIT_NAME 255	      /* bytes between two of its '/' */
#define LIMIT_LEFT_OUT 100    /* files that a cell says it left out */
#define LIMIT_LEFT_OUT_TAKEN 1000 /* and that are taken from a newer one */
#define LIMIT_WALL_MS 86400000	  /* of a run, and of a lease */

#define LIMIT_LOOK_MS 10000 /* a look beside a run: all of its requests */

/* So much after the limits of its request a cell is not believed any more, and
 * so much later the broker ends it. */
#define LIMIT_OUTSIDE_MS 5000
#define LIMIT_LEASE_MORE_MS 15000

#endif
