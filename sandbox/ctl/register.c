/* SPDX-License-Identifier: MIT */
/*
 * `ilctl register` and `ilctl commands`: Discord's JSON is made from the table
 * of the commands (store/commands.def).  The endpoint's URL is told likewise.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config_images.h"
#include "../base/err.h"
#include "../base/file.h"
#include "../base/text.h"
#include "../locale/locale.h"
#include "../rest/rest.h"
#include "../store/command_id.h"
#include "../store/commands.h"
#include "../store/db.h"
#include "application.h"
#include "ctl.h"
#include "objection.h"

#define SUB_COMMAND 1	 /* both the type of a command and of such an option */
#define SUB_GROUP 2	 /* of options: several commands */
#define MENU_COMMAND 3	 /* of commands: in the menu of a message */
#define COMMANDS_MAX 100 /* that Discord lets an application have */
#define CHOICES_MAX 25	 /* of an option */
#define DESCRIPTION N_("Run Python in a sandbox of your own")

/* A text in all languages that have it, by Discord's names of them. */
static json_t *
make_localizations(const char *text)
{
	json_t *all = json_object();

	for (size_t i = 0; i < locale_count(); i++) {
		const char *one = locale_text_in(i, text);

		if (one != NULL)
			json_object_set_new(all, locale_name(i),
			    json_string(one));
	}
	return all;
}

/* The versions of Python that chat offers, as far as Discord takes them. */
static json_t *
make_versions(const struct config *config)
{
	json_t *list = json_array();
	struct image_entry entry;
	size_t pos = 0;

	while (json_array_size(list) < CHOICES_MAX &&
	    images_next(config->chat_images, &pos, &entry))
		json_array_append_new(list,
		    json_pack("{s:s, s:s}", "name", entry.name, "value",
			entry.name));
	return list;
}

static json_t *
make_option(const struct command_option *option, const struct config *config)
{
	bool number = option->type == OPTION_INTEGER;
	bool version = option->target == OPTION_TO_VERSION;
	bool text = option->type == OPTION_STRING && !version;

	return json_pack(
	    "{s:s, s:o, s:i, s:s, s:o, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*}",
	    "name", option->name, "name_localizations",
	    make_localizations(option->name), "type", option->type,
	    "description", option->description, "description_localizations",
	    make_localizations(option->description), "required",
	    option->required ? json_true() : NULL, "max_length",
	    text ? json_integer(option->most) : NULL, "choices",
	    version ? make_versions(config) : NULL, "min_value",
	    number ? json_integer(1) : NULL, "max_value",
	    number ? json_integer(COMMAND_PAGE_MAX) : NULL, "autocomplete",
	    option->suggest != SUGGEST_NOTHING ? json_true() : NULL);
}

/* A command or a part of one; options: its own or NULL, taken over.  The name
 * of what is typed is the same in all languages, since one that is clicked in a
 * message must be the original; what stands in a menu (no description) has
 * one in each. */
static json_t *
make_entry(int type, const char *name, const char *description, json_t *options)
{
	bool menu = description == NULL;

	return json_pack("{s:s, s:o*, s:i, s:s*, s:o*, s:o*}", "name", name,
	    "name_localizations", menu ? make_localizations(name) : NULL,
	    "type", type, "description", description,
	    "description_localizations",
	    menu ? NULL : make_localizations(description), "options", options);
}

/* One of those that Discord installs by itself.  A guild's is in that guild
 * alone; any other is shown everywhere. */
static void
add_root(json_t *root, json_t *entry, bool guild)
{
	if (!guild) {
		json_object_set_new(entry, "integration_types",
		    json_pack("[i, i]", 0, 1));
		json_object_set_new(entry, "contexts",
		    json_pack("[i, i, i]", 0, 1, 2));
	}
	json_array_append_new(root, entry);
}

/* The list that a command under /il goes into: that of its group, which is
 * made where it is not there yet.  *name: without the group's. */
static json_t *
list_of(json_t *subs, const char **name)
{
	const char *slash = strchr(*name, '/');
	const struct command_group *group = command_groups;
	json_t *list;
	size_t i;
	json_t *one;

	if (slash == NULL)
		return subs;
	while (strncmp(group->name, *name, (size_t)(slash - *name)) != 0)
		group++;
	*name = slash + 1;
	json_array_foreach(subs, i, one)
		if (strcmp(json_string_value(json_object_get(one, "name")),
			group->name) == 0)
			return json_object_get(one, "options");
	list = json_array();
	json_array_append_new(subs,
	    make_entry(SUB_GROUP, group->name, group->description, list));
	return list;
}

