/* SPDX-License-Identifier: MIT */
#include "libre_id.h"

#include <string.h>

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char hex[] = "0123456789abcdef";

#define UUID_BITS 128
#define ID_BITS (6 * LIBRE_ID_LEN)
#define SPARE_BITS 4 /* zero in the id of a file */

/* Of a UUID: its version, and its variant.  These are the same in all. */
static bool
is_fixed(size_t bit)
{
	return (bit >= 48 && bit < 52) || bit == 64 || bit == 65;
}

static bool
get_bit(const unsigned char *bytes, size_t bit)
{
	return (bytes[bit / 8] >> (7 - bit % 8) & 1) != 0;
}

static void
set_bit(unsigned char *bytes, size_t bit, bool value)
{
	if (value)
		bytes[bit / 8] |= (unsigned char)(1U << (7 - bit % 8));
}

/* The characters for the first bits. */
static void
write_id(char id[LIBRE_ID_LEN + 1], const unsigned char bytes[LIBRE_ID_BYTES])
{
	for (size_t i = 0; i < LIBRE_ID_LEN; i++) {
		unsigned value = 0;

		for (size_t bit = 6 * i; bit < 6 * i + 6; bit++)
			value = value << 1 | get_bit(bytes, bit);
		id[i] = alphabet[value];
	}
	id[LIBRE_ID_LEN] = '\0';
}

void
libre_id_of_bytes(char id[LIBRE_ID_LEN + 1],
    const unsigned char bytes[LIBRE_ID_BYTES])
{
	write_id(id, bytes);
}

bool
libre_is_id(const char *id, size_t len)
{
	if (len != LIBRE_ID_LEN)
		return false;
	for (size_t i = 0; i < len; i++)
		if (id[i] == '\0' || strchr(alphabet, id[i]) == NULL)
			return false;
	return true;
}

void
libre_id_of_file(char id[LIBRE_ID_LEN + 1], const char *uuid)
{
	unsigned char packed[LIBRE_ID_BYTES] = { 0 };
	size_t to = SPARE_BITS;
	size_t bit = 0;

	for (; *uuid != '\0' && bit < UUID_BITS; uuid++) {
		const char *digit = strchr(hex, *uuid);

		if (digit == NULL) /* a '-' */
			continue;
		for (size_t i = 0; i < 4; i++, bit++)
			if (!is_fixed(bit))
				set_bit(packed, to++,
				    ((digit - hex) >> (3 - i) & 1) != 0);
	}
	write_id(id, packed);
}

bool
libre_id_to_file(char uuid[LIBRE_UUID_LEN + 1], const char *id, size_t len)
{
	unsigned char packed[LIBRE_ID_BYTES] = { 0 };
	unsigned char bytes[UUID_BITS / 8] = { 0 };
	size_t from = SPARE_BITS;
	char *out = uuid;

	if (!libre_is_id(id, len))
		return false;
	for (size_t i = 0; i < ID_BITS; i++)
		set_bit(packed, i,
		    ((strchr(alphabet, id[i / 6]) - alphabet) >> (5 - i % 6) &
			1) != 0);
	if (packed[0] >> (8 - SPARE_BITS) != 0)
		return false;
	for (size_t bit = 0; bit < UUID_BITS; bit++)
		set_bit(bytes, bit,
		    is_fixed(bit) ? bit == 49 || bit == 64 :
				    get_bit(packed, from++));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*out++ = '-';
		*out++ = hex[bytes[i] >> 4];
		*out++ = hex[bytes[i] & 15];
	}
	*out = '\0';
	return true;
}
