/* SPDX-License-Identifier: MIT */
#ifndef FILE_COPY_H
#define FILE_COPY_H

struct api_app;
struct err;
struct filestore_entry;
struct http_request;

/*
 * A file of a node that is lost, from the copy that its il-snapshot made
 * (IL_SNAPSHOTS).  Our own il-snapshot brings it: il-api has no network, nor
 * the key.
 */
/* As nodes_get_file(), of an id that is another node's. */
int file_copy_get(struct api_app *app, const struct http_request *req,
    const char *id, struct filestore_entry *entry, struct err *err);

#endif
