/* SPDX-License-Identifier: MIT */
#ifndef LEASE_H
#define LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/frame.h"

struct config;
struct err;
struct pollfd;

/* The sockets of il-sandboxd, below IL_STATE_DIR: one for each program that
 * asks it, in a folder that this program alone may enter; broker/client.c says
 * what may be asked there. */
#define SOCKET_BROKER_WORKER "broker/worker/lease.sock" /* il-worker */
#define SOCKET_BROKER_API "broker/api/lease.sock"	/* il-api */
#define SOCKET_BROKER_CTL "broker/ctl/lease.sock"	/* ilctl */

/*
 * The client side of the broker (il-sandboxd).  A lease is two descriptors: the
 * connection to the broker and one end of a socket pair whose other end a cell
 * holds.  While they are open the cell is ours; when they close, for whatever
 * reason, the cell kills everything of the run and is cleaned or replaced.
 */
struct lease {
	int cell_fd;	     /* talk to the cell here (cell.h); -1: none */
	int broker_fd;	     /* open for as long as the lease lasts */
	bool cold;	     /* the cell had to be started for us */
	enum access access;  /* as granted, of a sandbox */
	enum kept_end ended; /* of a lease with keep: why none is kept; 0: one
				is, or the cell knows */
	char cell_name[64];  /* container's name, for logs */
	bool lost; /* the cell is useless: lease_park() closes the lease */
	int64_t next_ms; /* of a refusal: a session may make room after this */
};

#define LEASE_NONE \
	{ \
		.cell_fd = -1, .broker_fd = -1 \
	}

/* A request to the broker: for a lease, or a command. */
struct lease_request {
	enum frame_kind kind; /* of a command */
#define TEXT(member, ...) const char *member;
#define NUMBER(type, member, ...) type member;
#include "protocol/lease.def"
	const unsigned char *owner; /* LEASE_OWNER_LEN bytes; NULL: none */
	int64_t *rest_left_ms; /* NULL, or: TAG_REST_MS of a command's answer */
	int slot_fd; /* the broker keeps a copy until its end; 0 or -1: none */
	/* NULL, or: do not wait any longer once this happens. */
	const struct pollfd *unless;
	/* NULL, or: called every tick_ms while it waits. */
	void (*tick)(void *arg);
	void *tick_arg;
	int64_t tick_ms;
};

/*
 * Ask the broker at socket_path and wait at most wait_ms for the answer (the
 * request waits in the broker's queue; hanging up takes it out of it).  On any
 * refusal but REFUSAL_NONE err says more, for the log, and lease is
 * LEASE_NONE.
 */
enum refusal lease_open(struct lease *lease, const char *socket_path,
    const struct lease_request *request, int wait_ms, struct err *err);
/* The same, and ask again for a few seconds where that helps: the broker is
 * restarting, or another cell of the sandbox is just ending.  Each answer is
 * waited for at most wait_ms, all of them until the monotonic time until_ms. */
enum refusal lease_open_again(struct lease *lease, const char *socket_path,
    const struct lease_request *request, int wait_ms, int64_t until_ms,
    struct err *err);
/*
 * A session is a lease of the class "session" with an id, which outlives its
 * connection.  lease_park() hands it to the broker between two requests to the
 * cell, and lease_resume() gets it back, for one client at a time.  A client
 * that hangs up without lease_park() ends the session.  A parked one ends
 * lease_ms after it was parked first, after rest_ms at rest, when its owner
 * needs room for another one, and with the broker.  Clients without the owner's
 * hash cannot tell that it exists.
 */
#define LEASE_OWNER_LEN 32
/* REFUSAL_BUSY: another client waits for it already; REFUSAL_NO_WORKSPACE:
 * there is no such session.  The request needs session, owner and unless. */
enum refusal lease_resume(struct lease *lease, const char *socket_path,
    const struct lease_request *request, int wait_ms, struct err *err);
void lease_park(struct lease *lease);
/* Close both ends; safe on LEASE_NONE and twice. */
void lease_close(struct lease *lease);

