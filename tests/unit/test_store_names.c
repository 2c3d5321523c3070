/* SPDX-License-Identifier: MIT */
/* Names are kept for a sandbox, and go with it. */

#include "store.h"
#include "store/sandbox.h"

static const char *
all(struct db *db, const char *id, const char *kind)
{
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_NAMES_SUGGEST,
	    DB_VALUES(BIND(":sandbox_id", id), BIND(":kinds", kind),
		BIND(":base", ""), BIND(":last", ""), BIND(":needle", "")));
	static char text[300000];
	struct err err = { 0 };

	text[0] = '\0';
	while (db_step(db, s, &err) == 1) {
		(void)strcat(text, db_column_text(s, 1));
		(void)strcat(text, " ");
	}
	return text;
}

static void
test_fit(void)
{
	static const char *const fit[] = { "a", "a b", "\xc3\xa4",
		"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb" /* a family */,
		"~", "`", "a/b", NULL };
	static const char *const unfit[] = { "", " ",
		"\xe3\x80\x80" /* U+3000 */, "a ", " a", "a\xc2\xa0",
		"\xe2\xa0\x80", "\xff", "a\xc3",
		"\xed\xa0\x80" /* a surrogate */, "a\nb", "a\tb", "a\rb",
		"a\033[1mb", "\x7f", "\xc2\x85", "a\xe2\x80\x8b" /* U+200B */,
		"a\xe2\x80\xae"
		"b" /* U+202E */,
		"\xef\xbb\xbf"
		"a",
		NULL };
	char name[202];

	for (size_t i = 0; fit[i] != NULL; i++)
		ok(name_is_fit(fit[i], strlen(fit[i])), fit[i]);
	for (size_t i = 0; unfit[i] != NULL; i++)
		(void)tap_point(!name_is_fit(unfit[i], strlen(unfit[i])),
		    "not fit", __FILE__, (int)i);
	memset(name, 'a', sizeof(name));
	ok(name_is_fit(name, 200), "200 bytes");
	ok(!name_is_fit(name, 201), "no more");
	ok(!name_is_fit("a\0b", 3), "no NUL");
}

static void
test_keep(struct db *db, const char *id)
{
	struct err err = { 0 };
	struct sandbox s;
	struct name first[] = { { NAME_FILE, "b" }, { NAME_FILE, "a" },
		{ NAME_DIRECTORY, "a" }, { NAME_FILE, "b" } };
	struct name second[] = { { NAME_FILE, "c" }, { NAME_FILE, "b" } };
	struct name packages[] = { { NAME_PACKAGE, "rich" } };
	struct name other[] = { { NAME_PACKAGE, "six" } };

	is_int(names_keep(db, id, "", 3, first, 4, &err), 0, "names");
	is_str(all(db, id, "file"), "a b ", "in order, each once");
	is_str(all(db, id, "directory"), "a ", "and a directory");
	is_int(names_keep(db, id, "3.11", -1, packages, 1, &err), 0,
	    "packages of a Python");
	is_int(names_keep(db, id, "3.13", -1, other, 1, &err), 0,
	    "and of another");
	(void)sandbox_find(db, 7, &s, &err);
	is_int(s.named_files, 3, "of how many files is known");
	is_int(names_keep(db, id, "", 2, second, 2, &err), 0, "others");
	is_str(all(db, id, "file"), "b c ", "take their place");
	is_str(all(db, id, "directory"), "", "all of it");
	is_str(all(db, id, "package"), "rich six ", "but the packages");
	is_int(names_keep(db, id, "3.11", -1, packages, 0, &err), 0,
	    "no packages");
	is_str(all(db, id, "package"), "six ", "of one Python");
	(void)sandbox_set_usage(db, id, 1, 2, false, &err);
	(void)sandbox_find(db, 7, &s, &err);
	is_int(s.named_files, 2, "a run that changes no name");
	(void)sandbox_set_usage(db, id, 1, 2, true, &err);
	(void)sandbox_find(db, 7, &s, &err);
	is_int(s.named_files, -1, "and one that may have");
}

static void
test_most(struct db *db, const char *id)
{
	static char texts[NAMES_MOST + 9][16];
	static struct name list[NAMES_MOST + 9];
	struct err err = { 0 };

	for (size_t i = 0; i < NAMES_MOST + 9; i++) {
		(void)snprintf(texts[i], sizeof(texts[i]), "f%zu", i);
		list[i] = (struct name){ NAME_FILE, texts[i] };
	}
	is_int(names_keep(db, id, "", 9999, list, NAMES_MOST + 9, &err), 0,
	    "a thousand names");
	is_int(store_sql("SELECT count(*) FROM names WHERE kind = 'file'"),
	    NAMES_MOST, "and no more");
}

/* Whichever way the sandbox goes. */
static void
test_forget(struct db *db, const char *id)
{
	struct err err = { 0 };
	struct sandbox s;
	bool created;
	struct name one[] = { { NAME_FILE, "one" } };

	is_int(sandbox_remove(db, id, &err), 0, "it is deleted");
	is_int(names_keep(db, id, "", 1, one, 1, &err), 1,
	    "nothing is kept of it any more");
	is_int(sandbox_gone(db, id, &err), 0, "it is gone");
	is_int(store_sql("SELECT count(*) FROM names"), 0, "with its names");
	(void)sandbox_create(db, 8, 60, &s, &created, &err);
	(void)names_keep(db, s.id, "", 1, one, 1, &err);
	is_int(store_sql("SELECT count(*) FROM names"), 1, "another");
	(void)store_sql("UPDATE sandboxes SET expires_at = 1");
	is_int(sandbox_take_expired(db, &s, &err), 0, "it expires");
	is_int(names_keep(db, s.id, "", 1, one, 1, &err), 1,
	    "while it does, nothing is kept");
	is_int(sandbox_gone(db, s.id, &err), 0, "it has expired");
	is_int(store_sql("SELECT count(*) FROM names"), 0, "with its names");
}

int
main(void)
{
	struct err err = { 0 };
	struct sandbox s;
	bool created;
	struct db *db;

	test_fit();
	(void)store_make();
	db = store_open(DB_WORKER);
	(void)sandbox_create(db, 7, 60, &s, &created, &err);
	test_keep(db, s.id);
	test_most(db, s.id);
	test_forget(db, s.id);
	db_close(db);
	return tap_done();
}
