/* SPDX-License-Identifier: MIT */
#include "store/names.h"

#include <string.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "base/utf8.h"
#include "store/db.h"

static const char *const kinds[NAME_KINDS] = {
	[NAME_DIRECTORY] = "directory",
	[NAME_FILE] = "file",
	[NAME_PACKAGE] = "package",
};

/* ---- which are fit ---- */

bool
name_is_fit(const char *text, size_t len)
{
	auto_buf struct buf clean = BUF_INIT(3 * NAMES_BYTES);
	const char *last = text + len;

	if (len == 0 || len > NAMES_BYTES || !utf8_valid(text, len))
		return false;
	text_add_clean(&clean, text, len);
	if (clean.len != len || memcmp(clean.data, text, len) != 0 ||
	    memchr(text, '\n', len) != NULL || memchr(text, '\t', len) != NULL)
		return false;
	do
		last--;
	while (utf8_is_tail(*last));
	return !utf8_is_blank(utf8_decode(text, utf8_step(text, len))) &&
	    !utf8_is_blank(utf8_decode(last, (size_t)(text + len - last)));
}

/* ---- those that there are ---- */

int
names_each(struct db *db, const char *sandbox_id, enum name_kind kind,
    void (*take)(void *arg, const struct name *name), void *arg,
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_NAMES_FIND);
	int result;

	db_bind_text(s, ":sandbox_id", sandbox_id);
	db_bind_text(s, ":kind", kinds[kind]);
	while ((result = db_step(db, s, err)) == 1) {
		const struct name name = { .kind = kind,
			.text = db_column_text(s, 1) };

		take(arg, &name);
	}
	return result;
}

/* ---- keeping others ---- */

/* Put the names of a kind in the place of those that there are: only what
 * differs is written. */
static int
keep_kind(struct db *db, const char *sandbox_id, const char *python,
    enum name_kind kind, const struct name *list, size_t count, struct err *err)
{
	static const enum statement halves[] = { STATEMENT_NAMES_DROP,
		STATEMENT_NAMES_ADD };
	json_auto_t *names = json_array();
	auto_free char *text = NULL;

	for (size_t i = 0; i < count; i++)
		if (list[i].kind == kind)
			(void)json_array_append_new(names,
			    json_string(list[i].text));
	text = json_dumps(names, JSON_COMPACT);
	for (int i = 0; i < 2; i++) {
		auto_stmt struct stmt *s = db_statement(db, halves[i]);

		db_bind_text(s, ":sandbox_id", sandbox_id);
		db_bind_text(s, ":kind", kinds[kind]);
		db_bind_text(s, ":python", python);
		db_bind_text(s, ":names", text);
		if (db_run(db, s, err) < 0)
			return -1;
	}
	return 0;
}

/* In a transaction: the sandbox must not go meanwhile.  1: it does. */
static int
take(struct db *db, const char *sandbox_id, int64_t files, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_NAMES_TAKEN);

	db_bind_text(s, ":sandbox_id", sandbox_id);
	db_bind_int(s, ":files", files);
	return db_one(db_run(db, s, err));
}

int
names_keep(struct db *db, const char *sandbox_id, const char *python,
    int64_t files, const struct name *list, size_t count, struct err *err)
{
	enum name_kind kind = files < 0 ? NAME_PACKAGE : NAME_DIRECTORY;
	enum name_kind last = files < 0 ? NAME_PACKAGE : NAME_FILE;
	int result;

	if (count > NAMES_MOST)
		count = NAMES_MOST;
	/* lost in a power cut: suggestions of before at worst */
	db_lasting(db, false);
	result = db_begin(db, err);
	if (result == 0) {
		result = take(db, sandbox_id, files, err);
		for (; result == 0 && kind <= last; kind++)
			result = keep_kind(db, sandbox_id, python, kind, list,
			    count, err);
		if (result == 0)
			result = db_commit(db, err);
		if (result != 0)
			db_rollback(db);
	}
	db_lasting(db, true);
	return result;
}

int
names_forget(struct db *db, const char *sandbox_id, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_NAMES_FORGET);

	db_bind_text(s, ":sandbox_id", sandbox_id);
	return db_run_quick(db, s, err) < 0 ? -1 : 0;
}
