/* SPDX-License-Identifier: MIT */
#include "protocol/path.h"

#include <string.h>

/* Go one name further, or back. */
static enum path_result
path_add_name(char resolved[PATH_SIZE], const char *name, size_t len)
{
	size_t used = strlen(resolved);
	char *slash;

	if (len == 0 || (len == 1 && name[0] == '.'))
		return PATH_OK;
	if (len == 2 && name[0] == '.' && name[1] == '.') {
		if (used == 0)
			return PATH_OUTSIDE;
		slash = strrchr(resolved, '/');
		*(slash != NULL ? slash : resolved) = '\0';
		return PATH_OK;
	}
	if (len > LIMIT_NAME || used + (used > 0) + len > LIMIT_PATH)
		return PATH_TOO_LONG;
	if (used > 0)
		resolved[used++] = '/';
	memcpy(resolved + used, name, len);
	resolved[used + len] = '\0';
	return PATH_OK;
}

/* Name by name, so that ".." is judged where it stands. */
static enum path_result
path_add(char resolved[PATH_SIZE], const char *path)
{
	while (*path != '\0') {
		size_t len = strcspn(path, "/");
		enum path_result result = path_add_name(resolved, path, len);

		if (result != PATH_OK)
			return result;
		path += len;
		path += *path == '/';
	}
	return PATH_OK;
}

enum path_result
path_resolve(const char *cwd, const char *path, char resolved[PATH_SIZE])
{
	enum path_result result = PATH_OK;

	resolved[0] = '\0';
	if (path[0] == '/')
		return PATH_OUTSIDE;
	if (path[0] == '~' && (path[1] == '\0' || path[1] == '/'))
		path++;
	else
		result = path_add(resolved, cwd);
	if (result == PATH_OK)
		result = path_add(resolved, path);
	if (result != PATH_OK)
		resolved[0] = '\0';
	return result;
}

bool
path_means_folder(const char *path)
{
	const char *last = path_name(path);

	return *last == '\0' || strcmp(last, ".") == 0 ||
	    strcmp(last, "..") == 0 || strcmp(path, "~") == 0;
}

const char *
path_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

const char *
path_in_packages(const char *resolved)
{
	static const char folder[] = ".site-packages";
	size_t len = sizeof(folder) - 1;

	if (strncmp(resolved, folder, len) != 0 ||
	    (resolved[len] != '\0' && resolved[len] != '/'))
		return NULL;
	return resolved[len] == '/' ? resolved + len + 1 : resolved + len;
}
