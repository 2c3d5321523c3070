/* SPDX-License-Identifier: MIT */
#ifndef S3_PLACE_H
#define S3_PLACE_H

#include <stdbool.h>

struct config;
struct err;

/* Where an S3 service is, and what opens it; all heap. */
struct s3_place {
	char *bucket; /* ENDPOINT/BUCKET */
	char *prefix; /* "PREFIX/", or "" */
	char *sign;   /* aws:amz:REGION:s3 */
	char *user;
	char *secret;
	bool local; /* on this machine: not behind a proxy */
};

/* By IL_SNAPSHOTS and what belongs to it; the key's file is for nobody else to
 * read.  To be released after -1, too. */
int s3_place_find(struct s3_place *place, const struct config *config,
    struct err *err);
void s3_place_release(struct s3_place *place);

#endif
