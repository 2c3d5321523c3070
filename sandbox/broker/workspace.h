/* SPDX-License-Identifier: MIT */
#ifndef WORKSPACE_H
#define WORKSPACE_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "broker/host.h"

struct err;

/*
 * The folders under IL_BASE_DIR: one for each sandbox, named by its id, with
 * its volumes.  All access goes through one descriptor of IL_BASE_DIR, with
 * names made of checked ids alone, and follows no link.
 *
 *	<id>/workspace.ext4
 *	<id>/packages-3.11.ext4	for each minor version of Python
 *	.new-…	being made; .old-…  being removed: swept at start
 */
#define SANDBOX_ID_LEN 32
/* Id of the APIs' packages (api_packages.c): no sandbox has it, and it is
 * neither listed nor counted. */
#define API_PACKAGES_ID "00000000000000000000000000000000"
#define WORKSPACE_VOLUME "workspace.ext4"
#define PACKAGES_VOLUME "packages" /* in docker.c; its file name is set by */
#define VOLUME_NAME_MAX 64
void workspace_packages_name(const char *interpreter,
    char name[VOLUME_NAME_MAX]);

/* Is it the id of a sandbox? */
bool workspace_id_valid(const char *id);

/* Make and open the base folder, and remove drafts and retired folders of an
 * earlier life.  A volume of packages from when there was one for all versions
 * becomes the default interpreter's.  Returns the descriptor or -1. */
int workspace_base_open(const char *path, const char *interpreter,
    struct err *err);

/* Open a volume of a sandbox for reading and writing. -1 with ERR_NOT_FOUND
 * when it is not there. */
int workspace_volume_open(int base, const char *id, const char *volume,
    struct err *err);
/* Is the volume there? */
bool workspace_has(int base, const char *id, const char *volume);

/* Did the file system note an error in its superblock? */
bool workspace_volume_damaged(int volume_fd);

/* Rename the sandbox's folder, at once and durably.  The files stay under the
 * new name, which is stored, until folder_delete() removes them.  Returns 0, 1
 * when there is no such sandbox, or -1. */
int workspace_retire(int base, const char *id, char name[64], struct err *err);

/* Open a folder below `at`, which is no link. -1: errno says why. */
int workspace_open_folder(int at, const char *name);
/* Number of sandboxes; -1: failed. */
int64_t workspace_count(int base);
/* Open that folder of the base, "." for the base itself, to list it; NULL:
 * failed.  The second function returns the id of the next sandbox in the list;
 * NULL: no more. */
DIR *workspace_list(int base, const char *name);
const char *workspace_next(DIR *list);

/* Returns the next volume in the list of a sandbox's folder; NULL: no more, or
 * no list. */
const char *workspace_next_volume(DIR *list);

/* ---- creation ---- */

/*
 * Creation of a workspace: two sparse ext4 volumes in a draft folder, which is
 * renamed when both are complete.  Or, in a sandbox that is there, creation of
 * a volume for the packages of one more version.  A crash leaves a draft at
 * most.
 */
struct volume_size {
	int64_t bytes; /* of file contents */
	int64_t files; /* files and folders */
};

struct creation {
	struct host *host;
	void (*done)(void *arg, const struct err *failure);
	void *arg;
	char id[33];
	char packages[VOLUME_NAME_MAX];
	bool only_packages;
	char
	    copied[VOLUME_NAME_MAX]; /* volume to copy; "": make an empty one */
	uint32_t uid;		     /* owner of the files */
	char draft[64];
	struct volume_size sizes[2]; /* workspace, packages */
	char script[160];	     /* of debugfs */
	int step;
	struct subprocess process;
};

/* Begin.  done is called once, later or at once: failure is NULL or the error;
 * ERR_CONFLICT: another client has made it meanwhile. */
void creation_start(struct creation *c, struct host *host,
    void (*done)(void *arg, const struct err *failure), void *arg);
/* Cancel it, if it is under way, and remove the draft. */
void creation_cancel(struct creation *c);

/* Size of the volume that can hold these files, and its number of inodes: pure.
 */
int64_t volume_total_bytes(const struct volume_size *size);
int64_t volume_inodes(const struct volume_size *size);

/* ---- folders of containers ---- */

/*
 * Files of the host that a container mounts.  They are made for it alone, in a
 * folder of its name below the folder of all cells.  No file is in two
 * containers, so no lock, watch or time of a file shows one container anything
 * of another.
 *
 *	<cells>/<name>/socket/	cell.sock; at /run/inline
 *	<cells>/<name>/cell/	a copy of the cell's program; at /run/cell
 *	<cells>/<name>/passwd, group	at /etc
 *	<cells>/program/	what that is copied from
 *
 * The folder of all cells is private to the broker.  Everything below it is
 * readable for all, since the cell's user reads it in the container.
 */

/* Make the container's folder; uid: the number that gets a name.  With 0 only
 * the folder of the socket is made.  After a failure nothing of it is left. */
int folder_make(const struct host *host, const char *name, uint32_t uid,
    struct err *err);

/* Delete a folder of files, or of folders of files down to that depth.  The
 * broker makes none that are deeper, so a deeper one is not its own: it stays,
 * with an error.  A missing folder is no error. */
int folder_delete(int at, const char *name, int depth, struct err *err);

/* Remove the container's folder, or only the socket's folder.  A container
 * keeps the folders that it has mounted, empty. */
void folder_remove(const char *cells, const char *name, bool socket_only);

/* Make the folder of all cells, remove the leftovers of an earlier life, and
 * copy the cell's program from the library, so that an upgrade that is under
 * way mixes no versions. */
int folder_sweep(const char *cells, const char *library, struct err *err);

/* Remove the folder of all cells, unless a container's folder is left in it. */
void folder_close(const char *cells);

#endif
