/* SPDX-License-Identifier: MIT */
#include "locale/locale.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"

#define CANCEL "Cancel"

static void
test_lookup(void)
{
	static const char unknown[] = "never said to anybody";

	is_str(_(CANCEL), CANCEL, "English at first");
	locale_set("de");
	is_str(_(CANCEL), "Abbrechen", "German");
	ok(_(unknown) == unknown, "what has no translation stays");
	is_str(_(""), "", "an empty text is not the head of a .po file");
	locale_set("zh-CN");
	is_str(_(CANCEL), "取消", "Chinese");
}

/* As a stranger may send them. */
static void
test_strangers(void)
{
	static const char *const names[] = { "xx", "", "DE", "de ", "de-DE",
		"../de", "%s%n", "\xff\xfe", "en-US", NULL };
	char *longest = calloc(1, 1 << 20);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		locale_set("de");
		locale_set(names[i]);
		is_str(_(CANCEL), CANCEL,
		    names[i] == NULL ? "NULL is English" : names[i]);
	}
	memset(longest, 'd', (1 << 20) - 1);
	locale_set(longest);
	is_str(_(CANCEL), CANCEL, "a name of a megabyte is English");
	free(longest);
}

static void
test_plurals(void)
{
	static const struct {
		const char *locale;
		int64_t n;
		const char *form;
	} rows[] = {
		{ "en-US", 0, "%s files" },
		{ "en-US", 1, "%s file" },
		{ "de", 0, "%s Dateien" },
		{ "de", 1, "%s Datei" },
		{ "fr", 0, "%s fichier" },
		{ "fr", 2, "%s fichiers" },
		{ "ja", 1, "%s個のファイル" },
		{ "ja", 5, "%s個のファイル" },
		{ "ru", 0, "%s файлов" },
		{ "ru", 1, "%s файл" },
		{ "ru", 2, "%s файла" },
		{ "ru", 5, "%s файлов" },
		{ "ru", 11, "%s файлов" },
		{ "ru", 14, "%s файлов" },
		{ "ru", 21, "%s файл" },
		{ "ru", 104, "%s файла" },
		{ "ru", 111, "%s файлов" },
		{ "ru", INT64_MAX, "%s файлов" },
		{ "ru", -1, "%s файл" },
		{ "ru", INT64_MIN, "%s файлов" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		locale_set(rows[i].locale);
		is_str(Q_("%s file", "%s files", rows[i].n), rows[i].form,
		    rows[i].locale);
	}
	is_str(Q_("one that is not said", "many", 1), "one that is not said",
	    "English for what is not translated");
}

static void
test_all(void)
{
	is_int(locale_count(), 8, "languages");
	for (size_t i = 0; i < locale_count(); i++) {
		ok(locale_text_in(i, CANCEL) != NULL, locale_name(i));
		locale_set(locale_name(i));
		ok(_(CANCEL) == locale_text_in(i, CANCEL), "and can be set");
		ok(locale_text_in(i, "not said") == NULL,
		    "NULL: there is none");
	}
}

int
main(void)
{
	test_lookup();
	test_strangers();
	test_plurals();
	test_all();
	return tap_done();
}
