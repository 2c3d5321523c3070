#include "interaction.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/text.h"

#define DISCORD_EPOCH_MS INT64_C(1420070400000)
#define PERMISSION_ATTACH_FILES (INT64_C(1) << 15)
#define TOKEN_MAX 1024
#define LOCALE_MAX 16
#define COMPONENTS_MAX 40

enum wire_type {
	WIRE_SUB_COMMAND = 1,
	WIRE_GROUP = 2,
	WIRE_ROW = 1,
	WIRE_TEXT_INPUT = 4,
	WIRE_LABEL = 18,
};

/* ---- reading JSON ---- */

/* A string without a NUL, or NULL. */
static const char *
get_string(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_string(value) ||
	    json_string_length(value) != strlen(json_string_value(value)))
		return NULL;
	return json_string_value(value);
}

static bool
get_int(const json_t *object, const char *key, int64_t *number)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value))
		return false;
	*number = json_integer_value(value);
	return true;
}

static bool
get_id(const json_t *object, const char *key, int64_t *id)
{
	const char *text = get_string(object, key);

	return text != NULL && text_parse_snowflake(text, strlen(text), id);
}

static char *
copy_string(const json_t *object, const char *key)
{
	const char *text = get_string(object, key);

	return xstrdup(text == NULL ? "" : text);
}

/* ---- what all have ---- */

static int64_t
attachment_limit(const json_t *root)
{
	int64_t limit;

	if (!get_int(root, "attachment_size_limit", &limit) || limit <= 0)
		return ATTACHMENT_LIMIT_DEFAULT;
	return limit < ATTACHMENT_LIMIT_MAX ? limit : ATTACHMENT_LIMIT_MAX;
}

static bool
may_attach(const json_t *root)
{
	const char *text = get_string(root, "app_permissions");
	int64_t bits;

	if (text == NULL || !text_parse_int(text, 0, INT64_MAX, &bits))
		return true;
	return (bits & PERMISSION_ATTACH_FILES) != 0;
}

static bool
parse_invoker(struct interaction *in, const json_t *root)
{
	const json_t *member = json_object_get(root, "member");
	const json_t *holder = json_is_object(member) ? member : root;

	return get_id(json_object_get(holder, "user"), "id", &in->user_id);
}

/* The token becomes a part of a URL: only what base64 may hold, and no '/'. */
static bool
parse_token(struct interaction *in, const json_t *root)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._~=+-";
	const char *token = get_string(root, "token");
	size_t len = token == NULL ? 0 : strlen(token);

	if (len == 0 || len > TOKEN_MAX || strspn(token, allowed) != len ||
	    token[0] == '.')
		return false;
	in->token = xstrdup(token);
	return true;
}

static int
parse_envelope(struct interaction *in, const json_t *root, struct err *err)
{
	const char *locale = get_string(root, "locale");

	if (!get_id(root, "id", &in->id))
		return err_set(err, ERR_INPUT, "no id");
	if (!get_id(root, "application_id", &in->application_id))
		return err_set(err, ERR_INPUT, "no application_id");
	if (!parse_token(in, root))
		return err_set(err, ERR_INPUT, "no token");
	if (!parse_invoker(in, root))
		return err_set(err, ERR_INPUT, "no user");
	if (locale == NULL || strlen(locale) > LOCALE_MAX)
		locale = "";
	in->locale = xstrdup(locale);
	in->attachment_limit = attachment_limit(root);
	in->may_attach = may_attach(root);
	return 0;
}

/* ---- attachments ---- */

/* One that is malformed is as good as missing: the option that names it finds
 * nothing. */
static void
parse_attachments(struct interaction *in, const json_t *data)
{
	json_t *all = json_object_get(json_object_get(data, "resolved"),
	    "attachments");
	const char *key;
	json_t *value;

	json_object_foreach(all, key, value)
	{
		struct interaction_attachment *a;
		const char *url = get_string(value, "url");
		const char *name = get_string(value, "filename");

		if (in->attachment_count == INTERACTION_ATTACHMENTS_MAX)
			break;
		a = &in->attachments[in->attachment_count];
		if (!get_id(value, "id", &a->id) || url == NULL ||
		    name == NULL || !get_int(value, "size", &a->size) ||
		    a->size < 0)
			continue;
		a->url = xstrdup(url);
		a->name = xstrdup(name);
		in->attachment_count++;
	}
}

