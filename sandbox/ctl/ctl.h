/* SPDX-License-Identifier: MIT */
#ifndef CTL_H
#define CTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/config.h"

struct buf;
struct db;
struct err;
struct node_entry;
struct node_table;
struct parcel;
struct stmt;

/* Exit codes of all our programs. */
enum ctl_exit {
	CTL_OK = 0,
	CTL_FAILED = 1,
	CTL_USAGE = 64,
	CTL_CONFIG = 78,
	CTL_MISUSED = -2, /* of a sub-command: CTL_USAGE, and say how it is */
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
 * The sub-commands.  They print to standard output what was asked for, and
 * return an exit code; -1: err, which is empty before, says why they failed.
 */
int ctl_backup(struct ctl *ctl, struct err *err);
int ctl_commands(struct ctl *ctl, struct err *err);
int ctl_doctor(struct ctl *ctl, struct err *err);
int ctl_expire(struct ctl *ctl, struct err *err);
int ctl_list(struct ctl *ctl, struct err *err);
int ctl_migrate(struct ctl *ctl, struct err *err);
int ctl_nodes(struct ctl *ctl, struct err *err);
int ctl_packages(struct ctl *ctl, struct err *err);
int ctl_register(struct ctl *ctl, struct err *err);
int ctl_restore(struct ctl *ctl, struct err *err);
int ctl_rules(struct ctl *ctl, struct err *err);
int ctl_run(struct ctl *ctl, struct err *err);
int ctl_selftest(struct ctl *ctl, struct err *err);
int ctl_status(struct ctl *ctl, struct err *err);
int ctl_token(struct ctl *ctl, struct err *err);
int ctl_top(struct ctl *ctl, struct err *err);

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

/* ---- database.c: rows, for programs and for people ---- */

/*
 * Rows, for programs as JSON objects and for people as columns.  JSON has the
 * numbers of the database: bytes, milliseconds, Unix seconds.  Ids of Discord
 * and of jobs are strings there, as they are too large for a double.
 */
enum table_form {
	TABLE_TEXT,
	TABLE_NUMBER,  /* -1: not known, shown as "-" */
	TABLE_SIZE,    /* likewise */
	TABLE_AGE,     /* milliseconds, as seconds: "0.2"; likewise */
	TABLE_SECONDS, /* the same; -1 is shown as nothing */
	TABLE_MS,      /* "234 ms"; -1 likewise */
	TABLE_TIME,    /* Unix seconds; 0: shown as nothing */
	TABLE_TIME_MS, /* Unix milliseconds; 0 likewise */
	TABLE_EXPIRY,  /* Unix seconds; 0: never; -1: shown as nothing */
};

struct table_column {
	const char *head; /* for people */
	const char *key;  /* of the JSON object */
	enum table_form form;
	int width; /* of the text; numbers stand at its right */
};

/* Columns end with one without a head: a line of heads, and one of a row. */
void table_print_heads(const struct table_column *columns);
void table_print_row(const struct table_column *columns, const json_t *row);

/* All rows of a statement as objects: their members are named after its
 * columns, and their texts made safe to show.  NULL with err. */
json_t *table_read(struct db *db, struct stmt *s, struct err *err);

/* Print a value and a line feed, and free the value.  Returns the exit code.
 * NULL fails. */
int table_print_json(json_t *value);
/* The text of a member, as long as the object lives; NULL: it has none. */
const char *table_json_text(const json_t *object, const char *key);
/* A JSON string of any bytes, made safe to show. */
json_t *table_text_to_json(const char *text);

/* ---- nodes_list.c, nodes_move.c ---- */

/* Where a person is, by the table of nodes: "slot", and "node", which is null
 * on one host and where the table cannot be read.  *line says the same to
 * people; heap. */
json_t *nodes_find_person(const struct config *config, int64_t user_id,
    char **line);

/* The state of the sub-commands of `ilctl nodes`; all is the caller's. */
struct nodes {
	const struct config *config;
	struct node_table *table;
	const struct node_entry *own;
	struct db *db;
};

/* nodes_move.c: slot ... --to name */
int nodes_move(struct nodes *n, struct ctl *ctl, struct err *err);

/* PUT /nodes/<what>/<id> to a node, by our own nginx: "people", with all that a
 * person has; "slots" (parcel NULL), whose people are about to come; "come"
 * (NULL), a slot all of whose people have.  0: it has taken them.  ERR_UNKNOWN:
 * nobody knows whether; all other errors: it has not. */
int nodes_put(const struct config *config, const struct node_entry *to,
    const char *what, int64_t id, const struct parcel *parcel, struct err *err);

#endif
