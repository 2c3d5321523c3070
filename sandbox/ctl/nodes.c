/* SPDX-License-Identifier: MIT */
/*
 * `ilctl nodes`: the table of nodes, and how each is, as this host's nginx
 * reaches it; and where a person is, for `ilctl user`.
 */
#include "nodes.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../base/text.h"
#include "../protocol/node_key.h"
#include "../protocol/node_table.h"
#include "ctl.h"
#include "nodes_move.h"
#include "table.h"

/* nginx gives up on a node after a second for its name and one for itself. */
#define ANSWER_MS 5000
#define ANSWER_MAX 4096
#define AT_ONCE 64 /* nodes that are asked */

struct asked {
	const struct node_entry *node;
	int slots;
	int fd; /* on which the answer comes; -1: no more of it */
	struct buf answer;
	char state[64]; /* for people: "ok", or what is wrong */
};

/* ---- asking ---- */

static int
ask(struct asked *asked, const char *socket_path, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(1024);

	asked->fd = fd_connect_unix(socket_path, SOCK_STREAM, err);
	/* An answer in HTTP/1.0 ends with its connection. */
	buf_addf(&text,
	    "GET /health HTTP/1.0\r\nHost: inline\r\nInline-Node: %s\r\n\r\n",
	    asked->node->address);
	if (asked->fd < 0 ||
	    send(asked->fd, buf_str(&text), text.len,
		MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)text.len)
		return err_set(err, ERR_UNAVAILABLE,
		    "nginx does not listen at %s: does it run, with what "
		    "`ilctl nginx` prints?",
		    socket_path);
	return 0;
}

/* Take the part of an answer that has come; its end closes the connection. */
static void
receive(struct asked *asked)
{
	char *room = buf_reserve(&asked->answer,
	    asked->answer.max - asked->answer.len);
	ssize_t n = room != NULL ?
	    recv(asked->fd, room, asked->answer.max - asked->answer.len,
		MSG_DONTWAIT) :
	    0;

	if (n > 0)
		buf_commit(&asked->answer, (size_t)n);
	else
		cleanup_close(&asked->fd);
}

/* Until all of them have answered, or the time is over. */
static void
wait_for_answers(struct asked *asked, size_t count)
{
	int64_t until_ms = clock_monotonic_ms() + ANSWER_MS;
	struct pollfd fds[AT_ONCE];
	bool open = true;

	while (open && clock_monotonic_ms() < until_ms) {
		open = false;
		for (size_t i = 0; i < count; i++) {
			fds[i] = (struct pollfd){ .fd = asked[i].fd,
				.events = POLLIN };
			open = open || asked[i].fd >= 0;
		}
		if (!open ||
		    poll(fds, count, clock_poll_timeout(until_ms)) <= 0)
			continue;
		for (size_t i = 0; i < count; i++)
			if (fds[i].revents != 0)
				receive(&asked[i]);
	}
	for (size_t i = 0; i < count; i++)
		cleanup_close(&asked[i].fd);
}

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
judge(struct asked *asked)
{
	const char *text = buf_str(&asked->answer);
	const char *body = strstr(text, "\r\n\r\n");
	const char *status = strchr(text, ' ');

	if (body == NULL || status == NULL)
		status = " 504";
	if (strncmp(status, " 200 ", 5) == 0)
		judge_health(asked, body + 4);
	else if (strncmp(status, " 403", 4) == 0)
		(void)snprintf(asked->state, sizeof(asked->state),
		    "has another key");
	else if (strncmp(status, " 502", 4) == 0 ||
	    strncmp(status, " 504", 4) == 0)
		(void)snprintf(asked->state, sizeof(asked->state), "away");
	else
		(void)snprintf(asked->state, sizeof(asked->state),
		    "answers%.4s", status);
}

/* All nodes of the table, some at a time. */
static int
ask_all(struct asked *asked, size_t count, const char *socket_path,
    struct err *err)
{
	for (size_t at = 0; at < count; at += AT_ONCE) {
		size_t some = count - at < AT_ONCE ? count - at : AT_ONCE;
		int result = 0;

		for (size_t i = 0; i < some && result == 0; i++)
			result = ask(&asked[at + i], socket_path, err);
		if (result == 0)
			wait_for_answers(asked + at, some);
		for (size_t i = 0; i < some; i++) {
			cleanup_close(&asked[at + i].fd);
			if (result == 0)
				judge(&asked[at + i]);
			buf_release(&asked[at + i].answer);
		}
		if (result != 0)
			return -1;
	}
	return 0;
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
		one->fd = -1;
		(void)snprintf(one->state, sizeof(one->state), "not asked");
		buf_init(&one->answer, ANSWER_MAX);
		for (int slot = 0; slot < SLOTS; slot++)
			one->slots += node_table_owner(table, slot) == node;
	}
	return asked;
}

int
ctl_nodes(struct ctl *ctl)
{
	auto_free char *path = config_state_path(&ctl->config, NODES_SOCKET);
	struct node_table *table = NULL;
	struct asked *asked;
	struct err err;
	size_t count;
	int result;
	int code = CTL_OK;

	if (ctl->argc > 1)
		return nodes_change(ctl);
	if (node_table_open(&table, &ctl->config, &err) != 0)
		return ctl_fail(ctl->argv[0], &err);
	asked = list_nodes(table, &count);
	result = ask_all(asked, count, path, &err);
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