/* ---- values ---- */

static struct interaction_value *
value_new(struct interaction *in, const char *name)
{
	struct interaction_value *value;

	if (in->value_count == INTERACTION_VALUES_MAX)
		return NULL;
	value = &in->values[in->value_count++];
	value->name = xstrdup(name);
	value->text = xstrdup("");
	return value;
}

static void
value_set_text(struct interaction_value *value, const json_t *text)
{
	value->type = VALUE_STRING;
	value->len = json_string_length(text);
	free(value->text);
	value->text = xmalloc(value->len + 1);
	memcpy(value->text, json_string_value(text), value->len + 1);
}

/* False: Discord would never say that of its own types. */
static bool
value_set(struct interaction_value *value, int64_t type, const json_t *option)
{
	const json_t *given = json_object_get(option, "value");

	switch (type) {
	case VALUE_STRING:
		if (!json_is_string(given))
			return false;
		value_set_text(value, given);
		return true;
	case VALUE_INTEGER:
		value->type = VALUE_INTEGER;
		return get_int(option, "value", &value->number);
	case VALUE_BOOLEAN:
		value->type = VALUE_BOOLEAN;
		value->flag = json_is_true(given);
		return json_is_boolean(given);
	case VALUE_ATTACHMENT:
		value->type = VALUE_ATTACHMENT;
		return get_id(option, "value", &value->number);
	default:
		value->type = VALUE_OTHER;
		return true;
	}
}

/* Autocomplete carries half-typed values of any type: it has only names. */
static int
parse_options(struct interaction *in, const json_t *options, struct err *err)
{
	size_t i;
	json_t *option;

	json_array_foreach(options, i, option)
	{
		struct interaction_value *value;
		const char *name = get_string(option, "name");
		int64_t type;

		if (name == NULL || !get_int(option, "type", &type))
			return err_set(err, ERR_INPUT, "bad option");
		value = value_new(in, name);
		if (value == NULL)
			return err_set(err, ERR_INPUT, "too many options");
		if (in->type != INTERACTION_AUTOCOMPLETE &&
		    !value_set(value, type, option))
			return err_set(err, ERR_INPUT, "bad option value");
	}
	return 0;
}

/* Walk down group and sub-command, each the only option of what holds it; what
 * is left are the leaves. */
static const json_t *
parse_sub_command(struct interaction *in, const json_t *data)
{
	auto_buf struct buf path = BUF_INIT(256);
	const json_t *options = json_object_get(data, "options");
	int64_t type;

	for (int depth = 0; depth < 2; depth++) {
		const json_t *only = json_array_get(options, 0);
		const char *name = get_string(only, "name");

		if (json_array_size(options) != 1 || name == NULL ||
		    !get_int(only, "type", &type) ||
		    (type != WIRE_SUB_COMMAND && type != WIRE_GROUP))
			break;
		if (depth > 0)
			buf_addc(&path, '/');
		buf_adds(&path, name);
		options = json_object_get(only, "options");
	}
	in->sub = xstrdup(path.overflow ? "?" : buf_str(&path));
	return options;
}

static int
parse_command(struct interaction *in, const json_t *data, struct err *err)
{
	if (get_string(data, "name") == NULL)
		return err_set(err, ERR_INPUT, "no command name");
	in->name = copy_string(data, "name");
	if (!get_int(data, "type", &in->command_type))
		in->command_type = 1;
	parse_attachments(in, data);
	return parse_options(in, parse_sub_command(in, data), err);
}

static int
parse_custom_id(struct interaction *in, const json_t *data, struct err *err)
{
	if (get_string(data, "custom_id") == NULL)
		return err_set(err, ERR_INPUT, "no custom_id");
	in->custom_id = copy_string(data, "custom_id");
	return 0;
}

