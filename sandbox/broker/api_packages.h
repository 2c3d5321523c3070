/* SPDX-License-Identifier: MIT */
#ifndef API_PACKAGES_H
#define API_PACKAGES_H

#include <stdbool.h>

#include "broker/volume.h"
#include "broker/workspace.h"

struct host;

/*
 * What the operator has installed for the runs of the HTTP APIs (`ilctl
 * packages`): a volume for each minor version of Python, in a folder of
 * IL_BASE_DIR that is no sandbox's:
 *
 *	API_PACKAGES_ID/packages-3.13.ext4	what runs see, never written to
 *	API_PACKAGES_ID/staging-3.13.ext4	what an installation writes to
 *
 * A client of ilctl's stages: STAGE makes the staging volume, a copy of the
 * other, which lasts as long as that connection.  In a lease of the class
 * "install" pip fills it.  PUBLISH waits for that cell's end, checks the file
 * system and renames the volume, so whatever is killed leaves the one or the
 * other.  Cells that are there keep what they have mounted; those that are not
 * leased end, the others are not leased again.
 *
 * All cells of a version mount one loop device, which we hold open: the kernel
 * then has one file system for all of them, and one copy of what they read.
 */
struct api_packages_volume {
	char name[VOLUME_NAME_MAX];
	struct attachment volume;
};

/* Where an interpreter's runs find them, by its name: PYTHONUSERBASE and the
 * version's folder in it.  False: the name does not begin with a version. */
#define API_PACKAGES_TARGET_MAX 128
bool api_packages_target(const char *interpreter,
    char target[API_PACKAGES_TARGET_MAX]);

/* The device for a cell of this interpreter, in a descriptor of the cell's own:
 * its number is nobody else's until that is closed.  None: it has no packages,
 * or (which is logged) they cannot be attached. */
void api_packages_attach(struct host *host, const char *interpreter,
    struct attachment *a);
/* Let go of all devices; those that cells have mounted stay until these end. */
void api_packages_release(struct host *host);
/* At the start: remove what a killed installation has left. */
void api_packages_sweep(int base);
#endif
