/* SPDX-License-Identifier: MIT */
#include "apparmor.h"

#include <dirent.h>
#include <stddef.h>
#include <string.h>

/*
 * The kernel's list `profiles` beside it is for root alone; this folder, which
 * has an entry NAME.NUMBER for each profile, may be listed by all.
 */
#define LOADED "/sys/kernel/security/apparmor/policy/profiles"

/* Is it NAME.NUMBER? */
static bool
is_entry_of(const char *entry, const char *profile)
{
	size_t len = strlen(profile);

	return strncmp(entry, profile, len) == 0 && entry[len] == '.' &&
	    entry[len + 1] != '\0' &&
	    entry[len + 1 + strspn(entry + len + 1, "0123456789")] == '\0';
}

bool
apparmor_is_in(const char *folder, const char *profile)
{
	DIR *dir = opendir(folder);
	bool found = false;

	if (dir == NULL)
		return false;
	for (struct dirent *e = readdir(dir); e != NULL && !found;
	     e = readdir(dir))
		found = is_entry_of(e->d_name, profile);
	(void)closedir(dir);
	return found;
}

bool
apparmor_is_loaded(const char *profile)
{
	return apparmor_is_in(LOADED, profile);
}

const char *
apparmor_choose(const char *wanted)
{
	if (*wanted != '\0')
		return wanted;
	return apparmor_is_loaded(APPARMOR_PROFILE) ? APPARMOR_PROFILE : "";
}
