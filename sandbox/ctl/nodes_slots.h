/* SPDX-License-Identifier: MIT */
#ifndef NODES_SLOTS_H
#define NODES_SLOTS_H

#include <stdbool.h>
#include <stddef.h>

#include "../protocol/node_table.h"

struct buf;

/* Slots as people write them, "17,19,200-210", and the table of nodes as a text
 * that `ilctl nodes` changes: its comments, and what it says of nodes, stay. */

/* Add these.  False: they are none. */
bool slots_read(const char *text, bool slots[SLOTS]);
/* Append them, and return how many they are. */
size_t slots_add(struct buf *out, const bool slots[SLOTS]);

/* Append the text with these slots given to a node. */
void slots_give(struct buf *out, const char *text, const bool slots[SLOTS],
    const char *name);
/* Append the text as it would be if the node took part in the hashing, or if it
 * had no slot any more. */
void slots_settle(struct buf *out, const char *text, const char *name,
    bool takes_part);

#endif
