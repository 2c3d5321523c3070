/* SPDX-License-Identifier: MIT */
#ifndef OBJECTION_H
#define OBJECTION_H

#include <stdio.h>

/* Print what Discord says in an answer that is an error, a line each: its
 * message, and what is wrong at each path of "errors".  answer: any bytes; what
 * is printed is bounded, and nothing in it moves a terminal's cursor. */
void objection_print(FILE *out, const char *answer);

#endif
