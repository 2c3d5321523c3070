/* SPDX-License-Identifier: MIT */
/*
 * The table of the classes, and the sizes that follow from a row and the
 * configuration.
 */
#include "broker/class.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/config.h"
#include "broker/workspace.h"

#define API_TMP_MAX (INT64_C(64) << 20)
#define API_HOME_MAX (INT64_C(48) << 20)

/* No row has both the workspace and network: a user's code never runs where
 * there is network. */
static const struct cell_class classes[] = {
	{ .name = "user",
	    .mounts = { { WORKSPACE_VOLUME, "/workspace" },
		{ PACKAGES_VOLUME, "/workspace/.site-packages" } },
	    .reuse = REUSE_SANDBOX,
	    .concurrent_reads = true,
	    .has_sessions = true,
	    .seccomp = "seccomp.json" },
	{ .name = "pip",
	    .mounts = { { PACKAGES_VOLUME, "/site" } },
	    .network = true,
	    .seccomp = "seccomp.json" },
	/* pip installs and removes packages for the runs of the APIs. */
	{ .name = "install",
	    .program = PROGRAM_CTL,
	    .mounts = { { PACKAGES_VOLUME, "/site" } },
	    .installs = true,
	    .network = true,
	    .seccomp = "seccomp.json" },
	/* Removes packages; no user's code runs there. */
	{ .name = "packages",
	    .mounts = { { PACKAGES_VOLUME, "/site" } },
	    .seccomp = "seccomp.json" },
	/* The runs share the loopback device: the kernel may keep no connection
	 * of one run in TIME_WAIT for the next. */
	{ .name = "api",
	    .program = PROGRAM_API,
	    .in_memory = true,
	    .reuse = REUSE_ANYONE,
	    .budget = BUDGET_RUNS,
	    .argument = "api",
	    .seccomp = "seccomp-api.json",
	    .sysctl = "net.ipv4.tcp_max_tw_buckets=0" },
	{ .name = "session",
	    .program = PROGRAM_API,
	    .in_memory = true,
	    .budget = BUDGET_SESSIONS,
	    .lasting = true,
	    .argument = "session",
	    .seccomp = "seccomp.json" },
};

const struct cell_class class_mounter = { .name = "mounter",
	.program = PROGRAMS,
	.mounts_for_another = true,
	.seccomp = "seccomp-mounter.json" };

#define CLASSES (sizeof(classes) / sizeof(classes[0]))
static_assert(CLASSES <= CLASS_MAX, "each is counted by itself");

const struct cell_class *
class_at(size_t i)
{
	return i < CLASSES ? &classes[i] : NULL;
}

size_t
class_index(const struct cell_class *class)
{
	return (size_t)(class - classes);
}

const struct cell_class *
class_find(const char *name)
{
	for (size_t i = 0; i < CLASSES; i++) {
		if (strcmp(classes[i].name, name) == 0)
			return &classes[i];
	}
	return NULL;
}

const char *
class_volume(const struct cell_class *class, size_t i, const char *packages)
{
	const char *volume = class->mounts[i].volume;

	return volume != NULL && strcmp(volume, PACKAGES_VOLUME) == 0 ?
	    packages :
	    volume;
}

int64_t
class_budget(enum cell_budget budget, const struct config *config)
{
	const int64_t budgets[BUDGETS] = {
		[BUDGET_SANDBOXES] = config->cells,
		[BUDGET_RUNS] = config->api_cells,
		[BUDGET_SESSIONS] = config->api_sessions,
	};

	assert(budget < BUDGETS);
	return budgets[budget];
}

static int64_t
least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The sizes are those of the contracts where memory allows.  A run of either
 * contract may fill /home and /dev/shm, or /workspace, /tmp and /dev/shm; an
 * eighth of the memory stays for the processes (tests/unit/test_docker_argv.c).
 */
size_t
class_folders(const struct cell_class *class, const struct config *config,
    struct class_folder *folders)
{
	int64_t memory = config->api_memory;
	int64_t room = memory - memory / 8;
	int64_t home = least(API_HOME_MAX, room - memory / 16);
	int64_t shm = least(config->api_shm, least(memory / 4, room - home));
	int64_t tmp = least(API_TMP_MAX, memory / 4);

	folders[0] = (struct class_folder){ "/tmp",
		class->in_memory ? tmp : config->tmp_size };
	folders[1] = (struct class_folder){ "/dev/shm",
		class->in_memory ? shm : config->tmp_size };
	folders[2] = (struct class_folder){ "/workspace", room - tmp - shm };
	folders[3] = (struct class_folder){ "/home", home };
	if (!class->in_memory)
		return 2;
	return class->reuse == REUSE_ANYONE ? 4 : 3;
}

bool
class_has_folder(const struct cell_class *class, const struct config *config,
    const char *path)
{
	struct class_folder folders[CLASS_FOLDERS];
	size_t count = class_folders(class, config, folders);

	for (size_t i = 0; i < count; i++) {
		if (strcmp(folders[i].path, path) == 0)
			return true;
	}
	return false;
}
