/* SPDX-License-Identifier: MIT */
#ifndef RENDER_FILES_H
#define RENDER_FILES_H

#include "worker/render/render.h"

struct config;
struct sandbox;
struct session;

/* ---- paths, the current directory, and space ---- */

/* Say in the tail which quota a run has used up: bytes, or number of files. */
void render_quota_used(const struct render_env *env);
/* Say the same of the quota of packages. */
void render_packages_full(const struct render_env *env);
/* Say in the tail how full the sandbox is, its files and its packages, as far
 * as the cell reported it. */
void render_space(const struct render_env *env);
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

/* ---- files ---- */

/* The directory is that of env->path, its entries are in env->collect. */
struct render_listing {
	int64_t page;  /* from 1 */
	int64_t asked; /* the page that was asked for */
	int64_t pages;
	int64_t view_id;      /* for the buttons; 0: no buttons */
	bool moved;	      /* the current directory was another one */
	char back[PATH_SIZE]; /* path of the button back */
	int64_t back_id;      /* view of that button; 0: no button */
};

void render_listing(const struct render_env *env,
    const struct render_listing *listing);
/* Show the file that the cell has sent: text in a block, else as attachment.
 * In these functions its data moves into the message. */
void render_file(const struct render_env *env);
/* Send it. */
void render_get(const struct render_env *env);
/* Send a directory's zip; the result's total is the number of files that are
 * not in it. */
void render_archive(const struct render_env *env);
void render_written(const struct render_env *env, size_t size);

/* ---- packages ---- */

/* Installed packages; the output is a list (frame.h, OP_PACKAGES). */
void render_packages(const struct render_env *env);
#define PACKAGE_SHOWN 40 /* code points of a name or a version */
/* name: the removed package, and the output lists those that are unneeded
 * (cell/python/packages.py); NULL: it lists those that were removed.  view_id:
 * of the button that removes unneeded ones, 0: none. */
void render_uninstalled(const struct render_env *env, const char *name,
    int64_t view_id);
/* Say which project, version or wheel pip did not find, by its log.  False: the
 * log does not say so. */
bool render_pip_missing(const struct render_env *env);

/* ---- sandboxes and their sessions ---- */

/* Sessions keep variables from run to run. */
/* until: end of its interpreter's life, Unix seconds; 0: there is none. */
void render_session_status(struct message *message,
    const struct session *session, int64_t until);
/* Say below an answer that a sandbox was made; lost_at: when the one before it
 * expired, or 0. */
void render_made(struct message *message, int64_t lost_at);
void render_created(const struct render_env *env, const struct sandbox *sandbox,
    bool created);

#endif
