/* SPDX-License-Identifier: MIT */
#ifndef SETTINGS_H
#define SETTINGS_H

struct config;
struct err;

/*
 * What the programs are told by their environment alone, as by systemd: those
 * that are not root can neither read an env file of root's nor find out what a
 * relative path is relative to.
 */

/* Paths in config that are links, or lead over links, become those they lead
 * to.  The folders must be there. */
int settings_resolve(struct config *config, struct err *err);
/* Put all of it into our environment.  env_file: of -e, or NULL.  The bot's
 * token is taken out: no program needs it. */
int settings_export(const struct config *config, const char *env_file,
    struct err *err);

#endif
