/* SPDX-License-Identifier: MIT */
/*
 * `ilctl nodes`: the table of nodes, and how each is, as this host's nginx
 * reaches it; which slots would move, and how; where a person is, for `ilctl
 * user`; and what nginx has to know of the other nodes, for `ilctl run` and
 * `ilctl nginx`.
 */
#include "ctl/ctl.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <sodium.h>

#include "base/basics.h"
#include "base/file.h"
#include "base/text.h"
#include "protocol/node_ask.h"
#include "protocol/node_table.h"
#include "store/db.h"
#include "store/moves.h"

/* nginx gives up on a node after a second for its name and one for itself. */
#define ANSWER_MS 5000
#define ANSWER_MAX 20480 /* with its head */
#define AT_ONCE 64	 /* nodes that are asked */
#define STATE_SIZE 64
#define RESOLV_CONF "/etc/resolv.conf"
#define RESOLV_MAX 65536

/* ---- asking the nodes ---- */

/* The state of a node, for people: "ok", or its fault.  The body of /health is
 * {"status": "ok", "message": null, …}. */
static json_t *
nodes_judge(const struct node_ask *ask)
{
	json_auto_t *health = json_loads(buf_str(&ask->body),
	    JSON_REJECT_DUPLICATES, NULL);
	const char *word = table_json_text(health, "status");
	const char *message = table_json_text(health, "message");
	const int status = ask->answer.status;
	char state[STATE_SIZE];

	if (status == 403)
		(void)snprintf(state, sizeof(state), "has another key");
	else if (status == 0 || status == 502 || status == 504)
		(void)snprintf(state, sizeof(state), "away");
	else if (status != 200)
		(void)snprintf(state, sizeof(state), "answers %d", status);
	else if (word == NULL)
		(void)snprintf(state, sizeof(state),
		    "is no node: its answer makes no sense");
	else
		(void)snprintf(state, sizeof(state), "%s%s%s", word,
		    message != NULL ? ": " : "",
		    message != NULL ? message : "");
	text_clean_array(state, sizeof(state));
	return json_string(state);
}

/* Ask the nodes of some rows at one time; they have ANSWER_MS together. */
static int
ask_some(const json_t *rows, size_t at, const struct config *config,
    struct err *err)
{
	struct node_ask asks[AT_ONCE];
	struct err none;
	const json_t *row;
	size_t begun = 0;
	int result = 0;

	while (result == 0 && begun < AT_ONCE &&
	    (row = json_array_get(rows, at + begun)) != NULL) {
		asks[begun] = (struct node_ask)NODE_ASK_INIT(ANSWER_MAX,
		    clock_monotonic_ms() + ANSWER_MS);
		result = node_ask_begin(&asks[begun++], config,
		    table_json_text(row, "host"), "GET /health", "", err);
	}
	for (size_t i = 0; i < begun; i++) {
		if (result == 0 && node_ask_head(&asks[i], &none) == 0)
			(void)node_ask_body(&asks[i], &none);
		if (result == 0)
			(void)json_object_set_new(json_array_get(rows, at + i),
			    "state", nodes_judge(&asks[i]));
		node_ask_end(&asks[i]);
	}
	return result;
}

/* ---- showing ---- */

/* A row for each node of the table, in its order. */
static json_t *
list_nodes(struct node_table *table)
{
	json_t *rows = json_array();
	const struct node_entry *node = NULL;

	while ((node = node_table_next(table, node)) != NULL) {
		json_t *slots = json_array();

		for (int slot = 0; slot < SLOTS; slot++)
			if (node_table_owner(table, slot) == node)
				(void)json_array_append_new(slots,
				    json_integer(slot));
		(void)json_array_append_new(rows,
		    json_pack("{s:s, s:s, s:s, s:b, s:b, s:o, s:s}", "node",
			node->name, "host", node->address, "tag", node->tag,
			"joining", node->joining, "own",
			node == node_table_own(table), "slots", slots, "state",
			"not asked"));
	}
	return rows;
}

static const struct table_column node_columns[] = {
	{ "NODE", "node", TABLE_TEXT, 16 },
	{ "HOST", "host", TABLE_TEXT, 24 },
	{ "SLOTS", "slots", TABLE_NUMBER, 5 },
	{ "STATE", "state", TABLE_TEXT, 0 },
	{ .head = NULL },
};

/* Print the rows for people, which changes them. */
static void
print_nodes(const json_t *rows)
{
	json_t *row;
	size_t i;

	table_print_heads(node_columns);
	json_array_foreach(rows, i, row) {
		(void)json_object_set_new(row, "slots",
		    json_integer((json_int_t)
			    json_array_size(json_object_get(row, "slots"))));
		if (json_is_true(json_object_get(row, "joining")))
			(void)json_object_set_new(row, "state",
			    json_sprintf("%s (joining)",
				table_json_text(row, "state")));
		table_print_row(node_columns, row);
	}
}

/* ---- slots that would move ---- */

