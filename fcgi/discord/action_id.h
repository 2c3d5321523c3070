/* SPDX-License-Identifier: MIT */
#ifndef ACTION_ID_H
#define ACTION_ID_H

#include <stdint.h>

#include "../../sandbox/store/commands.h"

/* "<action>:<view id>", or that with ":<word>" behind it where an action has
 * one (NULL: it has not), as Discord carries it.  ACTION_COUNT: it is not one
 * of ours. */
enum action action_parse(const char *custom_id, enum action_type type,
    int64_t *view_id, const char **word);

#endif
