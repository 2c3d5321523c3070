/* SPDX-License-Identifier: MIT */
#include "store/rule.h"

#include <string.h>

#include "base/basics.h"
#include "base/text.h"
#include "store/db.h"
#include "store/row.h"

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
rules_timeout(const struct rules *rules, int64_t usual_ms)
{
	for (int i = RULE_SERVICE; i < RULE_SUBJECTS; i++)
		if (rules->of[i].timeout_ms > 0)
			usual_ms = rules->of[i].timeout_ms;
	return usual_ms;
}

int64_t
rules_quota(const struct rules *rules, int64_t usual)
{
	for (int i = RULE_SERVICE; i < RULE_SUBJECTS; i++)
		if (rules->of[i].quota > 0)
			usual = rules->of[i].quota;
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
