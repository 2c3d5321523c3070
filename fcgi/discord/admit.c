/* SPDX-License-Identifier: MIT */
/* What the operator has said, as far as il-fcgi obeys it: who is let in, and
 * what stands below all answers.  Limits are obeyed where jobs are made. */
#include "submit.h"

#include <string.h>

#include "../../sandbox/base/buf.h"

/* In the order in which they are told: what is said of all comes first. */
static const struct {
	enum text_id text;
	const char *outcome;
} refusals[RULE_SUBJECTS] = {
	[RULE_SERVICE] = { TEXT_PAUSED, "paused" },
	[RULE_GUILD] = { TEXT_GUILD_BLOCKED, "guild-blocked" },
	[RULE_USER] = { TEXT_BLOCKED, "blocked" },
};

bool
submit_admit(struct context *c)
{
	auto_buf struct buf reason = BUF_INIT(2 * RULE_TEXT_SIZE);
	int i = RULE_SERVICE;

	if (rules_find(c->db, c->in->user_id, c->in->guild_id, &c->rules,
		&c->reply->err) != 0)
		return submit_fault(c, "database");
	while (i < RULE_SUBJECTS && !c->rules.of[i].blocked)
		i++;
	if (i == RULE_SUBJECTS)
		return true;
	if (c->rules.of[i].reason[0] != '\0')
		rule_add_text(&reason, c->rules.of[i].reason);
	return submit_refuse_with(c, refusals[i].text, "", &reason,
	    refusals[i].outcome);
}

void
submit_banner(struct context *c)
{
	const char *banner = c->rules.of[RULE_SERVICE].banner;
	auto_buf struct buf words = BUF_INIT(2 * RULE_TEXT_SIZE);

	if (banner[0] == '\0' || c->reply->body == NULL)
		return;
	rule_add_text(&words, banner);
	c->reply->body = answer_below(c->reply->body, buf_str(&words));
}
