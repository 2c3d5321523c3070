/* SPDX-License-Identifier: MIT */
/*
 * `ilctl register` and `ilctl commands`: Discord's JSON is made from the table
 * of the commands (store/commands.def).  The endpoint's URL is told likewise.
 * The doctor learns here, too, what Discord knows of our application.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/basics.h"
#include "base/config.h"
#include "base/file.h"
#include "base/text.h"
#include "ctl/ctl.h"
#include "ctl/doctor.h"
#include "locale/locale.h"
#include "rest/rest.h"
#include "store/commands.h"
#include "store/db.h"

#define SUB_COMMAND 1  /* both the type of a command and of such an option */
#define SUB_GROUP 2    /* of options: several commands */
#define MENU_COMMAND 3 /* of commands: in the menu of a message */
#define CHOICES_MAX 25 /* of an option */
#define KEY_SIZE 65
#define URL_MAX 512
/* Bounds of what is shown of an answer that is an error: its depth, its lines,
 * and the bytes of a line. */
#define DEPTH_MAX 12
#define LINES_MAX 25
#define LINE_SIZE 600
#define PATH_MAX_BYTES 256
#define DESCRIPTION N_("Run Python in a sandbox of your own")

/* A text in all languages that have it, by Discord's names of them. */
static json_t *
commands_make_localizations(const char *text)
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
commands_make_versions(const struct config *config)
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
commands_make_option(const struct command_option *option,
    const struct config *config)
{
	bool number = option->type == OPTION_INTEGER;
	bool version = option->at == offsetof(struct job, version);
	bool text = option->type == OPTION_STRING && !version;

	return json_pack(
	    "{s:s, s:o, s:i, s:s, s:o, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*}",
	    "name", option->name, "name_localizations",
	    commands_make_localizations(option->name), "type", option->type,
	    "description", option->description, "description_localizations",
	    commands_make_localizations(option->description), "required",
	    option->required ? json_true() : NULL, "max_length",
	    text ? json_integer(option->most) : NULL, "choices",
	    version ? commands_make_versions(config) : NULL, "min_value",
	    number ? json_integer(1) : NULL, "max_value",
	    number ? json_integer(COMMAND_PAGE_MAX) : NULL, "autocomplete",
	    option->suggest != NULL ? json_true() : NULL);
}

/* A command or a part of one; options: its own or NULL, taken over.  The name
 * of what is typed is the same in all languages, since one that is clicked in a
 * message must be the original; what stands in a menu (no description) has
 * one in each. */
static json_t *
commands_make_entry(int type, const char *name, const char *description,
    json_t *options)
{
	bool menu = description == NULL;

	return json_pack("{s:s, s:o*, s:i, s:s*, s:o*, s:o*}", "name", name,
	    "name_localizations",
	    menu ? commands_make_localizations(name) : NULL, "type", type,
	    "description", description, "description_localizations",
	    menu ? NULL : commands_make_localizations(description), "options",
	    options);
}

/* Add an entry that Discord installs by itself.  A guild's is in that guild
 * alone; any other is shown everywhere. */
static void
commands_add_root(json_t *root, json_t *entry, bool guild)
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
commands_list_of(json_t *subs, const char **name)
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
	    commands_make_entry(SUB_GROUP, group->name, group->description,
		list));
	return list;
}

static json_t *
commands_make(const char *name, const struct command *command,
    const struct config *config)
{
	const struct command_option *option = command->options;
	json_t *options = option->name != NULL ? json_array() : NULL;

	for (int o = 0; o < COMMAND_OPTIONS_MAX && option[o].name != NULL; o++)
		json_array_append_new(options,
		    commands_make_option(&option[o], config));
	return commands_make_entry(SUB_COMMAND, name, command->description,
	    options);
}

static void
commands_add(json_t *root, json_t *subs, const struct command *command,
    const struct config *config, bool guild)
{
	const char *name = command->name;
	enum command_place place = command->place;

	if (place == COMMAND_MENU)
		commands_add_root(root,
		    commands_make_entry(MENU_COMMAND, command->description,
			NULL, NULL),
		    guild);
	if (place == COMMAND_ROOT || place == COMMAND_BOTH)
		commands_add_root(root, commands_make(name, command, config),
		    guild);
	if (place == COMMAND_UNDER_IL || place == COMMAND_BOTH) {
		json_t *list = commands_list_of(subs, &name);

		json_array_append_new(list,
		    commands_make(name, command, config));
	}
}

