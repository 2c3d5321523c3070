/* SPDX-License-Identifier: MIT */
#include "worker/render/terminal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/utf8.h"

#define TAB 8
#define REPLACEMENT 0xfffd
#define SPARE 4096	/* what a short text may be made longer */
#define FIRST_CELLS 128 /* of a row, when it gets some */

/* ---- colours and weight ---- */

/*
 * A control sequence that ends in 'm' has numbers (SGR, ECMA-48 8.3.117).
 * Discord shows some of them in an ansi block: bold, underline, eight colours
 * of the text and eight behind it.  A style is a number: 0 is nothing special.
 */

/* A style's parts; a colour is 1 to 8, 0: none. */
#define FRONT 0x0f
#define BACK_SHIFT 4
#define BACK (FRONT << BACK_SHIFT)
#define BOLD 0x100
#define UNDERLINE 0x200

#define BLACK 1
#define WHITE 8

/* The numbers of any control sequence: "1;31".  A number that is left out is 0,
 * and a larger one than 65535 is 65535. */
#define SGR_NUMBERS 32

struct sgr_numbers {
	uint16_t values[SGR_NUMBERS]; /* at least one */
	bool sub[SGR_NUMBERS]; /* it belongs to the one before: after ':' */
	size_t count;
};

/* Read them; more than SGR_NUMBERS are left out.  False: the sequence is a
 * private one, or holds something else. */
static bool
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

/* The nearest colour by hue: a part counts if it is above the middle of the
 * strongest and the weakest.  Parts that are nearly the same count by
 * brightness. */
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

/* The style after these numbers.  Bright colours, the 256 and those of 24 bits
 * become the nearest in hue; those almost without hue black or white, of which
 * Discord shows black as grey. */
static uint16_t
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

/* Does a blank show it? */
static bool
sgr_fills(uint16_t style)
{
	return (style & (BACK | UNDERLINE)) != 0;
}

/* Append the sequence from one style to another: it says all of `to`, and
 * begins with a reset where something of `from` could stay.  At most SGR_MAX
 * bytes. */
static void
sgr_add(struct buf *out, uint16_t from, uint16_t to)
{
	/* 0: that is not said */
	const int numbers[] = {
		(to & BOLD) != 0 ? 1 : 0,
		(to & UNDERLINE) != 0 ? 4 : 0,
		(to & FRONT) != 0 ? 29 + (to & FRONT) : 0,
		(to & BACK) != 0 ? 39 + (to >> BACK_SHIFT & FRONT) : 0,
	};
	bool reset = from != 0 || to == 0;

	buf_adds(out, reset ? "\033[0" : "\033[");
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (numbers[i] == 0)
			continue;
		buf_addf(out, "%s%d", reset ? ";" : "", numbers[i]);
		reset = true;
	}
	buf_addc(out, 'm');
}

/* ---- what is on the screen ---- */

/* One column.  A tab takes several: '\t' and then zeroes. */
struct cell {
	uint32_t code;
	uint16_t style;
};

struct row {
	struct cell *cells;
	size_t len;
	size_t cap;
	bool wrapped; /* the next row is the same line */
	bool redrawn; /* something stood here before: blanks at its end
		       * have wiped that out */
};

struct terminal {
	/* the rows that can be changed; older ones are in out */
	struct row rows[TERMINAL_ROWS];
	size_t first; /* the oldest */
	size_t count;
	size_t y; /* the cursor's row, from the oldest */
	size_t x; /* its column; TERMINAL_COLUMNS: past the last */
	uint16_t style;
	size_t padding; /* blanks that moves may still make: a few bytes
			 * would fill a row otherwise */
	enum terminal_colours colours;
	uint16_t shown;	 /* the style at the end of out */
	uint32_t before; /* the character at its end, of the same line */
	bool coloured;
	size_t sequences; /* bytes that colours may still take: those of a
			   * program are as long, but for overwritten ones */
	struct buf *out;
};

static struct row *
row_at(struct terminal *t, size_t y)
{
	return &t->rows[(t->first + y) % TERMINAL_ROWS];
}

static void
row_clear(struct row *row)
{
	row->len = 0;
	row->wrapped = false;
	row->redrawn = false;
}

/* ---- rows that are done ---- */

