/* SPDX-License-Identifier: MIT */
/* What can be pressed below a message: buttons, five in a row, and menus, each
 * of which is a row. */
#include "message.h"

#include <string.h>

#include "../../base/cleanup.h"
#include "../../base/utf8.h"
#include "../../locale/locale.h"
#include "../../store/editor.h"

#define ROWS_MAX 5
#define ROW_BUTTONS_MAX 5
#define LABEL_MOST 100 /* code points of an option's label */

enum component {
	COMPONENT_ROW = 1,
	COMPONENT_BUTTON = 2,
	COMPONENT_SELECT = 3,
};

static const json_t *
last_of(const json_t *array)
{
	size_t count = json_array_size(array);

	return count == 0 ? NULL : json_array_get(array, count - 1);
}

/* What a row holds, and of which type the last one in it is. */
static json_t *
parts_of(const json_t *row, int *type)
{
	json_t *parts = json_object_get(row, "components");

	*type = (int)json_integer_value(json_object_get(last_of(parts),
	    "type"));
	return parts;
}

/* Append a new row; NULL: there are five. */
static json_t *
add_row(struct message *message)
{
	if (message->rows == NULL)
		message->rows = json_array();
	if (json_array_size(message->rows) == ROWS_MAX)
		return NULL;
	json_array_append_new(message->rows,
	    json_pack("{s:i, s:[]}", "type", COMPONENT_ROW, "components"));
	return json_object_get(last_of(message->rows), "components");
}

/* Where the next button goes. */
static json_t *
button_row(struct message *message)
{
	int type;
	json_t *parts = parts_of(last_of(message->rows), &type);

	if (type == COMPONENT_BUTTON &&
	    json_array_size(parts) < ROW_BUTTONS_MAX)
		return parts;
	return add_row(message);
}

void
message_add_button(struct message *message, enum action action, int64_t view_id,
    const char *label, int style, bool disabled)
{
	auto_free char *id = editor_id(action, view_id);
	json_t *row = button_row(message);

	if (row != NULL)
		json_array_append_new(row,
		    json_pack("{s:i, s:i, s:s, s:s, s:b}", "type",
			COMPONENT_BUTTON, "style", style, "label", label,
			"custom_id", id, "disabled", (int)disabled));
}

void
message_add_menu(struct message *message, enum action action, int64_t view_id,
    const char *hint)
{
	auto_free char *id = editor_id(action, view_id);
	json_t *row = add_row(message);

	if (row != NULL)
		json_array_append_new(row,
		    json_pack("{s:i, s:s, s:s, s:[]}", "type", COMPONENT_SELECT,
			"custom_id", id, "placeholder", hint, "options"));
}

/* Is there nothing to see in it?  A label of blanks alone is refused; what has
 * no width has been named by now. */
static bool
is_blank(const char *text)
{
	size_t left = strlen(text);

	while (left > 0) {
		size_t step = utf8_step(text, left);

		if (step == 0 || !utf8_is_blank(utf8_decode(text, step)))
			return false;
		text += step;
		left -= step;
	}
	return true;
}

void
message_add_option(struct message *message, const char *name, const char *value,
    bool chosen)
{
	auto_buf struct buf label = BUF_INIT(16 * LABEL_MOST);
	int type;
	json_t *parts = parts_of(last_of(message->rows), &type);
	json_t *options = json_object_get(last_of(parts), "options");

	if (type != COMPONENT_SELECT ||
	    json_array_size(options) == MESSAGE_OPTIONS_MAX)
		return;
	/* the ellipsis counts, too */
	message_add_word(&label, name, LABEL_MOST - 1);
	if (is_blank(buf_str(&label))) {
		buf_reset(&label);
		buf_addf(&label, _("(a name of blanks, %zu bytes)"),
		    strlen(name));
	}
	json_array_append_new(options,
	    json_pack("{s:s, s:s, s:b}", "label", buf_str(&label), "value",
		value, "default", (int)chosen));
}
