/* SPDX-License-Identifier: MIT */
#include "worker/render/message.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/basics.h"
#include "base/text.h"
#include "locale/locale.h"

struct phrase
phrase_words(const char *format, ...)
{
	struct phrase phrase;
	va_list words;

	va_start(words, format);
	(void)vsnprintf(phrase.text, sizeof(phrase.text), format, words);
	va_end(words);
	return phrase;
}

struct phrase
phrase_number(int64_t n)
{
	return phrase_words("%" PRId64, n);
}

/* Digits are grouped in threes. */
struct phrase
phrase_count(int64_t n)
{
	auto_buf struct buf out = BUF_INIT(sizeof(struct phrase) - 1);
	/* Translators: between thousands, as in 10,000 */
	const char *between = _(",");
	struct phrase digits = phrase_number(n);
	int len = (int)strlen(digits.text);

	assert(n >= 0);
	for (int i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			buf_adds(&out, between);
		buf_addc(&out, digits.text[i]);
	}
	return phrase_words("%s", buf_str(&out));
}

static struct phrase
with_point(struct phrase number)
{
	/* Translators: the decimal point, as in 1.5 */
	const char *point = _(".");
	char *at = strchr(number.text, '.');

	if (at != NULL)
		*at = *point;
	return number;
}

struct phrase
phrase_size(int64_t bytes)
{
	return with_point(phrase_words("%s", text_size(bytes).text));
}

struct phrase
phrase_thousandths(int64_t n)
{
	return with_point(phrase_words("%g", (double)n / 1e3));
}

struct phrase
phrase_files(int64_t n)
{
	return phrase_words(Q_("%s file", "%s files", n), phrase_count(n).text);
}

struct phrase
phrase_duration(int64_t us)
{
	if (us < 0)
		us = 0;
	if (us < 1000)
		return with_point(phrase_words("%.1f ms", (double)us / 1e3));
	if (us < 1000000)
		return phrase_words("%" PRId64 " ms", us / 1000);
	if (us < 60000000)
		return with_point(phrase_words("%.2f s", (double)us / 1e6));
	return phrase_words("%" PRId64 " min %" PRId64 " s", us / 60000000,
	    us / 1000000 % 60);
}

struct phrase
phrase_span(int64_t seconds)
{
	int64_t minutes = seconds / 60;
	int64_t hours = minutes / 60;
	int64_t days = hours / 24;

	if (seconds % 60 != 0)
		return phrase_words(Q_("%" PRId64 " second",
					"%" PRId64 " seconds", seconds),
		    seconds);
	if (minutes % 60 != 0)
		return phrase_words(Q_("%" PRId64 " minute",
					"%" PRId64 " minutes", minutes),
		    minutes);
	if (hours % 24 != 0)
		return phrase_words(Q_("%" PRId64 " hour", "%" PRId64 " hours",
					hours),
		    hours);
	return phrase_words(Q_("%" PRId64 " day", "%" PRId64 " days", days),
	    days);
}

struct phrase
phrase_name(const char *name, size_t most)
{
	auto_buf struct buf out = BUF_INIT(sizeof(struct phrase) - 1);

	message_add_name(&out, name, most);
	return phrase_words("%s", buf_str(&out));
}

char *
phrase_tilde(const char *path)
{
	return xprintf(path[0] != '\0' ? "~/%s" : "~%s", path);
}

struct phrase
phrase_path(const char *path)
{
	auto_free char *shown = phrase_tilde(path);

	return phrase_name(shown, PATH_SHOWN);
}
