/* SPDX-License-Identifier: MIT */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A fuzz target defines this function.  It is linked with clang's libFuzzer
 * (make fuzz), or with replay.c, which runs it on the corpus.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An invariant of every input: the target dies where it does not hold. */
static inline void
fuzz_holds(int truth, const char *what)
{
	if (truth)
		return;
	(void)fprintf(stderr, "broken: %s\n", what);
	abort();
}

/* The input with a NUL after it; to be freed. */
static inline char *
fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (text == NULL)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

/* An input that is a row of packets: two bytes of length, then so many or what
 * is left.  Takes the next one; false: there is none. */
static inline int
fuzz_next_packet(const uint8_t **data, size_t *size, const uint8_t **packet,
    size_t *len)
{
	if (*size <= 2)
		return 0;
	*len = (size_t)(*data)[0] << 8 | (*data)[1];
	*packet = *data + 2;
	if (*len > *size - 2)
		*len = *size - 2;
	*data += 2 + *len;
	*size -= 2 + *len;
	return 1;
}

#endif
