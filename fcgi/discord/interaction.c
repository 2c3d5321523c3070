/* SPDX-License-Identifier: MIT */
#include "discord/interaction.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <sodium.h>

#include "base/basics.h"
#include "base/text.h"
#include "protocol/frame_limits.h"

#define DISCORD_EPOCH_MS INT64_C(1420070400000)
#define PERMISSION_ATTACH_FILES (INT64_C(1) << 15)
#define PERMISSION_SEND_MESSAGES (INT64_C(1) << 11)
#define PERMISSION_SEND_IN_THREADS (INT64_C(1) << 38)
#define PERMISSION_USE_EXTERNAL_APPS (INT64_C(1) << 50)
#define TOKEN_MAX 1024
#define COMPONENTS_MAX 40
#define ROWS_MAX 5 /* of buttons, in a message */
#define ROW_MAX 5  /* buttons in a row */
/* The fixed length keeps the boundary to the body where it is; 10 digits last
 * until the year 2286. */
#define TIMESTAMP_LEN 10

enum wire_type {
	WIRE_SUB_COMMAND = 1,
	WIRE_GROUP = 2,
	WIRE_ROW = 1,
	WIRE_SELECT = 3,
	WIRE_TEXT_INPUT = 4,
	WIRE_LABEL = 18,
};

_Static_assert(INTERACTION_KEY_LEN == crypto_sign_PUBLICKEYBYTES, "key length");

/* ---- the signature ---- */

bool
interaction_decode_key(struct interaction_key *key, const char *hex)
{
	return text_parse_hex(hex, strlen(hex), key->bytes,
	    INTERACTION_KEY_LEN);
}

const char *
interaction_verify(const struct interaction_key *key, const char *timestamp,
    const char *signature, const void *body, size_t len, int64_t *signed_at)
{
	unsigned char sig[crypto_sign_BYTES];
	auto_free unsigned char *message = NULL;

	if (timestamp == NULL || strlen(timestamp) != TIMESTAMP_LEN ||
	    strspn(timestamp, "0123456789") != TIMESTAMP_LEN)
		return "no-timestamp";
	if (signature == NULL ||
	    !text_parse_hex(signature, strlen(signature), sig, sizeof(sig)))
		return "no-signature";
	if (len == 0)
		return "no-body";
	message = xmalloc(TIMESTAMP_LEN + len);
	memcpy(message, timestamp, TIMESTAMP_LEN);
	memcpy(message + TIMESTAMP_LEN, body, len);
	if (crypto_sign_verify_detached(sig, message, TIMESTAMP_LEN + len,
		key->bytes) != 0)
		return "wrong-signature";
	*signed_at = strtoll(timestamp, NULL, 10);
	return NULL;
}

/* ---- ids of buttons and editors ---- */

enum action
action_parse(const char *custom_id, enum action_type type, int64_t *view_id,
    const char **word)
{
	size_t len = strcspn(custom_id, ":");
	const char *number = custom_id + len + (custom_id[len] == ':');
	auto_free char *digits = xstrndup(number, strcspn(number, ":"));
	const char *rest = number + strlen(digits);
	int i = 0;

	if (!text_parse_snowflake(digits, view_id))
		return ACTION_COUNT;
	*word = *rest == ':' ? rest + 1 : NULL;
	while (i < ACTION_COUNT &&
	    (command_actions[i].type != type ||
		strlen(command_actions[i].name) != len ||
		memcmp(command_actions[i].name, custom_id, len) != 0))
		i++;
	return (*word != NULL) == (i == ACTION_PY_TRIED) ? (enum action)i :
							   ACTION_COUNT;
}

/* ---- reading JSON: a value may be missing or of another type ---- */

/* A body that jansson refuses is parsed once more as json_mend() mends it.  A
 * text may hold a NUL, so that the person can be told of it.  If a key stands
 * twice, the last one holds, as for Discord itself.  jansson bounds the depth
 * (2,048) and refuses invalid UTF-8. */
static json_t *
wire_load(const char *body, size_t len, json_error_t *error)
{
	json_t *root = json_loadb(body, len, JSON_ALLOW_NUL, error);
	auto_free char *mended = NULL;

	if (root != NULL)
		return root;
	mended = json_mend(body, len);
	return json_loadb(mended, len, JSON_ALLOW_NUL, error);
}

