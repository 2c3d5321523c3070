/* SPDX-License-Identifier: MIT */
/*
 * Hosts that share the database.  Each session of a worker shares the advisory
 * lock of its node's number; who gets that lock alone knows that none of them
 * is there.
 */
#include "driver_pg.h"

#include <stdio.h>
#include <stdlib.h>

#include "../../base/clock.h"
#include "../node.h"

#define AWAY_MS 60000
/* What the operator has said (node_give_up). */
#define GIVEN_UP 1
/* 100,000 sandboxes take seconds, each of them. */
#define MOVE_WAIT_MS 600000

/* One of our own that has a number for a parameter. */
static int
run_with(struct pg *pg, enum pg_statement which, const char *name,
    int64_t value, struct err *err)
{
	pg_bind_int(pg_own(pg, which), name, value);
	return pg_run_own(pg, which, err);
}

/* ---- joining ---- */

static struct pg_stmt *
own_with_node(struct pg *pg, enum pg_statement which)
{
	struct pg_stmt *s = pg_own(pg, which);

	pg_bind_text(s, ":name", pg->node);
	pg_bind_text(s, ":instance", pg->instance);
	return s;
}

/* Another host of our name that lives, or may come back: 1, err says so. */
static int
check_rivals(struct pg *pg, struct err *err)
{
	struct pg_stmt *rival;
	int row;

	(void)own_with_node(pg, PG_NODE_RIVALS);
	if (pg_run_own(pg, PG_NODE_RIVALS, err) < 0)
		return -1;
	rival = own_with_node(pg, PG_NODE_RIVAL);
	row = pg_run_own(pg, PG_NODE_RIVAL, err);
	if (row <= 0)
		return row;
	if (pg_int(rival, 0) != 0)
		(void)err_set(err, ERR_CONFIG,
		    "IL_NODE: another host of this database has the name "
		    "%.32s: each needs a name of its own",
		    pg->node);
	else
		(void)err_set(err, ERR_BUSY,
		    "another host with the name %.32s was there until less "
		    "than a minute ago",
		    pg->node);
	return 1;
}

/* Our number, a new one if need be, with its lock. */
static int
take_number(struct pg *pg, int64_t *number, struct err *err)
{
	enum pg_statement find = (enum pg_statement)STATEMENT_NODE_FIND;
	struct pg_stmt *s = own_with_node(pg, find);
	int row = pg_run_own(pg, find, err);

	if (row == 0) {
		s = own_with_node(pg, PG_NODE_NEW);
		row = pg_run_own(pg, PG_NODE_NEW, err);
	}
	if (row != 1)
		return -1;
	*number = pg_int(s, 0);
	return run_with(pg, PG_NODE_HOLD, ":number", *number, err) < 0 ? -1 : 0;
}

/* 1: refused. */
static int
join(struct pg *pg, struct err *err)
{
	int64_t number = 0;
	int rivals;

	(void)pg_own(pg, PG_NODE_TURN);
	if (pg_run_own(pg, PG_NODE_TURN, err) < 0)
		return -1;
	rivals = check_rivals(pg, err);
	if (rivals != 0)
		return rivals;
	if (take_number(pg, &number, err) != 0 ||
	    run_with(pg, PG_NODE_BACK, ":number", number, err) < 0 ||
	    run_with(pg, PG_NODE_ADOPT, ":number", number, err) < 0)
		return -1;
	pg->db.home = number;
	return 0;
}

/* On a new connection, before it is used for anything else. */
int
pg_join_again(struct pg *pg, struct err *err)
{
	struct err failed;
	int result;

	pg->begun = true; /* on what there is: nothing is made ready */
	result = join(pg, err);
	/* since when a rival has been away is noted in either case */
	if (result >= 0 && pg_commit(&pg->db, &failed) == 0)
		return result == 0 ? 0 : -1;
	if (result >= 0)
		*err = failed;
	pg_rollback(&pg->db);
	return -1;
}

int
pg_join(struct db *db, const char *name, const char *instance, struct err *err)
{
	struct pg *pg = pg_of(db);

	if (pg_ready(pg, err) != 0)
		return -1;
	pg->node = xstrdup(name);
	pg->instance = xstrdup(instance);
	if (pg_join_again(pg, err) == 0)
		return 0;
	pg_drop(pg); /* the lock is the session's */
	free(pg->node);
	free(pg->instance);
	pg->node = pg->instance = NULL;
	return -1;
}

/* ---- one that is lost ---- */

