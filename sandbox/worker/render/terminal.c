/* SPDX-License-Identifier: MIT */
#include "worker/render/terminal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/basics.h"
#include "base/text.h"
#include "base/utf8.h"

#define TAB 8
#define REPLACEMENT 0xfffd
#define SPARE 4096	/* bytes by which a short text may grow */
#define FIRST_CELLS 128 /* first size of a row */

/* ---- colours and weight ---- */

/*
 * A control sequence that ends in 'm' has numbers (SGR, ECMA-48 8.3.117).
 * Discord shows some of them in an ansi block: bold, underline, eight colours
 * of the text and eight behind it.  A style is a number, 0 for plain text.
 */

/* A style's parts; a colour is 1 to 8, 0: none. */
#define FRONT 0x0f
#define BACK_SHIFT 4
#define BACK (FRONT << BACK_SHIFT)
#define BOLD 0x100
#define UNDERLINE 0x200

#define BLACK 1
#define WHITE 8

/* Numbers of a control sequence: "1;31".  A missing number is 0, and a larger
 * one than 65535 is 65535. */
#define SGR_NUMBERS 32

struct sgr_numbers {
	uint16_t values[SGR_NUMBERS]; /* at least one */
	bool sub[SGR_NUMBERS];	      /* it follows ':', and belongs to the one
			        * before */
	size_t count;
};

/* Read the numbers, SGR_NUMBERS at most.  False: the sequence is private, or
 * has other characters. */
