/* SPDX-License-Identifier: MIT */
#include "store/sandbox.h"

#include <string.h>

#include <jansson.h>

#include "base/basics.h"
#include "base/text.h"
#include "base/utf8.h"
#include "store/db.h"
#include "store/row.h"

/* A sweeper that has not reported back after this long is taken for dead. */
#define SWEEP_RETRY_SECONDS 60

const char *const sandbox_states[] = {
	[SANDBOX_ACTIVE] = "active",
	[SANDBOX_EXPIRING] = "expiring",
	[SANDBOX_EXPIRED] = "expired",
	[SANDBOX_REMOVING] = "removing",
	NULL,
};

#define OF_SANDBOX(member) ROW_FIELD(struct sandbox, member)

static const struct row_field sandbox_fields[] = { OF_SANDBOX(id),
	OF_SANDBOX(user_id), OF_SANDBOX(cwd), OF_SANDBOX(used_at),
	OF_SANDBOX(expires_at), OF_SANDBOX(pinned), OF_SANDBOX(used_bytes),
	OF_SANDBOX(used_files), OF_SANDBOX(named_files), ROW_END };

/* Read the one row of a statement, which is then stepped to its end.  1: there
 * is none. */
static int
sandbox_read(struct db *db, struct stmt *s, struct sandbox *sandbox,
    struct err *err)
{
	int result = db_first(db, s, err);

	if (result != 0)
		return result;
	*sandbox = (struct sandbox){
		.state = (enum sandbox_state)db_column_word(s,
		    row_column(s, "state"), sandbox_states)
	};
	row_read(s, sandbox_fields, sandbox);
	return db_step(db, s, err);
}

int
sandbox_find(struct db *db, int64_t user_id, struct sandbox *sandbox,
    struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_SANDBOX_FIND,
	    DB_VALUES(BIND(":user_id", user_id)));

	return sandbox_read(db, s, sandbox, err);
}

/* The new row replaces the user's expired rows. */
static int
sandbox_insert(struct db *db, int64_t user_id, int64_t retention_seconds,
    struct err *err)
{
	char id[SANDBOX_ID_LEN + 1];
	int64_t now = clock_wall_ms() / 1000;

	if (db_change(db, STATEMENT_SANDBOX_FORGET_EXPIRED,
		DB_VALUES(BIND(":user_id", user_id)), err) < 0)
		return -1;
	text_random_hex(id, SANDBOX_ID_LEN);
	return db_change_one(db, STATEMENT_SANDBOX_INSERT,
	    DB_VALUES(BIND(":id", id), BIND(":user_id", user_id),
		BIND(":now", now),
		BIND(":expires_at", now + retention_seconds)),
	    err);
}

int
sandbox_create(struct db *db, int64_t user_id, int64_t retention_seconds,
    struct sandbox *sandbox, bool *created, struct err *err)
{
	int result;

	if (db_begin(db, err) != 0)
		return -1;
	result = sandbox_find(db, user_id, sandbox, err);
	*created = result == 1 ||
	    (result == 0 && sandbox->state != SANDBOX_ACTIVE);
	if (*created) {
		result = sandbox_insert(db, user_id, retention_seconds, err);
		if (result == 0)
			result = sandbox_find(db, user_id, sandbox, err);
		if (result == 1)
			result = err_set(err, ERR_SYSTEM,
			    "a new sandbox is not there");
	}
	return db_end(db, result, err) == 0 ? 0 : -1;
}

int
sandbox_give_up(struct db *db, int64_t user_id, struct err *err)
{
	return db_change_one(db, STATEMENT_SANDBOX_GIVE_UP,
	    DB_VALUES(BIND(":user_id", user_id),
		BIND(":now", clock_wall_ms() / 1000)),
	    err);
}

bool
sandbox_is_usable(const struct sandbox *sandbox)
{
	return sandbox->state == SANDBOX_ACTIVE &&
	    (sandbox->pinned || sandbox->expires_at > clock_wall_ms() / 1000);
}

int
sandbox_touch(struct db *db, const char *id, int64_t retention_seconds,
    struct err *err)
{
	int64_t now = clock_wall_ms() / 1000;

	return db_change_quick(db, STATEMENT_SANDBOX_TOUCH,
	    DB_VALUES(BIND(":now", now),
		BIND(":expires_at", now + retention_seconds), BIND(":id", id)),
	    err);
}

int
sandbox_set_cwd(struct db *db, const char *id, const char *cwd, struct err *err)
{
	return db_change_quick(db, STATEMENT_SANDBOX_SET_CWD,
	    DB_VALUES(BIND(":cwd", cwd), BIND(":id", id)), err);
}

int
sandbox_set_usage(struct db *db, const char *id, int64_t bytes, int64_t files,
    bool renamed, struct err *err)
{
	return db_change_quick(db, STATEMENT_SANDBOX_SET_USAGE,
	    DB_VALUES(BIND(":bytes", bytes), BIND(":files", files),
		BIND(":named", renamed ? -1 : INT64_MAX), BIND(":id", id)),
	    err);
}

