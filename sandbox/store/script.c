/* SPDX-License-Identifier: MIT */
#include "script.h"

#include <stddef.h>
#include <string.h>

#include "../base/text.h"

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
	};
	size_t len = strlen(name);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t end = strlen(rows[i].end);

		if (len > end && text_is(name + len - end, end, rows[i].end))
			return rows[i].script;
	}
	return SCRIPT_OTHER;
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