/* Count a person of this host, by their slot. */
static int
count_person(void *arg, int64_t user_id)
{
	int64_t *people = arg;

	people[slot_of(user_id)]++;
	return 0;
}

/* Print the slots that go from one node to another in the new table.  Returns
 * their number. */
static int
print_move(struct nodes *n, struct node_table *new,
    const struct node_entry *from, const struct node_entry *to,
    const int64_t people[SLOTS])
{
	auto_buf struct buf list = BUF_INIT(NODES_FILE_MAX);
	bool slots[SLOTS] = { false };
	long long who = 0;
	int count;

	for (int slot = 0; slot < SLOTS; slot++) {
		slots[slot] = node_table_owner(n->table, slot) == from &&
		    strcmp(node_table_owner(new, slot)->name, to->name) == 0;
		if (slots[slot])
			who += people[slot];
	}
	count = (int)slots_add(&list, slots);
	if (count == 0)
		return 0;
	printf("%d slots of %s become %s's", count, from->name, to->name);
	if (from == n->own)
		printf(", with %lld people", who);
	printf("; on %s:\n\tilctl nodes move %s --to %s\n", from->name,
	    buf_str(&list), to->name);
	return count;
}

/* Print what goes between the node and each other one. */
static int
print_plan(struct nodes *n, struct node_table *new,
    const struct node_entry *node, bool adds, struct err *err)
{
	const struct node_entry *other = NULL;
	int64_t people[SLOTS] = { 0 };
	int moved = 0;

	if (moves_each_person(n->db, count_person, people, err) != 0)
		return -1;
	while ((other = node_table_next(n->table, other)) != NULL)
		if (other != node)
			moved += print_move(n, new, adds ? other : node,
			    adds ? node : other, people);
	printf("%d of %d slots would move.", moved, SLOTS);
	if (moved > 0 && adds)
		printf("  Then \"joining\" goes from %s's line.", node->name);
	else if (!adds)
		printf("  Then the line of %s goes.", node->name);
	printf("\n");
	return CTL_OK;
}

static int
nodes_plan(struct nodes *n, struct ctl *ctl, struct err *err)
{
	const char *name = ctl->argc == 4 ? ctl->argv[3] : "";
	const bool adds = *name != '\0' && strcmp(ctl->argv[2], "--add") == 0;
	const struct node_entry *node;
	auto_node_table struct node_table *new = NULL;

	if (!adds && (*name == '\0' || strcmp(ctl->argv[2], "--remove") != 0))
		return CTL_MISUSED;
	node = node_table_named(n->table, name);
	if (node == NULL)
		return err_set(err, ERR_CONFIG,
		    "%s has no line in %s; one that is to come has `joining` "
		    "at its end",
		    name, n->config->nodes);
	new = node_table_with(n->table, node, !adds, err);
	return new != NULL ? print_plan(n, new, node, adds, err) :
			     err_wrap(err, "the table without %s", name);
}

static int
change_nodes(struct ctl *ctl, struct err *err)
{
	auto_node_table struct node_table *table = NULL;
	auto_db struct db *db = NULL;
	struct nodes n = { .config = &ctl->config };

	if (ctl->json)
		return CTL_MISUSED;
	if (node_table_open(&table, &ctl->config, err) != 0)
		return -1;
	if (table == NULL)
		return err_set(err, ERR_CONFIG,
		    "one host: IL_NODES is not set");
	db = db_open(ctl->config.database, DB_NODE, err);
	if (db == NULL)
		return -1;
	n.table = table;
	n.own = node_table_own(table);
	n.db = db;
	return strcmp(ctl->argv[1], "plan") == 0 ? nodes_plan(&n, ctl, err) :
	    strcmp(ctl->argv[1], "move") == 0	 ? nodes_move(&n, ctl, err) :
						   CTL_MISUSED;
}

/* ---- the command ---- */

int
ctl_nodes(struct ctl *ctl, struct err *err)
{
	auto_node_table struct node_table *table = NULL;
	json_auto_t *rows = NULL;
	int result = 0;
	int printed = CTL_OK;

	if (ctl->argc > 1)
		return change_nodes(ctl, err);
	if (node_table_open(&table, &ctl->config, err) != 0)
		return -1;
	rows = list_nodes(table);
	for (size_t at = 0; at < json_array_size(rows) && result == 0;
	     at += AT_ONCE)
		result = ask_some(rows, at, &ctl->config, err);
	if (ctl->json)
		printed = table_print_json(json_incref(rows));
	else if (table == NULL)
		printf("IL_NODES is not set: this host alone.\n");
	else
		print_nodes(rows);
	return result != 0 ? -1 : printed;
}

/* ---- a person ---- */

