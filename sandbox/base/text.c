/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>
#include <math.h>
#include <stdbool.h>

#include "base/basics.h"
#include "base/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

size_t
text_codepoints(const char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		if (!utf8_is_tail(s[i]))
			n++;
	return n;
}

/* Stops at the first byte of the character that is too much. */
size_t
text_prefix(const char *s, size_t len, size_t n)
{
	for (size_t i = 0; i < len; i++) {
		if (utf8_is_tail(s[i]))
			continue;
		if (n == 0)
			return i;
		n--;
	}
	return len;
}

/* Length of a control string's body and terminator (BEL, or ESC and '\'), or 0
 * when the line, the text or another sequence's ESC comes first: then it is no
 * control string, and no byte of it is looked for an end of twice. */
static size_t
text_control_string(const char *s, size_t len)
{
	for (size_t i = 0; i < len && s[i] != '\n'; i++) {
		if (s[i] == '\a')
			return i + 1;
		if (s[i] == '\033')
			return i + 1 < len && s[i + 1] == '\\' ? i + 2 : 0;
	}
	return 0;
}

/* From i on: bytes from 0x20 to `most`, and a final byte of at least `least` if
 * one follows.  Where it ends. */
static size_t
text_sequence(const char *s, size_t len, size_t i, char most, char least)
{
	while (i < len && s[i] >= 0x20 && s[i] <= most)
		i++;
	return i < len && s[i] >= least && s[i] <= 0x7e ? i + 1 : i;
}

size_t
text_escape(const char *s, size_t len)
{
	if (len < 2)
		return 1;
	if (s[1] == '[')
		return text_sequence(s, len, 2, 0x3f, 0x40);
	if (s[1] != '\0' && strchr("]PX^_", s[1]) != NULL)
		return 2 + text_control_string(s + 2, len - 2);
	return text_sequence(s, len, 1, 0x2f, 0x30);
}

/* ---- characters that nobody sees ---- */

#define SOFT_HYPHEN 0xad  /* the first that is not seen */
#define TEXT_STYLE 0xfe0e /* the variation selectors of pictographs */
#define EMOJI_STYLE 0xfe0f
#define NON_JOINER 0x200c
#define JOINER 0x200d
#define KEYCAP 0x20e3 /* the frame around a digit */

/* Unicode 15's Default_Ignorable_Code_Point, the separators of lines and
 * paragraphs, and the marks of annotations. */
static bool
is_unseen(uint32_t code)
{
	static const struct {
		uint32_t first;
		uint32_t last;
	} ranges[] = {
		{ SOFT_HYPHEN, SOFT_HYPHEN },
		{ 0x34f, 0x34f },
		{ 0x61c, 0x61c },
		{ 0x115f, 0x1160 },
		{ 0x17b4, 0x17b5 },
		{ 0x180b, 0x180f },
		{ 0x200b, 0x200f },
		{ 0x2028, 0x202e },
		{ 0x2060, 0x206f },
		{ 0x3164, 0x3164 },
		{ 0xfe00, 0xfe0f },
		{ 0xfeff, 0xfeff },
		{ 0xffa0, 0xffa0 },
		{ 0xfff0, 0xfffb },
		{ 0x1bca0, 0x1bca3 },
		{ 0x1d173, 0x1d17a },
		{ 0xe0000, 0xe0fff },
	};
	size_t i = 0;
	const size_t count = sizeof(ranges) / sizeof(ranges[0]);

	while (i < count && code > ranges[i].last)
		i++;
	return i < count && code >= ranges[i].first;
}

/* Symbols and pictographs, far more than are emoji: all of them are seen. */
static bool
is_pictograph(uint32_t code)
{
	return code == 0xa9 || code == 0xae ||
	    (code >= 0x203c && code <= 0x2049) ||
	    (code >= 0x2100 && code <= 0x2bff) ||
	    (code >= 0x3030 && code <= 0x303d) || code == 0x3297 ||
	    code == 0x3299 || (code >= 0x1f000 && code <= 0x1faff);
}

/* The scripts of U+0600 to U+0DFF use joiners to spell. */
static bool
is_joining_letter(uint32_t code)
{
	return code >= 0x620 && code <= 0xdff;
}

/* A character that only shapes its neighbours is not to be named. */
static bool
is_shape(uint32_t before, uint32_t code, uint32_t after)
{
	if (code == TEXT_STYLE || code == EMOJI_STYLE)
		return is_pictograph(before) || after == KEYCAP;
	if (code == JOINER && is_pictograph(after))
		return is_pictograph(before) || before == EMOJI_STYLE;
	return (code == JOINER || code == NON_JOINER) &&
	    is_joining_letter(before) && is_joining_letter(after);
}