/* A string without a NUL, or NULL. */
static const char *
wire_string(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_string(value) ||
	    json_string_length(value) != strlen(json_string_value(value)))
		return NULL;
	return json_string_value(value);
}

static bool
wire_int(const json_t *object, const char *key, int64_t *number)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value))
		return false;
	*number = json_integer_value(value);
	return true;
}

static bool
wire_id(const json_t *object, const char *key, int64_t *id)
{
	const char *text = wire_string(object, key);

	return text != NULL && text_parse_snowflake(text, id);
}

/* Is there an array of this name, and something in it? */
static bool
wire_is_filled(const json_t *object, const char *key)
{
	return json_array_size(json_object_get(object, key)) > 0;
}

/* May it become a part of a URL: only what base64 may hold, and no '/'? */
static bool
wire_is_token(const char *token)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._~=+-";
	size_t len = token == NULL ? 0 : strlen(token);

	return len > 0 && len <= TOKEN_MAX && strspn(token, allowed) == len &&
	    token[0] != '.';
}

/* The permissions that a key holds as a string; all of them if it is absent. */
static int64_t
wire_permissions(const json_t *object, const char *key)
{
	const char *text = wire_string(object, key);
	int64_t bits = -1;

	if (text != NULL)
		(void)text_parse_int(text, 0, INT64_MAX, &bits);
	return bits;
}

/* May we post a public message where the interaction came from?  bits: our
 * permissions.  A server can forbid it to us, or to apps that people have
 * installed for themselves. */
static bool
wire_may_post(const json_t *root, int64_t bits)
{
	enum { THREAD_FIRST = 10, THREAD_LAST = 12 };
	const json_t *owners = json_object_get(root,
	    "authorizing_integration_owners");
	const json_t *member = json_object_get(root, "member");
	int64_t channel = 0;
	bool thread;

	if (!json_is_object(member))
		return true;
	if (json_is_object(owners) && json_object_get(owners, "0") == NULL)
		return (wire_permissions(member, "permissions") &
			   PERMISSION_USE_EXTERNAL_APPS) != 0;
	(void)wire_int(json_object_get(root, "channel"), "type", &channel);
	thread = channel >= THREAD_FIRST && channel <= THREAD_LAST;
	return (bits &
		   (thread ? PERMISSION_SEND_IN_THREADS :
			     PERMISSION_SEND_MESSAGES)) != 0;
}

/* The view of the run whose buttons a message of ours has; 0: it has none, or
 * another application sent the message. */
static int64_t
wire_view(const json_t *message, int64_t application_id)
{
	const json_t *rows = json_object_get(message, "components");
	int64_t sender = 0;

	/* another application can write any id into its buttons */
	if (!wire_id(message, "application_id", &sender) ||
	    sender != application_id)
		return 0;
	for (size_t i = 0; i < ROWS_MAX * ROW_MAX; i++) {
		const json_t *row = json_array_get(rows, i / ROW_MAX);
		const json_t *buttons = json_object_get(row, "components");
		const json_t *button = json_array_get(buttons, i % ROW_MAX);
		const char *custom_id = wire_string(button, "custom_id");
		const char *word;
		int64_t id = 0;
		enum action action = custom_id == NULL ?
		    ACTION_COUNT :
		    action_parse(custom_id, ACTION_BUTTON, &id, &word);

		if (action != ACTION_COUNT &&
		    command_actions[action].kind == JOB_PY)
			return id;
	}
	return 0;
}

/* ---- parts of an interaction ---- */

/* Each returns NULL, or a word that says what is wrong. */