/* The cell of a lease has broken off: has its memory been used up?  The broker
 * says so on broker_fd, before it hangs up; asked once, within 2 s. */
bool lease_is_out_of_memory(int broker_fd);

/* Is an interpreter of the sandbox's kept, at rest?  *rest_ms: for how long;
 * -1: there is none.  stop: end it.  While the cell comes back from the run
 * before, the broker lets us wait; asked again as lease_open_again() does. */
enum refusal lease_kept(const char *socket_path, const char *sandbox, bool stop,
    int64_t *rest_ms, int wait_ms, struct err *err);

/*
 * A command to the broker, which grants or refuses it.  *fd is the connection,
 * or -1; with fd NULL it is closed.
 *
 *	FRAME_CREATE	make the workspace of a sandbox, with its quota; or,
 *			with an interpreter, make room for its packages, if
 *			there is none yet: a lease of the class "pip" that was
 *			refused for want of it may be asked for again.
 *			REFUSAL_NO_WORKSPACE: the sandbox is not there
 *	FRAME_REMOVE	end the cells of a sandbox, and remove its workspace
 *	FRAME_STAGE	begin to change the packages of the APIs' runs: what
 *			leases of the class "install" of the sandbox
 *			LEASE_API_PACKAGES install counts once it is
 *			published, and is dropped when *fd is closed before
 *	FRAME_PUBLISH	publish it
 *	FRAME_PACKAGES	list them: *fd gives FRAME_GRANTED with TAG_TEXT,
 *			"name-version" lines, until its end
 *	FRAME_CELLS	list the cells: *fd gives what FRAME_CELLS says
 *	FRAME_END_SESSION	end the owner's session of that id, with all its
 *			processes; REFUSAL_NO_WORKSPACE: it has none.  Without
 *			an id: the one that is evicted next; REFUSAL_FULL:
 *			none may be, and *rest_left_ms is the time until that
 *	FRAME_RESERVE	keep bytes of the disk for files of the APIs until *fd
 *			is closed: what is written then finds room.  A broker
 *			that goes away ends that: *fd is at its end of file
 *
 * FRAME_CREATE and FRAME_REMOVE are idempotent.
 */
#define LEASE_API_PACKAGES "00000000000000000000000000000000"
enum refusal lease_command(int *fd, const char *socket_path,
    const struct lease_request *command, int wait_ms, struct err *err);

/* ---- the status ---- */

/*
 * Status of the broker and of the engine.  Programs that may ask the broker do
 * so.  il-fcgi may not: for it the broker keeps the same frame in a file that
 * both map, STATE/broker/status-VERSION, and writes it anew every
 * LEASE_STATUS_TELL_MS.
 */
#define LEASE_STATUS_TELL_MS 5000

struct lease_status {
	bool engine; /* the Docker engine answers */
	bool image;  /* the image is there */
#define STATUS_TEXT(member, size, ...) char member[size];
#define STATUS_NUMBER(member, ...) int64_t member;
#include "protocol/lease.def"
};

/* Ask the broker. */
enum refusal lease_status(const char *socket_path, struct lease_status *status,
    int wait_ms, struct err *err);

/* Free space that is left for a new lease that may write. */
int64_t lease_status_room(const struct lease_status *status);

/* ---- the file ---- */

struct lease_status_file;

/* il-sandboxd; NULL: it cannot be had, and err says why. */
struct lease_status_file *lease_status_open(const struct config *config,
    struct err *err);
/* Remove the file.  NULL is fine. */
void lease_status_close(struct lease_status_file *file,
    const struct config *config);
/* Keep the frame for others; NULL file: nothing is kept. */
void lease_status_tell(struct lease_status_file *file,
    const struct frame *frame);
/* -1: no broker of this version runs, or it has told nothing of late.  After
 * kill -9 of the broker the file is still there, but names no process. */
int lease_status_read(const struct config *config, struct lease_status *status,
    struct err *err);

#endif