/* A blank shows neither colour nor weight: it needs no sequence for them. */
static void
show_style(struct terminal *t, const struct cell *cell)
{
	uint16_t style = t->sequences >= SGR_MAX ? cell->style : 0;
	size_t before = t->out->len;

	if (t->colours == TERMINAL_PLAIN || style == t->shown ||
	    ((cell->code == ' ' || cell->code == '\t') && !sgr_fills(style) &&
		!sgr_fills(t->shown)))
		return;
	sgr_add(t->out, t->shown, style);
	t->sequences -= t->sequences >= SGR_MAX ? t->out->len - before : 0;
	t->shown = style;
	t->coloured = true;
}

/* The character after the cell in the line, 0: none. */
static uint32_t
code_after(struct terminal *t, const struct row *row, size_t i)
{
	if (i + 1 < row->len)
		return row->cells[i + 1].code;
	row = row->wrapped && t->count > 1 ? row_at(t, 1) : NULL;
	return row != NULL && row->len > 0 ? row->cells[0].code : 0;
}

/* The oldest row is shown, and free for another. */
static void
show_oldest(struct terminal *t)
{
	struct row *row = row_at(t, 0);

	while (row->redrawn && row->len > 0 &&
	    row->cells[row->len - 1].code == ' ' &&
	    !sgr_fills(row->cells[row->len - 1].style))
		row->len--;
	for (size_t i = 0; i < row->len; i++) {
		if (row->cells[i].code == 0)
			continue;
		show_style(t, &row->cells[i]);
		text_add_visible(t->out, &t->before, row->cells[i].code,
		    code_after(t, row, i));
	}
	if (!row->wrapped) {
		t->before = 0;
		if (t->count > 1)
			buf_addc(t->out, '\n');
	}
	row_clear(row);
	t->first = (t->first + 1) % TERMINAL_ROWS;
	t->count--;
}

/* ---- the cursor ---- */

/* To the beginning of the next row, which is a new one below the last. */
static void
feed_line(struct terminal *t)
{
	t->x = 0;
	if (++t->y < t->count)
		return;
	if (++t->count > TERMINAL_ROWS) {
		show_oldest(t);
		t->y--;
	}
}

/* It stops at the last row, as at the bottom of a screen. */
static void
move_down(struct terminal *t, size_t n)
{
	t->y += n < t->count - 1 - t->y ? n : t->count - 1 - t->y;
}

static void
move_up(struct terminal *t, size_t n)
{
	t->y -= n < t->y ? n : t->y;
}

/* It may go beyond what is written. */
static void
move_to(struct terminal *t, size_t x)
{
	t->x = x < TERMINAL_COLUMNS ? x : TERMINAL_COLUMNS - 1;
}

/* ---- writing ---- */

/* len <= TERMINAL_COLUMNS: cells up to there are blanks, or there already. */
static void
row_reach(struct row *row, size_t len)
{
	if (row->cap < len) {
		row->cap = row->cap > 0 ? row->cap : FIRST_CELLS;
		while (row->cap < len)
			row->cap *= 2;
		row->cells = xrealloc(row->cells,
		    row->cap * sizeof(*row->cells));
	}
	for (; row->len < len; row->len++)
		row->cells[row->len] = (struct cell){ .code = ' ' };
}

/* A tab of which a column changes is blanks from now on. */
static void
split_tab(struct row *row, size_t x)
{
	size_t from = x;

	if (x >= row->len ||
	    (row->cells[x].code != '\t' && row->cells[x].code != 0))
		return;
	while (row->cells[from].code == 0)
		from--;
	for (size_t i = from;
	     i < row->len && (i == from || row->cells[i].code == 0); i++)
		row->cells[i].code = ' ';
}

static void
put(struct terminal *t, uint32_t code)
{
	struct row *row = row_at(t, t->y);

	if (t->x == TERMINAL_COLUMNS) {
		row->wrapped = true;
		feed_line(t);
		row = row_at(t, t->y);
	}
	if (t->x > row->len) {
		if (t->x - row->len > t->padding)
			t->x = row->len;
		t->padding -= t->x - row->len;
	}
	row->redrawn = row->redrawn || t->x < row->len;
	split_tab(row, t->x);
	row_reach(row, t->x + 1);
	row->cells[t->x++] = (struct cell){ .code = code, .style = t->style };
}

/* At the end of a line it is written, so that a table keeps its tabs. */
static void
put_tab(struct terminal *t)
{
	size_t stop;

	if (t->x < row_at(t, t->y)->len) {
		move_to(t, (t->x / TAB + 1) * TAB);
		return;
	}
	put(t, '\t');
	stop = (t->x + TAB - 1) / TAB * TAB;
	while (t->x < stop)
		put(t, 0);
}

