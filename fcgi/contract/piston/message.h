/* SPDX-License-Identifier: MIT */
#ifndef PISTON_MESSAGE_H
#define PISTON_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes.h"
#include "../../pytext/pyjson.h"

struct buf;
struct piston_end;
struct piston_refusal;

/*
 * The messages of /connect: JSON, one in each message of the WebSocket.
 */
enum piston_message {
	PISTON_INIT,   /* the document is a request: piston_take() */
	PISTON_DATA,   /* text of len bytes; eof: none follows */
	PISTON_SIGNAL, /* number; 0: there is none of that name */
	PISTON_OTHER,  /* of a type that means nothing */
	PISTON_WRONG,  /* it is refused, and there is no document */
};

struct piston_said {
	struct pyjson doc; /* owns the text; to be released */
	bool is_input;	   /* of PISTON_DATA: for standard input */
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