/* The commands as Discord is told them: heap. */
static char *
make_commands(const struct config *config, bool guild, size_t flags)
{
	json_auto_t *root = json_array();
	json_t *subs = json_array();

	commands_add_root(root,
	    commands_make_entry(SUB_COMMAND, "il", DESCRIPTION, subs), guild);
	for (int i = 0; i < JOB_UNKNOWN; i++)
		commands_add(root, subs, &commands[i], config, guild);
	return json_dumps(root, flags);
}

int
ctl_commands(struct ctl *ctl, struct err *err)
{
	auto_free char *text = make_commands(&ctl->config, false,
	    JSON_INDENT(2));

	(void)err;
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

/* ---- the application, as Discord knows it ---- */

/* The application that the bot's token belongs to, as far as Discord tells. */
struct application {
	int64_t id;
	char verify_key[KEY_SIZE]; /* "": not said */
	bool endpoint;		   /* it has an endpoint URL */
	/* The box to tick on the Installation page, so that both servers and
	 * people can install it; NULL: none, or Discord does not say. */
	const char *box;
};

struct discord {
	const struct config *config;
	struct rest *rest;
	struct buf answer; /* the last one, also of a failure */
	struct rest_reply reply;
	struct application app;
};

/* Each field is checked, whether it is there and what it should be: Discord
 * adds some, and leaves others out. */
static int
read_application(struct application *app, const char *answer, struct err *err)
{
	json_auto_t *root = json_loads(answer, 0, NULL);
	const char *id = table_json_text(root, "id");
	const char *key = table_json_text(root, "verify_key");
	const json_t *installs = json_object_get(root,
	    "integration_types_config");
	bool guild = json_is_object(json_object_get(installs, "0"));
	bool user = json_is_object(json_object_get(installs, "1"));
	unsigned char bytes[32];

	*app = (struct application){ 0 };
	if (id == NULL || !text_parse_snowflake(id, &app->id))
		return err_set(err, ERR_PROTOCOL,
		    "what answers at /applications/@me is not Discord");
	if (key != NULL &&
	    text_parse_hex(key, strlen(key), bytes, sizeof(bytes)))
		(void)snprintf(app->verify_key, sizeof(app->verify_key), "%s",
		    key);
	app->endpoint = table_json_text(root, "interactions_endpoint_url") !=
	    NULL;
	if (json_object_size(installs) > 0 && !(guild && user))
		app->box = guild ? "User Install" : "Guild Install";
	return 0;
}

/* REST_DONE: it is in d->app; otherwise d->reply and err say why not. */
static enum rest_outcome
ask_application(struct discord *d, enum rest_patience patience, struct err *err)
{
	enum rest_outcome outcome;

	d->rest = rest_new(d->config->discord_api_base,
	    d->config->discord_token, d->config->discord_application_id, NULL,
	    -1, err);
	if (d->rest == NULL)
		return REST_LATER;
	outcome = rest_application(d->rest, "GET", "@me", NULL, patience,
	    &d->answer, &d->reply, err);
	if (outcome == REST_DONE &&
	    read_application(&d->app, buf_str(&d->answer), err) < 0)
		return REST_REFUSED;
	return outcome;
}

static void
release_discord(struct discord *d)
{
	rest_free(d->rest);
	buf_release(&d->answer);
}

/* Is it the application of the settings?  -1: err says what differs. */
static int
compare_application(const struct discord *d, struct err *err)
{
	const struct config *config = d->config;

	if (d->app.id != config->discord_application_id)
		return err_set(err, ERR_CONFIG,
		    "DISCORD_TOKEN is of application %" PRId64
		    ", DISCORD_APPLICATION_ID is %" PRId64,
		    d->app.id, config->discord_application_id);
	if (*config->discord_public_key != '\0' && *d->app.verify_key != '\0' &&
	    strcasecmp(d->app.verify_key, config->discord_public_key) != 0)
		return err_set(err, ERR_CONFIG,
		    "DISCORD_PUBLIC_KEY is not this application's: Discord "
		    "says %s",
		    d->app.verify_key);
	return 0;
}

/* With the bot's token: is it of the application that is configured? */
void
doctor_application(struct doctor *d)
{
	struct discord discord = { .config = d->config,
		.answer = BUF_INIT(REST_ANSWER_MAX) };
	struct err err = { 0 };
	enum rest_outcome outcome;

	if (*d->config->discord_token == '\0' ||
	    *d->config->discord_public_key == '\0')
		return;
	outcome = ask_application(&discord, REST_ONCE, &err);
	doctor_say(d,
	    discord.reply.status == 401 ? FOUND_APPLICATION_TOKEN :
		outcome != REST_DONE	? FOUND_APPLICATION_UNKNOWN :
		compare_application(&discord, &err) < 0 ?
				       FOUND_APPLICATION_OTHER :
		discord.app.box != NULL ? FOUND_APPLICATION_BOX :
					  FOUND_APPLICATION_GOOD,
	    err.text, discord.app.box);
	if (outcome == REST_DONE && !discord.app.endpoint)
		doctor_say(d, FOUND_APPLICATION_ENDPOINT, "");
	release_discord(&discord);
}

/* ---- API errors of Discord ---- */

/* Print an API error, {"code", "message"}, of the value at the path, while
 * lines are left.  The text is Discord's: nothing in it moves a terminal's
 * cursor. */
static void
print_error(const char *path, const json_t *error, int *lines)
{
	const char *message = table_json_text(error, "message");
	const char *code = table_json_text(error, "code");
	char line[LINE_SIZE];

	if (--*lines < 0)
		return;
	(void)snprintf(line, sizeof(line), "%s%s%s%s%s%s", path,
	    *path != '\0' ? ": " : "", message != NULL ? message : "no message",
	    code != NULL ? " (" : "", code != NULL ? code : "",
	    code != NULL ? ")" : "");
	text_clean_array(line, sizeof(line));
	for (char *c = line; (c = strpbrk(c, "\n\t")) != NULL;)
		*c = ' ';
	(void)fprintf(stderr, "  %s\n", line);
}

/* An object has its errors, and those of its members. */
static void
print_errors(const char *path, json_t *node, int depth, int *lines)
{
	const char *key;
	json_t *below;
	json_t *one;
	size_t i;

	json_array_foreach(json_object_get(node, "_errors"), i, one)
		print_error(path, one, lines);
	json_object_foreach(node, key, below) {
		auto_free char *longer = xprintf("%s%s%s", path,
		    *path != '\0' ? "." : "", key);

		if (depth > 0 && *lines > 0 && strcmp(key, "_errors") != 0 &&
		    strlen(longer) < PATH_MAX_BYTES)
			print_errors(longer, below, depth - 1, lines);
	}
}

/* Print an answer that is an error: a line for its message, and one for each
 * path of "errors", all of them bounded. */
static void
explain_answer(const char *answer)
{
	json_auto_t *root = json_loads(answer, 0, NULL);
	int lines = LINES_MAX;

	if (table_json_text(root, "message") != NULL)
		print_error("", root, &lines);
	print_errors("", json_object_get(root, "errors"), DEPTH_MAX, &lines);
	if (lines <= 0)
		(void)fputs("  …\n", stderr);
}

/* ---- register ---- */

/* Say what happened, and what may mend it.  what: the thing that Discord
 * refuses. */
static int
explain(const struct discord *d, const char *what, struct err *err)
{
	const struct rest_reply *reply = &d->reply;

	if (reply->status == 0)
		return err_wrap(err,
		    "cannot reach Discord at %s (outgoing HTTPS and DNS are "
		    "needed; `ilctl doctor` looks again)",
		    d->config->discord_api_base);
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
		    d->config->discord_application_id);
	if (reply->status == 429 || reply->status >= 500)
		return err_set(err, ERR_UNAVAILABLE,
		    "Discord cannot do it just now (status %d): try again in "
		    "some minutes",
		    reply->status);
	return err_set(err, ERR_PROTOCOL,
	    "Discord does not take %s (status %d, code %" PRId64 ")", what,
	    reply->status, reply->code);
}

