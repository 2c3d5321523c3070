/* SPDX-License-Identifier: MIT */
#ifndef ACTION_ID_H
#define ACTION_ID_H

#include <stdint.h>

#include "../../sandbox/store/commands.h"

/* "<action>:<view id>", as Discord carries it.  ACTION_COUNT: not one of ours.
 */
enum action action_parse(const char *custom_id, enum action_type type,
    int64_t *view_id);

#endif