static json_t *
make_command(const char *name, const struct command *command,
    const struct config *config)
{
	const struct command_option *option = command->options;
	json_t *options = option->name != NULL ? json_array() : NULL;

	for (int o = 0; o < COMMAND_OPTIONS_MAX && option[o].name != NULL; o++)
		json_array_append_new(options, make_option(&option[o], config));
	return make_entry(SUB_COMMAND, name, command->description, options);
}

static void
add_command(json_t *root, json_t *subs, const struct command *command,
    const struct config *config, bool guild)
{
	const char *name = command->name;
	enum command_place place = command->place;

	if (place == COMMAND_MENU)
		add_root(root,
		    make_entry(MENU_COMMAND, command->description, NULL, NULL),
		    guild);
	if (place == COMMAND_ROOT || place == COMMAND_BOTH)
		add_root(root, make_command(name, command, config), guild);
	if (place == COMMAND_UNDER_IL || place == COMMAND_BOTH) {
		json_t *list = list_of(subs, &name);

		json_array_append_new(list,
		    make_command(name, command, config));
	}
}

/* The commands as Discord is told them: heap. */
static char *
make_commands(const struct config *config, bool guild, size_t flags)
{
	json_auto_t *root = json_array();
	json_t *subs = json_array();

	add_root(root, make_entry(SUB_COMMAND, "il", DESCRIPTION, subs), guild);
	for (int i = 0; i < JOB_UNKNOWN; i++)
		add_command(root, subs, &commands[i], config, guild);
	return json_dumps(root, flags);
}

int
ctl_commands(struct ctl *ctl)
{
	auto_free char *text = make_commands(&ctl->config, false,
	    JSON_INDENT(2));

	(void)puts(text);
	return CTL_OK;
}

int
commands_write(const struct config *config, struct err *err)
{
	auto_free char *path = config_state_path(config, "commands.json");
	auto_free char *text = make_commands(config, false, JSON_COMPACT);

	return file_write(path, text, strlen(text), false, err);
}

/* ---- register ---- */

/* What was asked for on the command line. */
struct wish {
	int64_t guild;	      /* 0: for all servers */
	const char *endpoint; /* NULL: it stays as it is */
};

/* False: usage. */
static bool
read_wish(const struct ctl *ctl, struct wish *wish)
{
	*wish = (struct wish){ 0 };
	for (int i = 1; i < ctl->argc; i += 2) {
		const char *value = i + 1 < ctl->argc ? ctl->argv[i + 1] : "";

		if (strcmp(ctl->argv[i], "--guild") == 0) {
			if (!text_parse_snowflake(value, strlen(value),
				&wish->guild))
				return false;
		} else if (strcmp(ctl->argv[i], "--endpoint") == 0) {
			if (strncmp(value, "http", 4) != 0 ||
			    strlen(value) > APPLICATION_URL_MAX)
				return false;
			wish->endpoint = value;
		} else {
			return false;
		}
	}
	return true;
}

/* What happened, and what may be done about it.  what: that Discord does not
 * take. */
static int
explain(const struct config *config, const char *what,
    const struct rest_reply *reply, struct err *err)
{
	if (reply->status == 0)
		return err_wrap(err,
		    "cannot reach Discord at %s (outgoing HTTPS and DNS are "
		    "needed; `ilctl doctor` looks again)",
		    config->discord_api_base);
	if (reply->status >= 200 && reply->status < 300)
		return -1; /* err says it */
	if (reply->status == 401)
		return err_set(err, ERR_CONFIG,
		    "Discord refuses DISCORD_TOKEN (status 401)");
	if (reply->status == 403 && !reply->json)
		return err_set(err, ERR_UNAVAILABLE,
		    "Cloudflare blocks this host (status 403): try again "
		    "later, and not often");
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
	    "Discord does not take %s (status %d, code %" PRId64 ")", what,
	    reply->status, reply->code);
}

/* Is it the right application, and may everybody install it? */
static int
check_application(struct rest *rest, const struct config *config,
    struct application *app, struct buf *answer, struct err *err)
{
	struct rest_reply reply = { 0 };

	if (application_ask(rest, REST_FINAL, app, answer, &reply, err) !=
	    REST_DONE)
		return explain(config, "the question for the application",
		    &reply, err);
	return application_compare(app, config, err);
}

/* Discord's answer tells the ids of the commands, in a list of objects. */
static size_t
read_ids(const char *answer, struct command_id *list, size_t most)
{
	json_auto_t *root = json_loads(answer, 0, NULL);
	size_t count = 0;
	size_t i;
	json_t *one;

	json_array_foreach(root, i, one) {
		const char *name = json_string_value(json_object_get(one,
		    "name"));
		const char *id = json_string_value(json_object_get(one, "id"));
		struct command_id *into = &list[count];

		if (count < most && name != NULL &&
		    strlen(name) < sizeof(into->name) && id != NULL &&
		    json_integer_value(json_object_get(one, "type")) ==
			SUB_COMMAND &&
		    text_parse_snowflake(id, strlen(id), &into->id)) {
			(void)snprintf(into->name, sizeof(into->name), "%s",
			    name);
			count++;
		}
	}
	return count;
}

