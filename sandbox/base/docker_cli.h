/* SPDX-License-Identifier: MIT */
#ifndef DOCKER_CLI_H
#define DOCKER_CLI_H

#include <stdbool.h>

struct err;

/*
 * The program that DOCKER_BINARY names, asked what it is; no engine is needed
 * for that.  ERR_CONFIG "DOCKER_BINARY: reason" when it is one that passes for
 * Docker and cannot hold a sandbox.  What does not answer within 3 s, or cannot
 * be started, is no such program: that is found out, and told, by whoever needs
 * the engine.
 */
int docker_cli_check(const char *binary, bool *forgets_rates, struct err *err);
/* By what `docker --version` printed: does it take the limits of a device's
 * throughput and forget them?  25.0.0 to 25.0.6, all of 26, 27.0.0 to 27.1.1
 * (docker/cli, issue 5321). */
bool docker_cli_forgets_rates(const char *text);

#endif
