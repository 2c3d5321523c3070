/* SPDX-License-Identifier: MIT */
#include "argv.h"

#include <stdarg.h>
#include <stdlib.h>

#include "../base/buf.h"
#include "../base/log.h"

#define WORD_MAX 65536

void
argv_init(struct argv *argv, const char *const *words)
{
	*argv = (struct argv){ .count = 0 };
	argv_add_all(argv, words);
}

void
argv_release(struct argv *argv)
{
	for (size_t i = 0; i < argv->count; i++)
		free(argv->words[i]);
	*argv = (struct argv){ .count = 0 };
}

/* The word is ours now. */
static void
argv_take(struct argv *argv, char *word)
{
	if (argv->count == ARGV_MAX)
		log_fatal(1, "a command of more than %d words", ARGV_MAX);
	argv->words[argv->count++] = word;
	argv->words[argv->count] = NULL;
}

void
argv_add(struct argv *argv, const char *word)
{
	argv_take(argv, xstrdup(word));
}

static void __attribute__((format(printf, 2, 0)))
argv_addv(struct argv *argv, const char *fmt, va_list ap)
{
	auto_buf struct buf word = BUF_INIT(WORD_MAX);

	buf_addv(&word, fmt, ap);
	if (word.overflow)
		log_fatal(1, "a word of more than %d bytes", WORD_MAX);
	argv_take(argv, buf_steal(&word, NULL));
}

void
argv_addf(struct argv *argv, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	argv_addv(argv, fmt, ap);
	va_end(ap);
}

void
argv_option(struct argv *argv, const char *option, const char *fmt, ...)
{
	va_list ap;

	argv_add(argv, option);
	va_start(ap, fmt);
	argv_addv(argv, fmt, ap);
	va_end(ap);
}

void
argv_add_all(struct argv *argv, const char *const *words)
{
	for (; *words != NULL; words++)
		argv_add(argv, *words);
}
