/* SPDX-License-Identifier: MIT */
#include "base/docker_cli.h"

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/basics.h"
#include "base/process.h"

#define VERSION_MS 3000
#define VERSION_MAX 1024

bool
docker_cli_forgets_rates(const char *text)
{
	const char *version = strstr(text, "version ");
	int major = 0;
	int minor = 0;
	int patch = 0;

	if (version == NULL)
		return false;
	/* NOLINTNEXTLINE(cert-err34-c): four digits do not overflow */
	if (sscanf(version, "version %4d.%4d.%4d", &major, &minor, &patch) != 3)
		return false;
	return (major == 25 && minor == 0 && patch < 7) || major == 26 ||
	    (major == 27 && (minor == 0 || (minor == 1 && patch < 2)));
}

int
docker_cli_check(const char *binary, bool *forgets_rates, struct err *err)
{
	const char *const argv[] = { binary, "--version", NULL };
	struct process_spec spec = { .argv = argv,
		.output_max = VERSION_MAX,
		.timeout_ms = VERSION_MS };
	auto_result struct process_result result = { 0 };
	struct err failure;

	*forgets_rates = false;
	if (process_run(&spec, &result, &failure) != 0)
		return 0;
	*forgets_rates = docker_cli_forgets_rates(buf_str(&result.out));
	if (strcasestr(buf_str(&result.out), "podman") == NULL)
		return 0;
	return err_set(err, ERR_CONFIG,
	    "DOCKER_BINARY: podman is not supported: it refuses the options by "
	    "which a sandbox's quota holds (a volume with volume-nocopy, a "
	    "tmpfs with nr_inodes)");
}

/* ---- AppArmor ---- */

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