void
text_add_visible(struct buf *out, uint32_t *before, uint32_t code,
    uint32_t after)
{
	char text[4];

	if (code < SOFT_HYPHEN || !is_unseen(code) ||
	    is_shape(*before, code, after)) {
		buf_add(out, text, utf8_encode(code, text));
		*before = code;
		return;
	}
	/* a name is no neighbour */
	buf_addf(out, code < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)code);
	*before = 0;
}

/* ---- text that is safe to show ---- */

/* Append what the character (or sequence) at s becomes; return its length. */
static size_t
text_add_clean_step(struct buf *out, const char *s, size_t len,
    uint32_t *before)
{
	size_t step = utf8_step(s, len);
	size_t next;

	if (step == 0) {
		buf_adds(out, REPLACEMENT);
		*before = 0;
		return 1;
	}
	if (*s == '\033')
		return text_escape(s, len);
	if (*s == '\r') {
		buf_addc(out, '\n');
		*before = 0;
		return len > 1 && s[1] == '\n' ? 2 : 1;
	}
	if (step == 1 && (*s < 0x20 || *s == 0x7f) && *s != '\n' && *s != '\t')
		return 1;
	/* C1 controls: U+0080 to U+009F */
	if (step == 2 && (unsigned char)s[0] == 0xc2 &&
	    (unsigned char)s[1] < 0xa0)
		return step;
	next = utf8_step(s + step, len - step);
	text_add_visible(out, before, utf8_decode(s, step),
	    next > 0 ? utf8_decode(s + step, next) : 0);
	return step;
}

void
text_add_clean(struct buf *out, const char *s, size_t len)
{
	uint32_t before = 0;

	while (len > 0) {
		size_t step = text_add_clean_step(out, s, len, &before);

		s += step;
		len -= step;
	}
}

void
text_clean_array(char *text, size_t size)
{
	size_t len = strnlen(text, size);
	auto_buf struct buf clean = BUF_INIT(3 * size);
	size_t end;

	text_add_clean(&clean, text, len);
	end = clean.len < size ? clean.len : size - 1;
	while (end > 0 && end < clean.len && utf8_is_tail(clean.data[end]))
		end--;
	if (end > 0)
		memcpy(text, clean.data, end);
	text[end] = '\0';
}

bool
text_is(const char *s, size_t len, const char *word)
{
	return len == strlen(word) && strncasecmp(s, word, len) == 0;
}

bool
text_is_name(const char *s, size_t max)
{
	size_t len = strlen(s);

	return len > 0 && len <= max &&
	    strspn(s,
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		"0123456789._-") == len;
}

size_t
text_next_words(char **rest, int *number, char *words[], size_t max)
{
	size_t count = 0;
	char *line;

	while (count == 0 && (line = strsep(rest, "\n")) != NULL) {
		++*number;
		while (count < max && line != NULL) {
			words[count] = strsep(&line, " \t\r");
			count += *words[count] != '\0';
		}
		if (count > 0 && *words[0] == '#')
			count = 0;
	}
	return count;
}

void
text_add_escaped(struct buf *out, const char *s, size_t len, const char *others)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if ((c < 0x80 && isalnum(c) != 0) ||
		    (c != '\0' && strchr(others, c) != NULL))
			buf_addc(out, s[i]);
		else
			buf_addf(out, "%%%02X", c);
	}
}

/* Parse a number that a text begins with: digits, and perhaps a '-' before
 * them.  *end: what is behind it. */
static bool
text_parse_start(const char *s, int64_t *value, const char **end)
{
	char *rest = NULL;

	if (!isdigit((unsigned char)s[*s == '-']))
		return false;
	errno = 0;
	*value = strtoll(s, &rest, 10);
	*end = rest;
	return errno == 0;
}

bool
text_parse_snowflake(const char *s, int64_t *id)
{
	return *s != '0' && text_parse_int(s, 1, INT64_MAX, id);
}

bool
text_parse_int(const char *s, int64_t min, int64_t max, int64_t *value)
{
	const char *end;
	int64_t v;

	if (!text_parse_start(s, &v, &end) || *end != '\0' || v < min ||
	    v > max)
		return false;
	*value = v;
	return true;
}

