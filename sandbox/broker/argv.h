#ifndef ARGV_H
#define ARGV_H

#include <stddef.h>

/*
 * The words of a command, on the heap, always NULL-terminated; hand words to
 * process_spec.  Bounded: a word too many ends the program, for no list of ours
 * grows with what comes from outside.
 */
#define ARGV_MAX 128

struct argv {
	char *words[ARGV_MAX + 1];
	size_t count;
};

void argv_init(struct argv *argv);
void argv_release(struct argv *argv);
void argv_add(struct argv *argv, const char *word);
void argv_addf(struct argv *argv, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Several words, up to a NULL. */
void argv_add_all(struct argv *argv, const char *const *words);

#define auto_argv __attribute__((cleanup(argv_release)))

#endif
