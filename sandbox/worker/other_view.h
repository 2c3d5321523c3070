/* SPDX-License-Identifier: MIT */
#ifndef OTHER_VIEW_H
#define OTHER_VIEW_H

#include <stdint.h>

struct err;
struct node_view;
struct worker;

/*
 * A run whose row is on another node (protocol/node_view.h), as somebody of
 * another node has shared it: one request, within OTHER_VIEW_MS.
 */
#define OTHER_VIEW_MS 1500

enum other_view {
	OTHER_VIEW_OURS, /* the row would be on this node */
	OTHER_VIEW_READ, /* to be released */
	OTHER_VIEW_NONE, /* there is none that this user may have */
	OTHER_VIEW_AWAY, /* that is not known: the node does not answer */
};

enum other_view other_view_read(struct worker *worker, int64_t view_id,
    int64_t user_id, struct node_view *view);

#endif
