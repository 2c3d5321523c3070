/* SPDX-License-Identifier: MIT */
#ifndef PISTON_FILES_H
#define PISTON_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "../../../sandbox/protocol/cell.h"

struct piston_refusal;
struct pyjson;
struct pyvalue;

/*
 * The files of a request, of which all have a content that is a text.
 */

struct piston_files {
	struct cell_input *items;
	size_t count;
	struct cell_bytes main; /* the path of the one that is run */
};

/* Is there one that can be the program? */
bool piston_check_main(const struct pyvalue *list,
    struct piston_refusal *refusal);
/* Check their names, decode what they hold in its place, and find the program.
 * The document owns what is made.  False: something is refused. */
bool piston_take_files(struct piston_files *files, struct pyjson *doc,
    const struct pyvalue *list, struct piston_refusal *refusal);

/* What no UTF-8 can say, half of a UTF-16 pair, becomes U+FFFD, in place. */
void piston_make_text(char *text, size_t len);
/* As Buffer.from() does: what is not of the alphabet is skipped, and either one
 * is taken; hex ends with the first pair that is none.  out may be the text
 * itself; the length. */
size_t piston_decode_base64(const char *text, size_t len, char *out);
size_t piston_decode_hex(const char *text, size_t len, char *out);

#endif
