/* SPDX-License-Identifier: MIT */
/*
 * `ilctl register` and `ilctl commands`: Discord's JSON is made from the table
 * of the commands (store/commands.def).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "../base/cleanup.h"
#include "../base/err.h"
#include "../base/text.h"
#include "../rest/rest.h"
#include "../store/commands.h"
#include "ctl.h"

#define SUB_COMMAND 1 /* both the type of a command and of such an option */
#define DESCRIPTION "Run Python in a sandbox of your own"

static json_t *
make_option(const struct command_option *option)
{
	bool number = option->type == OPTION_INTEGER;

	return json_pack("{s:s, s:i, s:s, s:o*, s:o*, s:o*, s:o*}", "name",
	    option->name, "type", option->type, "description",
	    option->description, "required",
	    option->required ? json_true() : NULL, "max_length",
	    option->type == OPTION_STRING ? json_integer(option->most) : NULL,
	    "min_value", number ? json_integer(1) : NULL, "max_value",
	    number ? json_integer(COMMAND_PAGE_MAX) : NULL);
}

/* One that is installed and shown everywhere, or one of a guild or under /il,
 * which has no say about that.  options: its own or NULL; taken over. */
static json_t *
make_command(const char *name, const char *description, json_t *options,
    bool everywhere)
{
	return json_pack("{s:s, s:i, s:s, s:o*, s:o*, s:o*}", "name", name,
	    "type", SUB_COMMAND, "description", description, "options", options,
	    "integration_types", everywhere ? json_pack("[i, i]", 0, 1) : NULL,
	    "contexts", everywhere ? json_pack("[i, i, i]", 0, 1, 2) : NULL);
}

/* The commands as Discord is told them: heap. */
static char *
make_commands(bool guild, size_t flags)
{
	json_t *subs = json_array();
	json_auto_t *root = json_pack("[o]",
	    make_command("il", DESCRIPTION, subs, !guild));

	for (int i = 0; i < JOB_UNKNOWN; i++) {
		const struct command *command = &commands[i];
		const struct command_option *option = command->options;
		bool is_root = command->place == COMMAND_ROOT;
		json_t *options = option->name != NULL ? json_array() : NULL;

		if (command->place == COMMAND_NOWHERE)
			continue;
		for (int o = 0;
		     o < COMMAND_OPTIONS_MAX && option[o].name != NULL; o++)
			json_array_append_new(options, make_option(&option[o]));
		json_array_append_new(is_root ? root : subs,
		    make_command(command->name, command->description, options,
			is_root && !guild));
	}
	return json_dumps(root, flags);
}

int
ctl_commands(struct ctl *ctl)
{
	auto_free char *text = make_commands(false, JSON_INDENT(2));

	(void)ctl;
	(void)puts(text);
	return CTL_OK;
}

/* What happened, and what may be done about it. */
static int
explain(const struct config *config, const struct rest_reply *reply,
    struct err *err)
{
	if (reply->status == 0)
		return err_wrap(err,
		    "cannot reach Discord at %s (outgoing HTTPS and DNS are "
		    "needed; `ilctl doctor` looks again)",
		    config->discord_api_base);
	if (reply->status == 401)
		return err_set(err, ERR_CONFIG,
		    "Discord refuses DISCORD_TOKEN (status 401)");
	if (reply->status == 403)
		return err_set(err, ERR_CONFIG,
		    "Discord refuses (status 403, "
		    "code %" PRId64 "): is the application in that guild?",
		    reply->code);
	if (reply->status == 404)
		return err_set(err, ERR_CONFIG,
		    "Discord knows no application %" PRId64
		    " (status 404): is DISCORD_APPLICATION_ID right?",
		    config->discord_application_id);
	if (reply->status == 429 || reply->status >= 500)
		return err_set(err, ERR_UNAVAILABLE,
		    "Discord cannot do it just now (status %d): try again in "
		    "some minutes",
		    reply->status);
	return err_set(err, ERR_PROTOCOL,
	    "Discord does not take the commands (status %d, code %" PRId64 ")",
	    reply->status, reply->code);
}

/* One request replaces all commands that are registered.  Only this needs the
 * bot's token. */
static int
send_commands(const struct config *config, const char *text, int64_t guild,
    struct err *err)
{
	struct rest_reply reply = { 0 };
	struct rest *rest;
	enum rest_outcome outcome;

	if (config->discord_application_id == 0)
		return err_set(err, ERR_CONFIG,
		    "DISCORD_APPLICATION_ID is not set");
	if (*config->discord_token == '\0')
		return err_set(err, ERR_CONFIG, "DISCORD_TOKEN is not set");
	rest = rest_new(config->discord_api_base, config->discord_token,
	    config->discord_application_id, NULL, -1, err);
	if (rest == NULL)
		return -1;
	outcome = rest_register(rest, text, guild, &reply, err);
	rest_free(rest);
	return outcome == REST_DONE ? 0 : explain(config, &reply, err);
}

int
ctl_register(struct ctl *ctl)
{
	struct err err = { 0 };
	auto_free char *text = NULL;
	int64_t guild = 0;

	if (ctl->argc != 1 &&
	    (ctl->argc != 3 || strcmp(ctl->argv[1], "--guild") != 0 ||
		!text_parse_snowflake(ctl->argv[2], strlen(ctl->argv[2]),
		    &guild)))
		return CTL_MISUSED;
	text = make_commands(guild != 0, JSON_COMPACT);
	if (send_commands(&ctl->config, text, guild, &err) != 0)
		return ctl_fail(ctl->argv[0], &err);
	if (guild == 0)
		printf("registered for application %" PRId64 "\n",
		    ctl->config.discord_application_id);
	else
		printf("registered in guild %" PRId64 "\n", guild);
	return CTL_OK;
}