/* Everything of it, in the transaction that has its lock. */
static int
move_all(struct pg *pg, struct node_loss *loss, struct err *err)
{
	static const enum pg_statement before[] = { PG_NODE_LOST,
		PG_NODE_HOLDERS, PG_NODE_LEFTOVERS, PG_NODE_NAMES };
	struct pg_stmt *jobs = pg_own(pg, PG_NODE_JOBS);
	struct pg_stmt *sandboxes = pg_own(pg, PG_NODE_SANDBOXES);

	pg_bind_int(jobs, ":number", loss->number);
	pg_bind_int(jobs, ":holder", pg->holder);
	if (pg_run_own(pg, PG_NODE_JOBS, err) < 0)
		return -1;
	loss->jobs = jobs->changes;
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
		if (run_with(pg, before[i], ":number", loss->number, err) < 0)
			return -1;
	pg_bind_int(sandboxes, ":number", loss->number);
	pg_bind_text(sandboxes, ":name", loss->name);
	if (pg_run_own(pg, PG_NODE_SANDBOXES, err) < 0)
		return -1;
	loss->sandboxes = sandboxes->changes;
	(void)pg_own(pg, PG_JOBS_MOVE);
	(void)pg_own(pg, PG_NOTIFY_ALL);
	return pg_run_own(pg, PG_JOBS_MOVE, err) < 0 ||
		pg_run_own(pg, PG_NOTIFY_ALL, err) < 0 ?
	    -1 :
	    0;
}

/* Have we seen it away for a minute, without a break?  While the server was
 * away nobody could come back, and its clock may jump. */
static bool
is_over(struct pg *pg, int64_t number, int64_t left_ms)
{
	int64_t now_ms = clock_monotonic_ms();

	if (left_ms == GIVEN_UP)
		return true;
	for (int i = 0; i < PG_AWAY_MAX; i++)
		if (pg->away[i].number == number &&
		    pg->away[i].left_ms == left_ms)
			return now_ms - pg->away[i].since_ms >= AWAY_MS;
	pg->away[pg->away_next++ % PG_AWAY_MAX] = (struct pg_away){ number,
		left_ms, now_ms };
	return false;
}

/* 1: it is not lost, or not yet. */
static int
lose(struct pg *pg, struct node_loss *loss, struct err *err)
{
	struct pg_stmt *left = pg_own(pg, PG_NODE_LEFT);
	const int wait_ms = pg->wait_ms;
	int result;
	int row;

	pg_bind_int(left, ":number", loss->number);
	row = pg_run_own(pg, PG_NODE_LEFT, err);
	if (row < 0)
		return -1;
	if (row == 0 || !is_over(pg, loss->number, pg_int(left, 0)))
		return 1;
	(void)snprintf(loss->name, sizeof(loss->name), "%s", left->row[1]);
	(void)pg_own(pg, PG_NODE_PATIENCE);
	if (pg_run_own(pg, PG_NODE_PATIENCE, err) < 0)
		return -1;
	pg->wait_ms = MOVE_WAIT_MS;
	result = move_all(pg, loss, err);
	pg->wait_ms = wait_ms;
	return result;
}

/* Those whose lock nobody has. */
static int
find_away(struct pg *pg, int64_t *numbers, struct err *err)
{
	struct pg_stmt *s = pg_own(pg, PG_NODES_AWAY);
	int count = 0;
	int row;

	pg_bind_int(s, ":home", pg->db.home);
	for (row = pg_run_own(pg, PG_NODES_AWAY, err);
	     row == 1 && count < PG_AWAY_MAX; row = pg_next_row(s))
		numbers[count++] = pg_int(s, 0);
	return row < 0 ? -1 : count;
}

int
pg_lose_node(struct db *db, struct node_loss *loss, struct err *err)
{
	struct pg *pg = pg_of(db);
	int64_t numbers[PG_AWAY_MAX];
	int count;
	int result = 1;

	if (pg_ready(pg, err) != 0)
		return -1;
	/* without a number of ours nothing can become ours */
	if (pg->db.home == 0 || pg->holder == 0)
		return 1;
	(void)pg_own(pg, PG_JOBS_MOVE);
	if (pg_run_own(pg, PG_JOBS_MOVE, err) < 0)
		return -1;
	count = find_away(pg, numbers, err);
	for (int i = 0; i < count && result == 1; i++) {
		*loss = (struct node_loss){ .number = numbers[i] };
		result = pg_begin(db, err);
		if (result == 0)
			result = lose(pg, loss, err);
		/* since when it has been away is noted in either case */
		if (result < 0 || pg_commit(db, err) != 0) {
			pg_rollback(db);
			return -1;
		}
	}
	return count < 0 ? -1 : result;
}