int
sandbox_take_expired(struct db *db, struct sandbox *sandbox, struct err *err)
{
	int64_t now = clock_wall_ms() / 1000;
	auto_stmt struct stmt *active = db_bound(db,
	    STATEMENT_SANDBOX_TAKE_ACTIVE, DB_VALUES(BIND(":now", now)));
	auto_stmt struct stmt *left = db_bound(db, STATEMENT_SANDBOX_TAKE_LEFT,
	    DB_VALUES(BIND(":now", now),
		BIND(":before", now - SWEEP_RETRY_SECONDS)));
	int result = sandbox_read(db, active, sandbox, err);

	return result == 1 ? sandbox_read(db, left, sandbox, err) : result;
}

int
sandbox_retry(struct db *db, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_SANDBOX_RETRY);

	return db_run(db, s, err);
}

int
sandbox_gone(struct db *db, const char *id, struct err *err)
{
	const struct db_value *values = DB_VALUES(BIND(":id", id));
	int result;

	/* The sandbox is not active, so no name can be kept any more. */
	if (db_change_quick(db, STATEMENT_NAMES_FORGET,
		DB_VALUES(BIND(":sandbox_id", id)), err) < 0)
		return -1;
	result = db_change_one(db, STATEMENT_SANDBOX_GONE_DELETE, values, err);
	return result == 1 ?
	    db_change_one(db, STATEMENT_SANDBOX_GONE_EXPIRE, values, err) :
	    result;
}

int
sandbox_remove(struct db *db, const char *id, struct err *err)
{
	return db_change_one(db, STATEMENT_SANDBOX_REMOVE,
	    DB_VALUES(BIND(":now", clock_wall_ms() / 1000), BIND(":id", id)),
	    err);
}

int64_t
sandbox_next_expiry(struct db *db, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db,
	    STATEMENT_SANDBOX_NEXT_EXPIRY);
	int64_t left;

	if (db_step(db, s, err) != 1)
		return -1;
	left = db_column_int(s, 0) - clock_wall_ms() / 1000;
	return left > 0 ? left : 1;
}

int
sandbox_count(struct db *db, struct sandbox_counts *counts, struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_SANDBOX_COUNT,
	    DB_VALUES(BIND(":now", clock_wall_ms() / 1000)));

	if (db_step(db, s, err) != 1)
		return -1;
	*counts = (struct sandbox_counts){
		.active = db_column_int(s, 0),
		.overdue = db_column_int(s, 1),
		.expiring = db_column_int(s, 2),
		.removing = db_column_int(s, 3),
	};
	return 0;
}

/* ---- sessions ---- */

#define OF_SESSION(member) ROW_FIELD(struct session, member)

static const struct row_field session_fields[] = { OF_SESSION(started_at),
	OF_SESSION(kept_at), OF_SESSION(ended), OF_SESSION(names),
	OF_SESSION(bytes), ROW_END };

int
session_find(struct db *db, const char *sandbox, struct session *session,
    struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_SESSION_FIND,
	    DB_VALUES(BIND(":sandbox", sandbox)));
	int row = db_step(db, s, err);

	*session = (struct session){ 0 };
	if (row == 1)
		row_read(s, session_fields, session);
	return row < 0 ? -1 : 0;
}

int
session_put(struct db *db, const char *sandbox, const struct session *session,
    struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_SESSION_PUT,
	    DB_VALUES(BIND(":sandbox", sandbox)));

	row_bind(s, session_fields, session);
	/* A power cut ends the interpreter, too. */
	return db_run_quick(db, s, err) < 0 ? -1 : 0;
}

/* ---- names in a sandbox ---- */

static const char *const name_kinds[NAME_KINDS] = {
	[NAME_DIRECTORY] = "directory",
	[NAME_FILE] = "file",
	[NAME_PACKAGE] = "package",
};

bool
name_is_fit(const char *text, size_t len)
{
	auto_buf struct buf clean = BUF_INIT(3 * NAMES_BYTES);
	const char *last = text + len;

	if (len == 0 || len > NAMES_BYTES || !utf8_valid(text, len))
		return false;
	text_add_clean(&clean, text, len);
	if (clean.len != len || memcmp(clean.data, text, len) != 0 ||
	    memchr(text, '\n', len) != NULL || memchr(text, '\t', len) != NULL)
		return false;
	do
		last--;
	while (utf8_is_tail(*last));
	return !utf8_is_blank(utf8_decode(text, utf8_step(text, len))) &&
	    !utf8_is_blank(utf8_decode(last, (size_t)(text + len - last)));
}

/* Replace the stored names of a kind: only the difference is written. */
static int
names_keep_kind(struct db *db, const char *sandbox_id, const char *python,
    enum name_kind kind, const struct name *list, size_t count, struct err *err)
{
	json_auto_t *names = json_array();
	auto_free char *text = NULL;
	const struct db_value *values;

