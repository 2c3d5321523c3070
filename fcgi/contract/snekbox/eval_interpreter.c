/* SPDX-License-Identifier: MIT */
#include "eval_interpreter.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../../../sandbox/base/buf.h"
#include "../../../sandbox/base/cleanup.h"

/* Files that every image has, beside interpreters: nothing of an image is
 * looked at before there is a lease of its cell. */
static const char *const usual_files[] = { "bin/sh", "etc/group",
	"etc/hostname", "etc/hosts", "etc/passwd", "etc/resolv.conf", "home/",
	"tmp/", "usr/bin/env", "usr/lib/", "usr/local/bin/" };

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

		buf_addf(&place, "snekbin/python/%s/bin/python%s", name,
		    versions[i]);
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

/* Of this one? */
static bool
is_other_build(const char *path, const char *name)
{
	const char *const builds[] = { "t", "j" };
	bool folder = false;
	bool found = false;

	if (name[strspn(name, "0123456789.")] != '\0')
		return false;
	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		auto_buf struct buf build = BUF_INIT(SIZE_MAX);

		buf_addf(&build, "%s%s", name, builds[i]);
		found = found || is_interpreter(path, build.data, &folder);
	}
	return found;
}

bool
eval_other_build(const char *const *names, const char *path, const char **found)
{
	for (size_t i = 0; names[i] != NULL; i++) {
		if (is_other_build(path, names[i])) {
			*found = names[i];
			return true;
		}
	}
	return false;
}
