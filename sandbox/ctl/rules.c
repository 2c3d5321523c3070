/* SPDX-License-Identifier: MIT */
/*
 * `ilctl user`, `guild` and `service`: the operator's rules for a person, for a
 * server, for all (store/sandbox.h).  The front and the workers obey them with
 * the next command; running commands are cancelled as their owner would do it.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/basics.h"
#include "base/text.h"
#include "base/utf8.h"
#include "ctl/ctl.h"
#include "protocol/handover.h"
#include "store/db.h"
#include "store/sandbox.h"

#define TIMEOUT_LEAST 100 /* as IL_TIMEOUT_SECONDS, in milliseconds */
#define TIMEOUT_MOST (600 * 1000)
#define QUOTA_LEAST ((int64_t)4 << 20) /* as IL_QUOTA */
#define QUOTA_MOST ((int64_t)1 << 40)
#define COUNT_MOST 1000000

/* The subject of the command, and its rule. */
struct target {
	const struct config *config;
	enum rule_subject subject;
	int64_t ids[RULE_SUBJECTS]; /* the subject's; 0: nobody's */
	struct db *db;
	struct rule rule;
	bool changed; /* the rule is to be written */
	bool json;
	bool cancel; /* then cancel the unfinished jobs */
	int argc;    /* of the arguments behind the verb */
	char **argv;
};

/* ---- the database ---- */

static void
bind_who(const struct target *t, struct stmt *s)
{
	db_bind_int(s, ":user_id", t->ids[RULE_USER]);
	db_bind_int(s, ":guild_id", t->ids[RULE_GUILD]);
}

static int
rules_read(struct target *t, struct err *err)
{
	struct rules rules;

	if (rules_find(t->db, t->ids[RULE_USER], t->ids[RULE_GUILD], &rules,
		err) != 0)
		return -1;
	t->rule = rules.of[t->subject];
	return 0;
}

/* ---- showing ---- */

static void
show_limits(const struct target *t)
{
	const struct rule *rule = &t->rule;
	auto_free char *rate = rule->rate > 0 ?
	    xprintf("%" PRId64 " commands in 60 s", rule->rate) :
	    t->ids[RULE_USER] == 0 ?
	    xstrdup("no limit") :
	    xprintf("%" PRId64 " commands in 60 s (IL_USER_RATE)",
		t->config->user_rate);
	auto_free char *jobs = rule->jobs > 0 ?
	    xprintf("%" PRId64 " at one time", rule->jobs) :
	    xstrdup(t->subject == RULE_SERVICE ? "IL_TUNE_QUEUE_MAX" :
						 "no limit of its own");
	auto_free char *timeout = rule->timeout_ms > 0 ?
	    xprintf("%.1f s", (double)rule->timeout_ms / 1e3) :
	    xstrdup("as usual");

	printf("%-10s %s\n%-10s %s\n%-10s %s\n%-10s %s\n", "rate", rate, "jobs",
	    jobs, "timeout", timeout, "quota",
	    rule->quota > 0 ? text_size(rule->quota).text : "as usual");
}

/* Bytes of the disk that a sandbox's images take; -1: we may not read them. */
static int64_t
disk_of(const struct config *config, const char *sandbox)
{
	auto_free char *folder = xprintf("%s/%s", config->base_dir, sandbox);
	auto_dir DIR *dir = opendir(folder);
	const struct dirent *entry;
	int64_t bytes = 0;
	struct stat st;

	if (dir == NULL)
		return -1;
	while ((entry = readdir(dir)) != NULL)
		if (fstatat(dirfd(dir), entry->d_name, &st,
			AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode))
			bytes += (int64_t)st.st_blocks * 512;
	return bytes;
}

