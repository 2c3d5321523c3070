/* SPDX-License-Identifier: MIT */
#ifndef NODE_KEY_H
#define NODE_KEY_H

struct err;

/*
 * What the nodes of IL_NODES have in common, IL_NODES_KEY_FILE: 32 bytes, in
 * hex.  Nothing is ever sent or sealed with it itself, but with a key for each
 * purpose that is derived from it.
 */
#define NODE_KEY_LEN 32

/* Below IL_STATE_DIR: where il-api and the workers ask their own nginx for what
 * another node has. */
#define NODES_SOCKET "nodes/nginx.sock"

/* By which nginx knows another node's nginx. */
#define NODE_KEY_NGINX "nginx"
/* With which il-api seals what LibreChat's clients keep for it. */
#define NODE_KEY_LIBRECHAT "librechat"

/* ERR_CONFIG: the file cannot be read, or is no key. */
int node_key_derive(const char *path, const char *purpose,
    unsigned char key[NODE_KEY_LEN], struct err *err);

#endif
