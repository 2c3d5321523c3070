/* SPDX-License-Identifier: MIT */
#ifndef RENDER_WHERE_H
#define RENDER_WHERE_H

#include "render.h"

/* Where somebody is in the sandbox, and what paths mean there. */
#define TEXT_SANDBOX_STAYS \
	N_("The sandbox itself stays: `/il rm` removes what is in it. `/il " \
	   "delete` deletes the sandbox with all its files.")
#define TEXT_NAMES_FOLDER \
	N_("%s is the name of a directory: add the name of the file, as in " \
	   "`folder/file.txt`.")

#endif
