/* SPDX-License-Identifier: MIT */
#ifndef OWNER_H
#define OWNER_H

#include <stdint.h>

struct err;

/*
 * The owners of the files in an ext4 volume, read and changed in the volume
 * itself.  It is not mounted and no name in it is read, so its contents do no
 * harm.  Only volumes that workspace.c makes are understood; the superblock's
 * values and the checksum of each inode are checked.
 */

/* The owner of the root folder; 0: this is no such file system. */
uint32_t owner_of(int volume_fd);

/*
 * Make uid the owner, and the group, of all files that are a sandbox's (see
 * uid.h); what is root's stays so.  The volume must be in no use and have been
 * checked by e2fsck: a journal that was not replayed is ERR_CONFLICT.
 *
 * The root folder comes last, when all others are on the disk: after an
 * interruption owner_of() still has the old owner, and it is done again.
 */
int owner_change(int volume_fd, uint32_t uid, struct err *err);

/* The volume comes from elsewhere: its root folder is UID_COMMON's from now on,
 * so that the broker gives all of it to a user of this host before it is
 * mounted.  A journal need not have been replayed. */
int owner_disown(int volume_fd, struct err *err);

#endif
