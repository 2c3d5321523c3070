/* SPDX-License-Identifier: MIT */
#ifndef LIBRE_MESSAGE_H
#define LIBRE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/json.h"
#include "contract/run_files.h"

#include "base/basics.h"
#include "protocol/cell.h"

/*
 * LibreChat's contract as JSON: requests and answers.  The caller owns values
 * that are packed.
 */

/* ---- ids and names ---- */

/*
 * The ids of this contract: 21 characters of A-Z a-z 0-9 - _, six bits each.
 * LibreChat's own links take no other form, for sessions and files alike.
 *
 * A file's id is the store's own in another form, so that no table is kept.  A
 * UUID of version 4 has 122 bits that vary.  An id has 126 bits, of which the
 * first four are zero then.
 */
#define LIBRE_ID_LEN 21
#define LIBRE_UUID_LEN 36

bool libre_is_id(const char *id);
/* uuid: as the store makes it. */
void libre_id_of_file(char id[LIBRE_ID_LEN + 1], const char *uuid);
/* False: no file can have that id, which is a client's. */
bool libre_id_to_file(char uuid[LIBRE_UUID_LEN + 1], const char *id);
/* Make a random id, for a session. */
void libre_make_id(char id[LIBRE_ID_LEN + 1]);

/* Bytes of a file's name, which is a path below the work folder. */
#define LIBRE_NAME_MAX 1024

/* The fault of a name, in the contract's words ("must not be empty"), static;
 * NULL: none, and it is the path to write to.  A run may make files of any
 * name, and clients send back what an answer names.  So only a name that no
 * file can have is refused. */
const char *libre_name_fault(const char *name);
/* The last part of a path. */
const char *libre_name_base(const char *path);
/* ".csv" of a path: of letters and digits, 12 at most; "" without. */
const char *libre_name_extension(const char *path);

/* Bytes of an id or a version of LibreChat's. */
#define LIBRE_RESOURCE_MAX 256

/* The owner of a file: a user, or all who use an agent or a skill. */
struct libre_resource {
	const char *kind;    /* "user", "agent", "skill"; NULL: a user */
	const char *id;	     /* NULL: none was sent */
	const char *version; /* of a skill; else NULL or "" */
};

/* The fault of a resource ("kind must be one of…"), static; NULL: none. */
const char *libre_resource_fault(const struct libre_resource *resource);

/* A parameter of a query (kind=user&id=a%20b), decoded and without a NUL.
 * False: it is not there, or longer than LIBRE_RESOURCE_MAX, or malformed. */
bool libre_query_get(const char *query, const char *name,
    char out[LIBRE_RESOURCE_MAX + 1]);

/* ---- POST /exec ---- */

struct libre_file {
	const char *id;	     /* not checked beyond its form */
	const char *session; /* likewise */
	const char *name;    /* a path without fault (libre_name_fault()) */
	struct libre_resource resource;
	bool replaced; /* by a later one of its name, or above or below it */
	/* set by the run: */
	bool missing; /* not in the store, or not for this sender */
	bool read_only;
	bool changed; /* it left another one in its place, or none */
	/* as they were sent: */
	const char *old_session; /* the session, by an older name */
	const json_t *resource_id;
	const json_t *version;
};

#define LIBRE_FILES_MAX 1000
#define LIBRE_ARGS_MAX 1000
#define LIBRE_ARGS_BYTES 32768 /* of all arguments together */
#define LIBRE_TIMEOUT_MS 30000
#define LIBRE_TIMEOUT_MAX_MS 60000
#define LIBRE_HINT_MAX 128 /* bytes */

struct libre_exec {
	bool is_bash;		 /* else it is Python */
	struct cell_bytes code;	 /* of bash without a NUL */
	const char *const *args; /* NULL, or NULL at the end */
	struct libre_file *files;
	size_t file_count;
	int64_t timeout_ms;
	/* The name that the runs of a conversation share; NULL: each is for
	 * itself. */
	const char *hint;
	/* Where the code itself is written to: a name that no file has. */
	const char *entry;
	/* A folder for what a run needs beside it: likewise. */
	const char *place;
	struct jtree doc; /* owns all of these; to be released */
};

/* A NUL follows the body.  False: 400 or 403, and nothing is to be released. */
bool libre_exec_parse(struct libre_exec *exec, const char *body, size_t len,
    struct api_error *error);
/* The same of a value, which the request owns from now on. */
bool libre_exec_read(struct libre_exec *exec, json_t *root,
    struct api_error *error);

/* ---- answers; texts that are no UTF-8 are packed with U+FFFD ---- */

/* {"error":…}, with details where they are not NULL. */
json_t *libre_pack_error(const char *error, const char *details);

#define LIBRE_OUTPUT_MAX ((size_t)1 << 20) /* bytes of each stream */

/* Add to a stream: what is over its bound is dropped, and marks the
 * overflow. */
void libre_stream_add(struct buf *stream, const void *data, size_t len);

/* Why an input does not come back: it was in the store no more. */
#define LIBRE_MISSING "it is not kept any more"

struct libre_outcome {
	const char *session;
	struct buf out; /* BUF_INIT(LIBRE_OUTPUT_MAX), to be released */
	struct buf err;
	const struct cell_result *cell;
	int64_t timeout_ms;
	int64_t wall_ms;
	const struct run_files *files; /* in the work folder */
	const char *note;	       /* a line more for the model, or NULL */
	/* The conversation's own cell, and is it a new one?  NULL: it had none.
	 */
	const char *runtime;
	bool runtime_new;
};

/* Lines for the person, or the model, that say how the run ended stand below
 * standard error: the client shows nothing else. */
json_t *libre_pack_outcome(const struct libre_outcome *outcome);

/* ---- answers of a program that calls tools ---- */

#define LIBRE_FAILED "Execution failed or timed out"

/* The error of a run, as a string in the words that the client knows; NULL:
 * there is none. */
json_t *libre_find_error(const struct libre_outcome *outcome);
/* The program is over.  error: as above, and released. */
json_t *libre_pack_end(const struct libre_outcome *outcome, json_t *error);
/* Calls, a list, come before it can go on. */
json_t *libre_pack_calls(const struct libre_outcome *outcome, json_t *calls,
    const char *token);

/* ---- answers about files ---- */

/* An item of GET /files/S in three forms; GET /sessions/S/objects/F. */
enum libre_detail { LIBRE_SIMPLE, LIBRE_SUMMARY, LIBRE_FULL, LIBRE_OBJECT };
json_t *libre_pack_stored(const char *session, const char *uuid,
    const char *name, int64_t size, int64_t uploaded_ms, bool read_only,
    enum libre_detail detail);

#endif
