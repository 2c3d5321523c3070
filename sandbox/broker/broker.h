/* SPDX-License-Identifier: MIT */
#ifndef BROKER_H
#define BROKER_H

struct broker;
struct config;
struct err;

/*
 * The whole of il-sandboxd but for main(): opens everything, serves
 * STATE/broker until SIGTERM or SIGINT, ends every container and returns.
 * -1: it could not begin.
 */
int broker_serve(const struct config *config, struct err *err);

#endif
