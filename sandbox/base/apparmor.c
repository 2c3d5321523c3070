/* SPDX-License-Identifier: MIT */
#include "base/apparmor.h"

#include <dirent.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

/*
 * The kernel's list `profiles` beside it is for root alone; this folder, which
 * has an entry NAME.NUMBER for each profile, may be listed by all.
 */
#define LOADED "/sys/kernel/security/apparmor/policy/profiles"

bool
apparmor_is_in(const char *folder, const char *profile)
{
	size_t len = strlen(profile);
	auto_dir DIR *dir = opendir(folder);
	const struct dirent *entry;
	bool found = false;

	while (dir != NULL && !found && (entry = readdir(dir)) != NULL) {
		const char *number = entry->d_name + len + 1;

		found = strncmp(entry->d_name, profile, len) == 0 &&
		    entry->d_name[len] == '.' && *number != '\0' &&
		    number[strspn(number, "0123456789")] == '\0';
	}
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
