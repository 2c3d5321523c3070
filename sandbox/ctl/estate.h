/* SPDX-License-Identifier: MIT */
#ifndef ESTATE_H
#define ESTATE_H

struct accounts;
struct config;
struct err;

/*
 * Who owns what in IL_STATE_DIR under `ilctl run`.  Every program that makes
 * files has a folder of its own; in the state folder itself none but us does.
 */

/* Make the folders that are missing; as root, give each to its program, with
 * what earlier runs left in there.  Nothing is followed, and nothing is given
 * away that its folder's owner did not own. */
int estate_prepare(const struct config *config, const struct accounts *accounts,
    struct err *err);
/* As root: the FIFO, the database (whose -wal and -shm must be there, since
 * nobody else could make them), nginx.conf and the stand-in's key. */
int estate_share(const struct config *config, const struct accounts *accounts,
    struct err *err);

#endif
