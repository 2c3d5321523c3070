/* SPDX-License-Identifier: MIT */
#ifndef SCRIPT_H
#define SCRIPT_H

#include <stdint.h>

/*
 * Files that are run: what a name says of one, and how large it may be.  The
 * rule is the same for an upload and for a message's files.  The type that
 * Discord names is a guess of the sender's computer.
 */
enum script {
	SCRIPT_PYTHON,
	SCRIPT_NOTEBOOK,
	/* The content has to look like Python, for both.  A message's texts by
	 * their names go before its other files. */
	SCRIPT_TEXT,
	SCRIPT_UNKNOWN,
	SCRIPT_BINARY, /* a picture, an archive: never run */
};

/* Of a program that comes as files: how many, and bytes of each and of all.  A
 * notebook holds its pictures, too. */
#define SCRIPT_COUNT_MAX 10
#define SCRIPT_MAX 65536
#define SCRIPT_ALL_MAX 262144
#define SCRIPT_NOTEBOOK_MAX 1048576

enum script script_of(const char *name);
/* Bytes that such a file may have; and all files, if one is such a file. */
int64_t script_most(enum script script);
int64_t script_all_most(enum script script);

#endif