/* Texts name commands by these ids, so that they can be clicked.  Nothing
 * depends on it. */
static void
keep_ids(const struct discord *d)
{
	struct err err = { 0 };
	auto_db struct db *db = db_open(d->config->database, DB_WORKER, &err);

	if (db == NULL ||
	    command_ids_keep(db, d->config->discord_application_id,
		buf_str(&d->answer), &err) < 0)
		printf("commands in texts cannot be clicked (%s); register "
		       "again when Inline runs\n",
		    err.text);
}

/* One request replaces all commands that are registered.  guild: 0 for all
 * servers. */
static int
send_commands(struct discord *d, int64_t guild, struct err *err)
{
	auto_free char *text = make_commands(d->config, guild != 0,
	    JSON_COMPACT);
	int64_t id = d->config->discord_application_id;
	auto_free char *path = guild != 0 ?
	    xprintf("%" PRId64 "/guilds/%" PRId64 "/commands", id, guild) :
	    xprintf("%" PRId64 "/commands", id);

	if (rest_application(d->rest, "PUT", path, text, REST_FINAL, &d->answer,
		&d->reply, err) != REST_DONE)
		return explain(d, "the commands", err);
	if (guild != 0) {
		printf("registered in guild %" PRId64 "\n", guild);
		return 0;
	}
	printf("registered for application %" PRId64 "\n", id);
	/* ids of one server's commands would work there alone */
	keep_ids(d);
	return 0;
}

