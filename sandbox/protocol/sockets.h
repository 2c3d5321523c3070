/* SPDX-License-Identifier: MIT */
#ifndef SOCKETS_H
#define SOCKETS_H

/*
 * The sockets of il-sandboxd, below IL_STATE_DIR: one for each program that
 * asks it, in a folder that this program alone may enter.  What may be asked
 * there stands in broker/request.c.
 */
#define SOCKET_BROKER_WORKER "broker/worker/lease.sock" /* il-worker */
#define SOCKET_BROKER_API "broker/api/lease.sock"	/* il-api */
#define SOCKET_BROKER_CTL "broker/ctl/lease.sock"	/* ilctl */

#endif
