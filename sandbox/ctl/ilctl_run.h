/* SPDX-License-Identifier: MIT */
#ifndef RUN_H
#define RUN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/children.h"

struct config;
struct db;
struct err;

/* Users of the programs when `ilctl run` is root: one for each duty, with the
 * groups that its unit has under systemd.  Where the host knows the names of
 * inline.sysusers they are used, otherwise fixed numbers that no system gives
 * to anybody: ACCOUNT_FIRST and the following (README.md). */
#define ACCOUNT_FIRST 2000000000U

enum account {
	ACCOUNT_FCGI,
	ACCOUNT_API,
	ACCOUNT_WORKER,
	ACCOUNT_NODE,
	ACCOUNT_NGINX,
	ACCOUNT_STANDIN,
	ACCOUNTS, /* none of these: as we do */
};

/* The first groups are the accounts' own. */
enum account_group {
	ACCOUNT_GROUP_DB = ACCOUNTS, /* inline-db */
	ACCOUNT_GROUP_WORKER,	     /* inline-broker-worker */
	ACCOUNT_GROUP_API,	     /* inline-broker-api */
	ACCOUNT_GROUP_WEB,	     /* inline-web */
	ACCOUNT_GROUP_NODES,	     /* inline-nodes */
	ACCOUNT_GROUPS,
};

/* The order in which programs are ended.  First nginx takes no more requests
 * and the workers take no more jobs, and both finish what they have.  The
 * broker, which ends the containers, comes last.  The stand-in outlives the
 * workers, which tell it their last answers. */
enum child_stage {
	STAGE_DRAIN,
	STAGE_FRONT,
	STAGE_STANDIN,
	STAGE_BROKER,
	STAGE_COUNT,
};

#define CHILD_FDS 6
/* Its exit status when the program could not be executed. */
#define CHILD_NOT_STARTED 127

/*
 * One program that is watched.  It leads a session, and so a process group, of
 * its own: the terminal's Ctrl-C reaches it through us and in order, what it
 * leaves behind can be ended with it, and it has a weight of its own
 * (../base/process.h).
 */
struct program {
	char name[40];
	const char *file;
	char slot[24]; /* of a worker; "" */
	enum account account;
	/* Its descriptors from 3 on at every start.  A front has listening
	 * sockets, handed over as systemd does: clients wait while the program
	 * is started again. */
	int fds[CHILD_FDS];
	int fd_count;
};

/* The local stand-in for Discord, when no public key is configured. */
struct standin {
	char *script;	/* heap */
	char *key_file; /* heap */
	long port;	/* its own, on loopback; 0: there is none */
	int listen_fd;	/* of its port, until its child has it; -1 */
};

/* All that `ilctl run` knows. */
struct run {
	struct config *config;
	const char *env_file;  /* for the programs to read, or NULL */
	char folder[PATH_MAX]; /* the other programs are here */
	int lock_fd;	       /* of the state folder */
	/* The database is open for as long as we run: so SQLite's -wal and -shm
	 * stay, which others could not make there. */
	struct db *database;
	struct standin standin;
	bool separate; /* we are root: uids, gids and view_fd are in use */
	uid_t uids[ACCOUNTS];
	gid_t gids[ACCOUNT_GROUPS];
	int view_fd; /* the accounts' view of the folders (view_open()); -1 */

	struct program *programs; /* heap, in the order of their start */
	struct children children; /* each runs the program of its index */
	int exit_code;
};

/* ilctl_run.c: become the program.  Returns: errno says why not. */
void run_exec(const struct run *run, const struct program *program);

/* child.c */

/* Fill in separate, uids and gids. */
void account_find(struct run *run);
/* Make the folders that are missing; in the state folder itself none but us
 * makes files.  As root, give each to its program, with what earlier runs left
 * in there, but for links and what was not its folder's owner's. */
int estate_prepare(const struct run *run, struct err *err);
/* As root: the FIFO, the database with -wal and -shm, which nobody else could
 * make, nginx.conf and the stand-in's key. */
int estate_share(const struct run *run, struct err *err);
#define VIEW_PATHS_MAX 11
/* Below a folder that other users may not pass (/root), they see in a mount
 * namespace of their own what they need, at the same paths.  paths: of folders,
 * absolute, without links, at most VIEW_PATHS_MAX.  *fd: the namespace to
 * enter, or -1 when every path can be passed as it is.  ERR_CONFIG: they
 * cannot, and none is to be had. */
int view_open(int *fd, const char *const *paths, size_t count, struct err *err);

/* Remove what stands in the state folder for a running program. */
void supervise_clear(const struct config *config);
/*
 * Start every program, watch them, start again what ends, and end all of them
 * in order on SIGINT, SIGTERM or SIGHUP; a second signal hurries, a third
 * kills.  When all of them accept requests, it is said where to go now.
 *
 * Returns the exit code: 0 after a signal, 64 or 78 when a program ended with
 * that and so would end again, -1 after an error of our own.
 */
int supervise(struct run *run, struct err *err);

#endif
