/* SPDX-License-Identifier: MIT */
/* `ilctl nodes plan`: which slots would move, and how. */
#include "nodes_move.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../store/db.h"
#include "../store/moves.h"
#include "ctl.h"

/* People of this host, by their slot. */
static int
count_person(void *arg, int64_t user_id)
{
	int64_t *people = arg;

	people[slot_of(user_id)]++;
	return 0;
}

/* Print the slots that go from one node to others in the new table, a line for
 * each of them; with a name, to that one alone. */
static int
print_from(struct nodes *n, struct node_table *new,
    const struct node_entry *from, const char *name,
    const int64_t people[SLOTS])
{
	const struct node_entry *to = NULL;
	int moved = 0;

	while ((to = node_table_next(n->table, to)) != NULL) {
		auto_buf struct buf list = BUF_INIT(NODES_FILE_MAX);
		bool slots[SLOTS] = { false };
		int64_t who = 0;
		size_t count;

		if (to == from || (name != NULL && strcmp(to->name, name) != 0))
			continue;
		for (int slot = 0; slot < SLOTS; slot++) {
			slots[slot] = node_table_owner(n->table, slot) ==
				from &&
			    strcmp(node_table_owner(new, slot)->name,
				to->name) == 0;
			if (slots[slot])
				who += people[slot];
		}
		count = slots_add(&list, slots);
		if (count == 0)
			continue;
		printf("%zu slots of %s become %s's", count, from->name,
		    to->name);
		if (from == n->own)
			printf(", with %lld people", (long long)who);
		printf("; on %s:\n\tilctl nodes move %s --to %s\n", from->name,
		    buf_str(&list), to->name);
		moved += (int)count;
	}
	return moved;
}

static int
print_plan(struct nodes *n, struct node_table *new, const char *name, bool adds,
    struct err *err)
{
	const struct node_entry *from = NULL;
	int64_t people[SLOTS] = { 0 };
	int moved = 0;

	if (moves_each_person(n->db, count_person, people, err) != 0)
		return -1;
	/* nobody else's change */
	while ((from = node_table_next(n->table, from)) != NULL)
		if (adds || strcmp(from->name, name) == 0)
			moved += print_from(n, new, from, adds ? name : NULL,
			    people);
	printf("%d of %d slots would move.", moved, SLOTS);
	if (moved > 0 && adds)
		printf("  Then \"joining\" goes from %s's line.", name);
	else if (!adds)
		printf("  Then the line of %s goes.", name);
	printf("\n");
	return CTL_OK;
}

static int
plan(struct nodes *n, struct ctl *ctl, struct err *err)
{
	const struct node_entry *node;
	struct node_table *new;
	bool adds;
	int result;

	if (ctl->argc != 4 ||
	    (strcmp(ctl->argv[2], "--add") != 0 &&
		strcmp(ctl->argv[2], "--remove") != 0))
		return CTL_MISUSED;
	adds = strcmp(ctl->argv[2], "--add") == 0;
	node = node_table_named(n->table, ctl->argv[3]);
	if (node == NULL)
		return err_set(err, ERR_CONFIG,
		    "%s has no line in %s; one that is to come has `joining` "
		    "at its end",
		    ctl->argv[3], n->config->nodes);
	new = node_table_with(n->table, node, !adds, err);
	if (new == NULL)
		return err_wrap(err, "the table without %s", ctl->argv[3]);
	result = print_plan(n, new, ctl->argv[3], adds, err);
	node_table_free(new);
	return result;
}

static int
change(struct nodes *n, struct ctl *ctl, struct err *err)
{
	if (strcmp(ctl->argv[1], "plan") == 0)
		return plan(n, ctl, err);
	return strcmp(ctl->argv[1], "move") == 0 ? nodes_move(n, ctl, err) :
						   CTL_MISUSED;
}

int
nodes_change(struct ctl *ctl)
{
	struct nodes n = { .config = &ctl->config };
	struct err err = { 0 };
	int result = -1;

	if (ctl->json)
		return CTL_MISUSED;
	if (node_table_open(&n.table, &ctl->config, &err) == 0 &&
	    n.table == NULL)
		(void)err_set(&err, ERR_CONFIG,
		    "one host: IL_NODES is not set");
	if (n.table != NULL)
		n.db = db_open(ctl->config.database, DB_NODE, &err);
	n.own = node_table_own(n.table);
	if (n.db != NULL)
		result = change(&n, ctl, &err);
	db_close(n.db);
	node_table_free(n.table);
	if (result == CTL_MISUSED && err.code == ERR_NONE)
		return CTL_MISUSED;
	return result < 0 ? ctl_fail(ctl->argv[0], &err) : result;
}
