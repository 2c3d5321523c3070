/* SPDX-License-Identifier: MIT */
/* Names that are suggested for a typed text, in order. */
#include <jansson.h>

#include "discord/chat_answer.h"
#include "store.h"
#include "store/sandbox.h"

static struct db *worker;
static struct db *front;
static struct sandbox box;

/* The suggested names, with "|" between; D: a directory. */
static const char *
suggested(const char *cwd, const char *typed, const struct name *names)
{
	static char text[8192];
	struct err err = { 0 };
	size_t count = 0;
	size_t i;
	json_t *choice;
	auto_free char *json = NULL;
	json_auto_t *root = NULL;
	bool packages = names->kind == NAME_PACKAGE;

	while (names[count].text != NULL)
		count++;
	if (names_keep(worker, box.id, "", packages ? -1 : 9, names, count,
		&err) != 0)
		return "names_keep failed";
	json = answer_choices(front, box.id, cwd,
	    packages ? "package" : "directory file", typed, &err);
	root = json != NULL ? json_loads(json, 0, NULL) : NULL;
	text[0] = '\0';
	json_array_foreach(json_object_get(json_object_get(root, "data"),
			       "choices"),
	    i, choice) {
		(void)strcat(text, i > 0 ? "|" : "");
		(void)strcat(text,
		    json_string_value(json_object_get(choice, "value")));
	}
	return text;
}

#define D(text) \
	{ \
		NAME_DIRECTORY, text \
	}
#define F(text) \
	{ \
		NAME_FILE, text \
	}
#define END \
	{ \
		NAME_FILE, NULL \
	}

static const struct name tree[] = { F("Data.csv"), F("a.py"), D("data"),
	F("data/a.py"), D("data/in"), F("data/in/a.csv"), F("plot data.png"),
	F("~"), D("~x"), END };

static void
test_order(void)
{
	is_str(suggested("", "", tree),
	    "data/|~x/|Data.csv|a.py|plot data.png|./~|data/in/|data/a.py|"
	    "data/in/a.csv",
	    "nothing typed: the nearest first, directories before files");
	is_str(suggested("", "da", tree),
	    "data/|data/in/|data/a.py|data/in/a.csv|Data.csv|plot data.png",
	    "what begins so, then in other letters, then what holds it");
	is_str(suggested("", "a.", tree),
	    "a.py|data/a.py|data/in/a.csv|Data.csv|plot data.png",
	    "names that begin so come before others");
	is_str(suggested("", "zzz", tree), "", "nothing fits");
}

static void
test_paths(void)
{
	is_str(suggested("data", "", tree), "in/|a.py|in/a.csv",
	    "from the current directory");
	is_str(suggested("data", "a", tree),
	    "a.py|~/a.py|in/a.csv|~/data/|~/Data.csv|~/plot data.png|in/",
	    "what is elsewhere, from the top");
	is_str(suggested("data", "../p", tree), "../plot data.png",
	    "up from it");
	is_str(suggested("data", "~/a", tree),
	    "~/a.py|a.py|in/a.csv|~/data/|~/Data.csv|~/plot data.png|in/",
	    "and from the top");
	is_str(suggested("data", "~", tree),
	    "~/data/|~/~x/|~/Data.csv|~/a.py|~/plot data.png|~/~|~/data/in/|"
	    "~/data/a.py|~/data/in/a.csv",
	    "which \"~\" alone is, too");
	is_str(suggested("", "data/", tree), "data/in/|data/a.py|data/in/a.csv",
	    "in a directory");
	is_str(suggested("", "./data/i", tree), "./data/in/|./data/in/a.csv",
	    "as it is typed");
	is_str(suggested("", "..", tree), "", "above the top is nothing");
	is_str(suggested("", "../da", tree), "", "whatever follows");
	is_str(suggested("", "/", tree), "", "nor from the root");
}

static void
test_bounds(void)
{
	char long_name[160];
	char typed[3000];
	struct name wide[] = { D("\xc3\xa4"), { NAME_FILE, long_name }, END };
	struct name many[60];
	char texts[60][8];
	int found = 1;

	memset(long_name, 'a', 100);
	long_name[100] = '\0';
	is_str(suggested("", "a", wide), long_name, "100 characters");
	memset(long_name, 'a', 101);
	long_name[101] = '\0';
	is_str(suggested("", "a", wide), "", "and no more");
	for (int i = 0; i < 99; i++)
		memcpy(long_name + (size_t)i, "b", 2);
	is_str(suggested("", "b", wide), long_name, "in which 99 are fine");
	is_str(suggested("x", "b", wide), "", "but not when they get longer");
	memset(typed, 'a', sizeof(typed));
	typed[sizeof(typed) - 1] = '\0';
	is_str(suggested("", typed, tree), "", "a long text");
	typed[2000] = '/';
	is_str(suggested("", typed, tree), "", "a long path");
	for (size_t i = 0; i < 59; i++) {
		(void)snprintf(texts[i], sizeof(texts[i]), "f%02zu", 58 - i);
		many[i] = (struct name){ NAME_FILE, texts[i] };
	}
	many[59] = (struct name)END;
	for (const char *at = suggested("", "F", many); *at != '\0'; at++)
		found += *at == '|';
	is_int(found, 25, "25 at most");
	is_str(strrchr(suggested("", "f", many), '|'), "|f24",
	    "the first ones");
}

static void
test_blanks(void)
{
	static const struct name names[] = { D("a"), F("a/ x"), F("a/y"),
		D("a/~"), END };

	is_str(suggested("a", "", names), "./~/|./ x|y",
	    "a blank that would be taken away, and what would mean the top");
}

static void
test_packages(void)
{
	static const struct name names[] = { { NAME_PACKAGE, "requests" },
		{ NAME_PACKAGE, "rich" }, { NAME_PACKAGE, "PyYAML" },
		{ NAME_PACKAGE, "requests" }, END };

	is_str(suggested("", "r", names), "requests|rich",
	    "packages, each of them once");
	is_str(suggested("", "yaml", names), "PyYAML", "in other letters");
}

int
main(void)
{
	struct err err = { 0 };
	bool created;

	store_make();
	worker = store_open(DB_WORKER);
	front = store_open(DB_FRONT);
	is_int(sandbox_create(worker, 7, 1000, &box, &created, &err), 0,
	    "a sandbox");
	test_order();
	test_paths();
	test_bounds();
	test_blanks();
	test_packages();
	db_close(front);
	db_close(worker);
	return tap_done();
}
