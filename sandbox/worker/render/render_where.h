/* SPDX-License-Identifier: MIT */
#ifndef RENDER_WHERE_H
#define RENDER_WHERE_H

#include "worker/render/render.h"

/* Paths, the current directory, and space in the sandbox. */
#define TEXT_SANDBOX_STAYS \
	N_("The sandbox itself stays: `/il rm` removes what is in it. `/il " \
	   "delete` deletes the sandbox with all its files.")
#define TEXT_NAMES_FOLDER \
	N_("%s is the name of a directory: add the name of the file, as in " \
	   "`folder/file.txt`.")

#define TEXT_ELSEWHERE N_(" There is %s, though.")
#define TEXT_REMOVED_PATH N_("Removed %s.")

/* Say in the tail which quota a run has used up: bytes, or number of files. */
void render_quota_used(struct buf *tail, const struct cell_result *result,
    const struct config *config);
/* Say the same of the quota of packages. */
void render_packages_full(struct buf *tail, const struct cell_result *result,
    const struct config *config);
/* Say in the tail how full the sandbox is, its files and its packages, as far
 * as the cell reported it. */
void render_space(struct buf *tail, const struct cell_result *result,
    const struct config *config);
/* Name the current directory in the tail; moved: it is a new one; gone: the
 * directory that was the current one, or "". */
void render_place(struct buf *tail, const char *cwd, const char *gone,
    bool moved);

/* Button that goes to a path from the top: back to it, to look at it, to get
 * it, to run it. */
enum way {
	WAY_BACK,
	WAY_LOOK,
	WAY_GET,
	WAY_RUN,
};

struct phrase render_way_label(enum way way, const char *path);
/* view_id: place_make_way(); not for WAY_RUN. */
void render_way(struct message *message, enum way way, int64_t view_id,
    const char *path);
/* Buttons to the pages before and after this one. */
void render_pages(struct message *message, enum action previous,
    enum action next, int64_t view_id, int64_t page, int64_t pages);

#endif
