/* SPDX-License-Identifier: MIT */
#ifndef REPLY_H
#define REPLY_H

#include "rest.h"

struct buf;
struct transfer_answer;

/* What an exchange came to, for whoever decides on it: from status and headers,
 * and from the body, which may be anything. */
void reply_read(struct rest_reply *reply, const struct transfer_answer *answer,
    const struct buf *body);

#endif
