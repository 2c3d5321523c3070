/* SPDX-License-Identifier: MIT */
#ifndef MCP_WORK_H
#define MCP_WORK_H

#include "../contract/mcp/mcp_output.h"
#include "../files/filestore.h"
#include "mcp.h"
#include "run.h"

/*
 * A run of a tool: what it prints and leaves, as it comes from the cell.
 */
#define MCP_WORK_LEFT (2 * MCP_LEFT_MAX)

struct mcp_work {
	struct mcp_exchange *x;
	struct api_run run;
	struct mcp_output out;
	struct mcp_output err;
	struct mcp_left left[MCP_WORK_LEFT];
	size_t left_count;
	bool more_left;
	struct mcp_left *file;	    /* that is coming in */
	int64_t taken;		    /* bytes of it so far */
	struct filestore_new fresh; /* the same, in the store */
	int64_t shown;		    /* bytes of all that are shown */
	int64_t started_ms;	    /* monotonic; 0: not yet */
	bool cancelled;		    /* its client is gone */
};

/* Heap; to be freed.  request: as for struct api_run. */
struct mcp_work *mcp_work_new(struct mcp_exchange *x,
    const struct cell_request *request);
void mcp_work_free(struct mcp_work *w);
/* What comes from the cell, of a run or of a file that is read. */
void mcp_work_event(void *arg, const struct cell_event *event);
/* The last file is whole. */
void mcp_work_end_file(struct mcp_work *w);
/* A file that is there but is not kept; why: static. */
void mcp_work_leave_out(struct mcp_work *w, const char *path, int64_t size,
    const char *why);
/* The run has ended, whichever way: answer and count it. */
void mcp_work_answer(struct mcp_work *w);

/* ---- the files of a session, before and after a run ---- */

struct mcp_scan {
	struct mcp_scanned *items;
	size_t count;
	bool cut; /* there was no time or room for all of it */
};

/* As far as there is time and room; false: the cell is lost. */
bool mcp_scan(struct mcp_scan *scan, struct mcp_exchange *x,
    struct mcp_borrowed *b);
void mcp_scan_release(struct mcp_scan *scan);
/* Take in what has changed from one to the other, since the wall clock time. */
void mcp_scan_collect(struct mcp_work *w, struct mcp_borrowed *b,
    const struct mcp_scan *before, const struct mcp_scan *after,
    int64_t since_s);

#endif
