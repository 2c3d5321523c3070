/* SPDX-License-Identifier: MIT */
#ifndef PISTON_SHA1_H
#define PISTON_SHA1_H

#include <stddef.h>

#define SHA1_LEN 20

/* SHA-1 (FIPS 180-4), which a WebSocket's handshake asks for (RFC 6455, 4.2.2):
 * it proves that both speak of the same, and is good for nothing else.  It is
 * ours since libsodium has none. */
void sha1(const void *data, size_t len, unsigned char hash[SHA1_LEN]);

#endif
