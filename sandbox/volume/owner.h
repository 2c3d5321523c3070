/* SPDX-License-Identifier: MIT */
#ifndef OWNER_H
#define OWNER_H

#include <stdint.h>

struct err;

/*
 * Whose the files in an ext4 volume are, read and changed in the volume itself:
 * neither is it mounted nor is a name in it looked at, so what lies in there
 * does not matter.  A volume that workspace.c makes is understood; what its
 * superblock says is checked, and so is the checksum of each inode.
 */

/* The owner of the root folder; 0: this is no such file system. */
uint32_t owner_of(int volume_fd);

/*
 * Make uid the owner, and the group, of all files that are a sandbox's (see
 * uid.h); what is root's stays so.  The volume must be in no use and have been
 * checked by e2fsck: a journal that was not replayed is ERR_CONFLICT.
 *
 * The root folder comes last, when all others are on the disk: one that was
 * interrupted is not changed yet by owner_of(), and is simply done again.
 */
int owner_change(int volume_fd, uint32_t uid, struct err *err);

/* The volume comes from elsewhere: its root folder is UID_COMMON's from now on,
 * so that the broker gives all of it to a user of this host before it is
 * mounted.  A journal need not have been replayed. */
int owner_disown(int volume_fd, struct err *err);

#endif