	for (size_t i = 0; i < count; i++)
		if (list[i].kind == kind)
			(void)json_array_append_new(names,
			    json_string(list[i].text));
	text = json_dumps(names, JSON_COMPACT);
	values = DB_VALUES(BIND(":sandbox_id", sandbox_id),
	    BIND(":kind", name_kinds[kind]), BIND(":python", python),
	    BIND(":names", text));
	if (db_change_any(db, STATEMENT_NAMES_DROP, values, err) != 0)
		return -1;
	return db_change_any(db, STATEMENT_NAMES_ADD, values, err);
}

int
names_keep(struct db *db, const char *sandbox_id, const char *python,
    int64_t files, const struct name *list, size_t count, struct err *err)
{
	enum name_kind kind = files < 0 ? NAME_PACKAGE : NAME_DIRECTORY;
	enum name_kind last = files < 0 ? NAME_PACKAGE : NAME_FILE;
	int result;

	if (count > NAMES_MOST)
		count = NAMES_MOST;
	/* A power cut brings the suggestions of before back, at worst. */
	db_lasting(db, false);
	result = db_begin(db, err);
	if (result == 0) {
		/* In the transaction: the sandbox must not go meanwhile. */
		result = db_change_one(db, STATEMENT_NAMES_TAKEN,
		    DB_VALUES(BIND(":sandbox_id", sandbox_id),
			BIND(":files", files)),
		    err);
		for (; result == 0 && kind <= last; kind++)
			result = names_keep_kind(db, sandbox_id, python, kind,
			    list, count, err);
		result = db_end(db, result, err);
	}
	db_lasting(db, true);
	return result;
}

/* ---- rules of the operator ---- */

const char *const rule_subjects[] = {
	[RULE_SERVICE] = "service",
	[RULE_GUILD] = "guild",
	[RULE_USER] = "user",
	NULL,
};

/* As much of it as there is room for: an operator's shell may have written
 * anything that the CHECKs allow. */
static void
rule_read_text(struct stmt *s, int column, char *text)
{
	const char *found = db_column_text(s, column);
	size_t len = text_prefix(found, strlen(found), RULE_TEXT_MOST);

	if (len >= RULE_TEXT_SIZE)
		len = RULE_TEXT_SIZE - 1;
	memcpy(text, found, len);
	text[len] = '\0';
}

#define OF_RULE(member) ROW_FIELD(struct rule, member)

/* NULL is 0. */
static const struct row_field rule_fields[] = { OF_RULE(blocked), OF_RULE(rate),
	OF_RULE(jobs), OF_RULE(timeout_ms), OF_RULE(quota), OF_RULE(changed_at),
	ROW_END };

static void
rule_read(struct stmt *s, struct rule *rule)
{
	row_read(s, rule_fields, rule);
	rule_read_text(s, row_column(s, "reason"), rule->reason);
	rule_read_text(s, row_column(s, "banner"), rule->banner);
}

int
rules_find(struct db *db, int64_t user_id, int64_t guild_id,
    struct rules *rules, struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_RULE_FIND,
	    DB_VALUES(BIND(":user_id", user_id), BIND(":guild_id", guild_id)));
	int row;

	memset(rules, 0, sizeof(*rules));
	while ((row = db_step(db, s, err)) == 1)
		rule_read(s, &rules->of[db_column_word(s, 0, rule_subjects)]);
	return row;
}

int64_t
rules_number(const struct rules *rules, size_t at, int64_t usual)
{
	for (int i = RULE_SERVICE; i < RULE_SUBJECTS; i++) {
		const char *rule = (const char *)&rules->of[i];
		int64_t own = *(const int64_t *)(rule + at);

		if (own > 0)
			usual = own;
	}
	return usual;
}

void
rule_add_text(struct buf *out, const char *text)
{
	size_t len = strlen(text);
	auto_buf struct buf clean = BUF_INIT(3 * len + 1);
	size_t shown;

	text_add_clean(&clean, text, len);
	shown = text_prefix(buf_str(&clean), clean.len, RULE_TEXT_MOST);
	buf_adds(out, "\n> ");
	for (size_t i = 0; i < shown; i++) {
		char c = clean.data[i];

		buf_addc(out,
		    c == '`'		       ? '\'' :
			c == '\n' || c == '\t' ? ' ' :
						 c);
	}
}

int
rule_put(struct db *db, enum rule_subject subject, int64_t id,
    const struct rule *rule, struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_RULE_PUT,
	    DB_VALUES(BIND(":subject", rule_subjects[subject]), BIND(":id", id),
		BIND(":reason", rule->reason), BIND(":banner", rule->banner),
		BIND(":now", clock_wall_ms() / 1000)));

	row_bind(s, rule_fields, rule);
	if (db_run(db, s, err) < 0)
		return -1;
	return db_change_any(db, STATEMENT_RULE_TIDY,
	    DB_VALUES(BIND(":subject", rule_subjects[subject]),
		BIND(":id", id)),
	    err);
}
