/* SPDX-License-Identifier: MIT */
#ifndef RENDER_PACKAGES_H
#define RENDER_PACKAGES_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct cell_result;
struct config;
struct message;
struct render_env;

/* Installed packages; list: the output of the cell (frame.h, OP_PACKAGES). */
void render_packages(struct message *message, const struct buf *list,
    const struct cell_result *result, const struct render_env *env);
#define TEXT_NO_PACKAGE \
	N_("%s is not installed. `/il packages list` shows what is.")
#define PACKAGE_SHOWN 40 /* code points of a name or a version */
/* rest: unneeded packages (cell/python/packages.py); view_id: of the button
 * that removes them.  result: of a cell that mounts the packages. */
void render_uninstalled(struct message *message, const char *name,
    const struct buf *rest, int64_t view_id, const struct cell_result *result,
    const struct config *config);
void render_rest_removed(struct message *message, const struct buf *rest,
    const struct cell_result *result, const struct config *config);
/* Say which project, version or wheel pip did not find, by its log.  False: the
 * log does not say so. */
bool render_pip_missing(struct buf *out, const struct buf *log,
    const struct config *config);

#endif
