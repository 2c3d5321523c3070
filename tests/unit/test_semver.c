/* SPDX-License-Identifier: MIT */
/* Versions, and the patterns that clients ask for. */
#include "contract/semver.h"

#include "tap.h"

/* The versions of which each row says, by a letter, whether they are in. */
static const struct semver versions[] = {
	{ 2, 7, 18 },
	{ 3, 9, 4 },
	{ 3, 10, 0 },
	{ 3, 11, 2 },
	{ 3, 13, 5 },
	{ 0, 0, 3 },
	{ 0, 2, 1 },
};
#define VERSIONS (sizeof(versions) / sizeof(versions[0]))

static const struct {
	const char *pattern;
	const char *in; /* a '+' or '-' for each of them */
} rows[] = {
	{ "3.11.2", "---+---" },
	{ "3.11", "---+---" },
	{ "3", "-++++--" },
	{ "*", "+++++++" },
	{ "x", "+++++++" },
	{ "X.x.*", "+++++++" },
	{ "3.x", "-++++--" },
	{ "3.X.x", "-++++--" },
	{ "3.11.x", "---+---" },
	{ "3.11.*", "---+---" },
	{ "0.0", "-----+-" },
	{ "3.1", "-------" },
	{ "3.x.2", "-------" },
	{ "x.11", "-------" },
	{ "", "-------" },
	{ " 3", "-------" },
	{ "3 ", "-------" },
	{ "3.", "-------" },
	{ "3.11.2.1", "-------" },
	{ "03", "-------" },
	{ "^3.10", "-------" },
	{ ">=3.9", "-------" },
	{ "3.9 || 3.11", "-------" },
	{ "3.11.2-rc.1", "-------" },
	{ "latest", "-------" },
};

/* Texts that are, or are not, one whole version. */
static const struct {
	const char *text;
	bool whole;
} texts[] = {
	{ "3.11.2", true },
	{ "0.0.0", true },
	{ "123456789012345.0.10", true },
	{ "1234567890123456.0.0", false },
	{ "", false },
	{ "3.11", false },
	{ "3.11.", false },
	{ "3.11.x", false },
	{ "3.11.2 ", false },
	{ " 3.11.2", false },
	{ "3.11.2rc1", false },
	{ "3.11.2.1", false },
	{ "3.011.2", false },
	{ "+3.11.2", false },
	{ "3.-1.2", false },
};

/* Of 3.8.1, 3.11.2, 3.13.0, 3.13.5 and 2.7.18 the one that stands in. */
static const struct {
	const char *wanted;
	const char *nearest;
} near[] = {
	{ "3.10.0", "3.11.2" },
	{ "3.10", "3.11.2" },
	{ "3.9", "3.8.1" },
	{ "3.12", "3.13.5" }, /* as far from 3.11: the newer one */
	{ "3.13.1", "3.13.5" },
	{ "3.15", "3.13.5" },
	{ "3.0", "3.8.1" },
	{ "3.999999999999999", "3.13.5" },
	{ "3.x", "3.8.1" },
	{ "^3.14.0", "" },
	{ "2.1", "2.7.18" },
	{ "4", "" },
	{ "latest", "" },
	{ "*", "" },
	{ "", "" },
	{ "3.9999999999999999", "" },
};

static void
test_nearest(void)
{
	static const char *const texts_there[] = { "3.8.1", "3.11.2", "3.13.0",
		"3.13.5", "2.7.18" };

	for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++) {
		const char *text = near[i].wanted;
		const char *found = "";
		struct semver wanted;
		struct semver best;

		for (size_t k = 0; k < 5; k++) {
			struct semver v;

			(void)semver_read(&v, texts_there[k],
			    strlen(texts_there[k]));
			if (!semver_read_wanted(&wanted, text, strlen(text)) ||
			    !semver_is_nearer(&v, *found == '\0' ? NULL : &best,
				&wanted))
				continue;
			best = v;
			found = texts_there[k];
		}
		is_str(found, near[i].nearest, text);
	}
}

int
main(void)
{
	struct semver version;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char in[VERSIONS + 1] = "";

		for (size_t v = 0; v < VERSIONS; v++)
			in[v] = semver_matches(&versions[v], rows[i].pattern,
				    strlen(rows[i].pattern)) ?
			    '+' :
			    '-';
		is_str(in, rows[i].in, rows[i].pattern);
	}
	ok(!semver_matches(&versions[0], "2.7.18\0", 7), "no NUL");
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		ok(semver_read(&version, texts[i].text,
		       strlen(texts[i].text)) == texts[i].whole,
		    texts[i].text);
	ok(semver_read(&version, "3.11.2", 6) &&
		semver_compare(&version, &versions[3]) == 0,
	    "a version is read");
	ok(!semver_read(&version, "3.11.2", 5), "but not half of one");
	ok(semver_compare(&versions[0], &versions[1]) < 0 &&
		semver_compare(&versions[3], &versions[2]) > 0 &&
		semver_compare(&versions[3], &versions[3]) == 0,
	    "they are ordered by numbers");
	test_nearest();
	return tap_done();
}
