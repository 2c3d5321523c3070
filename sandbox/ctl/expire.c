/* SPDX-License-Identifier: MIT */
/*
 * `ilctl expire`: what a worker would remove later is removed now.
 */
#include <inttypes.h>
#include <stdio.h>

#include "../base/cleanup.h"
#include "../base/err.h"
#include "../protocol/lease.h"
#include "../protocol/sockets.h"
#include "../store/db.h"
#include "../store/sandbox.h"
#include "ctl.h"

/* The broker ends the sandbox's cells first, which may take a while. */
#define REMOVE_MS 30000

struct expire {
	struct db *db;
	const char *socket_path;
	int removed;
	int failed;
};

/* The sandbox is marked already; what cannot be removed now stays marked, and
 * a worker tries again.  False: there is no use in going on. */
static bool
remove_one(struct expire *e, const struct sandbox *sandbox, struct err *err)
{
	enum refusal outcome = lease_remove_workspace(e->socket_path,
	    sandbox->id, REMOVE_MS, err);

	if (outcome != REFUSAL_NONE) {
		e->failed++;
		(void)fprintf(stderr, "ilctl expire: sandbox %s: %s\n",
		    sandbox->id, err->text);
		return outcome != REFUSAL_UNREACHABLE;
	}
	if (sandbox_gone(e->db, sandbox->id, err) < 0) {
		e->failed++;
		(void)fprintf(stderr, "ilctl expire: %s\n", err->text);
		return false;
	}
	e->removed++;
	printf("removed %s of user %" PRId64 "\n", sandbox->id,
	    sandbox->user_id);
	return true;
}

/* What could not be removed before is tried again, too. */
static int
expire_all(struct expire *e, struct err *err)
{
	struct sandbox sandbox;
	int result = 0;

	if (sandbox_retry(e->db, err) < 0)
		return -1;
	while ((result = sandbox_take_expired(e->db, &sandbox, err)) == 0) {
		if (!remove_one(e, &sandbox, err))
			break;
	}
	return result < 0 ? -1 : 0;
}

int
ctl_expire(struct ctl *ctl, int argc, char **argv)
{
	auto_free char *path = config_state_path(&ctl->config,
	    SOCKET_BROKER_CTL);
	struct err err = { 0 };
	struct expire e = { .socket_path = path };
	int result = -1;

	(void)argc;
	e.db = db_open(ctl->config.database, DB_WORKER, &err);
	if (e.db != NULL)
		result = expire_all(&e, &err);
	db_close(e.db);
	if (result < 0)
		return ctl_fail(argv[0], &err);
	printf("%d removed, %d left for later\n", e.removed, e.failed);
	return e.failed == 0 ? CTL_OK : CTL_FAILED;
}
