/* SPDX-License-Identifier: MIT */
#ifndef APPARMOR_H
#define APPARMOR_H

#include <stdbool.h>

/*
 * The AppArmor profile for the containers of the HTTP APIs, which comes with
 * us (systemd/apparmor/): Docker's own, and what the runs' namespaces need.
 */
#define APPARMOR_PROFILE "inline-api"

/* Is this profile in the kernel?  Anybody may ask; false where there is no
 * AppArmor. */
bool apparmor_is_loaded(const char *profile);

/*
 * The profile to start an API container with: what IL_API_APPARMOR says, or
 * ours where that is empty and ours is loaded; "" the engine's own.  Borrowed
 * from `wanted`, or static.
 */
const char *apparmor_choose(const char *wanted);

/* For tests: the same, in another folder than the kernel's. */
bool apparmor_is_in(const char *folder, const char *profile);

#endif