bool
text_parse_thousandths(const char *s, int64_t *value)
{
	size_t whole = strcspn(s, ".");
	const char *places = s[whole] == '.' ? s + whole + 1 : "0";
	size_t count = strlen(places);
	char digits[32];

	if (*s == '-' || whole == 0 || whole + 4 > sizeof(digits) ||
	    count == 0 || count > 3)
		return false;
	(void)snprintf(digits, sizeof(digits), "%.*s%s%.*s", (int)whole, s,
	    places, 3 - (int)count, "000");
	return text_parse_int(digits, 0, INT64_MAX, value);
}

bool
text_parse_size(const char *s, int64_t *bytes)
{
	static const char units[] = "kKmMgG";
	const char *end;
	const char *unit;
	int64_t v;

	if (*s == '-' || !text_parse_start(s, &v, &end))
		return false;
	unit = strchr(units, *end); /* of the end: behind all units */
	if (unit == NULL || (*end != '\0' && end[1] != '\0'))
		return false;
	return !__builtin_mul_overflow(v,
	    INT64_C(1) << (*end == '\0' ? 0 : 10 * ((unit - units) / 2 + 1)),
	    bytes);
}

/* -1: none. */
static int
text_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool
text_parse_hex(const char *s, size_t len, unsigned char *out, size_t n)
{
	if (len != 2 * n)
		return false;
	for (size_t i = 0; i < n; i++) {
		int high = text_hex_digit(s[2 * i]);
		/* s may end after the first digit that is none */
		int low = high < 0 ? -1 : text_hex_digit(s[2 * i + 1]);

		if (low < 0)
			return false;
		out[i] = (unsigned char)(high * 16 + low);
	}
	return true;
}

bool
text_is_uuid(const char *s, size_t len)
{
	static const char form[] = "xxxxxxxx-xxxx-4xxx-vxxx-xxxxxxxxxxxx";

	if (len != strlen(form))
		return false;
	for (size_t i = 0; i < len; i++) {
		const char *set = form[i] == 'x' ? "0123456789abcdef" :
		    form[i] == 'v'		 ? "89ab" :
		    form[i] == '4'		 ? "4" :
						   "-";

		if (s[i] == '\0' || strchr(set, s[i]) == NULL)
			return false;
	}
	return true;
}

uint64_t
text_hash(const char *s)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *s != '\0'; s++)
		hash = (hash ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
	return hash;
}

void
text_random_hex(char *hex, size_t digits)
{
	for (size_t i = 0; i < digits; i += 2) {
		unsigned char byte;

		if (getrandom(&byte, sizeof(byte), 0) != sizeof(byte))
			log_fatal(1, "getrandom: %s", strerror(errno));
		(void)snprintf(hex + i, 3, "%02x", byte);
	}
}

struct text_short
text_size(int64_t bytes)
{
	struct text_short size;
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB",
		"PiB", "EiB" };
	int64_t whole = bytes > 0 ? bytes : 0;
	int64_t rest = 0;
	size_t unit = 0;

	while (whole >= 1024) {
		rest = whole % 1024;
		whole /= 1024;
		unit++;
	}
	/* Cut, not rounded: 1023.99 KiB must not become 1024 KiB. */
	if (rest * 10 / 1024 > 0)
		(void)snprintf(size.text, sizeof(size.text),
		    "%" PRId64 ".%" PRId64 " %s", whole, rest * 10 / 1024,
		    units[unit]);
	else
		(void)snprintf(size.text, sizeof(size.text), "%" PRId64 " %s",
		    whole, units[unit]);
	return size;
}

struct text_short
text_time(int64_t seconds)
{
	struct text_short text = { "?" };
	time_t t = (time_t)seconds;
	struct tm tm;

	if (gmtime_r(&t, &tm) != NULL)
		(void)strftime(text.text, sizeof(text.text), "%Y-%m-%d %H:%M",
		    &tm);
	return text;
}

/* ---- near names ---- */

size_t
nearest_distance(const char *a, const char *b)
{
	size_t row[NEAREST_NAME + 1];
	size_t len = strlen(b);

	for (size_t j = 0; j <= len; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1] != '\0'; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= len; j++) {
			size_t change = diagonal + (a[i - 1] != b[j - 1]);
			size_t other = 1 +
			    (row[j] < row[j - 1] ? row[j] : row[j - 1]);

			diagonal = row[j];
			row[j] = change < other ? change : other;
		}
	}
	return row[len];
}

/* The distance of a name from a typed one; more than NEAREST_NAME: it is
 * another name.  A part of a name means that name. */
