/* SPDX-License-Identifier: MIT */
#include "ctl/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/basics.h"
#include "base/text.h"
#include "ctl/ctl.h"
#include "store/db.h"

#define WAIT_SECONDS 60
#define CLEAN_MAX ((size_t)64 << 10)

int
ctl_fail(const char *command, const struct err *err)
{
	(void)fprintf(stderr, "ilctl %s: %s\n", command, err->text);
	return err->code == ERR_CONFIG ? CTL_CONFIG : CTL_FAILED;
}

char *
ctl_cut(struct ctl *ctl, const char *name, int count)
{
	for (int i = 1; i + count <= ctl->argc; i++) {
		char *last = ctl->argv[i + count - 1];

		if (strcmp(ctl->argv[i], name) != 0)
			continue;
		/* argv ends with NULL */
		memmove(&ctl->argv[i], &ctl->argv[i + count],
		    sizeof(*ctl->argv) * (size_t)(ctl->argc - i - count + 1));
		ctl->argc -= count;
		return last;
	}
	return NULL;
}

bool
ctl_cut_wait(struct ctl *ctl, int64_t *ms)
{
	const char *wait = ctl_cut(ctl, "-w", 2);
	int64_t seconds = WAIT_SECONDS;

	if (wait != NULL && !text_parse_int(wait, 0, 86400, &seconds))
		return false;
	*ms = seconds * 1000;
	return true;
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

static json_t *
table_read_row(const struct stmt *s)
{
	json_t *row = json_object();
	const char *name;

	for (int i = 0; (name = db_column_name(s, i)) != NULL; i++)
		(void)json_object_set_new(row, name,
		    db_column_is_text(s, i) ?
			table_text_to_json(db_column_text(s, i)) :
			json_integer(db_column_int(s, i)));
	return row;
}

json_t *
table_read(struct db *db, struct stmt *s, struct err *err)
{
	json_t *rows = json_array();
	int result;

	while ((result = db_step(db, s, err)) == 1)
		(void)json_array_append_new(rows, table_read_row(s));
	if (result == 0)
		return rows;
	json_decref(rows);
	return NULL;
}

/* ---- for people ---- */

/* A number that is not known is negative; a time that is not, 0. */
static struct text_short
show_number(enum table_form form, int64_t n)
{
	struct text_short text = { "" };

	if (n < 0 || (n == 0 && form >= TABLE_TIME))
		(void)snprintf(text.text, sizeof(text.text), "%s",
		    n == 0 && form == TABLE_EXPIRY ? "never" :
			n < 0 && form <= TABLE_AGE ? "-" :
						     "");
	else if (form == TABLE_SIZE)
		text = text_size(n);
	else if (form == TABLE_AGE || form == TABLE_SECONDS)
		(void)snprintf(text.text, sizeof(text.text), "%.1f",
		    (double)n / 1e3);
	else if (form >= TABLE_TIME)
		text = text_time(form == TABLE_TIME_MS ? n / 1000 : n);
	else
		(void)snprintf(text.text, sizeof(text.text), "%" PRId64 "%s", n,
		    form == TABLE_MS ? " ms" : "");
	return text;
}

/* Numbers stand at the right.  The last column of a line has no blanks behind
 * it. */
static void
print_field(const struct table_column *c, const char *text)
{
	bool last = c[1].head == NULL;
	bool right = c->form >= TABLE_NUMBER && c->form <= TABLE_MS;

	printf("%*s%s",
	    right    ? c->width :
		last ? 0 :
		       -c->width,
	    text, last ? "\n" : "  ");
}

void
table_print_heads(const struct table_column *columns)
{
	for (const struct table_column *c = columns; c->head != NULL; c++)
		print_field(c, c->head);
}

void
table_print_row(const struct table_column *columns, const json_t *row)
{
	for (const struct table_column *c = columns; c->head != NULL; c++) {
		const json_t *value = json_object_get(row, c->key);

		print_field(c,
		    json_is_string(value) ?
			json_string_value(value) :
			show_number(c->form, json_integer_value(value)).text);
	}
}

/* ---- both ---- */

int
table_print(struct db *db, struct stmt *s, const struct table_column *columns,
    bool json, struct err *err)
{
	json_t *rows;
	int result;

	if (json) {
		rows = table_read(db, s, err);
		return rows != NULL ? table_print_json(rows) : -1;
	}
	table_print_heads(columns);
	while ((result = db_step(db, s, err)) == 1) {
		json_auto_t *row = table_read_row(s);

		table_print_row(columns, row);
	}
	return result;
}
