/* SPDX-License-Identifier: MIT */
#ifndef PISTON_ANSWER_H
#define PISTON_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../pytext/pyutf8.h"

#include "../../../sandbox/base/buf.h"

struct cell_result;
struct piston_request;

/*
 * What a run has printed, and how it ended, as Piston tells it.
 */

/* Bytes of each stream; what is over it ends the run. */
#define PISTON_OUTPUT_MAX 65536
/* The three texts, each byte of which may take six in JSON, and the rest. */
#define PISTON_ANSWER_MAX ((size_t)4 * 1024 * 1024)

/* One stream, as text. */
struct piston_stream {
	struct buf text;
	struct pyutf8 decoder;
	struct pyutf8 both; /* the same for piston_output.all */
	size_t left;
};

struct piston_output {
	struct piston_stream streams[2]; /* stdout, stderr */
	struct buf all;			 /* both, in the order of arrival */
	int full; /* the stream that has come to its limit, 1 or 2; 0: none */
};

void piston_output_init(struct piston_output *output);
void piston_output_release(struct piston_output *output);
/* stream: 1 or 2.  False: there is no room for more. */
bool piston_output_add(struct piston_output *output, int64_t stream,
    const void *data, size_t len);

/* How a run ended, in the contract's words. */
struct piston_end {
	const char *signal; /* NULL: none */
	int64_t code;	    /* -1: none */
	const char *status; /* NULL: none */
	char message[64];   /* "": none */
};

/* cell: any end but REASON_ERROR.  full: as in struct piston_output. */
void piston_end(struct piston_end *end, const struct piston_request *req,
    const struct cell_result *cell, int full);
/* Append the answer of /execute. */
void piston_add_answer(struct buf *out, const struct piston_request *req,
    struct piston_output *output, const struct cell_result *cell);

/* "SIGSEGV" of 11; static; of a number that has no name: "SIGRTMIN" or "SIG"
 * without more. */
const char *piston_signal_name(int64_t number);
/* The other way; 0: there is none of that name. */
int piston_signal_number(const char *name, size_t len);

#endif
