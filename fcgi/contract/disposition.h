/* SPDX-License-Identifier: MIT */
#ifndef DISPOSITION_H
#define DISPOSITION_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/*
 * The parameters of header fields, and the header of a download.
 */

/* Find a parameter ("filename", in any case) of a field's value ("form-data;
 * name=…") and append its value, unquoted.  False: it is not there, or the
 * field is malformed up to there. */
bool disposition_get(struct buf *out, const char *field, size_t len,
    const char *name);
/* The same as a file's name, in UTF-8: `filename`, or `filename*` (RFC 8187)
 * where there is only that; of a Windows path the last part, unless the whole
 * is wanted. */
bool disposition_get_filename(struct buf *out, const char *field, size_t len,
    bool whole);

/* Append "attachment; filename=…" (RFC 6266) for any name: as ASCII, without
 * quotes, backslashes and controls, and, where that is another name, once more
 * as it is.  Of a name that no file system takes only the beginning: clients
 * and nginx bound what a header may be. */
#define DISPOSITION_NAME_MAX 1024
void disposition_add(struct buf *out, const char *name);

#endif