/* Only text inputs count; anything else in a modal is skipped. */
static int
parse_input(struct interaction *in, const json_t *input, struct err *err)
{
	const char *name = get_string(input, "custom_id");
	const json_t *text = json_object_get(input, "value");
	struct interaction_value *value;
	int64_t type;

	if (!get_int(input, "type", &type) || type != WIRE_TEXT_INPUT)
		return 0;
	if (name == NULL || (text != NULL && !json_is_string(text)))
		return err_set(err, ERR_INPUT, "bad text input");
	value = value_new(in, name);
	if (value == NULL)
		return err_set(err, ERR_INPUT, "too many inputs");
	if (text != NULL)
		value_set_text(value, text);
	value->type = VALUE_STRING;
	return 0;
}

/* Both shapes: {18, component: input} and {1, components: [input]}. */
static int
parse_modal(struct interaction *in, const json_t *data, struct err *err)
{
	const json_t *parts = json_object_get(data, "components");
	size_t i;
	json_t *part;

	if (parse_custom_id(in, data, err) < 0)
		return -1;
	if (!json_is_array(parts) || json_array_size(parts) > COMPONENTS_MAX)
		return err_set(err, ERR_INPUT, "bad components");
	json_array_foreach(parts, i, part)
	{
		int64_t type = 0;
		const json_t *input = NULL;

		(void)get_int(part, "type", &type);
		if (type == WIRE_LABEL)
			input = json_object_get(part, "component");
		else if (type == WIRE_ROW)
			input = json_array_get(json_object_get(part,
						   "components"),
			    0);
		if (input != NULL && parse_input(in, input, err) < 0)
			return -1;
	}
	parse_attachments(in, data);
	return 0;
}

/* ---- the whole ---- */

static int
parse_data(struct interaction *in, const json_t *root, struct err *err)
{
	const json_t *data = json_object_get(root, "data");

	if (!json_is_object(data))
		return err_set(err, ERR_INPUT, "no data");
	switch (in->type) {
	case INTERACTION_COMMAND:
	case INTERACTION_AUTOCOMPLETE:
		return parse_command(in, data, err);
	case INTERACTION_COMPONENT:
		return parse_custom_id(in, data, err);
	case INTERACTION_MODAL:
		return parse_modal(in, data, err);
	case INTERACTION_PING:
		break;
	}
	return 0;
}

static int
parse_root(struct interaction *in, const json_t *root, struct err *err)
{
	int64_t type;

	if (!get_int(root, "type", &type) || type < INTERACTION_PING ||
	    type > INTERACTION_MODAL)
		return err_set(err, ERR_INPUT, "unknown interaction type");
	in->type = (enum interaction_type)type;
	if (in->type == INTERACTION_PING) {
		/* it must work whatever else is or is not in it */
		(void)get_id(root, "id", &in->id);
		return 0;
	}
	if (parse_envelope(in, root, err) < 0)
		return -1;
	return parse_data(in, root, err);
}

static void
fill_empty(char **slot)
{
	if (*slot == NULL)
		*slot = xstrdup("");
}

int
interaction_parse(struct interaction *in, const char *body, size_t len,
    struct err *err)
{
	json_error_t error;
	/* jansson bounds the depth (2,048) and refuses invalid UTF-8.  A NUL in
	 * a text is let in, so that its sender can be told. */
	json_auto_t *root = json_loadb(body, len,
	    JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);

	memset(in, 0, sizeof(*in));
	if (root == NULL)
		/* error.text quotes the body, and so may hold the token */
		return err_set(err, ERR_INPUT, "not JSON at byte %d, code %d",
		    error.position, (int)json_error_code(&error));
	if (parse_root(in, root, err) < 0) {
		interaction_release(in);
		return -1;
	}
	fill_empty(&in->token);
	fill_empty(&in->locale);
	fill_empty(&in->name);
	fill_empty(&in->sub);
	fill_empty(&in->custom_id);
	return 0;
}

void
interaction_release(struct interaction *in)
{
	if (in == NULL)
		return;
	for (size_t i = 0; i < in->value_count; i++) {
		free(in->values[i].name);
		free(in->values[i].text);
	}
	for (size_t i = 0; i < in->attachment_count; i++) {
		free(in->attachments[i].url);
		free(in->attachments[i].name);
	}
	free(in->token);
	free(in->locale);
	free(in->name);
	free(in->sub);
	free(in->custom_id);
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
