/* SPDX-License-Identifier: MIT */
#ifndef WIRE_H
#define WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

/* Reading the values of Discord's JSON, of which any may be missing or of
 * another type. */

/*
 * Parse; the caller owns the value.  A text that jansson refuses is parsed as
 * json_mend() makes it.  A text may hold a NUL, so that its sender can be told.
 * If a key stands twice, the last one holds, as for Discord itself.
 */
json_t *wire_load(const char *body, size_t len, json_error_t *error);

/* A string without a NUL, or NULL. */
const char *wire_string(const json_t *object, const char *key);
bool wire_int(const json_t *object, const char *key, int64_t *number);
bool wire_id(const json_t *object, const char *key, int64_t *id);
/* May it become a part of a URL: only what base64 may hold, and no '/'? */
bool wire_is_token(const char *token);
/* The name that its owner gave an uploaded file, and what is to stand after it;
 * NULL: it has none. */
const char *wire_file_name(const json_t *attachment, const char **ending);
/* Of a message that this application has sent: the id of the view of a run that
 * its buttons are about; 0: there is none. */
int64_t wire_view(const json_t *message, int64_t application_id);
/* The permissions that a key holds as a string; all, if it does not. */
int64_t wire_permissions(const json_t *object, const char *key);
/* May we post where the interaction came from, so that all see it who are
 * there?  bits: our permissions. */
bool wire_may_post(const json_t *root, int64_t bits);

#endif
