#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * A fuzz target defines this function.  It is linked with clang's libFuzzer
 * (make fuzz), or with replay.c, which runs it on the corpus.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold for every input: otherwise the target dies. */
static inline void
fuzz_holds(int truth, const char *what)
{
	if (truth)
		return;
	(void)fprintf(stderr, "broken: %s\n", what);
	abort();
}

#endif
