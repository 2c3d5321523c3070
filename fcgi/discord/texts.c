#include "texts.h"

#include <string.h>

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/text.h"

#define ARGUMENT_MAX 100

/* Short, kind, and with the way out.  Discord's limits: 2,000 code points, 80
 * on a button, 45 in a title or label, 100 in a placeholder. */
static const char *const english[TEXT_COUNT] = {
	[TEXT_NO_SANDBOX] = "You have no sandbox yet. Make one with "
			    "`/il create`, it takes a moment.",
	[TEXT_EXPIRED] = "Your sandbox expired <t:{}:R>, because it was not "
			 "used for a while, and its files are gone. "
			 "`/il create` makes a new one.",
	[TEXT_REMOVING] = "Your sandbox is being deleted. `/il create` makes a "
			  "new one in a moment.",
	[TEXT_RUNNING] = "Your last command is still running. Wait for its "
			 "answer, then send this one again.",
	[TEXT_TOO_MANY] = "That was a lot of commands in a short time. Wait a "
			  "minute, then go on.",
	[TEXT_QUEUE_FULL] = "There is a long queue just now. Try again in a "
			    "minute.",
	[TEXT_OUR_FAULT] = "Something on our side does not work just now; it "
			   "is not your fault. Try again in a minute. If it "
			   "stays, tell the operator this reference: `{}`",
	[TEXT_UNKNOWN_COMMAND] =
	    "I do not know that command (any more). Type "
	    "`/il` to see what there is; if the list looks "
	    "old, restart Discord.",
	[TEXT_UNKNOWN_OPTION] = "I do not know the option `{}` (any more). "
				"Type the command again and choose from its "
				"list; if the list looks old, restart Discord.",
	[TEXT_MISSING_OPTION] = "The option `{}` is missing. Type the command "
				"again and fill it in.",
	[TEXT_UNKNOWN_BUTTON] = "That button comes from an older version and "
				"does nothing now. Send the command again.",
	[TEXT_NOT_YOURS] = "That button belongs to somebody else. Send the "
			   "command yourself to get your own.",
	[TEXT_GONE] = "That message is too old. Send the command again.",
	[TEXT_NO_ATTACHMENT] = "The file did not arrive. Attach it again.",
	[TEXT_TOO_LONG] =
	    "`{}` is too long. Put it into a file and upload that "
	    "with `/il put`.",
	[TEXT_NUL] = "`{}` holds a NUL character, which I cannot take. Remove "
		     "it, or upload a file with `/il put`.",
	[TEXT_BAD_NUMBER] = "`{}` is out of range. Pages are counted from 1.",
	[TEXT_NOT_INSIDE] = "That path is not inside your sandbox.",
	[TEXT_CODE_AND_FILE] = "Give either `code` or `file`, not both.",
	[TEXT_NO_CODE] = "There was no code in it. Try `/il py` again.",

	[TEXT_DELETE_QUESTION] = "Delete your sandbox with **all of its "
				 "files** and packages? This cannot be undone.",
	[TEXT_DELETE_YES] = "Delete everything",
	[TEXT_DELETE_NO] = "Keep it",
	[TEXT_DELETE_KEPT] = "Nothing was deleted.",

	[TEXT_EDITOR_TITLE] = "Run Python",
	[TEXT_EDITOR_CODE] = "Code",
	[TEXT_EDITOR_CODE_HINT] = "print(\"hello\")",
	[TEXT_EDITOR_INPUT] = "Input (stdin)",
	[TEXT_EDITOR_INPUT_HINT] = "What input() will read, if anything",
};

const char *
text_get(const char *locale, enum text_id id)
{
	(void)locale; /* English is the only one so far */
	return english[id];
}

/* In our texts an argument stands in back-ticks, so it may not hold any. */
static void
add_argument(struct buf *out, const char *argument)
{
	auto_buf struct buf clean = BUF_INIT(2048);
	size_t len = strlen(argument);

	text_add_clean(&clean, argument,
	    text_prefix(argument, len, ARGUMENT_MAX));
	for (size_t i = 0; i < clean.len; i++)
		buf_addc(out,
		    clean.data[i] == '`' || clean.data[i] == '\n' ?
			' ' :
			clean.data[i]);
}

void
text_add(struct buf *out, const char *locale, enum text_id id,
    const char *argument)
{
	const char *text = text_get(locale, id);
	const char *place = strstr(text, "{}");

	if (place == NULL) {
		buf_adds(out, text);
		return;
	}
	buf_add(out, text, (size_t)(place - text));
	add_argument(out, argument);
	buf_adds(out, place + 2);
}
