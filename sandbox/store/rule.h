/* SPDX-License-Identifier: MIT */
#ifndef RULE_H
#define RULE_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct db;
struct err;

/*
 * Rules of the operator, for the service, for a server and for a person:
 * `ilctl service`, `guild` and `user` write them, il-fcgi and the workers obey
 * them with the next command.  Without a row the settings hold.
 */
enum rule_subject { RULE_SERVICE, RULE_GUILD, RULE_USER, RULE_SUBJECTS };

/* As the database has them. */
extern const char *const rule_subjects[];

/* Of reason and banner, in code points; and their room. */
#define RULE_TEXT_MOST 300
#define RULE_TEXT_SIZE (4 * RULE_TEXT_MOST + 1)

struct rule {
	bool blocked; /* of the service: it is paused */
	char reason[RULE_TEXT_SIZE];
	char banner[RULE_TEXT_SIZE]; /* of the service: below all answers */
	/* 0: as the settings say, or no limit */
	int64_t rate; /* commands in 60 s */
	int64_t jobs; /* that are not over, at one time */
	int64_t timeout_ms;
	int64_t quota;
	int64_t changed_at; /* Unix seconds; 0: there is no rule */
};

struct rules {
	struct rule of[RULE_SUBJECTS];
};

/* Find the rules for this person in this server; ids of 0: of nobody. */
int rules_find(struct db *db, int64_t user_id, int64_t guild_id,
    struct rules *rules, struct err *err);
/* The time and the disk that they may have: the person's, else the server's,
 * else that of all, else what the settings say. */
int64_t rules_timeout(const struct rules *rules, int64_t usual_ms);
int64_t rules_quota(const struct rules *rules, int64_t usual);

/* Append the operator's words as a line that is a quotation: made safe to show,
 * and unable to begin code.  RULE_SHOWN_MOST code points at most. */
#define RULE_SHOWN_MOST (RULE_TEXT_MOST + 4)
void rule_add_text(struct buf *out, const char *text);

/* Write one; a rule that says nothing leaves no row.  DB_ADMIN alone may. */
int rule_put(struct db *db, enum rule_subject subject, int64_t id,
    const struct rule *rule, struct err *err);

#endif
