/* SPDX-License-Identifier: MIT */
#include "store/script.h"

#include <stddef.h>
#include <string.h>

#include "base/text.h"

enum script
script_of(const char *name)
{
	static const struct {
		const char *end;
		enum script script;
	} rows[] = {
		{ ".py", SCRIPT_PYTHON },
		{ ".pyw", SCRIPT_PYTHON },
		{ ".ipynb", SCRIPT_NOTEBOOK },
		{ ".txt", SCRIPT_TEXT },
		{ ".md", SCRIPT_TEXT },
		{ ".png", SCRIPT_BINARY },
		{ ".jpg", SCRIPT_BINARY },
		{ ".jpeg", SCRIPT_BINARY },
		{ ".gif", SCRIPT_BINARY },
		{ ".webp", SCRIPT_BINARY },
		{ ".mp3", SCRIPT_BINARY },
		{ ".mp4", SCRIPT_BINARY },
		{ ".mov", SCRIPT_BINARY },
		{ ".webm", SCRIPT_BINARY },
		{ ".ogg", SCRIPT_BINARY },
		{ ".wav", SCRIPT_BINARY },
		{ ".pdf", SCRIPT_BINARY },
		{ ".zip", SCRIPT_BINARY },
		{ ".gz", SCRIPT_BINARY },
		{ ".7z", SCRIPT_BINARY },
		{ ".pyc", SCRIPT_BINARY },
	};
	size_t len = strlen(name);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t end = strlen(rows[i].end);

		if (len > end && text_is(name + len - end, end, rows[i].end))
			return rows[i].script;
	}
	return SCRIPT_UNKNOWN;
}

int64_t
script_most(enum script script)
{
	return script == SCRIPT_NOTEBOOK ? SCRIPT_NOTEBOOK_MAX : SCRIPT_MAX;
}

int64_t
script_all_most(enum script script)
{
	return script == SCRIPT_NOTEBOOK ?
	    SCRIPT_NOTEBOOK_MAX + SCRIPT_ALL_MAX :
	    SCRIPT_ALL_MAX;
}
