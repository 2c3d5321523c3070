/* SPDX-License-Identifier: MIT */
#ifndef IMPORTS_H
#define IMPORTS_H

#include <stdint.h>

struct cell_request;

/*
 * Which of these modules does the program of a run look as if it imports, them
 * or others of their packages?  It is a guess, at no price: the run is right in
 * any cell, and faster in one that has them imported.  modules: a list; the
 * mask is that of sandbox/base/preload.h.
 *
 * PRELOAD_APART where it brings modules of its own, or a matplotlibrc: these
 * come before the packages' when they are imported, but not once those are
 * there.
 */
int64_t imports_of(const char *modules, const struct cell_request *request);

#endif
