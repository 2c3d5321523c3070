/* SPDX-License-Identifier: MIT */
#ifndef CLASS_H
#define CLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;

/* Containers are counted by purpose: many of one kind take no slot from the
 * others. */
enum cell_budget {
	BUDGET_SANDBOXES, /* IL_CELLS */
	BUDGET_RUNS,	  /* IL_API_CELLS */
	BUDGET_SESSIONS,  /* IL_API_SESSIONS */
	BUDGETS,
};

/* Programs that connect to the broker. */
enum program_name {
	PROGRAM_WORKER,
	PROGRAM_API,
	PROGRAM_CTL,
	PROGRAMS,
};

/* Reuse of a cell after its first lease. */
enum cell_reuse {
	REUSE_NEVER,
	REUSE_SANDBOX, /* the same sandbox */
	REUSE_ANYONE,  /* when READY says that it isolates its runs */
};

#define CLASS_VOLUMES 2
struct class_mount {
	const char *volume; /* of a sandbox; NULL ends the list */
	const char *target;
};

/*
 * The kinds of cells.  One row of the table in docker.c says what a class may
 * see and reach.
 */
struct cell_class {
	const char *name;
	enum program_name program; /* the program that may lease it */
	/* Mounted volumes, up to a NULL.  The cell writes to the first one and
	 * only reads the second one. */
	struct class_mount mounts[CLASS_VOLUMES + 1];
	bool network; /* IL_PIP_NETWORK; false: no network at all */
	enum cell_reuse reuse;
	/* Its files may be read while a run goes on in it. */
	bool concurrent_reads;
	/* The interpreter of a run may stay as a session for the next run. */
	bool has_sessions;
	enum cell_budget budget;
	/* The cell belongs to no sandbox and holds all its data in memory.  Its
	 * interpreter is one of SANDBOX_IMAGES; sandboxes have those of
	 * IL_CHAT_IMAGES. */
	bool in_memory;
	/* The cell has an interpreter of SANDBOX_IMAGES, too, and fills the
	 * volume that the cells in memory mount (api_packages.c). */
	bool installs;
	/* Leases last for minutes: when all cells are leased, a request is
	 * refused instead of waiting. */
	bool lasting;
	bool mounts_for_another; /* set in class_mounter alone */
	const char *argument;	 /* for cell.py; NULL: none */
	const char *seccomp;	 /* file in IL_TUNE_LIB_DIR */
	const char *sysctl;	 /* NULL: none */
};

/* Bytes of a name, with its NUL. */
#define CLASS_NAME_MAX 16
/* Find a class by its name; NULL when there is no such class. */
const struct cell_class *class_find(const char *name);
/* The mounters' class is not in the table: a mounter is no cell, and no client
 * can ask for one. */
extern const struct cell_class class_mounter;
/* The class with that index, or NULL beyond the last one. */
const struct cell_class *class_at(size_t i);
size_t class_index(const struct cell_class *class);

/* File name of the i-th volume that the class mounts; packages: file name of
 * the version's packages. */
const char *class_volume(const struct cell_class *class, size_t i,
    const char *packages);
/* Limit of the containers of a budget. */
int64_t class_budget(enum cell_budget budget, const struct config *config);

/* Bytes of the path of a folder, with its NUL. */
#define CLASS_FOLDER_MAX 16

/* Folders in memory that a cell's code can write to. */
#define CLASS_FOLDERS 4
struct class_folder {
	const char *path;
	int64_t size; /* bytes */
};
/* Fill in up to CLASS_FOLDERS folders, /tmp and /dev/shm first; returns their
 * number.  Even when all are full, the cell has memory left to report it. */
size_t class_folders(const struct cell_class *class,
    const struct config *config, struct class_folder *folders);
bool class_has_folder(const struct cell_class *class,
    const struct config *config, const char *path);

/* Set the folder of the packages of this interpreter: PYTHONUSERBASE and the
 * version's folder in it.  False: the name does not begin with a version. */
#define API_PACKAGES_TARGET_MAX 128
bool api_packages_target(const char *interpreter,
    char target[API_PACKAGES_TARGET_MAX]);

#endif
