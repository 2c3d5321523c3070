/* SPDX-License-Identifier: MIT */
#ifndef DOWNLOAD_H
#define DOWNLOAD_H

#include <stddef.h>
#include <stdint.h>

struct task;

/* Fetch an uploaded file of at most max bytes.  Heap; NULL: message and outcome
 * word say why not. */
void *download(struct task *task, const char *url, int64_t max, size_t *len);
/* It is not as long as was announced: the message says so. */
void download_not_as_announced(struct task *task);

#endif
