/* SPDX-License-Identifier: MIT */
#ifndef NODE_ANSWER_H
#define NODE_ANSWER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../files/filestore.h"

struct buf;

/*
 * What il-api of one node tells that of another about a file: the head of an
 * answer of HTTP, behind which are the file's bytes.  It comes through two
 * nginxes, and is read as any bytes from outside.
 */
#define NODE_HEAD_MAX 16384
#define NODE_NAME_MAX 1024 /* bytes of a name, its last ones */
#define NODE_FILE_MAX (INT64_C(100) << 20)

#define NODE_FILES "/nodes/files/" /* and the id: where it is asked for */
#define NODE_HEADER_NOTE "Inline-Note"
#define NODE_HEADER_NAME "Inline-Name"

struct node_answer {
	int status;	/* 100 to 599 */
	int64_t length; /* up to NODE_FILE_MAX; -1: it does not say */
	char note[FILESTORE_NOTE_MAX + 1];
	char name[NODE_NAME_MAX + 1]; /* UTF-8; "": it does not say */
};

/* The headers of a file that is told of. */
void node_answer_add(struct buf *headers, const char *name, const char *note);

/* Read a head.  How many bytes of the text it takes; 0: it has no end yet; -1:
 * it is none of ours. */
ssize_t node_answer_read(struct node_answer *answer, const char *text,
    size_t len);

#endif
