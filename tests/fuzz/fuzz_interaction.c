/* SPDX-License-Identifier: MIT */
/* Any bytes as the body of a signed request: what parses keeps the promises of
 * interaction.h. */
#include "fuzz.h"

#include <stdbool.h>
#include <string.h>

#include "base/basics.h"
#include "base/utf8.h"
#include "discord/interaction.h"

#define promise(truth) fuzz_holds((truth), #truth)

static void
check_text(const char *text)
{
	promise(text != NULL);
	promise(utf8_valid(text, strlen(text)));
}

static void
check(const struct interaction *in)
{
	check_text(in->token);
	check_text(in->locale);
	check_text(in->name);
	check_text(in->sub);
	check_text(in->custom_id);
	promise(strpbrk(in->token, "/?#% \n") == NULL);
	promise(in->type >= INTERACTION_PING && in->type <= INTERACTION_MODAL);
	if (in->type == INTERACTION_PING)
		return;
	promise(in->id > 0 && in->application_id > 0 && in->user_id > 0);
	promise(in->token[0] != '\0');
	promise(in->attachment_limit > 0 &&
	    in->attachment_limit <= ATTACHMENT_LIMIT_MAX);
	promise(in->value_count <= INTERACTION_VALUES_MAX);
	for (size_t i = 0; i < in->value_count; i++) {
		const struct interaction_value *value = &in->values[i];

		check_text(value->name);
		promise(utf8_valid(value->text, value->len));
		promise(value->text[value->len] == '\0');
		promise(interaction_value(in, value->name) != NULL);
	}
	promise(utf8_valid(in->message.text, in->message.len));
	promise(in->message.text[in->message.len] == '\0');
	promise(in->message.found || in->message.len == 0);
	promise(in->attachment_count <= INTERACTION_ATTACHMENTS_MAX);
	for (size_t i = 0; i < in->attachment_count; i++) {
		check_text(in->attachments[i].url);
		check_text(in->attachments[i].name);
		promise(in->attachments[i].size >= 0);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct interaction in;
	struct err err = { .code = ERR_NONE };

	if (interaction_parse(&in, (const char *)data, size, &err) < 0) {
		promise(err.code == ERR_INPUT);
		return 0;
	}
	check(&in);
	interaction_release(&in);
	return 0;
}
