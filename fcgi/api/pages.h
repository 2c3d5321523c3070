#ifndef PAGES_H
#define PAGES_H

#include <stddef.h>

struct buf;

/*
 * GET /openapi.json and the page of it for /docs and /redoc.  The page is made
 * from the document, so that it cannot say anything else, has no script, and
 * loads nothing.
 */
extern const char pages_openapi[];
extern const size_t pages_openapi_len;

/* Append the page; once, at the start, will do. */
void pages_add_docs(struct buf *out);
/* Append its header lines, each with "\r\n": a policy that lets a browser use
 * the page's own style and nothing else. */
void pages_add_headers(struct buf *out);

#define PAGES_DOCS_TYPE "text/html; charset=utf-8"
#define PAGES_DOCS_MAX ((size_t)1 << 20)

#endif
