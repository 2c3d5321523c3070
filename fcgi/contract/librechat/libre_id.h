/* SPDX-License-Identifier: MIT */
#ifndef LIBRE_ID_H
#define LIBRE_ID_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The ids of this contract: 21 characters of A-Z a-z 0-9 - _, six bits each.
 * LibreChat's own links take no other form, for sessions and files alike.
 *
 * A file has the id of the store in another form, and so nothing has to be kept
 * to find it: a UUID of version 4 has 122 bits that are not always the same, an
 * id has 126, of which the first four are zero then.
 */
#define LIBRE_ID_LEN 21
#define LIBRE_UUID_LEN 36

bool libre_is_id(const char *id, size_t len);

/* uuid: as the store makes it. */
void libre_id_of_file(char id[LIBRE_ID_LEN + 1], const char *uuid);
/* len bytes of a client's.  False: no file can have that id. */
bool libre_id_to_file(char uuid[LIBRE_UUID_LEN + 1], const char *id,
    size_t len);

/* One of random bytes, for a session. */
#define LIBRE_ID_BYTES 16
void libre_id_of_bytes(char id[LIBRE_ID_LEN + 1],
    const unsigned char bytes[LIBRE_ID_BYTES]);

#endif