static int
show_sandboxes(const struct target *t, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(t->db,
	    STATEMENT_LIST_SANDBOXES_OF);
	auto_free char *where = NULL;
	int row;

	json_decref(nodes_find_person(t->config, t->ids[RULE_USER], &where));
	printf("%-10s %s\n", "slot", where);
	db_bind_int(s, ":user_id", t->ids[RULE_USER]);
	while ((row = db_step(t->db, s, err)) == 1) {
		const char *id = db_column_text(s, 0);
		int64_t disk = disk_of(t->config, id);

		printf("%-10s %s %s, used %s UTC, expires %s%s\n", "sandbox",
		    id, db_column_text(s, 1),
		    text_time(db_column_int(s, 2)).text,
		    db_column_int(s, 4) != 0 ?
			"never" :
			text_time(db_column_int(s, 3)).text,
		    db_column_int(s, 4) != 0 ? "" : " UTC");
		printf("%-10s %s in %" PRId64 " files", "",
		    text_size(db_column_int(s, 5)).text, db_column_int(s, 6));
		if (disk >= 0)
			printf("; %s of the disk", text_size(disk).text);
		printf("\n");
	}
	return row;
}

static int
show_jobs(const struct target *t, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(t->db, STATEMENT_LIST_STATES);
	int64_t last_ms = 0;
	int64_t cpu_ms = 0;
	int row;

	bind_who(t, s);
	printf("%-10s", "jobs");
	while ((row = db_step(t->db, s, err)) == 1) {
		printf(" %s %" PRId64 ",", db_column_text(s, 0),
		    db_column_int(s, 1));
		cpu_ms += db_column_int(s, 2);
		if (db_column_int(s, 3) > last_ms)
			last_ms = db_column_int(s, 3);
	}
	printf(" %.1f s of processor time\n", (double)cpu_ms / 1e3);
	if (last_ms > 0)
		printf("%-10s %s UTC\n", "last use",
		    text_time(last_ms / 1000).text);
	return row;
}

/* A limit of 0 is that of the settings. */
static int
rules_print_json(const struct target *t, struct err *err)
{
	auto_stmt struct stmt *of = db_statement(t->db,
	    STATEMENT_LIST_SANDBOXES_OF);
	auto_stmt struct stmt *states = db_statement(t->db,
	    STATEMENT_LIST_STATES);
	auto_free char *id = xprintf("%" PRId64, t->ids[t->subject]);
	auto_free char *where = NULL;
	const struct rule *rule = &t->rule;
	json_t *rows[2];
	json_t *all;

	db_bind_int(of, ":user_id", t->ids[RULE_USER]);
	bind_who(t, states);
	rows[0] = table_read(t->db, of, err);
	rows[1] = rows[0] != NULL ? table_read(t->db, states, err) : NULL;
	if (rows[1] == NULL) {
		json_decref(rows[0]);
		return -1;
	}
	all =
	    json_pack("{s:s, s:b, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:o}",
		"id", id, "blocked", rule->blocked, "reason",
		table_text_to_json(rule->reason), "banner",
		table_text_to_json(rule->banner), "rate",
		(json_int_t)rule->rate, "jobs_at_once", (json_int_t)rule->jobs,
		"timeout_ms", (json_int_t)rule->timeout_ms, "quota",
		(json_int_t)rule->quota, "changed_at",
		(json_int_t)rule->changed_at, "sandboxes", rows[0], "jobs",
		rows[1]);
	if (t->ids[RULE_USER] != 0)
		(void)json_object_update_new(all,
		    nodes_find_person(t->config, t->ids[RULE_USER], &where));
	return table_print_json(all);
}

static int
verb_show(struct target *t, struct err *err)
{
	const struct rule *rule = &t->rule;
	auto_buf struct buf reason = BUF_INIT(4 * RULE_TEXT_SIZE);

	if (t->argc != 0)
		return CTL_MISUSED;
	if (t->json)
		return rules_print_json(t, err);
	rule_add_text(&reason, rule->reason);
	printf("%-10s %s%s%s\n",
	    t->subject == RULE_SERVICE ? "paused" : "blocked",
	    rule->blocked ? "yes" : "no", rule->reason[0] != '\0' ? ": " : "",
	    rule->reason[0] != '\0' ? buf_str(&reason) + 3 : "");
	if (rule->banner[0] != '\0') {
		buf_cut(&reason, 0);
		rule_add_text(&reason, rule->banner);
		printf("%-10s %s\n", "banner", buf_str(&reason) + 3);
	}
	show_limits(t);
	if (rule->changed_at > 0)
		printf("%-10s %s UTC\n", "said",
		    text_time(rule->changed_at).text);
	if (t->ids[RULE_USER] != 0 && show_sandboxes(t, err) != 0)
		return -1;
	return show_jobs(t, err);
}

