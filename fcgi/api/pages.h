/* SPDX-License-Identifier: MIT */
#ifndef PAGES_H
#define PAGES_H

#include <stddef.h>

/*
 * GET /openapi.json, byte for byte, and the page of it for /docs and /redoc.
 * Both are constants, made when building by docs/build.py: the page is made
 * from the document, so that it cannot say anything else.
 */
extern const char pages_openapi[];
extern const size_t pages_openapi_len;
extern const char pages_docs[];
extern const size_t pages_docs_len;
/* The page's header lines, each with "\r\n": a policy that lets a browser use
 * the page's own style and script, ask this server, and nothing else. */
extern const char pages_docs_headers[];
extern const size_t pages_docs_headers_len;

#define PAGES_DOCS_TYPE "text/html; charset=utf-8"

#endif
