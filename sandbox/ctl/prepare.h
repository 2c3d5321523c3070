/* SPDX-License-Identifier: MIT */
#ifndef PREPARE_H
#define PREPARE_H

#include <stddef.h>

struct buf;
struct config;
struct err;
struct run;
struct standin;

/* What `ilctl run` gets ready before it starts anything. */

/* estate.c: who owns what in IL_STATE_DIR.  Every program that makes files has
 * a folder of its own; in the state folder itself none but us does. */

/* Make the folders that are missing; as root, give each to its program, with
 * what earlier runs left in there.  Nothing is followed, and nothing is given
 * away that its folder's owner did not own. */
int estate_prepare(const struct run *run, struct err *err);
/* As root: the FIFO, the database (whose -wal and -shm must be there, since
 * nobody else could make them), nginx.conf and the stand-in's key. */
int estate_share(const struct run *run, struct err *err);

/*
 * view.c: a clone below a folder that other users may not pass, /root above
 * all: the programs that are not root then see, in a mount namespace of their
 * own, that folder empty but for what they need, at the same paths as ever.
 *
 * paths: absolute, without links; those of folders.  *fd: the namespace to
 * enter, or -1 when every path can be passed as it is.  ERR_CONFIG: they
 * cannot, and no namespace is to be had.
 */
int view_open(int *fd, const char *const *paths, size_t count, struct err *err);

/*
 * settings.c: what the programs are told by their environment alone, as by
 * systemd: those that are not root can neither read an env file of root's nor
 * find out what a relative path is relative to.
 */

/* Paths in the configuration that are links, or lead over links, become those
 * they lead to.  The folders must be there. */
int settings_resolve(struct config *config, struct err *err);
/* A line of an env file into our environment, where it says nothing of that. */
int settings_take_line(void *arg, const char *key, const char *value,
    struct err *err);
/* Put all of it into our environment.  env_file: of -e, or NULL.  The bot's
 * token is taken out: no program needs it. */
int settings_export(struct config *config, const char *env_file,
    struct err *err);

/* standin.c */

/*
 * Find it, choose its port, and put its keys into our environment, from which
 * the other programs take them.  With a public key configured there is none.
 */
int standin_prepare(struct standin *standin, const struct config *config,
    struct err *err);
/* The interpreter that it runs on: the distribution's, which has the packages
 * that `make deps` installs, before another one on PATH. */
const char *standin_python(void);
/* Listen on this TCP port of 127.0.0.1; -1 when somebody else does. */
int standin_listen(long port);

/* nginx_conf.c */

/* Put paths and ports (standin_port 0: there is no stand-in) into the
 * template's text (nginx/README.md).  ERR_CONFIG when a path cannot be written
 * down in nginx's syntax. */
int nginx_conf_fill(struct buf *out, const char *template, size_t len,
    const struct config *config, long standin_port, struct err *err);
/* Fill lib_dir's nginx.conf.in into <state_dir>/nginx.conf, whole or not at
 * all. */
int nginx_conf_write(const struct config *config, long standin_port,
    struct err *err);

/* nodes_conf.c: append what nginx has to know of the other nodes, or nothing
 * where there are none.  It holds a key.  ERR_CONFIG: IL_NODES is wrong. */
#define NODES_CONF_MAX (16 << 10)
int nodes_conf_add(struct buf *out, const struct config *config,
    struct err *err);
/* The name servers of a resolv.conf, as nginx asks them. */
void nodes_conf_add_resolver(struct buf *out, const char *resolv_conf);

/* register.c */

/* Write the commands, as Discord would be told them with this configuration,
 * to <state_dir>/commands.json: the stand-in reads them. */
int commands_write(const struct config *config, struct err *err);

#endif
