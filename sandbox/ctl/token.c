/* SPDX-License-Identifier: MIT */
/*
 * For the HTTP APIs.  `ilctl token`: the file of the bearer tokens
 * (protocol/tokens.h), changed by hand.
 *
 * `ilctl packages`: packages that runs of the HTTP APIs can import besides
 * those in their image.  il-sandboxd owns them: it stages a copy for us, pip
 * changes the copy in a leased cell with network, and il-sandboxd publishes it.
 * When any step fails, the old packages stay.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/fd.h"
#include "base/text.h"
#include "ctl/ctl.h"
#include "protocol/cell.h"
#include "protocol/lease.h"
#include "protocol/tokens.h"

#define LIMIT_MAX 1000000

static int
token_list(const char *file, bool json, struct err *err)
{
	json_auto_t *rows = json_array();
	auto_tokens struct tokens tokens = { 0 };

	if (tokens_open(&tokens, file, err) < 0)
		return -1;
	for (size_t i = 0; i < tokens.count; i++) {
		const struct token *t = &tokens.items[i];

		(void)json_array_append_new(rows,
		    json_pack("{s:s, s:I, s:I, s:I}", "name", t->name,
			"created_at", (json_int_t)t->created_s, "cells",
			(json_int_t)t->cells, "rate", (json_int_t)t->rate));
		if (json)
			continue;
		printf("%s  cells=%" PRId64 " rate=%" PRId64 "  %s\n",
		    text_time(t->created_s).text, t->cells, t->rate, t->name);
	}
	return json ? table_print_json(json_incref(rows)) : CTL_OK;
}

/* Of a token's limits, -1: nothing was said. */
static int
token_change(const char *file, const char *verb, const char *name,
    int64_t cells, int64_t rate, struct err *err)
{
	char text[TOKENS_TEXT_LEN + 1];

	if (strcmp(verb, "add") == 0) {
		if (tokens_add(file, name, cells < 0 ? 0 : cells,
			rate < 0 ? 0 : rate, text, err) < 0)
			return -1;
		/* The token itself goes to standard output, everything about
		 * it to standard error. */
		(void)fprintf(stderr,
		    "The token of %s, which is shown only now:\n", name);
		printf("%s\n", text);
	} else if (strcmp(verb, "set") == 0 && (cells >= 0 || rate >= 0)) {
		if (tokens_set(file, name, cells, rate, err) < 0)
			return -1;
		printf("changed %s\n", name);
	} else if (strcmp(verb, "revoke") == 0) {
		if (tokens_revoke(file, name, err) < 0)
			return -1;
		printf("revoked %s\n", name);
	} else {
		return CTL_MISUSED;
	}
	return CTL_OK;
}

/* The options of all verbs; each takes what it needs. */
int
ctl_token(struct ctl *ctl, struct err *err)
{
	const char *file = NULL;
	int64_t cells = -1;
	int64_t rate = -1;
	char **words;
	int c;

	while ((c = getopt(ctl->argc, ctl->argv, "f:c:r:")) != -1) {
		if (c == 'f')
			file = optarg;
		else if ((c != 'c' && c != 'r') ||
		    !text_parse_int(optarg, 0, LIMIT_MAX,
			c == 'c' ? &cells : &rate))
			return CTL_MISUSED;
	}
	words = ctl->argv + optind;
	if (file == NULL || words[0] == NULL)
		return CTL_MISUSED;
	if (strcmp(words[0], "list") == 0 && words[1] == NULL)
		return token_list(file, ctl->json, err);
	if (ctl->json || words[1] == NULL || words[2] != NULL)
		return CTL_MISUSED;
	return token_change(file, words[0], words[1], cells, rate, err);
}

#define WAIT_MS 60000 /* for the broker, and a place for the cell */
#define MORE_MS 10000 /* over the time that pip has */
#define LOG_MAX (4 * 1024 * 1024)
#define NAMES_MAX 64
#define LIST_MAX 8192 /* of a frame */

struct change {
	const struct config *config;
	char *socket;
	const char *image; /* NULL: the first of SANDBOX_IMAGES */
	const char *words[NAMES_MAX + 1];
	size_t count;
};

/* pip's log comes from a cell: it may move no cursor and name no title. */
static void
print_log(const unsigned char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		int c = data[i];

		(void)fputc(c == '\n' || c == '\t' || (c >= ' ' && c != 0x7f) ?
			c :
			'?',
		    stderr);
	}
}

/* Send one request and print its log up to its end. */
static int
packages_perform(struct cell *cell, const struct cell_request *request,
    int64_t ms, struct err *err)
{
	int64_t deadline = clock_monotonic_ms() + ms;
	struct cell_event event;

	if (cell_send(cell, request, WAIT_MS, err) != 0)
		return -1;
	do {
		if (cell_next(cell, &event, deadline, err) != 0)
			return -1;
		if (event.kind == CELL_OUTPUT)
			print_log(event.data, event.len);
	} while (event.kind != CELL_RESULT && event.kind != CELL_QUIET);
	if (event.kind == CELL_QUIET || event.result.reason == REASON_TIME)
		return err_set(err, ERR_TIMEOUT,
		    "it takes longer than IL_PIP_TIMEOUT_SECONDS");
	if (event.result.reason == REASON_ERROR)
		return err_set(err, ERR_INPUT, "%s", event.result.error_text);
	if (event.result.reason != REASON_EXIT || event.result.status != 0)
		return err_set(err, ERR_SYSTEM, "pip has failed");
	return 0;
}

