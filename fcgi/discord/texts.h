#ifndef TEXTS_H
#define TEXTS_H

struct buf;

/*
 * Every sentence that the front says to people, in one place, so that it can be
 * said in other languages later.  In a text, "{}" stands for the argument.
 */
enum text_id {
	TEXT_NO_SANDBOX,
	TEXT_EXPIRED, /* {}: when, Unix seconds */
	TEXT_REMOVING,
	TEXT_RUNNING,
	TEXT_TOO_MANY,
	TEXT_QUEUE_FULL,
	TEXT_OUR_FAULT, /* {}: the reference */
	TEXT_UNKNOWN_COMMAND,
	TEXT_UNKNOWN_OPTION, /* {}: its name */
	TEXT_MISSING_OPTION, /* {}: its name */
	TEXT_UNKNOWN_BUTTON,
	TEXT_NOT_YOURS,
	TEXT_GONE,
	TEXT_NO_ATTACHMENT,
	TEXT_TOO_LONG,	 /* {}: its name */
	TEXT_NUL,	 /* {}: its name */
	TEXT_BAD_NUMBER, /* {}: its name */
	TEXT_NOT_INSIDE,
	TEXT_CODE_AND_FILE,
	TEXT_NO_CODE,

	TEXT_DELETE_QUESTION,
	TEXT_DELETE_YES,
	TEXT_DELETE_NO,
	TEXT_DELETE_KEPT,

	TEXT_EDITOR_TITLE,
	TEXT_EDITOR_CODE,
	TEXT_EDITOR_CODE_HINT,
	TEXT_EDITOR_INPUT,
	TEXT_EDITOR_INPUT_HINT,
	TEXT_COUNT,
};

/* The text for a locale of Discord's ("en-US"); every locale has every text.
 * Static. */
const char *text_get(const char *locale, enum text_id id);
/* Append it with the argument in the place of "{}".  The argument is made safe
 * to show and cut at 100 code points. */
void text_add(struct buf *out, const char *locale, enum text_id id,
    const char *argument);

#endif
