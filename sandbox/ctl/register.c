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
	json_t *made = json_pack("{s:s, s:i, s:s}", "name", option->name,
	    "type", option->type, "description", option->description);

	if (option->required)
		json_object_set_new(made, "required", json_true());
	if (option->type == OPTION_STRING)
		json_object_set_new(made, "max_length",
		    json_integer(option->most));
	if (option->type == OPTION_INTEGER) {
		json_object_set_new(made, "min_value", json_integer(1));
		json_object_set_new(made, "max_value",
		    json_integer(COMMAND_PAGE_MAX));
	}
	return made;
}

/* A command of its own, or one under /il. */
static json_t *
make_command(const char *name, const char *description)
{
	return json_pack("{s:s, s:i, s:s}", "name", name, "type", SUB_COMMAND,
	    "description", description);
}

/* A guild's commands have no say about where they are installed and shown. */
static void
add_places(json_t *command, bool guild)
{
	if (guild)
		return;
	json_object_set_new(command, "integration_types",
	    json_pack("[i, i]", 0, 1));
	json_object_set_new(command, "contexts",
	    json_pack("[i, i, i]", 0, 1, 2));
}

/* The commands as Discord is told them: heap. */
static char *
make_commands(bool guild, size_t flags)
{
	json_auto_t *root = json_array();
	json_t *il = make_command("il", DESCRIPTION);
	json_t *subs = json_array();

	add_places(il, guild);
	json_array_append_new(root, il);
	for (int i = 0; i < JOB_UNKNOWN; i++) {
		const struct command *command = &commands[i];
		json_t *options = json_array();
		json_t *made;

		for (int o = 0; o < COMMAND_OPTIONS_MAX &&
		     command->options[o].name != NULL;
		     o++)
			json_array_append_new(options,
			    make_option(&command->options[o]));
		made = make_command(command->name, command->description);
		if (json_array_size(options) > 0)
			json_object_set(made, "options", options);
		json_decref(options);
		if (command->place == COMMAND_ROOT) {
			add_places(made, guild);
			json_array_append(root, made);
		} else if (command->place == COMMAND_UNDER_IL) {
			json_array_append(subs, made);
		}
		json_decref(made);
	}
	json_object_set_new(il, "options", subs);
	return json_dumps(root, flags);
}

int
ctl_commands(struct ctl *ctl, int argc, char **argv)
{
	auto_free char *text = NULL;

	(void)ctl;
	(void)argc;
	(void)argv;
	text = make_commands(false, JSON_INDENT(2));
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

/* One request replaces all commands that are registered. */
static int
send_commands(const struct config *config, const char *text, int64_t guild,
    struct err *err)
{
	struct rest_options options = {
		.api_base = config->discord_api_base,
		.bot_token = config->discord_token,
		.application_id = config->discord_application_id,
	};
	struct rest_reply reply = { 0 };
	struct rest *rest = rest_new(&options, err);
	enum rest_outcome outcome;

	if (rest == NULL)
		return -1;
	outcome = rest_register(rest, text, guild, &reply, err);
	rest_free(rest);
	if (outcome == REST_DONE)
		return 0;
	return explain(config, &reply, err);
}

/* Only this needs the bot's token. */
static int
check_config(const struct config *config, struct err *err)
{
	if (config->discord_application_id == 0)
		return err_set(err, ERR_CONFIG,
		    "DISCORD_APPLICATION_ID is not set");
	if (*config->discord_token == '\0')
		return err_set(err, ERR_CONFIG, "DISCORD_TOKEN is not set");
	return 0;
}

int
ctl_register(struct ctl *ctl, int argc, char **argv)
{
	static const char usage[] = "register [--guild id]";
	struct err err = { 0 };
	auto_free char *text = NULL;
	int64_t guild = 0;

	if (argc == 3 && strcmp(argv[1], "--guild") == 0) {
		if (!text_parse_snowflake(argv[2], strlen(argv[2]), &guild))
			return ctl_usage(usage);
	} else if (argc != 1) {
		return ctl_usage(usage);
	}
	text = make_commands(guild != 0, JSON_COMPACT);
	if (check_config(&ctl->config, &err) != 0 ||
	    send_commands(&ctl->config, text, guild, &err) != 0)
		return ctl_fail(argv[0], &err);
	if (guild == 0)
		printf("registered for application %" PRId64 "\n",
		    ctl->config.discord_application_id);
	else
		printf("registered in guild %" PRId64 "\n", guild);
	return CTL_OK;
}