/* Change packages in the cell that has been leased: all that are added come
 * together, each that is removed goes alone. */
static int
change_in(struct cell *cell, const struct change *change, bool add,
    struct err *err)
{
	struct cell_request request = { .op = OP_PIP,
		.args = change->words,
		.wall_ms = change->config->pip_timeout_ms,
		.output_max = LOG_MAX };

	if (add)
		return packages_perform(cell, &request,
		    request.wall_ms + MORE_MS, err);
	for (size_t i = 0; i < change->count; i++) {
		request = (struct cell_request){ .op = OP_UNINSTALL,
			.name = change->words[i] };
		if (packages_perform(cell, &request, WAIT_MS, err) != 0)
			return err_wrap(err, "%s", change->words[i]);
	}
	return 0;
}

/* The same in a cell that is leased for it, on the staged copy. */
static int
change_staged(const struct change *change, bool add, struct err *err)
{
	const struct lease_request request = { .class = "install",
		.sandbox = LEASE_API_PACKAGES,
		.interpreter = change->image,
		.lease_ms = change->config->pip_timeout_ms + WAIT_MS,
		.access = add ? ACCESS_WRITE : ACCESS_TIDY };
	struct lease lease;
	struct cell cell;
	int rc;

	if (lease_open(&lease, change->socket, &request, WAIT_MS, err) !=
	    REFUSAL_NONE)
		return -1;
	cell_init(&cell, lease.cell_fd);
	rc = change_in(&cell, change, add, err);
	lease_close(&lease);
	return rc;
}

/* A command for the packages of that interpreter. */
static bool
packages_command(int *fd, const struct change *change, enum frame_kind kind,
    struct err *err)
{
	return lease_command(fd, change->socket,
		   &(struct lease_request){
		       .kind = kind, .interpreter = change->image },
		   WAIT_MS, err) == REFUSAL_NONE;
}

static int
change_packages(const struct change *change, bool add, struct err *err)
{
	auto_close int staged = -1;

	if (!packages_command(&staged, change, FRAME_STAGE, err) ||
	    change_staged(change, add, err) != 0 ||
	    !packages_command(NULL, change, FRAME_PUBLISH, err))
		return -1;
	(void)fprintf(stderr, "runs that begin from now on see the change\n");
	return CTL_OK;
}

/* "name-version" of each line. */
static void
packages_parse(json_t *rows, char *text)
{
	char *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line != NULL;
	     line = strtok_r(NULL, "\n", &rest)) {
		char *dash = strrchr(line, '-');

		if (dash != NULL)
			*dash = '\0';
		(void)json_array_append_new(rows,
		    json_pack("{s:o, s:o}", "name", table_text_to_json(line),
			"version",
			table_text_to_json(dash != NULL ? dash + 1 : "")));
	}
}

static int
list_packages(const struct change *change, bool json, struct err *err)
{
	json_auto_t *rows = json_array();
	auto_close int fd = -1;
	unsigned char packet[LIST_MAX];
	char text[LIST_MAX];
	struct frame_view view;
	json_t *row;
	ssize_t len;
	size_t i;

	if (!packages_command(&fd, change, FRAME_PACKAGES, err))
		return -1;
	while ((len = fd_receive_packet(fd, packet, sizeof(packet), NULL,
		    WAIT_MS, err)) > 0) {
		if (!frame_parse(&view, packet, (size_t)len) ||
		    !frame_get_text(&view, TAG_TEXT, text, sizeof(text)))
			return err_set(err, ERR_PROTOCOL,
			    "the broker speaks nonsense");
		packages_parse(rows, text);
	}
	if (len < 0)
		return -1;
	if (json)
		return table_print_json(json_incref(rows));
	json_array_foreach(rows, i, row)
		printf("%s %s\n", table_json_text(row, "name"),
		    table_json_text(row, "version"));
	if (i == 0)
		puts("none");
	return CTL_OK;
}

static bool
packages_read_names(struct change *change, int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		if (argv[i][0] == '-' || change->count == NAMES_MAX)
			return false;
		change->words[change->count++] = argv[i];
	}
	return true;
}

int
ctl_packages(struct ctl *ctl, struct err *err)
{
	struct change change = { .config = &ctl->config,
		.image = ctl_cut(ctl, "--image", 2) };
	const char *verb = ctl->argc > 1 ? ctl->argv[1] : "";
	auto_free char *path = config_state_path(&ctl->config,
	    SOCKET_BROKER_CTL);
	bool add = strcmp(verb, "add") == 0;
	bool list = strcmp(verb, "list") == 0;

	change.socket = path;
	if ((!add && !list && strcmp(verb, "remove") != 0) ||
	    !packages_read_names(&change, ctl->argc, ctl->argv) ||
	    list != (change.count == 0) || (ctl->json && !list))
		return CTL_MISUSED;
	return list ? list_packages(&change, ctl->json, err) :
		      change_packages(&change, add, err);
}