/* The envelope of all types but PING: ids, user and token must be there. */
static const char *
parse_envelope(struct interaction *in, const json_t *root)
{
	const json_t *member = json_object_get(root, "member");
	const json_t *holder = json_is_object(member) ? member : root;
	const char *token = wire_string(root, "token");
	const char *locale = wire_string(root, "locale");
	int64_t bits = wire_permissions(root, "app_permissions");

	if (!wire_id(root, "id", &in->id) ||
	    !wire_id(root, "application_id", &in->application_id) ||
	    !wire_id(json_object_get(holder, "user"), "id", &in->user_id) ||
	    !wire_is_token(token))
		return "bad-envelope";
	(void)wire_id(root, "guild_id", &in->guild_id);
	in->token = token;
	if (locale != NULL && strlen(locale) <= LOCALE_MAX)
		in->locale = locale;

	/* a limit that makes no sense counts as missing */
	if (!wire_int(root, "attachment_size_limit", &in->attachment_limit) ||
	    in->attachment_limit <= 0)
		in->attachment_limit = ATTACHMENT_LIMIT_DEFAULT;
	if (in->attachment_limit > ATTACHMENT_LIMIT_MAX)
		in->attachment_limit = ATTACHMENT_LIMIT_MAX;
	in->may_attach = (bits & PERMISSION_ATTACH_FILES) != 0;
	in->may_post = wire_may_post(root, bits);
	return NULL;
}

/* The name that its owner gave an uploaded file; NULL: it has none.  Where
 * Discord has renamed the file, the owner's name is the title, without its
 * ending.  A title that cannot be a file's name counts as missing. */
static const char *
read_file_name(json_t *attachment)
{
	const char *name = wire_string(attachment, "filename");
	const char *title = wire_string(attachment, "title");
	const char *dot = name != NULL ? strrchr(name, '.') : NULL;

	if (name == NULL || title == NULL || *title == '\0' ||
	    strchr(title, '/') != NULL)
		return name;
	for (const char *c = title; *c != '\0'; c++)
		if ((unsigned char)*c < ' ' || *c == '\x7f')
			return name;
	if (dot == NULL || strchr(title, '.') != NULL)
		dot = "";
	if (strlen(title) + strlen(dot) > LIMIT_NAME)
		return name;
	(void)json_object_set_new(attachment, "title",
	    json_sprintf("%s%s", title, dot));
	return wire_string(attachment, "title");
}

/* A malformed attachment counts as missing: the option that names it finds
 * nothing. */
static void
parse_attachment(struct interaction *in, json_t *value)
{
	struct interaction_attachment a = {
		.url = wire_string(value, "url"),
		.name = read_file_name(value),
	};

	if (in->attachment_count < INTERACTION_ATTACHMENTS_MAX &&
	    wire_id(value, "id", &a.id) && a.url != NULL && a.name != NULL &&
	    wire_int(value, "size", &a.size) && a.size >= 0)
		in->attachments[in->attachment_count++] = a;
}

static void
parse_attachments(struct interaction *in, const json_t *data)
{
	json_t *all = json_object_get(json_object_get(data, "resolved"),
	    "attachments");
	const char *key;
	json_t *value;

	json_object_foreach(all, key, value)
		parse_attachment(in, value);
}

/* The message that holds text and files: of a forwarding message, which has
 * none itself, the forwarded one. */
static const json_t *
said_by(const json_t *message)
{
	const json_t *text = json_object_get(message, "content");
	const json_t *first = json_array_get(json_object_get(message,
						 "message_snapshots"),
	    0);
	const json_t *forwarded = json_object_get(first, "message");

	return json_is_object(forwarded) && json_string_length(text) == 0 &&
		!wire_is_filled(message, "attachments") ?
	    forwarded :
	    message;
}

/* Parse the message whose menu was used, if Discord sent it along.  A malformed
 * part of it counts as missing. */
static void
parse_message(struct interaction *in, const json_t *data)
{
	const char *id = wire_string(data, "target_id");
	const json_t *all = json_object_get(json_object_get(data, "resolved"),
	    "messages");
	const json_t *message = id == NULL ? NULL : json_object_get(all, id);
	const json_t *text;
	size_t i;
	json_t *value;

	if (!json_is_object(message))
		return;
	message = said_by(message);
	in->message.found = true;
	in->message.view_id = wire_view(message, in->application_id);
	in->message.shows = wire_is_filled(message, "embeds") ||
	    wire_is_filled(message, "components") ||
	    wire_is_filled(message, "sticker_items");
	text = json_object_get(message, "content");
	if (json_is_string(text)) {
		in->message.len = json_string_length(text);
		in->message.text = json_string_value(text);
	}
	json_array_foreach(json_object_get(message, "attachments"), i, value)
		parse_attachment(in, value);
}

