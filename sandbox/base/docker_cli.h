/* SPDX-License-Identifier: MIT */
#ifndef DOCKER_CLI_H
#define DOCKER_CLI_H

#include <stdbool.h>

struct err;

/*
 * The program that DOCKER_BINARY names, asked what it is; no engine is needed
 * for that.  ERR_CONFIG "DOCKER_BINARY: reason" when it is one that passes for
 * Docker and cannot hold a sandbox.  A program that does
 * not answer within 3 s, or cannot be started, passes here: the first call of
 * the engine reports it.
 */
int docker_cli_check(const char *binary, bool *forgets_rates, struct err *err);
/* Text of `docker --version`: does this version take the limits of a device's
 * throughput and forget them?  25.0.0 to 25.0.6, all of 26, 27.0.0 to 27.1.1
 * (docker/cli, issue 5321). */
bool docker_cli_forgets_rates(const char *text);

/* ---- AppArmor ---- */

/*
 * The AppArmor profile for the containers of the HTTP APIs, which comes with
 * us (systemd/apparmor/): Docker's own, and what the runs' namespaces need.
 */
#define APPARMOR_PROFILE "inline-api"

/* Is this profile in the kernel?  Anybody may ask; false where there is no
 * AppArmor. */
bool apparmor_is_loaded(const char *profile);

/*
 * The profile to start an API container with: that of IL_TUNE_API_APPARMOR, or
 * ours where that is empty and ours is loaded; "" the engine's own.  Borrowed
 * from `wanted`, or static.
 */
const char *apparmor_choose(const char *wanted);

/* For tests: the same, in another folder than the kernel's. */
bool apparmor_is_in(const char *folder, const char *profile);

#endif
