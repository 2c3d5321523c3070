/* SPDX-License-Identifier: MIT */
/*
 * The commands that work on the database: `ilctl migrate`, `expire`, and those
 * that list: `sandboxes`, `jobs`, `abuse`, `usage` and `slow`.  And rows, of
 * them and of other commands, as columns and as JSON.
 */
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/fd.h"
#include "base/text.h"
#include "ctl/ctl.h"
#include "migrations.h"
#include "protocol/lease.h"
#include "store/db.h"
#include "store/sandbox.h"

#define WAIT_SECONDS 60
#define CLEAN_MAX ((size_t)64 << 10)
#define ROWS_SHOWN 50
/* The broker ends the sandbox's cells first, which may take a while. */
#define REMOVE_MS 30000

int
ctl_fail(const char *command, const struct err *err)
{
	(void)fprintf(stderr, "ilctl %s: %s\n", command, err->text);
	return err->code == ERR_CONFIG ? CTL_CONFIG : CTL_FAILED;
}

char *
ctl_cut(struct ctl *ctl, const char *name, int count)
{
	for (int i = 1; i + count <= ctl->argc; i++) {
		char *last = ctl->argv[i + count - 1];

		if (strcmp(ctl->argv[i], name) != 0)
			continue;
		/* argv ends with NULL */
		memmove(&ctl->argv[i], &ctl->argv[i + count],
		    sizeof(*ctl->argv) * (size_t)(ctl->argc - i - count + 1));
		ctl->argc -= count;
		return last;
	}
	return NULL;
}

bool
ctl_cut_wait(struct ctl *ctl, int64_t *ms)
{
	const char *wait = ctl_cut(ctl, "-w", 2);
	int64_t seconds = WAIT_SECONDS;

	if (wait != NULL && !text_parse_int(wait, 0, 86400, &seconds))
		return false;
	*ms = seconds * 1000;
	return true;
}

/* ---- for programs ---- */