static bool
sgr_numbers(struct sgr_numbers *numbers, const char *s, size_t len)
{
	const char *end = s + len;
	char *behind = NULL;

	if (strspn(s, "0123456789;:") < len)
		return false;
	for (numbers->count = 0; behind != end && numbers->count < SGR_NUMBERS;
	     s = behind + 1) {
		size_t n = numbers->count++;
		unsigned long value = strtoul(s, &behind, 10);

		numbers->values[n] = value < UINT16_MAX ? (uint16_t)value :
							  UINT16_MAX;
		numbers->sub[n] = n > 0 && s[-1] == ':';
	}
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

/* After 38, 48 or 58 at i: "5;n" or "2;r;g;b", or the same with colons, where
 * the number of a colour space may stand before r.  *i becomes the last number
 * that belongs to it: those after colons, or else as many as the first of them
 * needs.  0: it is unknown. */
static uint16_t
extended(const struct sgr_numbers *numbers, size_t *i)
{
	const uint16_t *v = numbers->values + *i + 1;
	const bool *sub = numbers->sub + *i + 1;
	size_t left = numbers->count - *i - 1;
	size_t n = 0;

	while (n < left && sub[n])
		n++;
	if (n == 0 && left > 0)
		n = v[0] == 2 ? 4 : v[0] == 5 ? 2 : 1;
	if (n > left)
		n = left;
	*i += n;
	if (n >= 2 && v[0] == 5 && v[1] < 256)
		return nearest_of_256(v[1]);
	if (n < 4 || v[0] != 2)
		return 0;
	v += sub[0] && n > 4 ? 2 : 1;
	return v[0] < 256 && v[1] < 256 && v[2] < 256 ?
	    nearest(v[0], v[1], v[2]) :
	    0;
}

/* Style with this colour, of the text or behind it. */
static uint16_t
with_colour(uint16_t style, uint16_t colour, bool back)
{
	int shift = back ? BACK_SHIFT : 0;

	return (uint16_t)((style & ~(FRONT << shift)) | colour << shift);
}

/* Style with colour n of the sixteen, 30-37, 40-47, 90-97 or 100-107, or
 * without one, 39 or 49. */
static uint16_t
apply_colour(uint16_t style, unsigned n)
{
	unsigned tens = n / 10;
	bool known = tens == 3 || tens == 4 ||
	    ((tens == 9 || tens == 10) && n % 10 != 9);

	if (!known || n % 10 == 8)
		return style;
	return with_colour(style, n % 10 == 9 ? 0 : (uint16_t)(BLACK + n % 10),
	    tens % 6 == 4);
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
			if (colour > 0 && n != 58)
				style = with_colour(style, colour, n == 48);
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

/* Does a blank show the style? */
static bool
sgr_fills(uint16_t style)
{
	return (style & (BACK | UNDERLINE)) != 0;
}

/* Append the sequence from one style to another.  It sets all of `to`, and
 * begins with a reset if `from` has a style.  At most SGR_MAX bytes. */
static void
sgr_add(struct buf *out, uint16_t from, uint16_t to)
{
	/* 0: left out */
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

/* ---- the screen ---- */

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
	bool redrawn; /* it was overwritten: blanks at its end erased
		       * something */
};

struct terminal {
	/* the rows that can be changed; older ones are in out */
	struct row rows[TERMINAL_ROWS];
	size_t first; /* the oldest */
	size_t count;
	size_t y; /* the cursor's row, from the oldest */
	size_t x; /* its column; TERMINAL_COLUMNS: past the last */
	uint16_t style;
	size_t padding; /* blanks that moves may still make, as a few bytes
			 * could fill a row */
	enum terminal_colours colours;
	uint16_t shown;	 /* the style at the end of out */
	uint32_t before; /* the character at its end, of the same line */
	bool coloured;
	size_t sequences; /* bytes that colours may still use: about as many as
			   * the program's */
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

/* Append the style of a cell.  A blank shows neither colour nor weight, and
 * needs no sequence for them. */
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

/* Character after the cell in its line; 0: none. */
static uint32_t
code_after(struct terminal *t, const struct row *row, size_t i)
{
	if (i + 1 < row->len)
		return row->cells[i + 1].code;
	row = row->wrapped && t->count > 1 ? row_at(t, 1) : NULL;
	return row != NULL && row->len > 0 ? row->cells[0].code : 0;
}

/* Show the oldest row, and free it for another. */
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

/* Move to the beginning of the next row, which may be a new one. */
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

/* Move n rows down or up, to the last or the first row at most, as on a
 * screen. */
static void
move_rows(struct terminal *t, bool down, size_t n)
{
	size_t most = down ? t->count - 1 - t->y : t->y;

	n = n < most ? n : most;
	t->y = down ? t->y + n : t->y - n;
}

/* Move to a column, which may be beyond the end of the row. */
static void
move_to_column(struct terminal *t, size_t x)
{
	t->x = x < TERMINAL_COLUMNS ? x : TERMINAL_COLUMNS - 1;
}

/* ---- writing ---- */

/* Lengthen a row to len <= TERMINAL_COLUMNS cells with blanks. */
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

/* Replace a tab by blanks, as one of its columns changes. */
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
terminal_put(struct terminal *t, uint32_t code)
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

/* Write a tab at the end of a line, so that a table keeps its tabs; within a
 * line only move. */
static void
put_tab(struct terminal *t)
{
	size_t stop;

	if (t->x < row_at(t, t->y)->len) {
		move_to_column(t, (t->x / TAB + 1) * TAB);
		return;
	}
	terminal_put(t, '\t');
	stop = (t->x + TAB - 1) / TAB * TAB;
	while (t->x < stop)
		terminal_put(t, 0);
}

/* Obey K: 0 from the cursor on, 1 up to it, 2 all of the line. */
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

/* Obey J: erase from the cursor to the end of the screen. */
static void
erase_below(struct terminal *t)
{
	erase_in_line(t, 0);
	while (t->count > t->y + 1)
		row_clear(row_at(t, --t->count));
}

/* ---- reading ---- */

/* Obey a control sequence; s: from its ESC to its final byte. */
static void
obey(struct terminal *t, const char *s, size_t len)
{
	struct sgr_numbers numbers;
	size_t n;

	if (!sgr_numbers(&numbers, s + 2, len - 3))
		return;
	n = numbers.values[0] > 0 ? numbers.values[0] : 1;
	if (s[len - 1] == 'E' || s[len - 1] == 'F')
		t->x = 0;
	switch (s[len - 1]) {
	case 'A':
	case 'F':
		move_rows(t, false, n);
		break;
	case 'B':
	case 'E':
		move_rows(t, true, n);
		break;
	case 'C':
		move_to_column(t, t->x + n);
		break;
	case 'D':
		move_to_column(t, t->x > n ? t->x - n : 0);
		break;
	case 'G':
		move_to_column(t, n - 1);
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

/* Read a control character or a sequence.  Returns its bytes. */
static size_t
terminal_read_control(struct terminal *t, const char *s, size_t len)
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
terminal_read(struct terminal *t, const char *s, size_t len)
{
	size_t step;
	uint32_t code;

	if ((unsigned char)*s < 0x20 || *s == 0x7f)
		return terminal_read_control(t, s, len);
	step = utf8_step(s, len);
	code = step > 0 ? utf8_decode(s, step) : REPLACEMENT;
	if (code < 0x80 || code > 0x9f)
		terminal_put(t, code);
	return step > 0 ? step : 1;
}

/* Show output from the beginning of a line, as a terminal draws it. */
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
		i += terminal_read(&t, data + i, len - i);
	while (t.count > 0)
		show_oldest(&t);
	for (size_t i = 0; i < TERMINAL_ROWS; i++)
		free(t.rows[i].cells);
	return t.coloured;
}

/* Bytes at the begin that need no terminal.  Most output is printable ASCII;
 * the last rows of that count as drawn, as the cursor can reach them from the
 * rest. */
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
