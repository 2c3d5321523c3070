/* SPDX-License-Identifier: MIT */
/* What a message says elsewhere than in its content: as a text file, and about
 * its pictures. */
#include "message.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/text.h"

#define DESCRIPTION_MOST 1024 /* code points of an alt text */

/* The block as it was before it was made unable to end itself, and without its
 * colours. */
static void
add_plain_block(struct buf *out, const struct buf *block)
{
	static const char kept_apart[] = "`" MESSAGE_APART "`";
	auto_buf struct buf text = BUF_INIT(block->len + 1);
	const char *at = buf_str(block);
	const char *found;

	while ((found = strstr(at, kept_apart)) != NULL) {
		buf_add(&text, at, (size_t)(found + 1 - at));
		at = found + sizeof(kept_apart) - 2;
	}
	buf_adds(&text, at);
	text_add_clean(out, buf_str(&text), text.len);
}

void
message_add_text(struct buf *out, const struct message *message)
{
	const struct buf *parts[] = { &message->lead, &message->block,
		&message->tail, &message->without };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (parts[i] == &message->block)
			add_plain_block(out, parts[i]);
		else
			buf_add(out, buf_str(parts[i]), parts[i]->len);
		if (out->len > 0 && out->data[out->len - 1] != '\n')
			buf_addc(out, '\n');
	}
}

void
message_describe(struct message *message, const char *text, const char *name)
{
	auto_buf struct buf out = BUF_INIT(8 * DESCRIPTION_MOST);
	char **description = &message->descriptions[message->file_count - 1];

	buf_adds(&out, text);
	/* the ellipsis counts, too */
	message_add_word(&out, name,
	    DESCRIPTION_MOST - text_codepoints(text, strlen(text)) - 1);
	free(*description);
	*description = buf_steal(&out, NULL);
}
