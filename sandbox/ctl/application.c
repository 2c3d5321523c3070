/* SPDX-License-Identifier: MIT */
#include "application.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "../base/buf.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/text.h"

/* Which fields there are, and that they are what they should be, is checked:
 * Discord adds some, and leaves others out. */
static int
parse(const char *answer, struct application *app, struct err *err)
{
	json_auto_t *root = json_loads(answer, 0, NULL);
	const char *id = json_string_value(json_object_get(root, "id"));
	const char *key = json_string_value(json_object_get(root,
	    "verify_key"));
	const json_t *installs = json_object_get(root,
	    "integration_types_config");
	unsigned char bytes[32];

	*app = (struct application){ 0 };
	if (id == NULL || !text_parse_snowflake(id, strlen(id), &app->id))
		return err_set(err, ERR_PROTOCOL,
		    "what answers at /applications/@me is not Discord");
	if (key != NULL &&
	    text_parse_hex(key, strlen(key), bytes, sizeof(bytes)))
		(void)snprintf(app->verify_key, sizeof(app->verify_key), "%s",
		    key);
	app->endpoint = json_is_string(json_object_get(root,
	    "interactions_endpoint_url"));
	app->contexts = json_object_size(installs) > 0;
	app->guild = json_is_object(json_object_get(installs, "0"));
	app->user = json_is_object(json_object_get(installs, "1"));
	return 0;
}

enum rest_outcome
application_ask(struct rest *rest, enum rest_patience patience,
    struct application *app, struct buf *answer, struct rest_reply *reply,
    struct err *err)
{
	enum rest_outcome outcome = rest_application(rest, NULL, patience,
	    answer, reply, err);

	if (outcome == REST_DONE && parse(buf_str(answer), app, err) < 0)
		return REST_REFUSED;
	return outcome;
}

int
application_compare(const struct application *app, const struct config *config,
    struct err *err)
{
	if (app->id != config->discord_application_id)
		return err_set(err, ERR_CONFIG,
		    "DISCORD_TOKEN is of application %" PRId64
		    ", DISCORD_APPLICATION_ID is %" PRId64,
		    app->id, config->discord_application_id);
	if (*config->discord_public_key != '\0' && *app->verify_key != '\0' &&
	    strcasecmp(app->verify_key, config->discord_public_key) != 0)
		return err_set(err, ERR_CONFIG,
		    "DISCORD_PUBLIC_KEY is not this application's: Discord "
		    "says %s",
		    app->verify_key);
	return 0;
}

const char *
application_missing_box(const struct application *app)
{
	if (!app->contexts || (app->guild && app->user))
		return NULL;
	return app->guild ? "User Install" : "Guild Install";
}
