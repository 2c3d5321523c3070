/* SPDX-License-Identifier: MIT */
#ifndef SPOOL_H
#define SPOOL_H

#include <stdint.h>

/*
 * What the disk may have to hold of requests' bodies that nginx reads: it lets
 * only so many of each size come at one time (nginx/api.conf, nginx/http.conf;
 * tests/nginx/spool.t compares).  Smaller ones stay in memory.
 */
#define SPOOL_MEDIUM INT64_C(32)
#define SPOOL_MEDIUM_BYTES INT64_C(8000000)
#define SPOOL_HUGE INT64_C(4)
#define SPOOL_HUGE_BYTES (INT64_C(128) << 20)
#define SPOOL_BYTES \
	(SPOOL_MEDIUM * SPOOL_MEDIUM_BYTES + SPOOL_HUGE * SPOOL_HUGE_BYTES)

#endif