/* ---- changing ---- */

/* Join the rest of the line to one text for people. */
static int
rules_read_text(const struct target *t, char text[RULE_TEXT_SIZE],
    struct err *err)
{
	auto_buf struct buf words = BUF_INIT(RULE_TEXT_SIZE);
	const char *s;
	bool odd = false;

	for (int i = 0; i < t->argc; i++) {
		if (i > 0)
			buf_addc(&words, ' ');
		buf_adds(&words, t->argv[i]);
	}
	s = buf_str(&words);
	for (size_t i = 0; i < words.len; i++)
		odd = odd || (unsigned char)s[i] < ' ' || s[i] == 0x7f;
	if (odd || words.overflow || !utf8_valid(s, words.len) ||
	    text_codepoints(s, words.len) > RULE_TEXT_MOST)
		return err_set(err, ERR_INPUT,
		    "the text must be one line of %d characters at most",
		    RULE_TEXT_MOST);
	memcpy(text, s, words.len + 1);
	return 0;
}

/* Have all unfinished jobs cancelled: workers hear of it at once. */
static int
rules_cancel_all(const struct target *t, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(t->db, STATEMENT_LIST_OPEN);
	int row;

	bind_who(t, s);
	while ((row = db_step(t->db, s, err)) == 1) {
		int64_t id = db_column_int(s, 0);

		if (cancel_ask(t->config, id, err) != 0)
			return -1;
		printf("cancelled job %" PRId64 " (%s)\n", id,
		    db_column_text(s, 1));
	}
	return row;
}

static int
verb_cancel(struct target *t, struct err *err)
{
	if (t->argc != 0)
		return CTL_MISUSED;
	return rules_cancel_all(t, err);
}

/* Jobs are cancelled after the block is written.  A worker that claims a job
 * which il-fcgi accepted a moment before obeys the block as well. */
static int
verb_block(struct target *t, struct err *err)
{
	t->cancel = t->argc > 0 && strcmp(t->argv[0], "-c") == 0;
	t->argc -= t->cancel;
	t->argv += t->cancel;
	t->changed = t->rule.blocked = true;
	return rules_read_text(t, t->rule.reason, err);
}

static int
verb_unblock(struct target *t, struct err *err)
{
	(void)err;
	if (t->argc != 0)
		return CTL_MISUSED;
	t->changed = true;
	t->rule.blocked = false;
	t->rule.reason[0] = '\0';
	return CTL_OK;
}

static int
verb_banner(struct target *t, struct err *err)
{
	t->changed = true;
	return rules_read_text(t, t->rule.banner, err);
}

/* "rate=5"; an empty value removes the limit. */
static bool
rules_parse_limit(struct rule *rule, const char *word)
{
	const char *value = strchr(word, '=');
	size_t len = value == NULL ? 0 : (size_t)(value - word);
	int64_t *slot = value == NULL	  ? NULL :
	    text_is(word, len, "rate")	  ? &rule->rate :
	    text_is(word, len, "jobs")	  ? &rule->jobs :
	    text_is(word, len, "timeout") ? &rule->timeout_ms :
	    text_is(word, len, "quota")	  ? &rule->quota :
					    NULL;

	if (slot == NULL)
		return false;
	*slot = 0;
	if (*++value == '\0')
		return true;
	if (slot == &rule->timeout_ms)
		return text_parse_thousandths(value, slot) &&
		    *slot >= TIMEOUT_LEAST && *slot <= TIMEOUT_MOST;
	if (slot == &rule->quota)
		return text_parse_size(value, slot) && *slot >= QUOTA_LEAST &&
		    *slot <= QUOTA_MOST;
	return text_parse_int(value, 1, COUNT_MOST, slot);
}

