/* SPDX-License-Identifier: MIT */
#include "eval_interpreter.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../semver.h"

#include "../../../sandbox/base/buf.h"
#include "../../../sandbox/base/cleanup.h"

/* Files that every image has, beside interpreters: nothing of an image is
 * looked at before there is a lease of its cell. */
static const char *const usual_files[] = { "bin/sh", "etc/group",
	"etc/hostname", "etc/hosts", "etc/passwd", "etc/resolv.conf", "home/",
	"tmp/", "usr/bin/env", "usr/lib/", "usr/local/bin/" };

#define PYTHONS "snekbin/python/"
#define DIGITS "0123456789."
#define BUILDS "tj" /* without the GIL; with the JIT */
#define USUAL_FILES (sizeof(usual_files) / sizeof(usual_files[0]))

/* Is `path`, without its first '/', that of the file `place`, or (*folder is
 * set then) of a folder above it? */
static bool
is_place(const char *path, const char *place, bool *folder)
{
	size_t len = strlen(path);

	*folder = *folder || len == 0 ||
	    (strncmp(path, place, len) == 0 && place[len] == '/');
	return strcmp(path, place) == 0;
}

/* Is it that of the interpreter with this name? */
static bool
is_interpreter(const char *path, const char *name, bool *folder)
{
	const char *const versions[] = { "", "3", name };
	bool found = false;

	for (size_t i = 0; i < 3; i++) {
		auto_buf struct buf place = BUF_INIT(SIZE_MAX);

		buf_addf(&place, PYTHONS "%s/bin/python%s", name, versions[i]);
		found = is_place(path, place.data, folder) || found;
	}
	return found;
}

const char *
eval_interpreter(const char *const *names, const char *path, const char **found)
{
	bool folder = false;

	*found = NULL;
	if (is_interpreter(path, "default", &folder))
		return NULL;
	for (size_t i = 0; names[i] != NULL; i++) {
		if (is_interpreter(path, names[i], &folder)) {
			*found = names[i];
			return NULL;
		}
	}
	for (size_t i = 0; i < USUAL_FILES; i++) {
		if (is_place(path, usual_files[i], &folder))
			return "executable_path is not executable";
	}
	return folder ? "executable_path is not a file" :
			"executable_path does not exist";
}

/* The version of the interpreter, or of a build of it, that a path means. */
static bool
read_wanted(struct semver *wanted, const char *path)
{
	const char *version = path + sizeof(PYTHONS) - 1;
	size_t digits;
	size_t len;
	bool folder = false;
	auto_free char *name = NULL;

	if (strncmp(path, PYTHONS, sizeof(PYTHONS) - 1) != 0)
		return false;
	len = strcspn(version, "/");
	digits = strspn(version, DIGITS);
	if (digits + 1 < len ||
	    (digits < len && strchr(BUILDS, version[digits]) == NULL))
		return false;
	name = xstrndup(version, len);
	return is_interpreter(path, name, &folder) &&
	    semver_read_wanted(wanted, version, digits);
}

bool
eval_nearest(const char *const *names, const char *path, const char **found)
{
	struct semver wanted;
	struct semver best;

	*found = NULL;
	if (!read_wanted(&wanted, path))
		return false;
	for (size_t i = 0; names[i] != NULL; i++) {
		size_t digits = strspn(names[i], DIGITS);
		struct semver version;

		/* No build but the plain one: "3.14", "3.14-scientific". */
		if ((names[i][digits] != '\0' && names[i][digits] != '-') ||
		    !semver_read_wanted(&version, names[i], digits) ||
		    !semver_is_nearer(&version, *found == NULL ? NULL : &best,
			&wanted))
			continue;
		best = version;
		*found = names[i];
	}
	return *found != NULL;
}
