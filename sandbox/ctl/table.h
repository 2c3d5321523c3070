/* SPDX-License-Identifier: MIT */
#ifndef TABLE_H
#define TABLE_H

#include <stdbool.h>

#include <jansson.h>

struct db;
struct err;
struct stmt;

/*
 * Rows, for programs as JSON objects and for people as columns.  JSON has the
 * numbers of the database: bytes, milliseconds, Unix seconds.  Ids of Discord
 * and of jobs are strings there, as they are too large for a double.
 */
enum table_form {
	TABLE_TEXT,
	TABLE_NUMBER,  /* -1: not known, shown as "-" */
	TABLE_SIZE,    /* likewise */
	TABLE_AGE,     /* milliseconds, as seconds: "0.2"; likewise */
	TABLE_SECONDS, /* the same; -1 is shown as nothing */
	TABLE_MS,      /* "234 ms"; -1 likewise */
	TABLE_TIME,    /* Unix seconds; 0: shown as nothing */
	TABLE_TIME_MS, /* Unix milliseconds; 0 likewise */
	TABLE_EXPIRY,  /* Unix seconds; 0: never; -1: shown as nothing */
};

struct table_column {
	const char *head; /* for people */
	const char *key;  /* of the JSON object */
	enum table_form form;
	int width; /* of the text; numbers stand at its right */
};

/* Columns end with one without a head: a line of heads, and one of a row. */
void table_print_heads(const struct table_column *columns);
void table_print_row(const struct table_column *columns, const json_t *row);

/* All rows of a statement to standard output, below a line of heads, or as one
 * JSON array.  -1 with err. */
int table_print(struct db *db, struct stmt *s,
    const struct table_column *columns, bool json, struct err *err);
/* The same array: its members are named after the statement's columns, and
 * their texts made safe to show.  NULL with err. */
json_t *table_read(struct db *db, struct stmt *s, struct err *err);

/* Print a value and a line feed, and free the value.  Returns the exit code.
 * NULL fails. */
int table_print_json(json_t *value);
/* The text of a member, as long as the object lives; NULL: it has none. */
const char *table_json_text(const json_t *object, const char *key);
/* A JSON string of any bytes, made safe to show. */
json_t *table_text_to_json(const char *text);

#endif