/* A new value, of a text until its type is known; NULL: it has no name, or
 * there are too many. */
static struct interaction_value *
value_new(struct interaction *in, const char *name)
{
	struct interaction_value *value = &in->values[in->value_count];

	if (name == NULL || in->value_count == INTERACTION_VALUES_MAX)
		return NULL;
	in->value_count++;
	*value = (struct interaction_value){ name, OPTION_STRING, "", 0, 0 };
	return value;
}

static bool
value_set_text(struct interaction_value *value, const json_t *text)
{
	if (!json_is_string(text))
		return false;
	value->text = json_string_value(text);
	value->len = json_string_length(text);
	return true;
}

/* False: Discord never sends such a value for one of its types. */
static bool
value_set(struct interaction_value *value, const json_t *option)
{
	const json_t *given = json_object_get(option, "value");

	switch (value->type) {
	case OPTION_STRING:
		return value_set_text(value, given);
	case OPTION_INTEGER:
		return wire_int(option, "value", &value->number);
	case OPTION_BOOLEAN:
		value->number = json_is_true(given);
		return json_is_boolean(given);
	case OPTION_ATTACHMENT:
		return wire_id(option, "value", &value->number);
	default:
		return true;
	}
}

/* Autocomplete: only the text that is being typed is read. */
static void
value_focus(struct interaction *in, struct interaction_value *value,
    const json_t *option)
{
	if (in->focused != NULL || value->type != OPTION_STRING ||
	    !json_is_true(json_object_get(option, "focused")))
		return;
	in->focused = value;
	(void)value_set_text(value, json_object_get(option, "value"));
}

static const char *
parse_options(struct interaction *in, const json_t *options)
{
	size_t i;
	json_t *option;

	json_array_foreach(options, i, option) {
		struct interaction_value *value = value_new(in,
		    wire_string(option, "name"));

		if (value == NULL || !wire_int(option, "type", &value->type))
			return "bad-option";
		if (in->type == INTERACTION_AUTOCOMPLETE)
			value_focus(in, value, option);
		else if (!value_set(value, option))
			return "bad-value";
	}
	return NULL;
}

/* Walk down group and sub-command, each the only option of its parent.  Returns
 * the options of the last one. */
static const json_t *
parse_sub_command(struct interaction *in, const json_t *data)
{
	const json_t *options = json_object_get(data, "options");
	int64_t type;

	for (int depth = 0; depth < 2; depth++) {
		json_t *only = json_array_get(options, 0);
		const char *name = wire_string(only, "name");

		if (json_array_size(options) != 1 || name == NULL ||
		    !wire_int(only, "type", &type) ||
		    (type != WIRE_SUB_COMMAND && type != WIRE_GROUP))
			break;
		if (depth > 0)
			(void)json_object_set_new(only, "name",
			    json_sprintf("%s/%s", in->sub, name));
		in->sub = json_string_value(json_object_get(only, "name"));
		options = json_object_get(only, "options");
	}
	return options;
}

static const char *
parse_command(struct interaction *in, const json_t *data)
{
	in->name = wire_string(data, "name");
	if (in->name == NULL)
		return "no-command-name";
	in->command_type = 1;
	(void)wire_int(data, "type", &in->command_type);
	parse_attachments(in, data);
	parse_message(in, data);
	return parse_options(in, parse_sub_command(in, data));
}

/* A button has no values, a menu has the chosen ones. */
static const char *
parse_component(struct interaction *in, const json_t *data)
{
	const json_t *chosen = json_object_get(data, "values");
	int64_t type = 0;
	size_t i;
	json_t *text;

	(void)wire_int(data, "component_type", &type);
	in->is_select = type == WIRE_SELECT;
	if (in->is_select && !json_is_array(chosen))
		return "no-menu-values";
	json_array_foreach(in->is_select ? chosen : NULL, i, text) {
		struct interaction_value *value = value_new(in, "");

		if (value == NULL || !value_set_text(value, text))
			return "bad-menu-value";
	}
	return NULL;
}

