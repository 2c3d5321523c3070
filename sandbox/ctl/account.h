/* SPDX-License-Identifier: MIT */
#ifndef ACCOUNT_H
#define ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * As whom the programs run when `ilctl run` is root: a user for each duty, with
 * the groups that its unit has under systemd.  Where the host knows the names
 * of inline.sysusers they are used, otherwise fixed numbers that no system
 * gives to anybody: ACCOUNT_FIRST and the following (README.md).
 */
#define ACCOUNT_FIRST 2000000000U

enum account_name {
	ACCOUNT_FCGI,
	ACCOUNT_API,
	ACCOUNT_WORKER,
	ACCOUNT_NGINX,
	ACCOUNT_STANDIN,
	ACCOUNTS,
};

enum account_group {
	ACCOUNT_GROUP_DB,     /* inline-db */
	ACCOUNT_GROUP_WORKER, /* inline-broker-worker */
	ACCOUNT_GROUP_API,    /* inline-broker-api */
	ACCOUNT_GROUP_WEB,    /* inline-web */
	ACCOUNT_GROUPS,
};

#define ACCOUNT_GROUPS_MAX 2

struct account {
	uid_t uid;
	gid_t gid;
	gid_t groups[ACCOUNT_GROUPS_MAX]; /* supplementary */
	size_t group_count;
	bool low_ports; /* it keeps CAP_NET_BIND_SERVICE, and nothing else */
};

struct accounts {
	bool separate; /* we are root; otherwise all else is unset */
	struct account of[ACCOUNTS];
	gid_t groups[ACCOUNT_GROUPS];
};

/* http_port: below 1024 nginx keeps the right to open it. */
void accounts_find(struct accounts *accounts, int64_t http_port);
/* NULL: it runs as we do. */
const struct account *accounts_get(const struct accounts *accounts,
    enum account_name name);

/*
 * In a child, before exec: become that user for good, with no capability (but
 * for low_ports), none that could be had, no other group and no way to new
 * privileges; or, NULL, stay who we are, without the latter.  Descriptors from
 * first_fd on are closed at exec.  -1: errno says why.
 */
int account_assume(const struct account *account, int first_fd);

#endif
