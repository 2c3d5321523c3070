/* SPDX-License-Identifier: MIT */
#ifndef PISTON_REQUEST_H
#define PISTON_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/semver.h"
#include "contract/json.h"

#include "base/basics.h"
#include "protocol/cell.h"

/* Refusal: {"message": …}, which is to be released. */
struct piston_refusal {
	int status;
	struct buf body;
};

#define PISTON_REFUSAL_MAX 65536 /* bytes of the body of one */

/* Refuse with a text.  Always false. */
bool piston_refuse(struct piston_refusal *refusal, int status, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));

/*
 * Languages in their versions, as Piston names them: what an interpreter on
 * offer is called there, and which one a request means.
 */
enum piston_language {
	PISTON_PYTHON,
	PISTON_BASH,
};

struct piston_runtime {
	enum piston_language language;
	struct semver version;
	const char *interpreter; /* of SANDBOX_IMAGES; borrowed */
};

/* An object that names a runtime: its language and, with the name `version`,
 * its version.  The caller owns it. */
json_t *piston_pack_runtime(const struct piston_runtime *runtime,
    const char *version);
/* Append the answer of /runtimes, and that of /packages: all are installed. */
void piston_add_runtimes(struct buf *out, const struct piston_runtime *runtimes,
    size_t count);
void piston_add_packages(struct buf *out, const struct piston_runtime *runtimes,
    size_t count);

/*
 * The body of POST /execute, or of an "init" message, as something to run.  One
 * fault is reported, by the path of its field.
 */

/* Limits of the operator.  Milliseconds: the default, and the most that may
 * be asked for. */
struct piston_limits {
	int64_t run_ms;
	int64_t compile_ms;
	bool strict; /* a version that is not there is refused */
};

struct piston_request {
	const struct piston_runtime *runtime; /* one of those that were given */
	bool stands_in; /* that one, for a version that is not among them */
	struct cell_bytes *words; /* the main file's path, then the arguments */
	size_t word_count;
	struct cell_input *inputs;
	size_t input_count;
	const char *input; /* standard input, ends with a newline */
	size_t input_len;
	int64_t wall_ms;  /* at least 1 */
	int64_t cpu_us;	  /* of all its processes together; may be 0 */
	int64_t memory;	  /* bytes of address space; 0: no limit */
	struct jtree doc; /* owns all of these; to be released */
};

/* Parse a body, which a NUL follows; no body is an object without members.
 * False: it is refused, and there is no document. */
bool piston_parse(struct jtree *doc, const char *body, size_t len,
    struct piston_refusal *refusal);
/* The same, and read it: the document is the request's then.  On false there is
 * nothing to release but the refusal. */
bool piston_read(struct piston_request *req, const struct piston_limits *limits,
    const struct piston_runtime *runtimes, size_t count, const char *body,
    size_t len, struct piston_refusal *refusal);
/* Read what is parsed.  On false req->doc is released. */
bool piston_accept(struct piston_request *req,
    const struct piston_limits *limits, const struct piston_runtime *runtimes,
    size_t count, struct piston_refusal *refusal);

#endif