static size_t
far(const char *typed, const char *name)
{
	size_t len = strlen(typed);
	size_t most = strlen(name);
	size_t found;

	if (len == 0 || len > NEAREST_NAME || most > NEAREST_NAME)
		return NEAREST_NAME + 1;
	if (len > 1 && most > 1 &&
	    strncmp(typed, name, len < most ? len : most) == 0)
		return 1;
	found = nearest_distance(typed, name);
	return found <= 1 + len / 4 && found < len ? found : NEAREST_NAME + 1;
}

void
nearest_add(struct nearest *nearest, const char *typed, const char *name,
    const char *shown)
{
	size_t at = nearest->count;
	size_t how_far = far(typed, name);

	if (how_far > NEAREST_NAME)
		return;
	while (at > 0 && nearest->of[at - 1].far > how_far)
		at--;
	if (at == NEAREST_MOST)
		return;
	if (nearest->count < NEAREST_MOST)
		nearest->count++;
	memmove(&nearest->of[at + 1], &nearest->of[at],
	    (nearest->count - at - 1) * sizeof(nearest->of[0]));
	(void)snprintf(nearest->of[at].name, NEAREST_NAME, "%s", shown);
	nearest->of[at].far = how_far;
}

/* ---- JSON ---- */

/* The code unit of \uXXXX at this place; -1: there is none. */
static int
unit_at(const char *at, const char *end)
{
	unsigned char unit[2];

	if (end - at < 6 || at[0] != '\\' || at[1] != 'u' ||
	    !text_parse_hex(at + 2, 4, unit, sizeof(unit)))
		return -1;
	return unit[0] << 8 | unit[1];
}

static bool
is_first_half(int unit)
{
	return unit >= 0xd800 && unit <= 0xdbff;
}

static bool
is_second_half(int unit)
{
	return unit >= 0xdc00 && unit <= 0xdfff;
}

static void
overwrite(char *at, const char *text)
{
	while (*text != '\0')
		*at++ = *text++;
}

/* Mend the text between two quotes. */
static void
mend_string(char *at, const char *end, bool is_name)
{
	while (at < end) {
		int unit = unit_at(at, end);
		bool first = is_first_half(unit);

		if (first && is_second_half(unit_at(at + 6, end))) {
			at += 12;
			continue;
		}
		/* a parser takes a NUL in a text, but not in a name */
		if (first || is_second_half(unit) || (unit == 0 && is_name))
			overwrite(at + 2, is_name ? "fffd" : "0000");
		at += unit >= 0 ? 6 : *at == '\\' ? 2 : 1;
	}
}

/* Mend a number of len bytes. */
static void
mend_number(char *at, size_t len)
{
	bool real = memchr(at, '.', len) != NULL ||
	    memchr(at, 'e', len) != NULL || memchr(at, 'E', len) != NULL;
	char *end = at;

	errno = 0;
	if (real ? isinf(strtod(at, &end)) :
		   (strtoll(at, &end, 10), errno == ERANGE)) {
		/* the shortest is "1e309" */
		if (end == at + len && len > strlen("null")) {
			memset(at, ' ', len);
			overwrite(at, "null");
		}
	}
}

/* Bytes of a number that JSON has no word for; 0: there is none here. */
static size_t
unnamed_number(const char *at)
{
	static const char *const words[] = { "NaN", "Infinity", "-Infinity" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strncmp(at, words[i], strlen(words[i])) == 0)
			return strlen(words[i]);
	return 0;
}

/* Mend the text at this place, which begins no string: its bytes. */
static size_t
mend_bare(char *at)
{
	size_t len = unnamed_number(at);

	if (len > 0) {
		memset(at, ' ', len);
		overwrite(at, "[]");
		return len;
	}
	len = strspn(at, "0123456789+-.eE");
	if (len == 0)
		return 1;
	mend_number(at, len);
	return len;
}

char *
json_mend(const char *json, size_t len)
{
	/* the text may hold a NUL */
	char *copy = xmalloc(len + 1);
	char *end = copy + len;
	char *at = copy;

	memcpy(copy, json, len);
	*end = '\0';
	while (at < end) {
		char *close = at + 1;

		if (*at != '"') {
			at += mend_bare(at);
			continue;
		}
		while (close < end && *close != '"')
			close += *close == '\\' && end - close > 1 ? 2 : 1;
		mend_string(at + 1, close,
		    close < end &&
			close[1 + strspn(close + 1, " \t\r\n")] == ':');
		at = close + 1;
	}
	return copy;
}
