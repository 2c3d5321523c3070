/* SPDX-License-Identifier: MIT */
/* `ilctl nodes`: the hosts that share the database, and what the doctor says of
 * them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/text.h"
#include "../store/db.h"
#include "../store/holder.h"
#include "../store/node.h"
#include "ctl.h"
#include "doctor.h"
#include "table.h"

int
ctl_find_node(const struct config *config, struct db *db, struct err *err)
{
	char instance[CONFIG_INSTANCE_LEN + 1];
	int found;

	if (!holder_is_shared(db))
		return 0;
	if (config_node_instance(config, instance, err) != 0)
		return -1;
	found = node_find(db, config->node, instance, err);
	return found != 1 ?
	    found :
	    err_set(err, ERR_UNAVAILABLE,
		"no worker of this host (%s) has been there", config->node);
}

static const struct table_column columns[] = {
	{ "NUMBER", "number", TABLE_NUMBER, 6, 0 },
	{ "NAME", "name", TABLE_TEXT, 32, 1 },
	{ "STATE", "state", TABLE_TEXT, 5, 2 },
	{ "SINCE (UTC)", "since_ms", TABLE_TIME_MS, 16, 3 },
	{ "SANDBOXES", "sandboxes", TABLE_NUMBER, 9, 4 },
	{ "JOBS", "jobs", TABLE_NUMBER, 6, 5 },
	{ "LEFT", "left", TABLE_NUMBER, 8, 6 },
	{ NULL, NULL, TABLE_TEXT, 0, 0 },
};

static int
list(struct db *db, bool json, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_LIST_NODES);

	return table_print(db, s, columns, json, err);
}

/* The operator knows that it does not come back. */
static int
give_up(struct db *db, const char *name, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_NODE_GIVE_UP);
	int changes;

	db_bind_text(s, ":name", name);
	changes = db_run(db, s, err);
	if (changes > 0)
		printf("%s is lost: a worker of another host moves what it "
		       "had, within 10 s\n",
		    name);
	return changes != 0 ?
	    changes :
	    err_set(err, ERR_CONFIG, "%s: no host of this name is away", name);
}

int
ctl_nodes(struct ctl *ctl)
{
	const char *name = ctl->argc == 3 ? ctl->argv[2] : NULL;
	struct err err = { 0 };
	auto_db struct db *db = NULL;
	int result;

	if (ctl->argc != 1 &&
	    (ctl->json || name == NULL || strcmp(ctl->argv[1], "lost") != 0))
		return CTL_MISUSED;
	db = db_open(ctl->config.database, DB_WORKER, &err);
	if (db == NULL)
		return ctl_fail(ctl->argv[0], &err);
	if (!holder_is_shared(db)) {
		puts(ctl->json ? "[]" :
				 "one host: the database is a file of it");
		return CTL_OK;
	}
	result = name != NULL ? give_up(db, name, &err) :
				list(db, ctl->json, &err);
	return result < 0 ? ctl_fail(ctl->argv[0], &err) : CTL_OK;
}

static void
check_away(struct doctor *d, struct db *db)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_LIST_NODES);
	struct err err = { 0 };

	while (db_step(db, s, &err) == 1)
		if (strcmp(db_column_text(s, 2), "away") == 0)
			doctor_bad(d, "ilctl nodes",
			    "node: no worker of %s is there",
			    db_column_text(s, 1));
}

/* A file of one host has no such list. */
void
doctor_nodes(struct doctor *d, struct db *db)
{
	struct err err = { 0 };
	int64_t left;

	if (!holder_is_shared(db))
		return;
	if (ctl_find_node(d->config, db, &err) != 0)
		doctor_note("node: %s", err.text);
	else
		doctor_good("node: %s, number %" PRId64, d->config->node,
		    node_number(db));
	check_away(d, db);
	left = node_leftovers(db, &err);
	if (left > 0)
		doctor_note(
		    "node: this host was lost for a while; it has %" PRId64
		    " folders of sandboxes that are elsewhere "
		    "now, until their retention is over",
		    left);
}
