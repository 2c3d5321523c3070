/* SPDX-License-Identifier: MIT */
#include "sgr.h"

#include "../../base/buf.h"

/* A style's parts; a colour is 1 to 8, 0: none. */
#define FRONT 0x0f
#define BACK_SHIFT 4
#define BACK (FRONT << BACK_SHIFT)
#define BOLD 0x100
#define UNDERLINE 0x200

#define BLACK 1
#define WHITE 8

bool
sgr_numbers(struct sgr_numbers *numbers, const char *s, size_t len)
{
	size_t n = 0;

	numbers->values[0] = 0;
	numbers->sub[0] = false;
	for (size_t i = 0; i < len; i++) {
		unsigned digit = (unsigned)(s[i] - '0');
		unsigned value;

		if (s[i] == ';' || s[i] == ':') {
			if (++n == SGR_NUMBERS)
				break;
			numbers->values[n] = 0;
			numbers->sub[n] = s[i] == ':';
		} else if (digit < 10) {
			value = numbers->values[n] * 10U + digit;
			numbers->values[n] = value < UINT16_MAX ?
			    (uint16_t)value :
			    UINT16_MAX;
		} else {
			return false;
		}
	}
	numbers->count = n < SGR_NUMBERS ? n + 1 : n;
	return true;
}

/* By hue: each part counts that is above the middle of the strongest and the
 * weakest; by brightness when they are nearly the same. */
static uint16_t
nearest(unsigned red, unsigned green, unsigned blue)
{
	unsigned most = red > green ? red : green;
	unsigned least = red < green ? red : green;
	unsigned middle;

	most = most > blue ? most : blue;
	least = least < blue ? least : blue;
	middle = (most + least) / 2;
	if (most - least <= most / 4)
		return middle < 128 ? BLACK : WHITE;
	return (uint16_t)(BLACK + (red > middle ? 1 : 0) +
	    (green > middle ? 2 : 0) + (blue > middle ? 4 : 0));
}

/* One of 256: the sixteen, a cube of 6 × 6 × 6, a ramp of greys. */
static uint16_t
nearest_of_256(unsigned n)
{
	static const unsigned char steps[] = { 0, 95, 135, 175, 215, 255 };

	if (n < 16)
		return (uint16_t)(BLACK + n % 8);
	if (n < 232)
		return nearest(steps[(n - 16) / 36], steps[(n - 16) / 6 % 6],
		    steps[(n - 16) % 6]);
	return n < 244 ? BLACK : WHITE;
}

/* How many numbers after the one at i belong to it: those after colons, else
 * as many as the first of them asks for. */
static size_t
count_extended(const struct sgr_numbers *numbers, size_t i, bool *colons)
{
	size_t left = numbers->count - i - 1;
	size_t n = 0;

	while (n < left && numbers->sub[i + 1 + n])
		n++;
	*colons = n > 0;
	if (n == 0 && left > 0)
		n = numbers->values[i + 1] == 2 ? 4 :
		    numbers->values[i + 1] == 5 ? 2 :
						  1;
	return n < left ? n : left;
}

/* After 38, 48 or 58 at i: "5;n" or "2;r;g;b", or the same with colons, where
 * the number of a colour space may stand before r.  *i becomes the last number
 * that belongs to it.  0: none that we know. */
static uint16_t
extended(const struct sgr_numbers *numbers, size_t *i)
{
	const uint16_t *v = numbers->values + *i + 1;
	bool colons;
	size_t n = count_extended(numbers, *i, &colons);

	*i += n;
	if (n >= 2 && v[0] == 5 && v[1] < 256)
		return nearest_of_256(v[1]);
	if (n < 4 || v[0] != 2)
		return 0;
	v += colons && n > 4 ? 2 : 1;
	return v[0] < 256 && v[1] < 256 && v[2] < 256 ?
	    nearest(v[0], v[1], v[2]) :
	    0;
}

static uint16_t
with_front(uint16_t style, uint16_t colour)
{
	return (uint16_t)((style & ~FRONT) | colour);
}

static uint16_t
with_back(uint16_t style, uint16_t colour)
{
	return (uint16_t)((style & ~BACK) | colour << BACK_SHIFT);
}

/* The colours of the sixteen that n names, on the text or behind it. */
static uint16_t
apply_colour(uint16_t style, unsigned n)
{
	uint16_t colour = (uint16_t)(BLACK + n % 10);

	if (n % 10 == 9)
		colour = 0;
	else if (n % 10 == 8)
		return style;
	if (n / 10 == 3 || (n / 10 == 9 && colour > 0))
		return with_front(style, colour);
	if (n / 10 == 4 || (n / 10 == 10 && colour > 0))
		return with_back(style, colour);
	return style;
}

uint16_t
sgr_apply(uint16_t style, const struct sgr_numbers *numbers)
{
	for (size_t i = 0; i < numbers->count; i++) {
		unsigned n = numbers->values[i];
		uint16_t colour;

		switch (n) {
		case 0:
			style = 0;
			break;
		case 1:
			style |= BOLD;
			break;
		case 4:
		case 21:
			style |= UNDERLINE;
			break;
		case 22:
			style &= (uint16_t)~BOLD;
			break;
		case 24:
			style &= (uint16_t)~UNDERLINE;
			break;
		case 38:
		case 48:
		case 58:
			colour = extended(numbers, &i);
			if (colour > 0 && n == 38)
				style = with_front(style, colour);
			else if (colour > 0 && n == 48)
				style = with_back(style, colour);
			break;
		default:
			style = apply_colour(style, n);
		}
		/* "4:0" is no underline, "4:3" a waved one */
		while (i + 1 < numbers->count && numbers->sub[i + 1])
			if (numbers->values[++i] == 0 && n == 4)
				style &= (uint16_t)~UNDERLINE;
	}
	return style;
}

bool
sgr_fills(uint16_t style)
{
	return (style & (BACK | UNDERLINE)) != 0;
}

void
sgr_add(struct buf *out, uint16_t from, uint16_t to)
{
	const char *between = "";

	buf_adds(out, "\033[");
	if (from != 0 || to == 0) {
		buf_addc(out, '0');
		between = ";";
	}
	if ((to & BOLD) != 0) {
		buf_addf(out, "%s1", between);
		between = ";";
	}
	if ((to & UNDERLINE) != 0) {
		buf_addf(out, "%s4", between);
		between = ";";
	}
	if ((to & FRONT) != 0) {
		buf_addf(out, "%s%d", between, 29 + (to & FRONT));
		between = ";";
	}
	if ((to & BACK) != 0)
		buf_addf(out, "%s%d", between, 39 + (to >> BACK_SHIFT & FRONT));
	buf_addc(out, 'm');
}
