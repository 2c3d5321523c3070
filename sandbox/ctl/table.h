/* SPDX-License-Identifier: MIT */
#ifndef TABLE_H
#define TABLE_H

#include <stdbool.h>

#include <jansson.h>

struct db;
struct err;
struct stmt;

/*
 * Rows of a statement, for people as columns and for programs as JSON objects.
 * JSON has the numbers of the database: bytes, milliseconds, Unix seconds.
 * Ids of Discord and of jobs are strings there, as they are too large for a
 * double.
 */
enum table_form {
	TABLE_TEXT, /* made safe to show */
	TABLE_NUMBER,
	TABLE_ID,
	TABLE_SIZE,
	TABLE_MS,      /* "234 ms"; -1: not known, shown as nothing */
	TABLE_SECONDS, /* milliseconds, as "0.2"; -1 likewise */
	TABLE_TIME,    /* Unix seconds; 0: shown as nothing */
	TABLE_TIME_MS, /* Unix milliseconds; 0 likewise */
	TABLE_EXPIRY,  /* Unix seconds; 0: never; -1: shown as nothing */
};

struct table_column {
	const char *head; /* for people */
	const char *key;  /* for programs */
	enum table_form form;
	int width;  /* of the text; numbers stand at its right */
	int column; /* of the statement */
};

/* Columns end with one without a head.  All rows to standard output, below a
 * line of heads, or as one JSON array.  -1 with err. */
int table_print(struct db *db, struct stmt *s,
    const struct table_column *columns, bool json, struct err *err);
/* The same array to put into another value; NULL with err. */
json_t *table_to_json(struct db *db, struct stmt *s,
    const struct table_column *columns, struct err *err);

/* A value that a function above has not printed, and a line feed; ends it.
 * Returns the exit code.  NULL fails. */
int table_print_json(json_t *value);
/* The text of a member, as long as the object lives; NULL: it has none. */
const char *table_json_text(const json_t *object, const char *key);
/* A JSON string of any bytes, made safe to show. */
json_t *table_text_to_json(const char *text);

#endif
