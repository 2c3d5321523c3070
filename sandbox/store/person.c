/* SPDX-License-Identifier: MIT */
#include "person.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/err.h"
#include "../protocol/node_table.h"
#include "db.h"
#include "row_id.h"

#define COLUMNS_MAX 17
#define TEXT_MAX ((uint32_t)8 << 20)

/* In the order in which they are carried.  A name that begins with '$' is a
 * text's, all others are numbers'. */
static const struct table {
	enum statement read;
	enum statement put;
	bool by_sandbox; /* its rows are of a sandbox, else of a user */
	const char *columns[COLUMNS_MAX];
} tables[] = {
	{ STATEMENT_PERSON_SANDBOX, STATEMENT_PERSON_PUT_SANDBOX, false,
	    { "$id", "$state", "$cwd", ":created_at", ":used_at", ":expires_at",
		":pinned", ":used_bytes", ":used_files", ":named_files" } },
	{ STATEMENT_PERSON_SESSION, STATEMENT_PERSON_PUT_SESSION, true,
	    { ":started_at", ":kept_at", ":ended", ":names", ":bytes" } },
	{ STATEMENT_PERSON_NAMES, STATEMENT_PERSON_PUT_NAME, true,
	    { "$kind", "$python", "$name" } },
	{ STATEMENT_PERSON_VIEWS, STATEMENT_PERSON_PUT_VIEW, false,
	    { ":id", "$kind", "$path", ":page", ":share", "$text", "$input",
		"$version", ":timeit", ":keep", "$output", "$files", "$package",
		":source", ":bytes", ":created_ms" } },
	{ STATEMENT_PERSON_RULE, STATEMENT_PERSON_PUT_RULE, false,
	    { ":blocked", "$reason", ":rate", ":jobs", ":timeout_ms", ":quota",
		":changed_at" } },
};

#define TABLES (sizeof(tables) / sizeof(*tables))

/* ---- writing ---- */

static void
add_number(struct buf *out, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		buf_addc(out, (char)(unsigned char)(value >> 8 * i));
}

static void
add_row(struct buf *out, size_t table, const struct stmt *s)
{
	const char *const *columns = tables[table].columns;

	buf_addc(out, (char)table);
	for (int i = 0; columns[i] != NULL; i++) {
		const char *text = db_column_text(s, i);
		size_t len = strlen(text);

		if (*columns[i] == '$') {
			add_number(out, len, 4);
			buf_add(out, text, len);
		} else {
			add_number(out, (uint64_t)db_column_int(s, i), 8);
		}
	}
}

static void
bind_owner(struct stmt *s, const struct table *table, int64_t user_id,
    const char *sandbox)
{
	if (table->by_sandbox)
		db_bind_text(s, ":sandbox", sandbox);
	else
		db_bind_int(s, ":user_id", user_id);
}

int
person_rows(struct db *db, int64_t user_id, struct buf *rows, struct err *err)
{
	char sandbox[SANDBOX_ID_LEN + 1] = "";

	for (size_t i = 0; i < TABLES; i++) {
		auto_stmt struct stmt *s = db_statement(db, tables[i].read);
		int row;

		bind_owner(s, &tables[i], user_id, sandbox);
		while ((row = db_step(db, s, err)) == 1) {
			add_row(rows, i, s);
			if (i == 0)
				(void)snprintf(sandbox, sizeof(sandbox), "%s",
				    db_column_text(s, 0));
		}
		if (row < 0)
			return -1;
	}
	return rows->overflow ?
	    err_set(err, ERR_LIMIT, "the rows are too many") :
	    0;
}

/* ---- reading ---- */

struct reader {
	const char *at;
	size_t left;
};

static bool
read_number(struct reader *in, size_t bytes, uint64_t *value)
{
	if (in->left < bytes)
		return false;
	*value = 0;
	for (size_t i = 0; i < bytes; i++)
		*value |= (uint64_t)(unsigned char)in->at[i] << 8 * i;
	in->at += bytes;
	in->left -= bytes;
	return true;
}

/* One column; heap: a text, NULL for a number. */
static bool
read_column(struct reader *in, bool is_text, char **text, uint64_t *number)
{
	*text = NULL;
	if (!is_text)
		return read_number(in, 8, number);
	if (!read_number(in, 4, number) || *number > TEXT_MAX ||
	    *number > in->left || memchr(in->at, '\0', *number) != NULL)
		return false;
	*text = xstrndup(in->at, *number);
	in->at += *number;
	in->left -= *number;
	return true;
}

/* Note a column of the first table, by its place there, of the sandbox. */
static void
note_sandbox(struct person_sandbox *sandbox, size_t column, const char *text,
    uint64_t number)
{
	if (column == 0 && text != NULL)
		(void)snprintf(sandbox->id, sizeof(sandbox->id), "%s", text);
	if (column == 1 && text != NULL)
		sandbox->active = strcmp(text, "active") == 0;
	if (column == 4)
		sandbox->used_at = (int64_t)number;
}

