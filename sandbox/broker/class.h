#ifndef CLASS_H
#define CLASS_H

#include <stdbool.h>
#include <stdint.h>

struct config;

/*
 * The kinds of cells.  What a class may see and reach stands in one row of the
 * table in class.c and nowhere else.
 */
struct cell_class {
	const char *name;
	const char
	    *workspace_at;	 /* where the workspace is mounted; NULL: not */
	const char *packages_at; /* the packages */
	bool network;		 /* IL_PIP_NETWORK; otherwise none at all */
	bool warm;		 /* used again, for the same sandbox only */
};

/* NULL when there is no such class. */
const struct cell_class *class_find(const char *name);

const char *class_network(const struct cell_class *class,
    const struct config *config);
/* The file with the certificates to mount, "" for none. */
const char *class_ca_bundle(const struct cell_class *class,
    const struct config *config);
int64_t class_memory(const struct cell_class *class,
    const struct config *config);
/* Bytes that one file may have. */
int64_t class_file_max(const struct cell_class *class,
    const struct config *config);

#endif
