/* SPDX-License-Identifier: MIT */
#ifndef LEASE_STATUS_H
#define LEASE_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/frame.h"

struct config;
struct err;

/*
 * Status of the broker and of the engine.  Programs that may ask the broker do
 * so.  il-fcgi may not: for it the broker keeps the same frame in a file that
 * both map, STATE/broker/status-VERSION, and writes it anew every
 * LEASE_STATUS_TELL_MS.
 */
#define LEASE_STATUS_TELL_MS 5000

struct lease_status {
	bool engine;	       /* the Docker engine answers */
	bool image;	       /* the image is there */
	int64_t engine_age_ms; /* since that was found out; -1: it is not yet */
	char trouble[200]; /* why one of them is away, or the last start failed;
			      "": all is well */
	int64_t start_failures;	  /* starts in a row that have failed */
	int64_t start_pending_ms; /* some go on, and none succeeds; 0: none
				   * goes on */
	char image_name[256];
	char images[1025];	/* SANDBOX_IMAGES: config.h; "": not told */
	char chat_images[2200]; /* IL_CHAT_IMAGES, likewise */
	char python[32]; /* of the image; "" while no cell has told yet */
	int64_t cells;
	int64_t leased;
	int64_t starting;
	int64_t waiting;
	int64_t free_bytes; /* on the file system of the sandboxes */
	int64_t promised;   /* free, and promised to cells that may write */
	int64_t floor;	    /* free, and for nobody */
	int64_t sandboxes;
	int64_t isolation; /* enum isolation of the api cells; 0: not known */
	char isolation_reason[128]; /* why no more: "step: ERROR", or "" */
};

/* Ask the broker, as lease.h says. */
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
