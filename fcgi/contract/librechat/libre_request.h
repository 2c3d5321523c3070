/* SPDX-License-Identifier: MIT */
#ifndef LIBRE_REQUEST_H
#define LIBRE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/json.h"

struct buf;

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

bool libre_is_id(const char *id, size_t len);

/* uuid: as the store makes it. */
void libre_id_of_file(char id[LIBRE_ID_LEN + 1], const char *uuid);
/* id: len bytes of a client's.  False: no file can have that id. */
bool libre_id_to_file(char uuid[LIBRE_UUID_LEN + 1], const char *id,
    size_t len);

/* Make an id of random bytes, for a session. */
#define LIBRE_ID_BYTES 16
void libre_id_of_bytes(char id[LIBRE_ID_LEN + 1],
    const unsigned char bytes[LIBRE_ID_BYTES]);

/* Bytes of a file's name, which is a path below the work folder. */
#define LIBRE_NAME_MAX 1024

/* The fault of a name, in the contract's words ("must not be empty"), static;
 * NULL: none, and it is the path to write to.  A run may make files of any
 * name, and clients send back what an answer names.  So only a name that no
 * file can have is refused. */
const char *libre_name_fault(const char *name, size_t len);

/* The last part of a path. */
const char *libre_name_base(const char *path);
/* ".csv" of a path: of letters and digits, 12 at most; "" without. */
const char *libre_name_extension(const char *path);

/* POST /exec: from bytes to something typed to run. */

enum libre_lang { LIBRE_PYTHON, LIBRE_BASH };

/* The owner of a file: a user, or all who use an agent or a skill. */
enum libre_kind { LIBRE_USER, LIBRE_AGENT, LIBRE_SKILL };

/* Bytes of an id or a version of LibreChat's. */
#define LIBRE_RESOURCE_MAX 256

struct libre_resource {
	enum libre_kind kind;
	const char *id;	     /* "" where none was sent */
	const char *version; /* of a skill; else "" */
};

struct libre_file {
	const char *id;	     /* not checked beyond its form */
	const char *session; /* likewise */
	const char *name;    /* a path without fault (libre_name_fault()) */
	struct libre_resource resource;
	bool replaced; /* by a later one of its name, or above or below it */
};

#define LIBRE_FILES_MAX 1000
#define LIBRE_ARGS_MAX 1000
#define LIBRE_ARGS_BYTES 32768 /* of all arguments together */
#define LIBRE_TIMEOUT_MS 30000
#define LIBRE_TIMEOUT_MAX_MS 60000
#define LIBRE_HINT_MAX 128 /* bytes */
#define LIBRE_ERROR_MAX 4096
/* The refusal of a reference to a file whose ids are not of our form. */
#define LIBRE_UNAUTHORIZED "Unauthorized file reference"

struct libre_exec {
	enum libre_lang lang;
	const char *code; /* of bash without a NUL */
	size_t code_len;
	const char **args; /* ends with NULL; no NUL inside */
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

/* A NUL follows the body.  False: the status to answer with, 400 or 403, and
 * the error's text (a buffer of LIBRE_ERROR_MAX); nothing is to be released. */
bool libre_exec_parse(struct libre_exec *exec, const char *body, size_t len,
    int *status, struct buf *error);

/* The same of a value, which the request owns from now on. */
bool libre_exec_read(struct libre_exec *exec, json_t *root, int *status,
    struct buf *error);

/* "user", "agent", "skill"; NULL stands for the first.  False: none of them. */
bool libre_kind_parse(const char *text, enum libre_kind *kind);

/* A parameter of a query (kind=user&id=a%20b), decoded and without a NUL.
 * False: it is not there, or longer than LIBRE_RESOURCE_MAX, or malformed. */
bool libre_query_get(const char *query, const char *name,
    char out[LIBRE_RESOURCE_MAX + 1]);

#endif
