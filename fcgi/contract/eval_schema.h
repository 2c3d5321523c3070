/* SPDX-License-Identifier: MIT */
#ifndef EVAL_SCHEMA_H
#define EVAL_SCHEMA_H

#include "eval_request.h"

/* Steps of eval_parse().  Each returns false with a refusal when the request
 * fails there. */

/* The types, and which members there must be. */
bool eval_check_schema(const struct pyvalue *root,
    struct eval_refusal *refusal);
/* Members that are ours: stdin, timeout_ms. */
bool eval_take_extras(struct eval_request *req, const struct eval_terms *terms,
    struct eval_refusal *refusal);

#endif