/* So that texts can name commands that are clicked.  Nothing depends on it. */
static void
keep_ids(const struct config *config, const char *answer)
{
	struct command_id list[COMMANDS_MAX];
	size_t count = read_ids(answer, list, COMMANDS_MAX);
	struct err err = { 0 };
	auto_db struct db *db = db_open(config->database, DB_WORKER, &err);

	if (db == NULL ||
	    command_ids_keep(db, config->discord_application_id, list, count,
		&err) < 0)
		printf("commands in texts cannot be clicked (%s); register "
		       "again when Inline runs\n",
		    err.text);
}

/* One request replaces all commands that are registered. */
static int
send_commands(struct rest *rest, const struct config *config, int64_t guild,
    struct buf *answer, struct err *err)
{
	auto_free char *text = make_commands(config, guild != 0, JSON_COMPACT);
	struct rest_reply reply = { 0 };

	if (rest_register(rest, text, guild, answer, &reply, err) != REST_DONE)
		return explain(config, "the commands", &reply, err);
	if (guild != 0) {
		printf("registered in guild %" PRId64 "\n", guild);
		return 0;
	}
	printf("registered for application %" PRId64 "\n",
	    config->discord_application_id);
	/* those of one server's commands would work there alone */
	keep_ids(config, buf_str(answer));
	return 0;
}

/* Discord tests the address before it takes it: with a PING that is signed, and
 * with one that is signed wrongly. */
static int
send_endpoint(struct rest *rest, const struct config *config, const char *url,
    struct buf *answer, struct err *err)
{
	json_auto_t *changes = json_pack("{s:s}", "interactions_endpoint_url",
	    url);
	auto_free char *text = json_dumps(changes, JSON_COMPACT);
	struct rest_reply reply = { 0 };

	if (text == NULL)
		return err_set(err, ERR_INPUT, "the URL is not UTF-8");
	if (rest_application(rest, text, REST_FINAL, answer, &reply, err) !=
	    REST_DONE)
		return explain(config,
		    "that endpoint: `ilctl selftest URL` tells more", &reply,
		    err);
	printf("Discord has tested the endpoint and takes it: %s\n", url);
	return 0;
}

/* All of it, in the order in which things go wrong.  box: the one to be ticked
 * in the portal, or NULL. */
static int
register_all(struct rest *rest, const struct config *config,
    const struct wish *wish, const char **box, struct buf *answer,
    struct err *err)
{
	struct application app;

	if (check_application(rest, config, &app, answer, err) < 0)
		return -1;
	*box = wish->guild == 0 ? application_missing_box(&app) : NULL;
	if (send_commands(rest, config, wish->guild, answer, err) < 0)
		return -1;
	return wish->endpoint == NULL ?
	    0 :
	    send_endpoint(rest, config, wish->endpoint, answer, err);
}

/* Only this needs the bot's token. */
int
ctl_register(struct ctl *ctl)
{
	const struct config *config = &ctl->config;
	auto_buf struct buf answer = BUF_INIT(REST_ANSWER_MAX);
	struct err err = { 0 };
	struct rest *rest = NULL;
	const char *box = NULL;
	struct wish wish;
	int code = CTL_OK;

	if (!read_wish(ctl, &wish))
		return CTL_MISUSED;
	if (config->discord_application_id == 0)
		(void)err_set(&err, ERR_CONFIG,
		    "DISCORD_APPLICATION_ID is not set");
	else if (*config->discord_token == '\0')
		(void)err_set(&err, ERR_CONFIG, "DISCORD_TOKEN is not set");
	else
		rest = rest_new(config->discord_api_base, config->discord_token,
		    config->discord_application_id, NULL, -1, &err);
	if (rest == NULL)
		return ctl_fail(ctl->argv[0], &err);
	if (register_all(rest, config, &wish, &box, &answer, &err) < 0) {
		code = ctl_fail(ctl->argv[0], &err);
		objection_print(stderr, buf_str(&answer));
	}
	rest_free(rest);
	if (box != NULL)
		(void)fprintf(stderr,
		    "Tick \"%s\" on the Installation page, with the scope "
		    "applications.commands, and register again:\n"
		    "https://discord.com/developers/applications/%" PRId64
		    "/installation\n",
		    box, config->discord_application_id);
	return code;
}
