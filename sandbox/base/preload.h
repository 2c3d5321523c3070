/* SPDX-License-Identifier: MIT */
#ifndef PRELOAD_H
#define PRELOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * IL_PRELOAD: modules that cells of the HTTP APIs have imported before their
 * runs.  A setting is "numpy,matplotlib.pyplot"; or "auto", which stands for
 * packages that many programs use and that take long to import, of which the
 * broker takes those in use (broker/policy.h); or "none".
 *
 * A set of them is a mask: bit i for the i-th of the list.  The last bit stands
 * for all the others that a longer list has.
 */
#define PRELOAD_BITS 32
#define PRELOAD_ALL UINT32_MAX
/* Instead of a mask: a run that is not to meet what "auto" has chosen. */
#define PRELOAD_APART (INT64_C(1) << PRELOAD_BITS)
#define PRELOAD_NAMES_MAX 256 /* bytes of auto's, with the NUL */

bool preload_is_auto(const char *setting);
/* The names that a setting stands for. */
const char *preload_list(const char *setting);
/* Step through a list: the next name and its length, which is not 0; NULL: no
 * more. */
const char *preload_next(const char **list, size_t *len);
uint32_t preload_bit(size_t index);
/* Of a mask, what is not among these: bit i for the i-th that is set in it. */
uint32_t preload_without(uint32_t mask, uint32_t imported);
/* The names of a mask, of auto's list. */
void preload_auto_names(uint32_t mask, char names[PRELOAD_NAMES_MAX]);

#endif
