/* SPDX-License-Identifier: MIT */
#ifndef API_PACKAGES_H
#define API_PACKAGES_H

#include <stdbool.h>

#include "broker/volume.h"
#include "broker/workspace.h"

struct host;

/*
 * Packages that the operator installs for the runs of the HTTP APIs (`ilctl
 * packages`).  Each minor version of Python has a volume, in a folder of
 * IL_BASE_DIR that is no sandbox's:
 *
 *	API_PACKAGES_ID/packages-3.13.ext4	what runs see, never written to
 *	API_PACKAGES_ID/staging-3.13.ext4	what an installation writes to
 *
 * ilctl's STAGE makes the staging volume, a copy of the other; it lasts as long
 * as that connection.  In a lease of the class "install" pip fills it.  PUBLISH
 * waits for that cell's end, checks the file system and renames the volume.  So
 * a kill at any moment leaves the old volume or the new one.  Running cells
 * keep the volume that they have mounted.  Cells that are not leased end, and
 * the others are not leased again.
 *
 * All cells of a version mount one loop device, which we hold open: the kernel
 * then has one file system for all of them, and one copy of what they read.
 */
struct api_packages_volume {
	char name[VOLUME_NAME_MAX];
	struct attachment volume;
};

/* Set the folder of the packages of this interpreter: PYTHONUSERBASE and the
 * version's folder in it.  False: the name does not begin with a version. */
#define API_PACKAGES_TARGET_MAX 128
bool api_packages_target(const char *interpreter,
    char target[API_PACKAGES_TARGET_MAX]);

/* Set the device for a cell of this interpreter, in a descriptor of the cell's
 * own: the number stays reserved until the descriptor is closed.  The
 * attachment stays empty when the version has no packages, or (logged) when
 * they cannot be attached. */
void api_packages_attach(struct host *host, const char *interpreter,
    struct attachment *a);
/* Close all devices; a device that a cell has mounted stays until the cell
 * ends. */
void api_packages_release(struct host *host);
/* Remove the leftovers of a killed installation; called at the start. */
void api_packages_sweep(int base);
#endif
