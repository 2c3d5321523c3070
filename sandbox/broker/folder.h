/* SPDX-License-Identifier: MIT */
#ifndef FOLDER_H
#define FOLDER_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct host;

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
