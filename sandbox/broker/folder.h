/* SPDX-License-Identifier: MIT */
#ifndef FOLDER_H
#define FOLDER_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct host;

/*
 * What a container mounts of the host besides images: files that are made for
 * it alone, in a folder of its name below the one for all cells.  No file is
 * in two containers, so no lock, watch or time of one tells another of
 * anything.
 *
 *	<cells>/<name>/socket/	cell.sock; at /run/inline
 *	<cells>/<name>/cell/	a copy of the cell's program; at /run/cell
 *	<cells>/<name>/passwd, group	at /etc
 *	<cells>/program/	what that is copied from
 *
 * The folder for all is private to us; in the container another user, the
 * cell's, must be able to read, so everything below is open to all.
 */

/* Make it; uid is the number that is to have a name.  With 0 only the folder of
 * the socket is made.  After a failure nothing of it is left. */
int folder_make(const struct host *host, const char *name, uint32_t uid,
    struct err *err);

/* A folder of files, or of folders of files down to that depth: ours are no
 * deeper, so whatever else is in one was not made by us, and stays, with an
 * error.  Nothing happens where there is none. */
int folder_delete(int at, const char *name, int depth, struct err *err);

/* All that container's; or the socket's folder, when nobody connects any more.
 * What a container has mounted remains to it, empty. */
void folder_remove(const char *cells, const char *name, bool socket_only);

/* Make the folder for all cells, remove what an earlier life left there, and
 * take a copy of the cell's program out of the library: an upgrade that is
 * under way mixes no versions. */
int folder_sweep(const char *cells, const char *library, struct err *err);

/* Remove the folder for all cells, unless some container still has its own. */
void folder_close(const char *cells);

#endif