/* Discord tests the address before it takes it: with a PING that is signed, and
 * with one that is signed wrongly. */
static int
send_endpoint(struct discord *d, const char *url, struct err *err)
{
	json_auto_t *changes = json_pack("{s:s}", "interactions_endpoint_url",
	    url);
	auto_free char *text = json_dumps(changes, JSON_COMPACT);

	if (text == NULL)
		return err_set(err, ERR_INPUT, "the URL is not UTF-8");
	if (rest_application(d->rest, "PATCH", "@me", text, REST_FINAL,
		&d->answer, &d->reply, err) != REST_DONE)
		return explain(d,
		    "that endpoint: `ilctl selftest URL` tells more", err);
	printf("Discord has tested the endpoint and takes it: %s\n", url);
	return 0;
}

/* Register all, in the order in which things go wrong: is it the right
 * application, and may everybody install it? */
static int
register_all(struct discord *d, int64_t guild, const char *endpoint,
    struct err *err)
{
	if (d->config->discord_application_id == 0)
		return err_set(err, ERR_CONFIG,
		    "DISCORD_APPLICATION_ID is not set");
	if (*d->config->discord_token == '\0')
		return err_set(err, ERR_CONFIG, "DISCORD_TOKEN is not set");
	if (ask_application(d, REST_FINAL, err) != REST_DONE)
		return d->rest == NULL ?
		    -1 :
		    explain(d, "the question for the application", err);
	if (compare_application(d, err) < 0) {
		d->app.box = NULL;
		return -1;
	}
	if (guild != 0)
		d->app.box = NULL;
	if (send_commands(d, guild, err) < 0)
		return -1;
	return endpoint == NULL ? 0 : send_endpoint(d, endpoint, err);
}

/* No other command needs the bot's token. */
int
ctl_register(struct ctl *ctl, struct err *err)
{
	struct discord d = { .config = &ctl->config,
		.answer = BUF_INIT(REST_ANSWER_MAX) };
	const char *server = ctl_cut(ctl, "--guild", 2);
	/* NULL: it stays as it is */
	const char *endpoint = ctl_cut(ctl, "--endpoint", 2);
	int64_t guild = 0;
	int code = CTL_OK;

	if (ctl->argc != 1 ||
	    (server != NULL && !text_parse_snowflake(server, &guild)) ||
	    (endpoint != NULL &&
		(strncmp(endpoint, "http", 4) != 0 ||
		    strlen(endpoint) > URL_MAX)))
		return CTL_MISUSED;
	if (register_all(&d, guild, endpoint, err) < 0) {
		code = ctl_fail(ctl->argv[0], err);
		explain_answer(buf_str(&d.answer));
	}
	if (d.app.box != NULL)
		(void)fprintf(stderr,
		    "Tick \"%s\" on the Installation page, with the scope "
		    "applications.commands, and register again:\n"
		    "https://discord.com/developers/applications/%" PRId64
		    "/installation\n",
		    d.app.box, ctl->config.discord_application_id);
	release_discord(&d);
	return code;
}
