/* SPDX-License-Identifier: MIT */
#ifndef CTL_H
#define CTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config.h"

struct buf;
struct err;

/* Exit codes of all our programs. */
enum ctl_exit {
	CTL_OK = 0,
	CTL_FAILED = 1,
	CTL_USAGE = 64,
	CTL_CONFIG = 78,
	CTL_MISUSED = -1, /* of a sub-command: CTL_USAGE, and say how it is */
};

/* Arguments and settings of a sub-command. */
struct ctl {
	const char *env_file; /* of -e, or NULL */
	struct config config; /* loaded when the command's row says so */
	bool json;	      /* --json was said, where its row has it */
	int argc;	      /* of the command; argv[0] is its name */
	char **argv;
};

/*
 * The sub-commands.  They print to standard output what was asked for, to
 * standard error one line when it failed (and below it what Discord said), and
 * return an exit code.
 */
int ctl_backup(struct ctl *ctl);
int ctl_commands(struct ctl *ctl);
int ctl_doctor(struct ctl *ctl);
int ctl_expire(struct ctl *ctl);
int ctl_list(struct ctl *ctl);
int ctl_migrate(struct ctl *ctl);
int ctl_nodes(struct ctl *ctl);
int ctl_packages(struct ctl *ctl);
int ctl_register(struct ctl *ctl);
int ctl_restore(struct ctl *ctl);
int ctl_rules(struct ctl *ctl);
int ctl_run(struct ctl *ctl);
int ctl_selftest(struct ctl *ctl);
int ctl_status(struct ctl *ctl);
int ctl_token(struct ctl *ctl);
int ctl_top(struct ctl *ctl);

/* "ilctl <command>: <err>" to standard error; returns the exit code that says
 * what kind of failure it is. */
int ctl_fail(const char *command, const struct err *err);

/* Cut an option out of the arguments, wherever it stands.  count: 1, or 2 with
 * its value.  Returns the last of them; NULL: it is not there. */
char *ctl_cut(struct ctl *ctl, const char *name, int count);
/* The same of "-w seconds", for how long a sandbox in use is waited for; a
 * minute where it is not there.  False: it makes no sense. */
bool ctl_cut_wait(struct ctl *ctl, int64_t *ms);

/* Make the database and its folder if missing, bring it up to date.  Returns
 * how many migrations were applied, or -1. */
int ctl_migrate_database(const struct config *config, struct err *err);

/* ilctl_run.c: `ilctl run` holds the lock of its folder for as long as it
 * lives. */
bool where_is_run(const struct config *config);
/* The port of nginx: that of the `ilctl run` that runs here, or that of the
 * settings. */
int64_t where_port(const struct config *config);
/* Put paths and ports (standin_port 0: there is no stand-in) into the
 * template's text (nginx/README.md).  ERR_CONFIG when a path cannot be written
 * down in nginx's syntax. */
int nginx_conf_fill(struct buf *out, const char *template,
    const struct config *config, long standin_port, struct err *err);

/* nodes_list.c: append a template with these names put in, of which the last
 * one is empty; an @ that begins none of them is nginx's own. */
struct nginx_name {
	const char *name;
	const char *value;
};
void nginx_fill(struct buf *out, const char *template,
    const struct nginx_name *table);
/* ERR_CONFIG: a folder's path cannot be written down in nginx's syntax. */
int nginx_check_paths(const struct config *config, struct err *err);
/* Append nginx's configuration for the other nodes; nothing where there are
 * none.  It holds a key.  ERR_CONFIG: IL_NODES is wrong, a path cannot be
 * written down, or hosts.conf.in is not there.  ERR_LIMIT: out cannot hold
 * it. */
#define NODES_CONF_MAX (16 << 10)
int nodes_conf_add(struct buf *out, const struct config *config,
    struct err *err);
/* The name servers of a resolv.conf, as nginx asks them. */
void nodes_conf_add_resolver(struct buf *out, const char *resolv_conf);

/* register.c: write the commands, as Discord would be told them with this
 * configuration, to <state_dir>/commands.json: the stand-in reads them. */
int commands_write(const struct config *config, struct err *err);

#endif