/* Only text inputs count; anything else in a modal is skipped. */
static const char *
parse_input(struct interaction *in, const json_t *input)
{
	const json_t *text = json_object_get(input, "value");
	struct interaction_value *value;
	int64_t type;

	if (!wire_int(input, "type", &type) || type != WIRE_TEXT_INPUT)
		return NULL;
	value = value_new(in, wire_string(input, "custom_id"));
	/* an input that was left empty may be null */
	return value != NULL &&
		(text == NULL || json_is_null(text) ||
		    value_set_text(value, text)) ?
	    NULL :
	    "bad-input";
}

/* Both shapes: {18, component: input} and {1, components: [input]}. */
static const char *
parse_modal(struct interaction *in, const json_t *data)
{
	const json_t *parts = json_object_get(data, "components");
	const char *wrong = NULL;
	size_t i;
	json_t *part;

	if (!json_is_array(parts) || json_array_size(parts) > COMPONENTS_MAX)
		return "bad-components";
	json_array_foreach(parts, i, part) {
		int64_t type = 0;

		(void)wire_int(part, "type", &type);
		if (type == WIRE_LABEL)
			wrong = parse_input(in,
			    json_object_get(part, "component"));
		else if (type == WIRE_ROW)
			wrong = parse_input(in,
			    json_array_get(json_object_get(part, "components"),
				0));
		if (wrong != NULL)
			return wrong;
	}
	parse_attachments(in, data);
	return NULL;
}

/* ---- an interaction ---- */

static const char *
parse_root(struct interaction *in, const json_t *root)
{
	const json_t *data = json_object_get(root, "data");
	const char *wrong;
	int64_t type;

	if (!wire_int(root, "type", &type) || type < INTERACTION_PING ||
	    type > INTERACTION_MODAL)
		return "unknown-type";
	in->type = (enum interaction_type)type;
	if (in->type == INTERACTION_PING) {
		/* a PING must work whatever else is or is not in it */
		(void)wire_id(root, "id", &in->id);
		return NULL;
	}
	wrong = parse_envelope(in, root);
	if (wrong != NULL)
		return wrong;
	if (in->type != INTERACTION_COMPONENT && in->type != INTERACTION_MODAL)
		return parse_command(in, data);
	in->custom_id = wire_string(data, "custom_id");
	if (in->custom_id == NULL)
		return "no-custom-id";
	return in->type == INTERACTION_MODAL ? parse_modal(in, data) :
					       parse_component(in, data);
}

int
interaction_parse(struct interaction *in, const char *body, size_t len,
    struct err *err)
{
	json_error_t error;
	json_t *root = wire_load(body, len, &error);
	const char *wrong;

	*in = (struct interaction){ .root = root,
		.token = "",
		.locale = "",
		.name = "",
		.sub = "",
		.custom_id = "",
		.message.text = "" };
	if (root == NULL)
		/* error.text quotes the body, and so may hold the token */
		return err_set(err, ERR_INPUT, "not JSON at byte %d, code %d",
		    error.position, (int)json_error_code(&error));
	wrong = parse_root(in, root);
	if (wrong == NULL)
		return 0;
	interaction_release(in);
	return err_set(err, ERR_INPUT, "%s", wrong);
}

void
interaction_release(struct interaction *in)
{
	json_decref(in->root);
	memset(in, 0, sizeof(*in));
}

const struct interaction_value *
interaction_value(const struct interaction *in, const char *name)
{
	for (size_t i = 0; i < in->value_count; i++)
		if (strcmp(in->values[i].name, name) == 0)
			return &in->values[i];
	return NULL;
}

const struct interaction_attachment *
interaction_attachment(const struct interaction *in, int64_t id)
{
	for (size_t i = 0; i < in->attachment_count; i++)
		if (in->attachments[i].id == id)
			return &in->attachments[i];
	return NULL;
}

int64_t
interaction_created_ms(int64_t id)
{
	return (id >> 22) + DISCORD_EPOCH_MS;
}

char *
interaction_label(const struct interaction *in)
{
	return xprintf("interaction=%" PRId64
		       " type=%s name=\"%.32s %.32s%.32s\" user=%" PRId64,
	    in->id, interaction_type_words[in->type], in->name, in->sub,
	    in->custom_id, in->user_id);
}
