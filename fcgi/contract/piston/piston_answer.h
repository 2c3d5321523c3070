/* SPDX-License-Identifier: MIT */
#ifndef PISTON_ANSWER_H
#define PISTON_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/piston/piston_request.h"
#include "contract/json.h"

#include "base/basics.h"

struct cell_result;

/*
 * Output of a run, and its end, in Piston's form.
 */

/* Bytes of each stream; what is over it ends the run. */
#define PISTON_OUTPUT_MAX 65536
/* The three texts, each byte of which may take six in JSON, and the rest. */
#define PISTON_ANSWER_MAX ((size_t)4 * 1024 * 1024)

/* One stream, as text. */
struct piston_stream {
	struct buf text;
	struct utf8_decoder decoder;
	struct utf8_decoder both; /* the same for piston_output.all */
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
/* No more comes: an unfinished character at the end is a fault, unless the
 * limit cut it. */
void piston_output_end(struct piston_output *output);

#define PISTON_SIGNAL_MAX 16

/* The end of a run, in the contract's words. */
struct piston_end {
	char signal[PISTON_SIGNAL_MAX]; /* "": none */
	int64_t code;			/* -1: none */
	const char *status;		/* NULL: none */
	char message[64];		/* "": none */
};

/* cell: any end but REASON_ERROR.  full: as in struct piston_output. */
void piston_end(struct piston_end *end, const struct piston_request *req,
    const struct cell_result *cell, int full);
/* Append the answer of /execute. */
void piston_add_answer(struct buf *out, const struct piston_request *req,
    struct piston_output *output, const struct cell_result *cell);

/* The name of a signal: "SIGSEGV" for 11.  A number without a name is
 * "SIGRTMIN" or "SIG" alone. */
void piston_signal_name(char name[PISTON_SIGNAL_MAX], int64_t number);
/* The number of a name; 0: there is none of that name, or it is NULL. */
int piston_signal_number(const char *name);

/*
 * The messages of /connect: JSON, one in each message of the WebSocket.
 */
enum piston_message {
	PISTON_INIT,   /* the document is a request: piston_accept() */
	PISTON_DATA,   /* text of len bytes; eof: none follows */
	PISTON_SIGNAL, /* number; 0: there is none of that name */
	PISTON_OTHER,  /* a type that means nothing */
	PISTON_WRONG,  /* it is refused, and there is no document */
};

struct piston_said {
	struct jtree doc; /* owns the text; to be released */
	bool is_input;	  /* of PISTON_DATA: for standard input */
	const char *text;
	size_t len;
	bool eof;
	int number;
};

/* data: a message, which a NUL follows. */
enum piston_message piston_hear(struct piston_said *said, const char *data,
    size_t len, struct piston_refusal *refusal);

/* Append messages of ours, as JSON. */
void piston_say_runtime(struct buf *out, const struct piston_runtime *runtime);
void piston_say_stage(struct buf *out);
void piston_say_data(struct buf *out, int64_t stream, const char *text,
    size_t len);
void piston_say_exit(struct buf *out, const struct piston_end *end);
/* refusal: the body of one, {"message": …}. */
void piston_say_error(struct buf *out, const struct piston_refusal *refusal);

#endif