const char *
table_json_text(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

json_t *
table_text_to_json(const char *text)
{
	auto_buf struct buf clean = BUF_INIT(CLEAN_MAX);

	text_add_clean(&clean, text, strlen(text));
	return json_string(buf_str(&clean));
}

int
table_print_json(json_t *value)
{
	int code = value != NULL &&
		json_dumpf(value, stdout, JSON_COMPACT) == 0 ?
	    CTL_OK :
	    CTL_FAILED;

	printf("\n");
	json_decref(value);
	return code;
}

static json_t *
table_read_row(const struct stmt *s)
{
	json_t *row = json_object();
	const char *name;

	for (int i = 0; (name = db_column_name(s, i)) != NULL; i++)
		(void)json_object_set_new(row, name,
		    db_column_is_text(s, i) ?
			table_text_to_json(db_column_text(s, i)) :
			json_integer(db_column_int(s, i)));
	return row;
}

json_t *
table_read(struct db *db, struct stmt *s, struct err *err)
{
	json_t *rows = json_array();
	int result;

	while ((result = db_step(db, s, err)) == 1)
		(void)json_array_append_new(rows, table_read_row(s));
	if (result == 0)
		return rows;
	json_decref(rows);
	return NULL;
}

/* ---- for people ---- */

/* A number that is not known is negative; a time that is not, 0. */
static struct text_short
show_number(enum table_form form, int64_t n)
{
	struct text_short text = { "" };

	if (n < 0 || (n == 0 && form >= TABLE_TIME))
		(void)snprintf(text.text, sizeof(text.text), "%s",
		    n == 0 && form == TABLE_EXPIRY ? "never" :
			n < 0 && form <= TABLE_AGE ? "-" :
						     "");
	else if (form == TABLE_SIZE)
		text = text_size(n);
	else if (form == TABLE_AGE || form == TABLE_SECONDS)
		(void)snprintf(text.text, sizeof(text.text), "%.1f",
		    (double)n / 1e3);
	else if (form >= TABLE_TIME)
		text = text_time(form == TABLE_TIME_MS ? n / 1000 : n);
	else
		(void)snprintf(text.text, sizeof(text.text), "%" PRId64 "%s", n,
		    form == TABLE_MS ? " ms" : "");
	return text;
}

/* Numbers stand at the right.  The last column of a line has no blanks behind
 * it. */
static void
print_field(const struct table_column *c, const char *text)
{
	bool last = c[1].head == NULL;
	bool right = c->form >= TABLE_NUMBER && c->form <= TABLE_MS;

	printf("%*s%s",
	    right    ? c->width :
		last ? 0 :
		       -c->width,
	    text, last ? "\n" : "  ");
}

void
table_print_heads(const struct table_column *columns)
{
	for (const struct table_column *c = columns; c->head != NULL; c++)
		print_field(c, c->head);
}

void
table_print_row(const struct table_column *columns, const json_t *row)
{
	for (const struct table_column *c = columns; c->head != NULL; c++) {
		const json_t *value = json_object_get(row, c->key);

		print_field(c,
		    json_is_string(value) ?
			json_string_value(value) :
			show_number(c->form, json_integer_value(value)).text);
	}
}

/* ---- both ---- */

/* All rows of a statement to standard output, below a line of heads, or as one
 * JSON array.  -1 with err. */
static int
table_print(struct db *db, struct stmt *s, const struct table_column *columns,
    bool json, struct err *err)
{
	json_t *rows;
	int result;

	if (json) {
		rows = table_read(db, s, err);
		return rows != NULL ? table_print_json(rows) : -1;
	}
	table_print_heads(columns);
	while ((result = db_step(db, s, err)) == 1) {
		json_auto_t *row = table_read_row(s);

		table_print_row(columns, row);
	}
	return result;
}

/* ---- the schema ---- */

int
ctl_migrate_database(const struct config *config, struct err *err)
{
	auto_free char *copy = xstrdup(config->database);
	auto_db struct db *db = NULL;

	/* On a fresh machine its folder may be missing, too. */
	if (fd_make_dirs(dirname(copy), 0770, err) != 0)
		return -1;
	db = db_open(config->database, DB_ADMIN, err);
	return db != NULL ? db_migrate(db, err) : -1;
}

int
ctl_migrate(struct ctl *ctl, struct err *err)
{
	int applied = ctl_migrate_database(&ctl->config, err);

	if (applied < 0)
		return -1;
	printf("%s: version %d, %d migration%s applied\n", ctl->config.database,
	    migration_count, applied, applied == 1 ? "" : "s");
	return CTL_OK;
}

/* ---- lists ---- */

static const struct table_column sandboxes[] = {
	{ "ID", "id", TABLE_TEXT, 32 },
	{ "USER", "user", TABLE_TEXT, 20 },
	{ "STATE", "state", TABLE_TEXT, 8 },
	{ "USED (UTC)", "used_at", TABLE_TIME, 16 },
	{ "EXPIRES (UTC)", "expires_at", TABLE_EXPIRY, 16 },
	{ "SIZE", "bytes", TABLE_SIZE, 9 },
	{ "FILES", "files", TABLE_NUMBER, 6 },
	{ NULL, NULL, TABLE_TEXT, 0 },
};

static const struct table_column jobs[] = {
	{ "JOB", "id", TABLE_TEXT, 20 },
	{ "RECEIVED (UTC)", "received_ms", TABLE_TIME_MS, 16 },
	{ "USER", "user", TABLE_TEXT, 20 },
	{ "KIND", "kind", TABLE_TEXT, 12 },
	{ "STATE", "state", TABLE_TEXT, 13 },
	{ "TOOK", "took_ms", TABLE_MS, 12 },
	{ "OUTCOME", "outcome", TABLE_TEXT, 0 },
	{ NULL, NULL, TABLE_TEXT, 0 },
};

static const struct table_column abuse[] = {
	{ "JOB", "id", TABLE_TEXT, 20 },
	{ "RECEIVED (UTC)", "received_ms", TABLE_TIME_MS, 16 },
	{ "USER", "user", TABLE_TEXT, 20 },
	{ "GUILD", "guild", TABLE_TEXT, 20 },
	{ "KIND", "kind", TABLE_TEXT, 12 },
	{ "WALL s", "wall_ms", TABLE_SECONDS, 7 },
	{ "CPU s", "cpu_ms", TABLE_SECONDS, 7 },
	{ "STATE", "state", TABLE_TEXT, 13 },
	{ "OUTCOME", "outcome", TABLE_TEXT, 0 },
	{ NULL, NULL, TABLE_TEXT, 0 },
};

static const struct table_column usage[] = {
	{ "USER", "user", TABLE_TEXT, 20 },
	{ "SANDBOX", "sandbox", TABLE_TEXT, 32 },
	{ "SIZE", "bytes", TABLE_SIZE, 9 },
	{ "FILES", "files", TABLE_NUMBER, 6 },
	{ "COMMANDS", "commands", TABLE_NUMBER, 8 },
	{ "USED (UTC)", "used_at", TABLE_TIME, 16 },
	{ "EXPIRES (UTC)", "expires_at", TABLE_EXPIRY, 16 },
	{ NULL, NULL, TABLE_TEXT, 0 },
};

static const struct table_column slow[] = {
	{ "KIND", "kind", TABLE_TEXT, 12 },
	{ "STATE", "state", TABLE_TEXT, 13 },
	{ "JOBS", "jobs", TABLE_NUMBER, 8 },
	{ "RAN, MEAN", "ran_mean_ms", TABLE_MS, 12 },
	{ "TOLD, HALF", "told_p50_ms", TABLE_MS, 12 },
	{ "TOLD, 95 %", "told_p95_ms", TABLE_MS, 12 },
	{ "LONGEST", "told_max_ms", TABLE_MS, 12 },
	{ "OUTCOME", "outcome", TABLE_TEXT, 0 },
	{ NULL, NULL, TABLE_TEXT, 0 },
};

/* The options of a list, as getopt() takes them, are the parameters of its
 * statement, too.  hours: the age of its oldest row without -s. */
static const struct list {
	const char *name;
	const char *options;
	int64_t hours;
	enum statement statement;
	const struct table_column *columns;
} lists[] = {
	{ "sandboxes", "", 0, STATEMENT_LIST_SANDBOXES, sandboxes },
	{ "jobs", "un:", 0, STATEMENT_LIST_JOBS, jobs },
	{ "abuse", "u:g:s:n:", 30 * 24, STATEMENT_LIST_ABUSE, abuse },
	{ "usage", "s:n:", 7 * 24, STATEMENT_LIST_USAGE, usage },
	{ "slow", "s:", 1, STATEMENT_LIST_SLOW, slow },
};

/* Values of the options; 0 is all. */
struct filter {
	int64_t most;
	int64_t ago; /* seconds */
	int64_t user;
	int64_t guild;
	bool unfinished;
};

/* "90m", "12h", "7d": seconds. */
static bool
parse_ago(const char *word, int64_t *seconds)
{
	static const char units[] = "mhd";
	static const int64_t of[] = { 60, 3600, 86400 };
	size_t len = strlen(word);
	const char *unit = len > 1 ? strchr(units, word[len - 1]) : NULL;
	auto_free char *digits = xstrdup(word);

	if (unit == NULL)
		return false;
	digits[len - 1] = '\0';
	if (!text_parse_int(digits, 1, 100000, seconds))
		return false;
	*seconds *= of[unit - units];
	return true;
}

static bool
parse_filter(const struct ctl *ctl, const char *options, struct filter *f)
{
	int c;

	while ((c = getopt(ctl->argc, ctl->argv, options)) != -1) {
		bool good = c != '?';

		if (good && optarg == NULL) /* the only one of these */
			f->unfinished = true;
		else if (c == 'n')
			good = text_parse_int(optarg, 1, INT32_MAX, &f->most);
		else if (c == 's')
			good = parse_ago(optarg, &f->ago);
		else if (good)
			good = text_parse_snowflake(optarg,
			    c == 'u' ? &f->user : &f->guild);
		if (!good)
			return false;
	}
	return optind == ctl->argc;
}

static void
bind_filter(struct stmt *s, const char *options, const struct filter *f)
{
	if (strchr(options, 'n') != NULL)
		db_bind_int(s, ":most", f->most);
	if (strchr(options, 's') != NULL)
		db_bind_int(s, ":since_ms", clock_wall_ms() - f->ago * 1000);
	if (strchr(options, 'g') != NULL) {
		db_bind_int(s, ":user_id", f->user);
		db_bind_int(s, ":guild_id", f->guild);
	}
}

/* Rows of jobs hold no text that a user wrote. */
int
ctl_list(struct ctl *ctl, struct err *err)
{
	const struct list *list = lists;
	struct filter f = { .most = ROWS_SHOWN };
	auto_db struct db *db = NULL;
	struct stmt *s;

	while (strcmp(list->name, ctl->argv[0]) != 0)
		list++;
	f.ago = list->hours * 3600;
	if (!parse_filter(ctl, list->options, &f))
		return CTL_MISUSED;
	db = db_open(ctl->config.database, DB_READER, err);
	if (db == NULL)
		return -1;
	s = db_statement(db,
	    f.unfinished ? STATEMENT_LIST_JOBS_UNFINISHED : list->statement);
	bind_filter(s, list->options, &f);
	return table_print(db, s, list->columns, ctl->json, err) == 0 ?
	    CTL_OK :
	    err_wrap(err, "list %s", ctl->argv[0]);
}

/* ---- expiry ---- */

/*
 * Sandboxes that a worker would remove later are removed now.  They are marked
 * already.  A sandbox that cannot be removed stays marked, and a worker tries
 * again.
 */
static int
expire(struct db *db, const char *socket_path, int *failed, struct err *err)
{
	struct sandbox sandbox;
	int removed = 0;
	int result;

	/* Sandboxes that could not be removed before are tried again, too. */
	if (sandbox_retry(db, err) < 0)
		return -1;
	while ((result = sandbox_take_expired(db, &sandbox, err)) == 0) {
		enum refusal outcome = lease_command(NULL, socket_path,
		    &(struct lease_request){
			.kind = FRAME_REMOVE, .sandbox = sandbox.id },
		    REMOVE_MS, err);

		if (outcome != REFUSAL_NONE) {
			++*failed;
			(void)fprintf(stderr, "ilctl expire: sandbox %s: %s\n",
			    sandbox.id, err->text);
			if (outcome == REFUSAL_UNREACHABLE)
				break;
		} else if (sandbox_gone(db, sandbox.id, err) < 0) {
			++*failed;
			(void)fprintf(stderr, "ilctl expire: %s\n", err->text);
			break;
		} else {
			removed++;
			printf("removed %s of user %" PRId64 "\n", sandbox.id,
			    sandbox.user_id);
		}
	}
	return result < 0 ? -1 : removed;
}

int
ctl_expire(struct ctl *ctl, struct err *err)
{
	auto_free char *path = config_state_path(&ctl->config,
	    SOCKET_BROKER_CTL);
	auto_db struct db *db = db_open(ctl->config.database, DB_WORKER, err);
	int failed = 0;
	int removed = db != NULL ? expire(db, path, &failed, err) : -1;

	if (removed < 0)
		return -1;
	printf("%d removed, %d left for later\n", removed, failed);
	return failed == 0 ? CTL_OK : CTL_FAILED;
}
