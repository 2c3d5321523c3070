/* SPDX-License-Identifier: MIT */
#ifndef RENDER_PACKAGES_H
#define RENDER_PACKAGES_H

struct buf;
struct message;
struct render_env;

/* What is installed; list: what the cell told (frame.h, OP_PACKAGES). */
void render_packages(struct message *message, const struct buf *list,
    const struct render_env *env);
void render_no_package(struct message *message, const char *name);
void render_uninstalled(struct message *message, const char *name);

#endif
