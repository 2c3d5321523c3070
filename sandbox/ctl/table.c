/* SPDX-License-Identifier: MIT */
#include "table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/err.h"
#include "../base/text.h"
#include "../store/db.h"
#include "ctl.h"

#define CLEAN_MAX ((size_t)64 << 10)

/* ---- for people ---- */

int
ctl_fail(const char *command, const struct err *err)
{
	(void)fprintf(stderr, "ilctl %s: %s\n", command, err->text);
	return err->code == ERR_CONFIG ? CTL_CONFIG : CTL_FAILED;
}

/* A number as people read it. */
static struct text_short
show_number(enum table_form form, int64_t n)
{
	struct text_short text = { "" };

	switch (form) {
	case TABLE_SIZE:
		return text_size(n);
	case TABLE_MS:
		if (n >= 0)
			(void)snprintf(text.text, sizeof(text.text),
			    "%" PRId64 " ms", n);
		return text;
	case TABLE_SECONDS:
		if (n >= 0)
			(void)snprintf(text.text, sizeof(text.text), "%.1f",
			    (double)n / 1e3);
		return text;
	case TABLE_EXPIRY:
		if (n == 0)
			return (struct text_short){ "never" };
		return n < 0 ? text : text_time(n);
	case TABLE_TIME:
		return n == 0 ? text : text_time(n);
	case TABLE_TIME_MS:
		return n == 0 ? text : text_time(n / 1000);
	case TABLE_TEXT:
	case TABLE_NUMBER:
	case TABLE_ID:
		break;
	}
	(void)snprintf(text.text, sizeof(text.text), "%" PRId64, n);
	return text;
}

static bool
is_right(enum table_form form)
{
	return form == TABLE_NUMBER || form == TABLE_SIZE || form == TABLE_MS ||
	    form == TABLE_SECONDS;
}

/* The last column of a line has no blanks behind it. */
static void
print_field(const struct table_column *c, const char *text)
{
	bool last = c[1].head == NULL;

	printf("%*s%s",
	    is_right(c->form) ? c->width :
		last	      ? 0 :
				-c->width,
	    text, last ? "\n" : "  ");
}

static void
print_row(const struct stmt *s, const struct table_column *c)
{
	for (; c->head != NULL; c++) {
		auto_buf struct buf text = BUF_INIT(CLEAN_MAX);
		const char *said;

		if (c->form != TABLE_TEXT) {
			print_field(c,
			    show_number(c->form, db_column_int(s, c->column))
				.text);
			continue;
		}
		/* it may quote what another program said */
		said = db_column_text(s, c->column);
		text_add_clean(&text, said, strlen(said));
		print_field(c, buf_str(&text));
	}
}

/* ---- for programs ---- */

const char *
table_json_text(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

json_t *
table_text_to_json(const char *text)
{
	auto_buf struct buf clean = BUF_INIT(CLEAN_MAX);

	text_add_clean(&clean, text, strlen(text));
	return json_string(buf_str(&clean));
}

static json_t *
row_to_json(const struct stmt *s, const struct table_column *c)
{
	json_t *row = json_object();

	for (; c->head != NULL; c++) {
		int64_t n = c->form == TABLE_TEXT ? 0 :
						    db_column_int(s, c->column);
		json_t *value = json_integer(n);

		if (c->form == TABLE_TEXT || c->form == TABLE_ID) {
			json_decref(value);
			value = c->form == TABLE_ID ?
			    json_string(show_number(c->form, n).text) :
			    table_text_to_json(db_column_text(s, c->column));
		}
		(void)json_object_set_new(row, c->key, value);
	}
	return row;
}

int
table_print_json(json_t *value)
{
	int code = value != NULL &&
		json_dumpf(value, stdout, JSON_COMPACT) == 0 ?
	    CTL_OK :
	    CTL_FAILED;

	printf("\n");
	json_decref(value);
	return code;
}

json_t *
table_to_json(struct db *db, struct stmt *s, const struct table_column *columns,
    struct err *err)
{
	json_t *rows = json_array();
	int result;

	while ((result = db_step(db, s, err)) == 1)
		(void)json_array_append_new(rows, row_to_json(s, columns));
	if (result == 0)
		return rows;
	json_decref(rows);
	return NULL;
}

/* ---- both ---- */

int
table_print(struct db *db, struct stmt *s, const struct table_column *columns,
    bool json, struct err *err)
{
	json_t *rows;
	int result;

	if (json) {
		rows = table_to_json(db, s, columns, err);
		return rows != NULL ? table_print_json(rows) : -1;
	}
	for (const struct table_column *c = columns; c->head != NULL; c++)
		print_field(c, c->head);
	while ((result = db_step(db, s, err)) == 1)
		print_row(s, columns);
	return result;
}