static int
verb_limits(struct target *t, struct err *err)
{
	for (int i = 0; i < t->argc; i++)
		if (!rules_parse_limit(&t->rule, t->argv[i]))
			return err_set(err, ERR_INPUT,
			    "'%s': rate=N, jobs=N, timeout=SECONDS (0.1 to "
			    "600) and quota=SIZE (4m to 1t) are limits",
			    t->argv[i]);
	t->changed = t->argc > 0;
	show_limits(t);
	return CTL_OK;
}

/* ---- the commands ---- */

#define FOR(subject) (1u << RULE_##subject)

static const struct verb {
	const char *name;
	unsigned subjects;
	bool writes;
	int (*run)(struct target *t, struct err *err);
} verbs[] = {
	{ "show", FOR(SERVICE) | FOR(GUILD) | FOR(USER), false, verb_show },
	{ "limits", FOR(SERVICE) | FOR(GUILD) | FOR(USER), true, verb_limits },
	{ "cancel", FOR(GUILD) | FOR(USER), false, verb_cancel },
	{ "block", FOR(GUILD) | FOR(USER), true, verb_block },
	{ "unblock", FOR(GUILD) | FOR(USER), true, verb_unblock },
	{ "pause", FOR(SERVICE), true, verb_block },
	{ "resume", FOR(SERVICE), true, verb_unblock },
	{ "banner", FOR(SERVICE), true, verb_banner },
};

/* Read, change and write the rule in one transaction, so that no change of
 * another operator is lost.  Only this connection may write it. */
static int
run_writer(const struct verb *verb, struct target *t, struct err *err)
{
	auto_db struct db *db = db_open(t->config->database, DB_ADMIN, err);
	int code;

	t->db = db;
	if (db == NULL || db_begin(db, err) != 0)
		return -1;
	code = rules_read(t, err) != 0 ? -1 : verb->run(t, err);
	if (code == CTL_OK && t->changed)
		code = rule_put(db, t->subject, t->ids[t->subject], &t->rule,
			   err) != 0 ?
		    -1 :
		    db_commit(db, err);
	db_rollback(db); /* where it has not been committed */
	return code == CTL_OK && t->cancel ? rules_cancel_all(t, err) : code;
}

static int
run_verb(struct target *t, const char *name, struct err *err)
{
	auto_db struct db *db = NULL;
	const struct verb *verb = NULL;

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(verbs[i].name, name) == 0 &&
		    (verbs[i].subjects & 1u << t->subject) != 0)
			verb = &verbs[i];
	if (verb == NULL || (t->json && verb->run != verb_show))
		return CTL_MISUSED;
	/* DB_ADMIN would make the database where there is none */
	db = t->db = db_open(t->config->database, DB_READER, err);
	if (db == NULL)
		return -1;
	if (verb->writes)
		return run_writer(verb, t, err);
	return rules_read(t, err) == 0 ? verb->run(t, err) : -1;
}

/* [id] [verb [argument ...]]; the command's name is that of the subject. */
int
ctl_rules(struct ctl *ctl, struct err *err)
{
	struct target t = { .config = &ctl->config, .json = ctl->json };
	int at = 2;

	while (strcmp(rule_subjects[t.subject], ctl->argv[0]) != 0)
		t.subject++;
	if (t.subject == RULE_SERVICE)
		at = 1;
	else if (ctl->argc < 2 ||
	    !text_parse_snowflake(ctl->argv[1], &t.ids[t.subject]))
		return CTL_MISUSED;
	if (ctl->argc <= at)
		return run_verb(&t, "show", err);
	t.argc = ctl->argc - at - 1;
	t.argv = ctl->argv + at + 1;
	return run_verb(&t, ctl->argv[at], err);
}
