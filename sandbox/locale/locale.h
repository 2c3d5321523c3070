/* SPDX-License-Identifier: MIT */
#ifndef LOCALE_TEXT_H
#define LOCALE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Texts that people read, in their language.  A text stands in the code in
 * English, marked; its translations are compiled in, from po/.  A program has
 * one language at a time: that of the interaction or the job for which it makes
 * texts at that moment.
 *
 *	_("text")		in the language that is set
 *	N_("text")		in a table: marked, for _() where it is used
 *	Q_("%d file", "%d files", n)	the form that n asks for
 *
 * Where there is no translation the English stays.
 */
#define _(text) locale_text(text)
#define N_(text) text
#define Q_(one, many, n) locale_plural(one, many, n)

/* Discord's name of a language, as "de".  Any other value (NULL, any bytes)
 * sets English. */
void locale_set(const char *name);

/* Static; the format of a printf is checked as that of the English. */
const char *locale_text(const char *text) __attribute__((format_arg(1)));
const char *locale_plural(const char *one, const char *many, int64_t n)
    __attribute__((format_arg(1), format_arg(2)));

/* All languages but English, for the registration with Discord. */
size_t locale_count(void);
const char *locale_name(size_t index);
/* NULL: there is no translation. */
const char *locale_text_in(size_t index, const char *text);

#endif
