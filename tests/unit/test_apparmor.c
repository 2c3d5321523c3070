/* SPDX-License-Identifier: MIT */
/* The AppArmor profile of an API container. */
#include "base/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

static void
make_entry(const char *folder, const char *name)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	(void)mkdir(path, 0700);
}

static void
remove_entry(const char *folder, const char *name)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	(void)rmdir(path);
}

static void
test_entries(const char *folder)
{
	static const char *const names[] = { "inline-api", "inline-api.",
		"inline-api.x", "inline-api.4x", "inline-api-2.7",
		"xinline-api.1", "docker-default.12" };

	ok(!apparmor_is_in("/nonexistent", "inline-api"),
	    "no AppArmor: no profile");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		make_entry(folder, names[i]);
	ok(!apparmor_is_in(folder, "inline-api"),
	    "names that only look like it");
	ok(apparmor_is_in(folder, "docker-default"), "one that is there");
	make_entry(folder, "inline-api.31");
	ok(apparmor_is_in(folder, "inline-api"), "NAME.NUMBER is the profile");
	remove_entry(folder, "inline-api.31");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		remove_entry(folder, names[i]);
}

int
main(void)
{
	char folder[] = "/tmp/test_apparmor.XXXXXX";

	if (mkdtemp(folder) == NULL)
		return 1;
	test_entries(folder);
	(void)rmdir(folder);
	is_str(apparmor_choose("mine"), "mine", "what was asked for");
	is_str(apparmor_choose("unconfined"), "unconfined", "none at all");
	is_str(apparmor_choose(""),
	    apparmor_is_loaded(APPARMOR_PROFILE) ? APPARMOR_PROFILE : "",
	    "ours where it is loaded, else the engine's");
	return tap_done();
}
