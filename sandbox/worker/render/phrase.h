/* SPDX-License-Identifier: MIT */
#ifndef PHRASE_H
#define PHRASE_H

#include <stddef.h>
#include <stdint.h>

#define PATH_SHOWN 80 /* code points of a path in a sentence */

/* Piece of a sentence, in its language, which lives as long as the call that it
 * is an argument of. */
struct phrase {
	char text[512];
};

struct phrase phrase_words(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
/* "10,000", not negative. */
struct phrase phrase_count(int64_t n);
/* "1.5 MiB", "812 B". */
struct phrase phrase_size(int64_t bytes);
/* "0.5" for 500. */
struct phrase phrase_thousandths(int64_t n);
/* "1 file", "10,000 files". */
struct phrase phrase_files(int64_t n);
/* "12 ms", "1.25 s", "2 min 5 s". */
struct phrase phrase_duration(int64_t us);
/* A time in its largest whole unit: 15 minutes, 7 days. */
struct phrase phrase_span(int64_t seconds);
/* A stranger's word as inline code, at most `most` (<= 80) code points. */
struct phrase phrase_name(const char *name, size_t most);
/* A path of a sandbox, as ~/name; heap. */
char *phrase_tilde(const char *path);
/* The same as inline code. */
struct phrase phrase_path(const char *path);

#endif
