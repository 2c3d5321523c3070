#include "pyutf8.h"

#include <string.h>

#include "../../sandbox/base/buf.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

static bool
is_tail(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

/* May this byte follow that start?  Overlong forms, what is above U+10FFFF and
 * surrogates show in the second byte. */
static bool
is_second(unsigned char first, unsigned char second, bool surrogates)
{
	if (!is_tail(second))
		return false;
	switch (first) {
	case 0xe0:
		return second >= 0xa0;
	case 0xed:
		return second < 0xa0 || surrogates;
	case 0xf0:
		return second >= 0x90;
	case 0xf4:
		return second < 0x90;
	default:
		return true;
	}
}

size_t
pyutf8_step(const char *s, size_t len, bool surrogates,
    enum pyutf8_fault *fault)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t n = u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;

	*fault = PYUTF8_FINE;
	if (u[0] < 0x80)
		return 1;
	if (u[0] < 0xc2 || u[0] > 0xf4) {
		*fault = PYUTF8_START;
		return 1;
	}
	for (size_t i = 1; i < n; i++) {
		if (i == len) {
			*fault = PYUTF8_END;
			return i;
		}
		if (i == 1 ? !is_second(u[0], u[1], surrogates) :
			     !is_tail(u[i])) {
			*fault = PYUTF8_CONTINUATION;
			return i;
		}
	}
	return n;
}

uint32_t
pyutf8_decode(const char *s, size_t step)
{
	static const unsigned char masks[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t code = (unsigned char)s[0] & masks[step];

	for (size_t i = 1; i < step; i++)
		code = code << 6 | ((unsigned char)s[i] & 0x3f);
	return code;
}

size_t
pyutf8_encode(uint32_t code, char out[4])
{
	static const unsigned char marks[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	for (size_t i = n - 1; i > 0; i--) {
		out[i] = (char)(0x80 | (code & 0x3f));
		code >>= 6;
	}
	out[0] = (char)(marks[n] | code);
	return n;
}

bool
pyutf8_valid(const char *s, size_t len, bool surrogates, size_t *at)
{
	for (size_t i = 0; i < len;) {
		enum pyutf8_fault fault;
		size_t step = pyutf8_step(s + i, len - i, surrogates, &fault);

		if (fault != PYUTF8_FINE) {
			*at = i;
			return false;
		}
		i += step;
	}
	return true;
}

void
pyutf8_explain(struct buf *out, const char *s, size_t len, size_t at)
{
	static const char *const why[] = {
		[PYUTF8_FINE] = "",
		[PYUTF8_START] = "invalid start byte",
		[PYUTF8_CONTINUATION] = "invalid continuation byte",
		[PYUTF8_END] = "unexpected end of data",
	};
	enum pyutf8_fault fault;
	size_t step = pyutf8_step(s + at, len - at, false, &fault);

	if (step == 1)
		buf_addf(out,
		    "'utf-8' codec can't decode byte 0x%02x in position "
		    "%zu: %s",
		    (unsigned)(unsigned char)s[at], at, why[fault]);
	else
		buf_addf(out,
		    "'utf-8' codec can't decode bytes in position %zu-%zu: "
		    "%s",
		    at, at + step - 1, why[fault]);
}

bool
pyutf8_has_surrogate(const char *s, size_t len)
{
	const char *end = s + len;

	while ((s = memchr(s, 0xed, (size_t)(end - s))) != NULL) {
		if (end - s >= 2 && (unsigned char)s[1] >= 0xa0)
			return true;
		s++;
	}
	return false;
}

/* Finish the sequence whose beginning came with the last piece; how many bytes
 * of this one that took. */
static size_t
pyutf8_finish(struct pyutf8 *d, struct buf *out, const char *data, size_t len)
{
	enum pyutf8_fault fault;
	size_t used = 0;

	while (d->count > 0 && used < len) {
		d->pending[d->count] = data[used];
		(void)pyutf8_step(d->pending, d->count + 1, false, &fault);
		if (fault == PYUTF8_END) {
			d->count++;
			used++;
			continue;
		}
		if (fault == PYUTF8_FINE) {
			buf_add(out, d->pending, d->count + 1);
			used++;
		} else {
			buf_adds(out, REPLACEMENT);
		}
		d->count = 0;
	}
	return used;
}

void
pyutf8_add(struct pyutf8 *d, struct buf *out, const char *data, size_t len)
{
	size_t i = pyutf8_finish(d, out, data, len);
	size_t start = i;

	while (i < len) {
		enum pyutf8_fault fault;
		size_t step = pyutf8_step(data + i, len - i, false, &fault);

		if (fault != PYUTF8_FINE)
			buf_add(out, data + start, i - start);
		if (fault == PYUTF8_END) {
			memcpy(d->pending, data + i, step);
			d->count = step;
			return;
		}
		i += step;
		if (fault != PYUTF8_FINE) {
			buf_adds(out, REPLACEMENT);
			start = i;
		}
	}
	buf_add(out, data + start, i - start);
}

void
pyutf8_end(struct pyutf8 *d, struct buf *out)
{
	if (d->count > 0)
		buf_adds(out, REPLACEMENT);
	d->count = 0;
}
