/* SPDX-License-Identifier: MIT */
#ifndef IMPORTS_H
#define IMPORTS_H

#include <stdbool.h>

struct cell_request;

/*
 * Does the program of a run look as if it imports one of these modules?  It is
 * a guess, at no price: the run is right in any cell, and faster in one that
 * has them imported.  modules: "numpy,matplotlib.pyplot", of IL_PRELOAD.
 */
bool imports_any(const char *modules, const struct cell_request *request);

#endif
