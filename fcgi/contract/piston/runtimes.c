/* SPDX-License-Identifier: MIT */
#include "runtimes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../../pytext/pydump.h"

#include "../../../sandbox/base/buf.h"

#define ALIASES_MAX 6
#define ALIAS_MAX 128 /* an interpreter's name is shorter */

/* What a runtime is called beside its language's name. */
struct aliases {
	size_t count;
	char names[ALIASES_MAX][ALIAS_MAX];
};

const char *
piston_language_name(enum piston_language language)
{
	return language == PISTON_BASH ? "bash" : "python";
}

static void
add(struct aliases *all, const char *name, const char *rest)
{
	int n = snprintf(all->names[all->count], ALIAS_MAX, "%s%s", name, rest);

	if (n > 0 && n < ALIAS_MAX)
		all->count++;
}

/* Python's is called as the program is, and as the operator names it. */
static void
list_aliases(const struct piston_runtime *runtime, struct aliases *all)
{
	char minor[48];

	all->count = 0;
	if (runtime->language == PISTON_BASH) {
		add(all, "sh", "");
		return;
	}
	(void)snprintf(minor, sizeof(minor), "%" PRId64 ".%" PRId64,
	    runtime->version.major, runtime->version.minor);
	add(all, "py", "");
	add(all, "py3", "");
	add(all, "python3", "");
	add(all, "python", minor);
	if (strcmp(minor, runtime->interpreter) != 0)
		add(all, "python", runtime->interpreter);
}

static bool
is_name(const char *text, size_t len, const char *name)
{
	return strlen(name) == len && memcmp(text, name, len) == 0;
}

/* Is it called that? */
static bool
answers_to(const struct piston_runtime *runtime, const char *name, size_t len)
{
	struct aliases all;

	if (is_name(name, len, piston_language_name(runtime->language)))
		return true;
	list_aliases(runtime, &all);
	for (size_t i = 0; i < all.count; i++)
		if (is_name(name, len, all.names[i]))
			return true;
	return false;
}

const struct piston_runtime *
piston_find(const struct piston_runtime *runtimes, size_t count,
    const char *language, size_t language_len, const char *range,
    size_t range_len)
{
	const struct piston_runtime *best = NULL;

	for (size_t i = 0; i < count; i++) {
		const struct piston_runtime *r = &runtimes[i];

		if (answers_to(r, language, language_len) &&
		    semver_is_in(&r->version, range, range_len) &&
		    (best == NULL ||
			semver_compare(&r->version, &best->version) > 0))
			best = r;
	}
	return best;
}

const struct piston_runtime *
piston_nearest(const struct piston_runtime *runtimes, size_t count,
    const char *language, size_t language_len, const char *range,
    size_t range_len)
{
	const struct piston_runtime *best = NULL;
	struct semver wanted;

	if (!semver_read_wanted(&wanted, range, range_len))
		return NULL;
	for (size_t i = 0; i < count; i++) {
		const struct piston_runtime *r = &runtimes[i];

		if (answers_to(r, language, language_len) &&
		    semver_is_nearer(&r->version,
			best == NULL ? NULL : &best->version, &wanted))
			best = r;
	}
	return best;
}

/* ---- lists ---- */

void
piston_add_version(struct buf *out, const struct semver *version)
{
	buf_addf(out, "%" PRId64 ".%" PRId64 ".%" PRId64, version->major,
	    version->minor, version->patch);
}

void
piston_add_runtimes(struct buf *out, const struct piston_runtime *runtimes,
    size_t count)
{
	struct aliases all;

	buf_addc(out, '[');
	for (size_t i = 0; i < count; i++) {
		buf_addf(out, "%s{\"language\":\"%s\",\"version\":\"",
		    i == 0 ? "" : ",",
		    piston_language_name(runtimes[i].language));
		piston_add_version(out, &runtimes[i].version);
		buf_adds(out, "\",\"aliases\":[");
		list_aliases(&runtimes[i], &all);
		for (size_t k = 0; k < all.count; k++) {
			buf_adds(out, k == 0 ? "" : ",");
			pydump_add_string(out, all.names[k],
			    strlen(all.names[k]), PYDUMP_UTF8);
		}
		buf_adds(out, "]}");
	}
	buf_addc(out, ']');
}

void
piston_add_packages(struct buf *out, const struct piston_runtime *runtimes,
    size_t count)
{
	buf_addc(out, '[');
	for (size_t i = 0; i < count; i++) {
		buf_addf(out, "%s{\"language\":\"%s\",\"language_version\":\"",
		    i == 0 ? "" : ",",
		    piston_language_name(runtimes[i].language));
		piston_add_version(out, &runtimes[i].version);
		buf_adds(out, "\",\"installed\":true}");
	}
	buf_addc(out, ']');
}
