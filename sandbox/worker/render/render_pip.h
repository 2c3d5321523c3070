/* SPDX-License-Identifier: MIT */
#ifndef RENDER_PIP_H
#define RENDER_PIP_H

#include "render.h"

/* Append what pip did not find, by its log: a project, a version of it, or a
 * wheel.  False: that was not it. */
bool render_pip_missing(struct buf *out, const struct buf *log,
    const struct config *config);

#endif
