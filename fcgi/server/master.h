/* SPDX-License-Identifier: MIT */
#ifndef MASTER_H
#define MASTER_H

#include <stdbool.h>

struct config;
struct err;
struct serve;

/* Open the sockets and serve them: 0 after SIGTERM or SIGINT, when all children
 * are gone.  The sockets' descriptors end with the process. */
int master_run(const struct serve *serve, const struct config *config,
    struct err *err);

/* How the main() of such a program begins: its command line, [-tv] [-e envfile]
 * and, where linger is not NULL, [-l], its log and its configuration.  It ends
 * the program where they are wrong.  True: -t, which is all that is wanted. */
bool master_begin(const char *name, int argc, char **argv,
    struct config *config, bool *linger);

#endif
