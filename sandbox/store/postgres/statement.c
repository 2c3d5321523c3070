/* SPDX-License-Identifier: MIT */
/* Statements of sql/: bound by name, executed at once, read row by row. */
#include "pg.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/log.h"
#include "../../base/utf8.h"

static int
count_words(const char *words)
{
	int count = 0;

	while (*words != '\0')
		count += *words++ == ' ';
	return count;
}

void
pg_statement_init(struct pg *pg)
{
	for (int i = 0; i < PG_STATEMENT_COUNT; i++) {
		struct pg_stmt *s = &pg->statements[i];

		s->text = &pg_statement_texts[i];
		s->count = count_words(s->text->parameters);
		buf_init(&s->rows, PG_ANSWER_MAX);
		if (s->count > PG_PARAMETERS_MAX)
			log_fatal(1, "%s: too many parameters", s->text->name);
	}
}

void
pg_reset(struct pg_stmt *s)
{
	for (int i = 0; i < s->count; i++) {
		free(s->values[i]);
		s->values[i] = NULL;
	}
	buf_reset(&s->rows);
	s->done = s->undone = false;
	s->changes = 0;
	s->columns = 0;
	s->next = 0;
}

void
pg_statement_release(struct pg *pg)
{
	for (int i = 0; i < PG_STATEMENT_COUNT; i++) {
		pg_reset(&pg->statements[i]);
		buf_release(&pg->statements[i].rows);
	}
}

/* ---- binding ---- */

/* An unknown name is a bug. */
static char **
place_of(struct pg_stmt *s, const char *name)
{
	const char *at = s->text->parameters;
	size_t len = strlen(name);

	for (int i = 0; i < s->count; i++) {
		size_t word = strcspn(at, " ");

		if (word == len && memcmp(at, name, len) == 0)
			return &s->values[i];
		at += word + 1;
	}
	log_err("binding %s to %s: there is none", name, s->text->name);
	abort();
}

void
pg_bind_int(struct pg_stmt *s, const char *name, int64_t value)
{
	char **place = place_of(s, name);

	free(*place);
	*place = xprintf("%" PRId64, value);
}

/* The server refuses what is not UTF-8, and a group with it; what we store is
 * UTF-8 but for texts of other programs that were cut. */
static char *
valid(const char *text)
{
	char *copy = xstrdup(text);
	size_t len = strlen(copy);
	size_t at = 0;

	while ((at += utf8_span(copy + at, len - at, false)) < len)
		copy[at] = '?';
	return copy;
}

void
pg_bind_text(struct pg_stmt *s, const char *name, const char *text)
{
	char **place = place_of(s, name);

	free(*place);
	*place = valid(text);
}

/* ---- executing ---- */

static bool
is_change(const struct pg_stmt *s)
{
	return strncmp(s->text->sql, "SELECT", 6) != 0;
}

/* What has to go before a statement: the transaction that was begun, or for
 * one of its own whether its commit must last. */
static int
add_head(struct pg *pg, struct pg_stmt **calls)
{
	enum pg_statement mode = pg->quick ? PG_QUICK : PG_LASTING;
	int count = 0;

	if (pg->begun && pg->sent)
		return 0;
	if (pg->quick != pg->quick_now && !pg->begun)
		calls[count++] = pg_own(pg, mode);
	if (pg->begun) {
		calls[count++] = pg_own(pg, PG_BEGIN);
		if (pg->quick != pg->quick_now)
			calls[count++] = pg_own(pg,
			    pg->quick ? PG_QUICK_HERE : PG_LASTING_HERE);
	}
	return count;
}

/* The one number that it gives is not the caller's business. */
static void
keep_id(struct pg *pg, struct pg_stmt *s)
{
	if (pg_next_row(s))
		pg->last_id = pg_int(s, 0);
	s->next = s->rows.len;
}

int
pg_execute(struct pg *pg, struct pg_stmt *s, struct err *err)
{
	struct pg_stmt *calls[PG_CALLS_MAX];
	bool apart = pg->db.grouped && pg->begun && is_change(s);
	int count;
	int rows;
	int result;

	if (!pg->begun && pg_ready(pg, err) != 0)
		return -1;
	if (pg->conn == NULL)
		return err_set(err, ERR_SYSTEM,
		    "database: the connection went in the middle");
	count = add_head(pg, calls);
	if (apart)
		calls[count++] = pg_own(pg, PG_SAVEPOINT);
	rows = count;
	calls[count++] = s;
	if (apart)
		calls[count++] = pg_own(pg, PG_RELEASE);
	pg->sent = pg->begun;
	result = pg_round(pg, calls, count, rows, err);
	if (result == 0) {
		s->done = true;
		if (!pg->begun)
			pg->quick_now = pg->quick;
		if (s->text->gives_id)
			keep_id(pg, s);
	} else if (apart && pg->conn != NULL) {
		struct pg_stmt *back = pg_own(pg, PG_BACK);
		struct err worse = { 0 };

		if (pg_round(pg, &back, 1, -1, &worse) != 0)
			pg_drop(pg);
	}
	if (result != 0)
		driver_group_error(&pg->db, err);
	return result;
}

struct pg_stmt *
pg_own(struct pg *pg, enum pg_statement which)
{
	struct pg_stmt *s = &pg->statements[which];

	pg_reset(s);
	return s;
}

int
pg_run_own(struct pg *pg, enum pg_statement which, struct err *err)
{
	struct pg_stmt *s = &pg->statements[which];

	if (pg_execute(pg, s, err) != 0)
		return -1;
	return pg_next_row(s) ? 1 : 0;
}

/* ---- rows ---- */

bool
pg_next_row(struct pg_stmt *s)
{
	const char *at = s->rows.data + s->next;

	if (s->next >= s->rows.len)
		return false;
	for (int i = 0; i < s->columns; i++) {
		s->row[i] = *at == PG_TEXT ? at + 1 : NULL;
		at += *at == PG_TEXT ? strlen(at) + 1 : 1;
	}
	s->next = (size_t)(at - s->rows.data);
	return true;
}

int64_t
pg_int(const struct pg_stmt *s, int column)
{
	const char *text = column < s->columns ? s->row[column] : NULL;

	return text != NULL ? strtoll(text, NULL, 10) : 0;
}
