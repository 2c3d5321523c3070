/* SPDX-License-Identifier: MIT */
#ifndef NODE_ID_H
#define NODE_ID_H

struct config;
struct err;

/*
 * The id that this folder of sandboxes bears, in IL_BASE_DIR/.node, and has for
 * as long as they are there.  IL_STATE_DIR/node is for the others to read: a
 * host with another id has other sandboxes, whatever its name is.
 */
int node_id_publish(int base, const struct config *config, struct err *err);

#endif
