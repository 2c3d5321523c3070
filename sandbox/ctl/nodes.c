/* SPDX-License-Identifier: MIT */
/*
 * `ilctl nodes`: the table of nodes, and how each is, as this host's nginx
 * reaches it; which slots would move, and how; and where a person is, for
 * `ilctl user`.
 */
#include "nodes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "../base/text.h"
#include "../protocol/node_ask.h"
#include "../protocol/node_table.h"
#include "../store/db.h"
#include "../store/moves.h"
#include "ctl.h"
#include "table.h"

/* nginx gives up on a node after a second for its name and one for itself. */
#define ANSWER_MS 5000
#define ANSWER_MAX 20480 /* with its head */
#define AT_ONCE 64	 /* nodes that are asked */

struct asked {
	const struct node_entry *node;
	int slots;
	char state[64]; /* for people: "ok", or what is wrong */
};

/* ---- what came ---- */

/* The body of /health: {"status": "ok", "message": null, …}. */
static void
judge_health(struct asked *asked, const char *body)
{
	json_auto_t *health = json_loads(body, JSON_REJECT_DUPLICATES, NULL);
	const char *status = json_string_value(json_object_get(health,
	    "status"));
	const char *message = json_string_value(json_object_get(health,
	    "message"));

	if (status == NULL)
		(void)snprintf(asked->state, sizeof(asked->state),
		    "is no node: its answer makes no sense");
	else
		(void)snprintf(asked->state, sizeof(asked->state), "%s%s%s",
		    status, message != NULL ? ": " : "",
		    message != NULL ? message : "");
	text_clean_array(asked->state, sizeof(asked->state));
}

static void
judge(struct asked *asked, const struct node_ask *ask)
{
	int status = ask->answer.status;

	if (status == 200)
		judge_health(asked, buf_str(&ask->body));
	else if (status == 403)
		(void)snprintf(asked->state, sizeof(asked->state),
		    "has another key");
	else if (status == 0 || status == 502 || status == 504)
		(void)snprintf(asked->state, sizeof(asked->state), "away");
	else
		(void)snprintf(asked->state, sizeof(asked->state), "answers %d",
		    status);
}

/* Some nodes at one time, which have ANSWER_MS together. */
static int
ask_some(struct asked *asked, size_t count, const struct config *config,
    struct err *err)
{
	struct node_ask asks[AT_ONCE];
	struct err none;
	size_t begun = 0;
	int result = 0;

	for (; begun < count && result == 0; begun++) {
		asks[begun] = (struct node_ask)NODE_ASK_INIT(ANSWER_MAX,
		    clock_monotonic_ms() + ANSWER_MS);
		result = node_ask_begin(&asks[begun], config, asked[begun].node,
		    "GET /health", "", err);
	}
	for (size_t i = 0; i < begun; i++) {
		if (result == 0) {
			if (node_ask_head(&asks[i], &none) == 0)
				(void)node_ask_body(&asks[i], &none);
			judge(&asked[i], &asks[i]);
		}
		node_ask_end(&asks[i]);
	}
	return result;
}

static int
ask_all(struct asked *asked, size_t count, const struct config *config,
    struct err *err)
{
	int result = 0;

	for (size_t at = 0; at < count && result == 0; at += AT_ONCE)
		result = ask_some(asked + at,
		    count - at < AT_ONCE ? count - at : AT_ONCE, config, err);
	return result;
}

/* ---- showing ---- */

static void
print_nodes(const struct asked *asked, size_t count)
{
	int name = (int)strlen("NODE");
	int host = (int)strlen("HOST");

	for (size_t i = 0; i < count; i++) {
		int wide = (int)strlen(asked[i].node->name);
		int far = (int)strlen(asked[i].node->address);

		name = wide > name ? wide : name;
		host = far > host ? far : host;
	}
	printf("%-*s  %-*s  SLOTS  STATE\n", name, "NODE", host, "HOST");
	for (size_t i = 0; i < count; i++)
		printf("%-*s  %-*s  %5d  %s%s\n", name, asked[i].node->name,
		    host, asked[i].node->address, asked[i].slots,
		    asked[i].state, asked[i].node->joining ? " (joining)" : "");
}

static int
print_nodes_json(struct node_table *table, const struct asked *asked,
    size_t count)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < count; i++) {
		json_t *slots = json_array();

		for (int slot = 0; slot < SLOTS; slot++)
			if (node_table_owner(table, slot) == asked[i].node)
				(void)json_array_append_new(slots,
				    json_integer(slot));
		(void)json_array_append_new(rows,
		    json_pack("{s:s, s:s, s:s, s:b, s:b, s:o, s:s}", "node",
			asked[i].node->name, "host", asked[i].node->address,
			"tag", asked[i].node->tag, "joining",
			asked[i].node->joining, "own",
			asked[i].node == node_table_own(table), "slots", slots,
			"state", asked[i].state));
	}
	return table_print_json(rows);
}

/* As many as the table has, in its order; *count of them, to be freed. */
static struct asked *
list_nodes(struct node_table *table, size_t *count)
{
	struct asked *asked = xcalloc(NODES_MAX, sizeof(*asked));
	const struct node_entry *node = NULL;

	*count = 0;
	while ((node = node_table_next(table, node)) != NULL) {
		struct asked *one = &asked[(*count)++];

		one->node = node;
		(void)snprintf(one->state, sizeof(one->state), "not asked");
		for (int slot = 0; slot < SLOTS; slot++)
			one->slots += node_table_owner(table, slot) == node;
	}
	return asked;
}

/* ---- which slots would move ---- */

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

static int
change_nodes(struct ctl *ctl)
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

/* ---- the command ---- */

int
ctl_nodes(struct ctl *ctl)
{
	struct node_table *table = NULL;
	struct asked *asked;
	struct err err;
	size_t count;
	int result;
	int code = CTL_OK;

	if (ctl->argc > 1)
		return change_nodes(ctl);
	if (node_table_open(&table, &ctl->config, &err) != 0)
		return ctl_fail(ctl->argv[0], &err);
	asked = list_nodes(table, &count);
	result = ask_all(asked, count, &ctl->config, &err);
	if (ctl->json)
		code = print_nodes_json(table, asked, count);
	else if (table == NULL)
		printf("IL_NODES is not set: this host alone.\n");
	else
		print_nodes(asked, count);
	if (result != 0)
		code = ctl_fail(ctl->argv[0], &err);
	free(asked);
	node_table_free(table);
	return code;
}

/* ---- a person ---- */

void
nodes_show_person(const struct config *config, int64_t user_id)
{
	struct node_table *table = NULL;
	const struct node_entry *node;
	struct err err;
	int slot = slot_of(user_id);

	printf("%-10s %d", "slot", slot);
	if (node_table_open(&table, config, &err) != 0) {
		printf("; on which node is not known: %s\n", err.text);
		return;
	}
	node = node_table_owner(table, slot);
	if (node != NULL)
		printf(", on node %s%s", node->name,
		    node != node_table_own(table) ? ": ask there" :
						    ", this one");
	printf("\n");
	node_table_free(table);
}

json_t *
nodes_add_person(json_t *object, const struct config *config, int64_t user_id)
{
	struct node_table *table = NULL;
	const struct node_entry *node;
	struct err ignored;
	int slot = slot_of(user_id);

	if (user_id == 0)
		return object;
	(void)node_table_open(&table, config, &ignored);
	node = node_table_owner(table, slot);
	(void)json_object_set_new(object, "slot", json_integer(slot));
	(void)json_object_set_new(object, "node",
	    node != NULL ? json_string(node->name) : json_null());
	node_table_free(table);
	return object;
}
