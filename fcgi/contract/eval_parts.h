/* SPDX-License-Identifier: MIT */
#ifndef EVAL_PARTS_H
#define EVAL_PARTS_H

#include "eval_request.h"

/* The steps of eval_parse(), in its folder only.  Each returns false with a
 * refusal when the request fails there. */

/* eval_schema.c: the types, and which members there must be; then those that
 * are ours: stdin, timeout_ms. */
bool eval_check_schema(const struct pyvalue *root,
    struct eval_refusal *refusal);
bool eval_take_extras(struct eval_request *req, const struct eval_terms *terms,
    struct eval_refusal *refusal);

/* eval_form.c: a urlencoded form as the object that it stands for. */
bool eval_parse_form(struct pyjson *doc, const char *body, size_t len,
    struct eval_refusal *refusal);

#endif
