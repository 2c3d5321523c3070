/* SPDX-License-Identifier: MIT */
#ifndef PISTON_MESSAGE_H
#define PISTON_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/json.h"
#include "contract/semver.h"

#include "base/basics.h"
#include "base/text.h"
#include "protocol/cell.h"

/*
 * Piston's contract as JSON: requests, answers, and the messages of its
 * WebSocket.  The caller owns values that are packed.
 */

/* ---- the offer ---- */

enum piston_language {
	PISTON_PYTHON,
	PISTON_BASH,
};

struct piston_runtime {
	enum piston_language language;
	struct semver version;
	const char *interpreter; /* of SANDBOX_IMAGES; borrowed */
};

#define PISTON_RUNTIMES_MAX 128 /* two for each interpreter */

/* Runtimes, and the operator's limits. */
struct piston_offer {
	struct piston_runtime items[PISTON_RUNTIMES_MAX];
	size_t count;
	int64_t run_ms; /* a run's time by default, and at most */
	bool strict;	/* a version that is not there is refused */
};

/* The answer of /runtimes, or that of /packages: all are installed. */
json_t *piston_pack_list(const struct piston_offer *offer, bool packages);

/* ---- requests ---- */

/* The body of POST /execute, or an "init" message. */
struct piston_request {
	const struct piston_runtime *runtime; /* one of the offer's */
	bool stands_in; /* that one, for a version that is not offered */
	int64_t cpu_us; /* of all its processes together; may be 0 */
	/* The main file's path and the arguments as its words, its files,
	 * standard input that ends with a newline, wall clock time of at least
	 * 1 ms, and memory.  The rest is not set. */
	struct cell_request cell;
	struct jtree doc; /* owns all of these; to be released */
};

/* Parse a body, which a NUL follows; no body is an object without members.
 * False: it is refused, and there is no document. */
bool piston_parse(struct jtree *doc, const char *body, size_t len,
    struct api_error *error);
/* Read what is parsed: req->doc, and all else is zero.  On false the document
 * is released. */
bool piston_accept(struct piston_request *req, const struct piston_offer *offer,
    struct api_error *error);
/* ---- answers ---- */

/* Bytes of each stream; what is over it ends the run. */
#define PISTON_OUTPUT_MAX 65536

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

/* The end of a run, in the contract's words. */
struct piston_end {
	struct text_short signal; /* "": none */
	int64_t code;		  /* -1: none */
	const char *status;	  /* NULL: none */
	char message[64];	  /* "": none */
};

/* cell: any end but REASON_ERROR.  full: as in struct piston_output. */
struct piston_end piston_end(const struct piston_request *req,
    const struct cell_result *cell, int full);
/* The answer of /execute, at the end of the output. */
json_t *piston_pack_answer(const struct piston_request *req,
    const struct piston_output *output, const struct cell_result *cell);

/* The name of a signal: "SIGSEGV" for 11.  A number without a name is
 * "SIGRTMIN" or "SIG" alone. */
struct text_short piston_signal_name(int64_t number);
/* The number of a name; 0: there is none of that name, or it is NULL. */
int piston_signal_number(const char *name);

/* ---- messages of the WebSocket, JSON each ---- */

enum piston_message {
	PISTON_OTHER,  /* a type that means nothing */
	PISTON_INIT,   /* the document is a request: piston_accept() */
	PISTON_DATA,   /* text of len bytes; eof: none follows */
	PISTON_SIGNAL, /* number */
	PISTON_CLOSE,  /* the connection ends, with code and reason */
	PISTON_WRONG,  /* so it does, and the client gets an error before */
};

struct piston_said {
	struct jtree doc; /* owns the text; to be released in any case */
	const char *text;
	size_t len;
	bool eof;
	int number;
	int code;
	const char *reason;
};

/* Read a message, which a NUL follows.  running: there was a PISTON_INIT. */
enum piston_message piston_hear(struct piston_said *said, const char *data,
    size_t len, bool running, struct api_error *error);

/* Messages of ours. */
json_t *piston_pack_runtime(const struct piston_runtime *runtime);
json_t *piston_pack_data(int64_t stream, const struct buf *text);
json_t *piston_pack_exit(const struct piston_end *end);

#endif
