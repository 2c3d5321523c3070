/* SPDX-License-Identifier: MIT */
#ifndef VIEW_H
#define VIEW_H

#include <stddef.h>

struct err;

/*
 * A clone below a folder that other users may not pass, /root above all: the
 * programs that are not root then see, in a mount namespace of their own, that
 * folder empty but for what they need, at the same paths as ever.
 */

/* paths: absolute, without links; those of folders.  *fd: the namespace for
 * view_enter(), or -1 when every path can be passed as it is.  ERR_CONFIG: they
 * cannot, and no namespace is to be had. */
int view_open(int *fd, const char *const *paths, size_t count, struct err *err);
/* In a child.  Does nothing for -1. */
int view_enter(int fd);

#endif
