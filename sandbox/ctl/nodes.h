/* SPDX-License-Identifier: MIT */
#ifndef NODES_CTL_H
#define NODES_CTL_H

#include <stdint.h>

#include <jansson.h>

struct config;

/* Where a person is, by the table of nodes: a line for people. */
void nodes_show_person(const struct config *config, int64_t user_id);
/* The same as members of an object, which is returned: "slot", and "node",
 * which is null on one host and where the table cannot be read.  0: nobody. */
json_t *nodes_add_person(json_t *object, const struct config *config,
    int64_t user_id);

#endif
