/* SPDX-License-Identifier: MIT */
#ifndef CLASS_H
#define CLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;

/* Containers are counted by what they are for: many of one kind takes no
 * place from the others. */
enum cell_budget {
	BUDGET_SANDBOXES, /* IL_CELLS */
	BUDGET_RUNS,	  /* IL_API_CELLS */
	BUDGET_SESSIONS,  /* IL_API_SESSIONS */
	BUDGETS,
};

/* Who connects to the broker. */
enum program_name {
	PROGRAM_WORKER,
	PROGRAM_API,
	PROGRAM_CTL,
	PROGRAMS,
};

/* Who may get a cell after its first lease. */
enum cell_reuse {
	REUSE_NEVER,
	REUSE_SANDBOX, /* the same sandbox */
	REUSE_ANYONE,  /* when it holds its runs apart, as it says */
};

#define CLASS_VOLUMES 2
struct class_mount {
	const char *volume; /* of a sandbox; NULL: no more */
	const char *target;
};

/*
 * The kinds of cells.  What a class may see and reach stands in one row of the
 * table in class.c and nowhere else.
 */
struct cell_class {
	const char *name;
	enum program_name program; /* who may lease it */
	/* What it mounts, up to a NULL.  The first is what it writes to, and
	 * only its reader mounts the other. */
	struct class_mount mounts[CLASS_VOLUMES + 1];
	bool network; /* IL_PIP_NETWORK; otherwise none at all */
	enum cell_reuse reuse;
	/* Its files may be looked at while a run in it goes on. */
	bool looked_beside;
	/* It may keep the interpreter of a run for the next one. */
	bool keeps;
	enum cell_budget budget;
	/* For an interpreter of SANDBOX_IMAGES and for no sandbox, whose are
	 * those of IL_CHAT_IMAGES: all that it holds is in memory. */
	bool in_memory;
	/* For such an interpreter, too: it fills what the cells in memory
	 * mount (api_packages.h). */
	bool installs;
	/* Its leases last: when all are leased, nobody waits for an end. */
	bool lasting;
	bool mounts_for_another; /* class_mounter alone: prepare.c */
	const char *argument;	 /* cell.py is told so; NULL: nothing */
	const char *seccomp;	 /* file in IL_LIB_DIR */
	const char *sysctl;	 /* NULL: none */
};

/* Of a name, with its NUL. */
#define CLASS_NAME_MAX 16
/* NULL when there is no such class. */
const struct cell_class *class_find(const char *name);
/* The mounters' class is not in the table: a mounter is no cell, and nobody
 * asks for one. */
extern const struct cell_class class_mounter;
/* NULL: there are no so many; CLASS_MAX at most. */
#define CLASS_MAX 8
const struct cell_class *class_at(size_t i);
size_t class_index(const struct cell_class *class);

/* The file of a volume that it mounts; packages: that of the version. */
const char *class_volume(const struct cell_class *class, size_t i,
    const char *packages);
/* How many containers there may be. */
int64_t class_budget(enum cell_budget budget, const struct config *config);

/* Of the path of a folder, with its NUL. */
#define CLASS_FOLDER_MAX 16

/* The folders in memory that a cell's code can write to. */
#define CLASS_FOLDERS 4
struct class_folder {
	const char *path;
	int64_t size; /* bytes */
};
/* Fills in up to CLASS_FOLDERS, with /tmp and /dev/shm first; returns how many.
 * All of them full leave a cell the memory to say so. */
size_t class_folders(const struct cell_class *class,
    const struct config *config, struct class_folder *folders);
bool class_has_folder(const struct cell_class *class,
    const struct config *config, const char *path);

#endif
