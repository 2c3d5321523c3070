/* SPDX-License-Identifier: MIT */
#ifndef CONFIG_NODES_H
#define CONFIG_NODES_H

#include <stdbool.h>
#include <stddef.h>

struct err;

/*
 * IL_NODES: the hosts that serve the HTTP APIs together, "a=ADDRESS,b=ADDRESS",
 * each with the address, and the port, where its nginx listens for the others.
 * The text is the same on all of them; IL_NODE says which one is this.  It is
 * walked where it is needed; what config_load() has stored is valid, or "":
 * there is one host.
 *
 * An id that a node gives out has its tag in it, six hex digits that its name
 * alone decides, so that each node knows whose an id is.
 */
#define NODES_MAX 128
#define NODES_NAME_MAX 32
#define NODES_ADDRESS_MAX 48
#define NODES_TAG_LEN 6
#define NODES_PORT 8079

struct node_entry {
	char name[NODES_NAME_MAX + 1];	     /* as IL_NODE */
	char address[NODES_ADDRESS_MAX + 1]; /* 10.0.0.1, fd00::1 */
	long port;
	char tag[NODES_TAG_LEN + 1];
};

/* Why a text is no such list, or NULL. */
const char *nodes_check(const char *text);
/* Walk the entries of a valid list: *pos starts at 0; false at the end. */
bool nodes_next(const char *text, size_t *pos, struct node_entry *entry);
/* Of a valid list the one that a tag, the first digits of a text, is of. */
bool nodes_find(const char *text, const char *tag, struct node_entry *entry);
/* This node's own entry, by its name: 1; 0: the list is empty.  -1 with
 * ERR_CONFIG: it is not in there, or no file has a key for the nodes. */
int nodes_own(const char *text, const char *name, const char *key_file,
    struct node_entry *entry, struct err *err);
/* Put a node's tag over the first characters of a new id; of none ("") it stays
 * as it is. */
void nodes_mark(const struct node_entry *own, char *id);

#endif
