/* SPDX-License-Identifier: MIT */
#ifndef ARGV_H
#define ARGV_H

#include <stddef.h>

/*
 * The words of a command, on the heap, always NULL-terminated.  Bounded: a word
 * too many ends the program, for no list of ours grows with what comes from
 * outside.
 */
#define ARGV_MAX 128

struct argv {
	char *words[ARGV_MAX + 1];
	size_t count;
	const char *input; /* borrowed: its standard input; NULL: /dev/null */
};

/* Begin with these words, up to a NULL. */
void argv_init(struct argv *argv, const char *const *words);
void argv_release(struct argv *argv);
void argv_add(struct argv *argv, const char *word);
void argv_addf(struct argv *argv, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* An option and its value. */
void argv_option(struct argv *argv, const char *option, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Several words, up to a NULL. */
void argv_add_all(struct argv *argv, const char *const *words);

#define auto_argv __attribute__((cleanup(argv_release)))
/* What argv_init() and argv_add_all() take. */
#define ARGV_WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

#endif