/* The columns of a row, bound to a statement, or only looked at (NULL). */
static bool
read_row(struct reader *in, const struct table *table, struct stmt *s,
    struct person_sandbox *sandbox)
{
	for (size_t i = 0; table->columns[i] != NULL; i++) {
		const char *column = table->columns[i];
		auto_free char *text = NULL;
		char name[32];
		uint64_t number;

		if (!read_column(in, *column == '$', &text, &number))
			return false;
		(void)snprintf(name, sizeof(name), ":%s", column + 1);
		if (table == tables)
			note_sandbox(sandbox, i, text, number);
		if (strcmp(column, ":id") == 0 &&
		    !row_id_is_good((int64_t)number))
			return false;
		if (s != NULL && text != NULL)
			db_bind_text(s, name, text);
		else if (s != NULL)
			db_bind_int(s, name, (int64_t)number);
	}
	return true;
}

/* Which table the next row is of: not one before `table`, and the sandbox is
 * one and comes first. */
static bool
read_table(struct reader *in, size_t *table, const char *sandbox)
{
	uint64_t next;

	if (!read_number(in, 1, &next) || next < *table || next >= TABLES ||
	    (next == 0 && *sandbox != '\0') ||
	    (tables[next].by_sandbox && *sandbox == '\0'))
		return false;
	*table = (size_t)next;
	return true;
}

int
person_check(const char *rows, size_t len, struct person_sandbox *sandbox,
    struct err *err)
{
	struct reader in = { rows, len };
	size_t table = 0;

	*sandbox = (struct person_sandbox){ .active = false };
	while (in.left > 0)
		if (!read_table(&in, &table, sandbox->id) ||
		    !read_row(&in, &tables[table], NULL, sandbox) ||
		    strspn(sandbox->id, "0123456789abcdef") !=
			strlen(sandbox->id))
			return err_set(err, ERR_INPUT, "a row is wrong");
	if (*sandbox->id != '\0' && strlen(sandbox->id) != SANDBOX_ID_LEN)
		return err_set(err, ERR_INPUT, "a sandbox's id is wrong");
	return 0;
}

static int
put_rows(struct db *db, int64_t user_id, const char *rows, size_t len,
    struct err *err)
{
	struct reader in = { rows, len };
	struct person_sandbox sandbox = { .active = false };
	size_t table = 0;

	while (in.left > 0) {
		struct stmt *s;
		int changes;

		if (!read_table(&in, &table, sandbox.id))
			return err_set(err, ERR_INPUT, "a row is wrong");
		s = db_statement(db, tables[table].put);
		if (!read_row(&in, &tables[table], s, &sandbox)) {
			db_statement_done(&s);
			return err_set(err, ERR_INPUT, "a row is wrong");
		}
		if (table != 0)
			bind_owner(s, &tables[table], user_id, sandbox.id);
		else
			db_bind_int(s, ":user_id", user_id);
		changes = db_run(db, s, err);
		db_statement_done(&s);
		if (changes < 0)
			return -1;
	}
	return 0;
}

/* They may have left this node before; what has expired gives way. */
static int
make_way(struct db *db, int64_t user_id, struct err *err)
{
	auto_stmt struct stmt *come = db_statement(db, STATEMENT_MOVES_COME);
	auto_stmt struct stmt *forget = db_statement(db,
	    STATEMENT_SANDBOX_FORGET_EXPIRED);

	db_bind_int(come, ":slot", slot_of(user_id));
	db_bind_int(come, ":user_id", user_id);
	db_bind_int(forget, ":user_id", user_id);
	return db_run(db, come, err) < 0 || db_run(db, forget, err) < 0 ? -1 :
									  0;
}

int
person_put(struct db *db, int64_t user_id, const char *rows, size_t len,
    struct err *err)
{
	if (db_begin(db, err) != 0)
		return -1;
	if (make_way(db, user_id, err) == 0 &&
	    put_rows(db, user_id, rows, len, err) == 0 &&
	    db_commit(db, err) == 0)
		return 0;
	db_rollback(db);
	return -1;
}

int
person_is_here(struct db *db, int64_t user_id,
    const struct person_sandbox *sandbox, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_PERSON_HERE);
	int here = 0;
	int row;

	db_bind_int(s, ":user_id", user_id);
	db_bind_text(s, ":id", sandbox->id);
	while ((row = db_step(db, s, err)) == 1) {
		const char *state = db_column_text(s, 1);

		if (strcmp(db_column_text(s, 0), sandbox->id) != 0) {
			if (!sandbox->active)
				continue;
			return err_set(err, ERR_CONFLICT,
			    "user %" PRId64 " has a sandbox there already, %s",
			    user_id, db_column_text(s, 0));
		}
		if (strcmp(state, "expired") == 0 && sandbox->active)
			continue;
		if (db_column_int(s, 2) != user_id ||
		    strcmp(state, sandbox->active ? "active" : "expired") != 0)
			return err_set(err, ERR_CONFLICT,
			    "sandbox %s is there, and %s", sandbox->id, state);
		if (db_column_int(s, 3) < sandbox->used_at)
			return err_set(err, ERR_CONFLICT,
			    "an older copy of sandbox %s is there: let it "
			    "expire",
			    sandbox->id);
		here = 1;
	}
	return row < 0 ? -1 : here;
}

int64_t
person_open(struct db *db, int64_t user_id, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_PERSON_OPEN);

	db_bind_int(s, ":user_id", user_id);
	return db_step(db, s, err) == 1 ? db_column_int(s, 0) : -1;
}
