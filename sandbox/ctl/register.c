#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/err.h"
#include "../base/file.h"
#include "../base/text.h"
#include "../rest/rest.h"
#include "ctl.h"

#define COMMANDS_MAX (256 << 10)

char *
ctl_read_commands(const struct config *config, struct err *err)
{
	auto_buf struct buf path = BUF_INIT(8192);
	auto_buf struct buf text = BUF_INIT(COMMANDS_MAX);

	buf_addf(&path, "%s/commands.json", config->lib_dir);
	if (file_read(buf_str(&path), &text, err) != 0)
		return NULL;
	return buf_steal(&text, NULL);
}

int
ctl_commands(struct ctl *ctl, int argc, char **argv)
{
	struct err err = { 0 };
	auto_free char *text = NULL;

	if (argc != 1)
		return ctl_usage("commands");
	text = ctl_read_commands(&ctl->config, &err);
	if (text == NULL)
		return ctl_fail(argv[0], &err);
	(void)fputs(text, stdout);
	return CTL_OK;
}

/* The JSON to send.  A guild's commands have no say about where they are
 * installed and shown. */
static char *
prepare(const char *text, bool guild, struct err *err)
{
	json_error_t error;
	json_auto_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	json_t *command;
	size_t i;

	if (!json_is_array(root)) {
		(void)err_set(err, ERR_CONFIG, "commands.json, line %d: %s",
		    error.line, root == NULL ? error.text : "not an array");
		return NULL;
	}
	json_array_foreach(root, i, command)
	{
		if (!guild)
			continue;
		(void)json_object_del(command, "integration_types");
		(void)json_object_del(command, "contexts");
	}
	return json_dumps(root, JSON_COMPACT);
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

static int
send_commands(const struct config *config, const char *commands, int64_t guild,
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
	outcome = rest_register(rest, commands, guild, &reply, err);
	rest_free(rest);
	if (outcome == REST_DONE)
		return 0;
	return explain(config, &reply, err);
}

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
	auto_free char *commands = NULL;
	int64_t guild = 0;

	if (argc == 3 && strcmp(argv[1], "--guild") == 0) {
		if (!text_parse_snowflake(argv[2], strlen(argv[2]), &guild))
			return ctl_usage(usage);
	} else if (argc != 1) {
		return ctl_usage(usage);
	}
	text = ctl_read_commands(&ctl->config, &err);
	if (text != NULL && check_config(&ctl->config, &err) == 0)
		commands = prepare(text, guild != 0, &err);
	if (commands == NULL ||
	    send_commands(&ctl->config, commands, guild, &err) != 0)
		return ctl_fail(argv[0], &err);
	if (guild == 0)
		printf("registered for application %" PRId64 "\n",
		    ctl->config.discord_application_id);
	else
		printf("registered in guild %" PRId64 "\n", guild);
	return CTL_OK;
}