/* K: 0 from the cursor on, 1 up to it, 2 all of the line. */
static void
erase_in_line(struct terminal *t, size_t how)
{
	struct row *row = row_at(t, t->y);
	size_t end = t->x < row->len ? t->x + 1 : row->len;

	split_tab(row, t->x);
	if (how == 1 && end > 0) {
		split_tab(row, end - 1);
		for (size_t i = 0; i < end; i++)
			row->cells[i] = (struct cell){ .code = ' ' };
	}
	if (how == 2)
		row->len = 0;
	else if (how == 0 && t->x < row->len)
		row->len = t->x;
	if (how != 1)
		row->wrapped = false;
	row->redrawn = true;
}

/* J: from the cursor to the end of all. */
static void
erase_below(struct terminal *t)
{
	erase_in_line(t, 0);
	while (t->count > t->y + 1)
		row_clear(row_at(t, --t->count));
}

/* ---- reading ---- */

/* s: a control sequence, from its ESC to its final byte. */
static void
obey(struct terminal *t, const char *s, size_t len)
{
	struct sgr_numbers numbers;
	size_t n;

	if (!sgr_numbers(&numbers, s + 2, len - 3))
		return;
	n = numbers.values[0] > 0 ? numbers.values[0] : 1;
	switch (s[len - 1]) {
	case 'A':
		move_up(t, n);
		break;
	case 'B':
		move_down(t, n);
		break;
	case 'C':
		move_to(t, t->x + n);
		break;
	case 'D':
		move_to(t, t->x > n ? t->x - n : 0);
		break;
	case 'E':
		move_down(t, n);
		t->x = 0;
		break;
	case 'F':
		move_up(t, n);
		t->x = 0;
		break;
	case 'G':
		move_to(t, n - 1);
		break;
	case 'J':
		if (numbers.values[0] == 0)
			erase_below(t);
		break;
	case 'K':
		erase_in_line(t, numbers.values[0]);
		break;
	case 'm':
		t->style = sgr_apply(t->style, &numbers);
		break;
	default:
		break;
	}
}

/* One control character, or a sequence, of so many bytes. */
static size_t
take_control(struct terminal *t, const char *s, size_t len)
{
	size_t step = 1;

	switch (*s) {
	case '\n':
		feed_line(t);
		break;
	case '\r':
		t->x = 0;
		break;
	case '\b':
		t->x -= t->x > 0 ? 1 : 0;
		break;
	case '\t':
		put_tab(t);
		break;
	case '\033':
		step = text_escape(s, len);
		if (step > 2 && s[1] == '[' && s[step - 1] >= 0x40)
			obey(t, s, step);
		break;
	default:
		break;
	}
	return step;
}

static size_t
take(struct terminal *t, const char *s, size_t len)
{
	size_t step;
	uint32_t code;

	if ((unsigned char)*s < 0x20 || *s == 0x7f)
		return take_control(t, s, len);
	step = utf8_step(s, len);
	code = step > 0 ? utf8_decode(s, step) : REPLACEMENT;
	if (code < 0x80 || code > 0x9f)
		put(t, code);
	return step > 0 ? step : 1;
}

/* From a line's beginning on. */
static bool
show_drawn(struct buf *out, const char *data, size_t len,
    enum terminal_colours colours)
{
	struct terminal t = {
		.count = 1,
		.padding = len + SPARE,
		.sequences = len + SPARE,
		.colours = colours,
		.out = out,
	};

	for (size_t i = 0; i < len;)
		i += take(&t, data + i, len - i);
	while (t.count > 0)
		show_oldest(&t);
	for (size_t i = 0; i < TERMINAL_ROWS; i++)
		free(t.rows[i].cells);
	return t.coloured;
}

/* Most output is printable ASCII: the beginning that is needs no terminal, but
 * for the rows that the cursor can reach from what follows. */
static size_t
plain_lines(const char *data, size_t len)
{
	size_t rows = TERMINAL_ROWS;
	size_t n = 0;

	while (n < len &&
	    ((data[n] >= 0x20 && data[n] < 0x7f) || data[n] == '\n' ||
		data[n] == '\t'))
		n++;
	if (n == len)
		return n;
	while (n > 0 && (data[n - 1] != '\n' || --rows > 0))
		n--;
	return n;
}

bool
terminal_show(struct buf *out, const char *data, size_t len,
    enum terminal_colours colours)
{
	size_t plain = plain_lines(data, len);

	buf_add(out, data, plain);
	return plain < len &&
	    show_drawn(out, data + plain, len - plain, colours);
}
