#ifndef DOCKER_CLI_H
#define DOCKER_CLI_H

struct err;

/*
 * The program that DOCKER_BINARY names, asked what it is; no engine is needed
 * for that.  ERR_CONFIG "DOCKER_BINARY: reason" when it is one that passes for
 * Docker and cannot hold a sandbox.  What does not answer within 3 s, or cannot
 * be started, is no such program: that is found out, and told, by whoever needs
 * the engine.
 */
int docker_cli_check(const char *binary, struct err *err);

#endif
