/* SPDX-License-Identifier: MIT */
/*
 * `ilctl nodes move`: the people of slots of ours go to another node, one after
 * another, and then the slots.  A row of the database (moves.h) says how far a
 * person is: killed at any moment, the same command goes on.
 */
#include "ctl/ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/config.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "move/parcel.h"
#include "protocol/node_ask.h"
#include "protocol/node_table.h"
#include "store/db.h"
#include "store/moves.h"

#define ROUNDS_MOST 100 /* of new people who come to a slot meanwhile */
/* As nginx/nodes.conf has them. */
#define STALL_SECONDS 60
#define ANSWER_MS 110000
#define ANSWER_MAX 65536

struct mover {
	struct nodes *n;
	const struct node_entry *to;
	int64_t wait_ms;
	int slot; /* that moves now */
	int64_t moved;
	int64_t stayed;
	int gone; /* slots */
	int64_t bytes;
};

/* ---- PUT requests to a node ---- */

static int
send_piece(void *arg, const void *data, size_t len, struct err *err)
{
	const int *fd = arg;
	const char *at = data;

	while (len > 0) {
		ssize_t n = TEMP_FAILURE_RETRY(send(*fd, at, len,
		    MSG_NOSIGNAL));

		if (n < 0) /* also when it stalls */
			return err_set(err, ERR_UNKNOWN, "send: %s",
			    strerror(errno));
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

/* The node's answer; the error has the first line of its reason. */
static int
nodes_put_judge(struct node_ask *ask, const struct node_entry *to,
    struct err *err)
{
	struct err none;
	char reason[200];

	if (node_ask_head(ask, &none) != 0)
		return err_set(err, ERR_UNKNOWN, "%s gave no answer", to->name);
	if (ask->answer.status == 200)
		return 0;
	(void)node_ask_body(ask, &none);
	(void)snprintf(reason, sizeof(reason), "%s", buf_str(&ask->body));
	reason[strcspn(reason, "\r\n")] = '\0';
	text_clean_array(reason, sizeof(reason));
	return err_set(err, arrival_code(ask->answer.status),
	    "%s answered %d %s", to->name, ask->answer.status, reason);
}

int
nodes_put(const struct config *config, const struct node_entry *to,
    const char *what, int64_t id, const struct parcel *parcel, struct err *err)
{
	const struct timeval stall = { .tv_sec = STALL_SECONDS };
	auto_free char *request = xprintf("PUT /nodes/%s/%" PRId64, what, id);
	auto_free char *length = xprintf("Content-Length: %" PRId64 "\r\n",
	    parcel != NULL ? parcel_size(&parcel->head) : 0);
	auto_node_ask struct node_ask ask = NODE_ASK_INIT(ANSWER_MAX, 0);

	if (node_ask_begin(&ask, config, to->address, request, length, err) !=
	    0)
		return -1;
	(void)setsockopt(ask.fd, SOL_SOCKET, SO_SNDTIMEO, &stall,
	    sizeof(stall));
	/* our own fault: the node stores no stream that breaks off */
	if (parcel != NULL &&
	    parcel_send(parcel, send_piece, &ask.fd, err) != 0 &&
	    err->code != ERR_UNKNOWN)
		return -1;
	ask.until_ms = clock_monotonic_ms() + ANSWER_MS;
	return nodes_put_judge(&ask, to, err);
}

/* ---- a person ---- */

/* Each commit writes to a file beside the database. */
static int
wait_for_jobs(const struct mover *m, int64_t user_id, struct err *err)
{
	int64_t until_ms = clock_monotonic_ms() + m->wait_ms;
	auto_free char *path = xstrdup(m->n->config->database);
	auto_close int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char events[4096];
	int64_t open;

	if (fd < 0 || inotify_add_watch(fd, dirname(path), IN_MODIFY) < 0)
		return err_system(err, "watch the database");
	while ((open = person_open(m->n->db, user_id, err)) > 0 &&
	    poll(&p, 1, clock_poll_timeout(until_ms)) > 0)
		while (read(fd, events, sizeof(events)) > 0)
			;
	if (open > 0)
		return err_set(err, ERR_BUSY,
		    "a command of theirs is not over");
	return open < 0 ? -1 : 0;
}

/* Carry a person over who is leaving: none of their commands begins here any
 * more. */
static int
nodes_move_carry(struct mover *m, struct parcel *p, int64_t user_id, bool *sent,
    struct err *err)
{
	const struct nodes *n = m->n;
	int ended;

	if (wait_for_jobs(m, user_id, err) != 0 ||
	    parcel_pack(p, n->config, n->db, user_id, m->to->name, m->wait_ms,
		err) != 0)
		return -1;
	*sent = true;
	if (nodes_put(n->config, m->to, "people", user_id, p, err) != 0)
		return -1;
	/* the volumes are locked until the row says where the person is */
	ended = moves_end(n->db, m->slot, user_id, err);
	if (ended > 0)
		return err_set(err, ERR_CONFLICT,
		    "they are not leaving any more");
	if (ended < 0) {
		err->code = ERR_UNKNOWN; /* they are there by now */
		return -1;
	}
	m->moved++;
	m->bytes += parcel_size(&p->head);
	return 0;
}

/* The person stays here if the other node certainly does not have them.  knows:
 * that is certain; it is not when an answer did not come, now or in an earlier
 * try. */
static int
nodes_move_give_up(struct mover *m, int64_t user_id, bool knows,
    struct err *err)
{
	struct err why = *err;
	bool goes_on = why.code == ERR_BUSY || why.code == ERR_CONFLICT;

	(void)fprintf(stderr, "ilctl nodes: user %" PRId64 ": %s: %s\n",
	    user_id, why.text,
	    knows ? "stays here" :
		    "is told to wait until this command has ended well");
	m->stayed++;
	if (knows && moves_stay(m->n->db, m->slot, user_id, err) != 0)
		return -1;
	return goes_on ? 0 : -1;
}

static int
move_person(struct mover *m, int64_t user_id, struct err *err)
{
	char to[MOVES_NODE_MAX + 1] = "";
	enum move_state before = moves_find(m->n->db, m->slot, user_id, to,
	    err);
	bool sent = false;
	struct parcel p;
	int begun;
	int result;

	if (before == MOVE_UNKNOWN)
		return -1;
	begun = moves_begin(m->n->db, m->slot, user_id, m->to->name, err);
	if (begun != 0)
		return begun < 0 ?
		    -1 :
		    err_set(err, ERR_CONFLICT,
			"user %" PRId64 " is on the way to %s", user_id, to);
	parcel_init(&p);
	err->code = ERR_NONE;
	result = nodes_move_carry(m, &p, user_id, &sent, err);
	parcel_release(&p);
	if (result == 0)
		return 0;
	return nodes_move_give_up(m, user_id,
	    err->code != ERR_UNKNOWN && (sent || before != MOVE_LEAVING), err);
}

/* ---- a slot ---- */

/* Do something with each person of the slot, up to an error. */
static int
each_person(struct mover *m,
    int (*fn)(struct mover *m, int64_t user_id, struct err *err),
    struct err *err)
{
	struct db *db = m->n->db;
	json_auto_t *rows = table_read(db,
	    db_statement(db, STATEMENT_LIST_PEOPLE), err);
	json_t *row;
	size_t i;

	json_array_foreach(rows, i, row) {
		int64_t user_id = json_integer_value(json_object_get(row,
		    "user_id"));

		if (slot_of(user_id) == m->slot && fn(m, user_id, err) != 0)
			return -1;
	}
	return rows != NULL ? 0 : -1;
}

static int
stay_person(struct mover *m, int64_t user_id, struct err *err)
{
	return moves_stay(m->n->db, m->slot, user_id, err);
}

/* Move a slot's people, then those who came meanwhile.  1: somebody stays. */
static int
move_slot(struct mover *m, struct err *err)
{
	int64_t stayed = m->stayed;

	if (nodes_put(m->n->config, m->to, "slots", m->slot, NULL, err) != 0)
		return -1;
	for (int i = 0; i < ROUNDS_MOST; i++) {
		int left;

		if (each_person(m, move_person, err) != 0)
			return -1;
		if (m->stayed > stayed)
			return 1;
		left = moves_end_slot(m->n->db, m->slot, m->to->name, err);
		if (left == 0)
			return nodes_put(m->n->config, m->to, "come", m->slot,
			    NULL, err);
		if (left < 0)
			return -1;
	}
	return 1;
}

/* ---- the table ---- */

/* Replace the table in one step; its owner and mode stay, for its readers.  A
 * link stays: then another program manages the table. */
static int
replace_table(const char *path, const struct buf *text, struct err *err)
{
	auto_free char *draft = xprintf("%s.new", path);
	auto_close int fd = -1;
	struct stat old;

	if (lstat(path, &old) != 0 || !S_ISREG(old.st_mode))
		return err_set(err, ERR_UNAVAILABLE, "%s is no file", path);
	fd = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
	    0600);
	if (fd < 0)
		return err_system(err, "%s", draft);
	if (fd_write_all(fd, buf_str(text), text->len, err) == 0 &&
	    fchown(fd, old.st_uid, old.st_gid) == 0 &&
	    fchmod(fd, old.st_mode & 0777) == 0 && fsync(fd) == 0 &&
	    rename(draft, path) == 0)
		return 0;
	(void)err_system(err, "write %s", path);
	(void)unlink(draft);
	return -1;
}

/* The table is read again, as the move may have taken hours, and other moves
 * may have changed it.  Comments at the head of the file stay. */
static int
give_slots(const struct mover *m, const bool gone[SLOTS], struct err *err)
{
	const char *path = m->n->config->nodes;
	auto_buf struct buf text = BUF_INIT(NODES_FILE_MAX);
	auto_node_table struct node_table *table = NULL;
	const struct node_entry *to;
	struct err none;
	const char *head;

	if (node_table_open(&table, m->n->config, err) != 0)
		return -1;
	to = node_table_named(table, m->to->name);
	if (to == NULL)
		return err_set(err, ERR_CONFIG, "%s has no line in %s any more",
		    m->to->name, path);
	(void)file_read(path, &text, &none);
	head = buf_str(&text);
	while (*head == '#' || *head == '\n') {
		head += strcspn(head, "\n");
		head += *head == '\n';
	}
	buf_cut(&text, (size_t)(head - buf_str(&text)));
	node_table_give(table, gone, to);
	node_table_print(table, &text);
	if (text.overflow)
		return err_set(err, ERR_LIMIT, "%s would be too long", path);
	if (replace_table(path, &text, err) == 0)
		printf("%s is new here; put it on the other nodes\n", path);
	else
		printf("%s: all nodes need this as their table, %s:\n%s",
		    err->text, path, buf_str(&text));
	return 0;
}

/* ---- the command ---- */

/* Slots that move must be ours, and may have gone nowhere else. */
static int
check_slots(const struct mover *m, const bool slots[SLOTS], struct err *err)
{
	char to[MOVES_NODE_MAX + 1];

	for (int slot = 0; slot < SLOTS; slot++) {
		const struct node_entry *owner;

		if (!slots[slot])
			continue;
		owner = node_table_owner(m->n->table, slot);
		if (owner != m->n->own)
			return err_set(err, ERR_CONFLICT,
			    "slot %d is %s's, not this host's (%s)", slot,
			    owner->name, m->n->own->name);
		switch (moves_find(m->n->db, slot, MOVES_ALL, to, err)) {
		case MOVE_UNKNOWN:
			return -1;
		case MOVE_GONE:
			if (strcmp(to, m->to->name) != 0)
				return err_set(err, ERR_CONFLICT,
				    "slot %d has gone to %s, and the table "
				    "does not say so yet",
				    slot, to);
			break;
		case MOVE_NONE:
		case MOVE_LEAVING:
		case MOVE_COME:
			break;
		}
	}
	return 0;
}

/* Move the slots one after another.  gone is right also after an error. */
static int
move_each(struct mover *m, const bool slots[SLOTS], bool gone[SLOTS],
    struct err *err)
{
	bool keeps = m->to == m->n->own;

	for (int slot = 0; slot < SLOTS; slot++) {
		int result;

		if (!slots[slot])
			continue;
		m->slot = slot;
		/* the slot may stay here after all: its people need not wait */
		result = keeps ? each_person(m, stay_person, err) :
				 move_slot(m, err);
		if (result < 0)
			return -1;
		gone[slot] = !keeps && result == 0;
		m->gone += gone[slot];
	}
	return 0;
}

static int
move_all(struct mover *m, const bool slots[SLOTS], struct err *err)
{
	bool gone[SLOTS] = { false };
	struct err why = { 0 };
	int result;

	if (check_slots(m, slots, err) != 0)
		return -1;
	result = move_each(m, slots, gone, err);
	printf("%" PRId64 " people are %s's now, %s; %" PRId64 " are not\n",
	    m->moved, m->to->name, text_size(m->bytes).text, m->stayed);
	if (m->gone > 0 && give_slots(m, gone, &why) != 0) {
		*err = why;
		return -1;
	}
	if (result != 0)
		return -1;
	return m->stayed > 0 ? CTL_FAILED : CTL_OK;
}

int
nodes_move(struct nodes *n, struct ctl *ctl, struct err *err)
{
	struct mover m = { .n = n };
	bool slots[SLOTS] = { false };
	const char *name = ctl_cut(ctl, "--to", 2);

	if (!ctl_cut_wait(ctl, &m.wait_ms) || name == NULL || ctl->argc == 2)
		return CTL_MISUSED;
	for (int i = 2; i < ctl->argc; i++)
		if (!slots_read(ctl->argv[i], slots))
			return CTL_MISUSED;
	m.to = node_table_named(n->table, name);
	if (m.to == NULL)
		return err_set(err, ERR_CONFIG, "%s has no line in %s", name,
		    n->config->nodes);
	return move_all(&m, slots, err);
}
