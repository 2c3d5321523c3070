#ifndef FILES_ANSWER_H
#define FILES_ANSWER_H

#include <stdint.h>

struct buf;

/*
 * What /v1/files answers of a file.  name: UTF-8, with a NUL at its end.
 */

/* Append {"file_id":…,"filename":…,"size_bytes":…}. */
void files_answer_add_uploaded(struct buf *out, const char *id,
    const char *name, int64_t size);
/* Append {…,"upload_time":…}, one of a list; the time is wall clock
 * milliseconds. */
void files_answer_add_entry(struct buf *out, const char *id, const char *name,
    int64_t size, int64_t uploaded_ms);

#endif