json_t *
nodes_find_person(const struct config *config, int64_t user_id, char **line)
{
	auto_node_table struct node_table *table = NULL;
	struct err err;
	const int slot = slot_of(user_id);
	const bool known = node_table_open(&table, config, &err) == 0;
	const struct node_entry *node = node_table_owner(table, slot);
	json_t *found = json_pack("{s:i, s:s?}", "slot", slot, "node",
	    node != NULL ? node->name : NULL);

	*line = !known ?
	    xprintf("%d; on which node is not known: %s", slot, err.text) :
	    node == NULL ?
	    xprintf("%d", slot) :
	    xprintf("%d, on node %s%s", slot, node->name,
		node != node_table_own(table) ? ": ask there" : ", this one");
	return found;
}

/* ---- nginx and the other nodes ---- */

/* nginx forgets a name's address after seconds, as a node may come back with
 * another one. */
void
nodes_conf_add_resolver(struct buf *out, const char *resolv_conf)
{
	auto_free char *copy = xstrdup(resolv_conf);
	char *lines = copy;
	const char *line;
	size_t begin;

	buf_adds(out, "resolver");
	begin = out->len;
	while ((line = strsep(&lines, "\n")) != NULL) {
		char address[INET6_ADDRSTRLEN];
		unsigned char bytes[16];

		if (sscanf(line, " nameserver %45[^ \t\r#;]", address) != 1)
			continue;
		if (inet_pton(AF_INET, address, bytes) == 1)
			buf_addf(out, " %s", address);
		else if (inet_pton(AF_INET6, address, bytes) == 1)
			buf_addf(out, " [%s]", address);
	}
	if (out->len == begin)
		buf_adds(out, " 127.0.0.1");
	buf_adds(out, " valid=2s;\nresolver_timeout 1s;\n");
}

void
nginx_fill(struct buf *out, const char *template,
    const struct nginx_name *table)
{
	while (*template != '\0') {
		const struct nginx_name *found = table;
		size_t len;

		/* The empty name at the end is there everywhere. */
		while (strncmp(template, found->name, strlen(found->name)) != 0)
			found++;
		len = strlen(found->name);
		buf_adds(out, found->value);
		if (len == 0)
			buf_addc(out, *template);
		template += len > 0 ? len : 1;
	}
}

/* Can it stand in the quotes of the template?  Characters of never
 * cannot. */
static bool
can_quote(const char *text, const char *never)
{
	while (*text != '\0' && iscntrl((unsigned char)*text) == 0 &&
	    strchr(never, *text) == NULL)
		text++;
	return *text == '\0';
}

int
nginx_check_paths(const struct config *config, struct err *err)
{
	if (!can_quote(config->state_dir, "\"$\\"))
		return err_set(err, ERR_CONFIG,
		    "IL_STATE_DIR: nginx cannot "
		    "take a path with quotes, $ or control characters");
	/* nginx would take some characters in the path of an include for a
	 * pattern. */
	if (!can_quote(config->lib_dir, "\"$\\*?["))
		return err_set(err, ERR_CONFIG,
		    "IL_TUNE_LIB_DIR: nginx cannot take a path with quotes, $, "
		    "*, ?, [ or control characters");
	return 0;
}

static int
add_hosts(struct buf *out, const struct config *config,
    const struct node_entry *own, struct err *err)
{
	auto_free char *path = xprintf("%s/nginx/hosts.conf.in",
	    config->lib_dir);
	auto_buf struct buf template = BUF_INIT(NODES_CONF_MAX);
	auto_buf struct buf text = BUF_INIT(RESOLV_MAX);
	auto_buf struct buf resolver = BUF_INIT(RESOLV_MAX);
	auto_close int six = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	unsigned char key[NODE_KEY_LEN];
	char hex[2 * NODE_KEY_LEN + 1];
	struct err none;

	if (nginx_check_paths(config, err) != 0 ||
	    file_read(path, &template, err) != 0 ||
	    node_key_derive(config->nodes_key_file, NODE_KEY_NGINX, key, err) !=
		0)
		return -1;
	(void)sodium_bin2hex(hex, sizeof(hex), key, sizeof(key));
	(void)file_read(RESOLV_CONF, &text, &none);
	nodes_conf_add_resolver(&resolver, buf_str(&text));
	nginx_fill(out, buf_str(&template),
	    (const struct nginx_name[]){
		{ "@KEY@", hex },
		{ "@RESOLVER@", buf_str(&resolver) },
		{ "@STATE_DIR@", config->state_dir },
		{ "@LIB_DIR@", config->lib_dir },
		{ "@PORT@", strrchr(own->address, ':') + 1 },
		{ "@SIX@", six >= 0 ? "" : "#" },
		{ "@SOCKET@", NODES_SOCKET },
		{ "", "" },
	    });
	sodium_memzero(key, sizeof(key));
	sodium_memzero(hex, sizeof(hex));
	return 0;
}

int
nodes_conf_add(struct buf *out, const struct config *config, struct err *err)
{
	auto_node_table struct node_table *table = NULL;

	if (node_table_open(&table, config, err) != 0 ||
	    (table != NULL &&
		add_hosts(out, config, node_table_own(table), err) != 0))
		return -1;
	return !out->overflow ?
	    0 :
	    err_set(err, ERR_LIMIT,
		"the configuration of nginx for other nodes is too large");
}
