/* SPDX-License-Identifier: MIT */
#include "names.h"

#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/text.h"
#include "../base/utf8.h"
#include "db.h"

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

/* Kept names that are compared with new ones. */
struct kept {
	struct name list[2 * NAMES_MOST];
	char *texts[2 * NAMES_MOST]; /* of those: heap */
	size_t count;
};

static int
kept_load(struct db *db, const char *sandbox_id, enum name_kind kind,
    const char *python, struct kept *kept, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_NAMES_FIND);
	int result;

	db_bind_text(s, ":sandbox_id", sandbox_id);
	db_bind_text(s, ":kind", kinds[kind]);
	while ((result = db_step(db, s, err)) == 1) {
		char **text = &kept->texts[kept->count];

		if (strcmp(db_column_text(s, 0), python) != 0 ||
		    kept->count == 2 * NAMES_MOST)
			continue;
		*text = xstrdup(db_column_text(s, 1));
		kept->list[kept->count++] = (struct name){ kind, *text };
	}
	return result;
}

static void
kept_release(struct kept *kept)
{
	for (size_t i = 0; i < kept->count; i++)
		free(kept->texts[i]);
}

/* ---- keeping others ---- */

static int
compare(const void *a, const void *b)
{
	const struct name *x = a;
	const struct name *y = b;

	return x->kind != y->kind ? (int)x->kind - (int)y->kind :
				    strcmp(x->text, y->text);
}

static int
change(struct db *db, enum statement which, const char *sandbox_id,
    const char *python, const struct name *name, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, which);

	db_bind_text(s, ":sandbox_id", sandbox_id);
	db_bind_text(s, ":kind", kinds[name->kind]);
	db_bind_text(s, ":python", python);
	db_bind_text(s, ":name", name->text);
	return db_run(db, s, err) < 0 ? -1 : 0;
}

/* Both lists are in order: what is in one of them alone is a change. */
static int
replace(struct db *db, const char *sandbox_id, const char *python,
    const struct kept *old, const struct name *list, size_t count,
    struct err *err)
{
	size_t i = 0;
	size_t j = 0;
	int result = 0;

	while (result == 0 && (i < old->count || j < count)) {
		int order = i == old->count ? 1 :
		    j == count		    ? -1 :
					      compare(&old->list[i], &list[j]);

		if (order < 0)
			result = change(db, STATEMENT_NAMES_DROP, sandbox_id,
			    python, &old->list[i], err);
		else if (order > 0)
			result = change(db, STATEMENT_NAMES_ADD, sandbox_id,
			    python, &list[j], err);
		i += order <= 0;
		j += order >= 0;
	}
	return result;
}

/* In a transaction: the sandbox must not go meanwhile.  1: it does. */
static int
take(struct db *db, const char *sandbox_id, int64_t files, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_NAMES_TAKEN);
	int changes;

	db_bind_text(s, ":sandbox_id", sandbox_id);
	db_bind_int(s, ":files", files);
	changes = db_run(db, s, err);
	return changes < 0 ? -1 : changes == 0;
}

int
names_keep(struct db *db, const char *sandbox_id, const char *python,
    int64_t files, struct name *list, size_t count, struct err *err)
{
	struct kept *old = xcalloc(1, sizeof(*old));
	bool packages = files < 0;
	int result;

	if (count > NAMES_MOST)
		count = NAMES_MOST;
	qsort(list, count, sizeof(*list), compare);
	/* read before, so that nobody waits for that */
	result = kept_load(db, sandbox_id,
	    packages ? NAME_PACKAGE : NAME_DIRECTORY, python, old, err);
	if (result == 0 && !packages)
		result = kept_load(db, sandbox_id, NAME_FILE, python, old, err);
	/* lost in a power cut: suggestions of before at worst */
	db_lasting(db, false);
	if (result == 0)
		result = db_begin(db, err);
	if (result == 0) {
		result = take(db, sandbox_id, files, err);
		if (result == 0)
			result = replace(db, sandbox_id, python, old, list,
			    count, err);
		if (result == 0)
			result = db_commit(db, err);
		if (result != 0)
			db_rollback(db);
	}
	db_lasting(db, true);
	kept_release(old);
	free(old);
	return result;
}

int
names_forget(struct db *db, const char *sandbox_id, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_NAMES_FORGET);

	db_bind_text(s, ":sandbox_id", sandbox_id);
	return db_run_quick(db, s, err) < 0 ? -1 : 0;
}
