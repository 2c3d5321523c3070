/* SPDX-License-Identifier: MIT */
/*
 * What is done before docker run: who the container runs as is chosen, its
 * volumes are locked and attached one after the other.  One with an error is
 * checked before, one whose files are not that user's is given to it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../volume/owner.h"
#include "../volume/uid.h"
#include "container.h"
#include "engine.h"
#include "ledger.h"
#include "pool.h"
#include "spare.h"
#include "warm.h"
#include "workspace.h"

#define VOLUME_WAIT_MS 15000 /* for an older container to let go of it */
#define CHECK_MS 60000	     /* e2fsck, and giving */
#define FRESH_MS 1000	     /* the engine's state may be so old */

static void prepare_next(struct container *c);

/* No volume means no sandbox; everything else is our fault. */
static enum refusal
refusal_of(const struct err *err)
{
	return err->code == ERR_NOT_FOUND ? REFUSAL_NO_WORKSPACE :
					    REFUSAL_START;
}

/* The volume whose turn it is. */
static const char *
volume_name(const struct container *c)
{
	return class_volume(c->class, c->volume_next, c->packages);
}

/* Step 4: it is locked, whole and its user's: attach it, and go on. */
static void
volume_attach(struct container *c)
{
	struct attachment *volume = &c->volumes[c->volume_next];
	struct err err;

	if ((c->adopting ? attachment_replace(volume, &err) :
			   attachment_attach(volume, &err)) != 0) {
		container_fail(c, REFUSAL_START, err.text);
		return;
	}
	c->volume_next++;
	prepare_next(c);
}

/* Run a program on the file of the volume. */
static void
volume_run(struct container *c, const char *const *words, subprocess_fn done)
{
	auto_argv struct argv argv;

	argv_init(&argv, words);
	argv_addf(&argv, "%s/%s/%s", c->host->config->base_dir, c->sandbox,
	    volume_name(c));
	subprocess_start(&c->tool, c->host->loop, &argv, CHECK_MS, done, c);
}

/* Its files are its user's now. */
static void
give_on_end(void *arg, const struct process_result *result)
{
	struct container *c = arg;
	char text[160];

	process_describe(result, text, sizeof(text));
	if (!process_succeeded(result)) {
		log_err("-u: %s sandbox=%s", text, c->sandbox);
		container_fail(c, REFUSAL_START,
		    "the sandbox's files could not be given to its user");
		return;
	}
	log_info("%s belongs to uid=%u now sandbox=%s", volume_name(c),
	    c->owner, c->sandbox);
	volume_attach(c);
}

/* Step 3: where its files are another user's, of the one that all sandboxes had
 * or of one that another sandbox has, too, they are given to ours.  A program
 * does it, as it takes a while. */
static void
check_on_end(void *arg, const struct process_result *result)
{
	struct container *c = arg;
	char text[160];
	char uid[16];

	process_describe(result, text, sizeof(text));
	/* 1: errors were corrected. */
	if (result->outcome != PROCESS_EXITED || result->code > 1) {
		log_err("e2fsck: %s sandbox=%s", text, c->sandbox);
		container_fail(c, REFUSAL_START,
		    result->outcome == PROCESS_NOT_STARTED ?
			text :
			"the sandbox's file system is damaged");
		return;
	}
	log_warn("checked %s: %s sandbox=%s", volume_name(c), text, c->sandbox);
	if (owner_of(c->volumes[c->volume_next].volume_fd) == c->owner) {
		volume_attach(c);
		return;
	}
	(void)snprintf(uid, sizeof(uid), "%u", c->owner);
	volume_run(c, ARGV_WORDS("/proc/self/exe", "-u", uid), give_on_end);
}

/* Step 2: with the lock held and without a device, e2fsck works on the file.
 * When there is no reason to doubt it, only its journal is replayed (with -f it
 * would make a lost+found where nothing was lost). */
static void
volume_check(struct container *c)
{
	struct attachment *volume = &c->volumes[c->volume_next];

	attachment_detach(volume);
	volume_run(c,
	    c->repaired || workspace_volume_damaged(volume->volume_fd) ?
		ARGV_WORDS("e2fsck", "-p", "-f") :
		ARGV_WORDS("e2fsck", "-p"),
	    check_on_end);
}

/* Is there a reason to look into it? */
static void
volume_on_locked(void *arg, const struct err *failure)
{
	struct container *c = arg;
	int fd = c->volumes[c->volume_next].volume_fd;
	struct reservation *reserved = c->reserved[c->volume_next];

	if (failure != NULL) {
		container_fail(c, REFUSAL_START, failure->text);
		return;
	}
	if (reserved != NULL)
		reservation_supersede(c->host->ledger, reserved);
	if (!workspace_volume_damaged(fd) && owner_of(fd) == c->owner)
		volume_attach(c);
	else if (c->adopting)
		container_fail(c, REFUSAL_START, "it has to be checked first");
	else
		volume_check(c);
}

/* Step 1: open the next volume and lock it.  After a mount that failed we have
 * the locks, and check all of them. */
static void
prepare_next(struct container *c)
{
	struct attachment *volume = &c->volumes[c->volume_next];
	struct err err;

	if (volume_name(c) == NULL) {
		container_set(c, CONTAINER_PREPARED);
		return;
	}
	if (c->repaired && volume->volume_fd >= 0) {
		volume_check(c);
		return;
	}
	volume->volume_fd = workspace_volume_open(c->host->base, c->sandbox,
	    volume_name(c), &err);
	/* Packages of this version that nobody has installed yet. */
	if (volume->volume_fd < 0 && err.code == ERR_NOT_FOUND &&
	    volume_name(c) == c->packages && !c->class->network) {
		attachment_detach(volume);
		c->volume_next++;
		prepare_next(c);
		return;
	}
	if (volume->volume_fd < 0) {
		container_fail(c, refusal_of(&err), err.text);
		return;
	}
	lock_wait_start(&c->wait, volume->volume_fd, VOLUME_WAIT_MS,
	    volume_on_locked, c);
	/* An older container holds it: is the engine there to end that? */
	if (lock_wait_is_on(&c->wait))
		(void)engine_refresh(c->host->engine, FRESH_MS);
}

/* ---- who it runs as ---- */

/* Another sandbox's container, or another cell in memory, has it now. */
static bool
is_taken(const struct container *c, uint32_t uid)
{
	const struct container *other;

	TAILQ_FOREACH(other, &c->host->pool->containers, link) {
		if (other != c && (other->uid == uid || other->owner == uid) &&
		    (c->class->in_memory || c->spare ||
			strcmp(other->sandbox, c->sandbox) != 0))
			return true;
	}
	return false;
}

/* What the first volume says that has one; 0: none has. */
static int
sandbox_uid(const struct container *c, uint32_t *uid, struct err *err)
{
	*uid = 0;
	for (size_t i = c->class->installs; i < 2 && *uid == 0; i++) {
		auto_close int fd = workspace_volume_open(c->host->base,
		    c->sandbox, i == 0 ? WORKSPACE_VOLUME : c->packages, err);
		uint32_t owner = fd >= 0 ? owner_of(fd) : 0;

		if (fd < 0 && (i == 0 || err->code != ERR_NOT_FOUND))
			return -1;
		if (uid_is_of_one_sandbox(owner))
			*uid = owner;
	}
	return 0;
}

/* Set c->uid: for a cell in memory a number of its own, else the one that the
 * sandbox's volumes have.  Where they have none, or one that another container
 * has now, a new one, which the volumes have to be given.  ERR_NOT_FOUND: there
 * is no such sandbox. */
static int
choose_uid(struct container *c, struct err *err)
{
	if (c->class->in_memory || c->spare) {
		do
			c->uid = uids_take_for_memory(c->host->uids);
		while (is_taken(c, c->uid));
		return 0;
	}
	if (sandbox_uid(c, &c->owner, err) != 0)
		return -1;
	if (c->owner == 0 || is_taken(c, c->owner)) {
		if (uids_take(c->host->uids, &c->owner, err) != 0)
			return -1;
		log_info("the sandbox has a user of its own now: uid=%u"
			 " sandbox=%s",
		    c->owner, c->sandbox);
	}
	if (!c->adopting)
		c->uid = c->owner;
	return 0;
}

/* A name that no container of ours ever had, then the user, then the volumes.
 * Also called for the second try, after a mount that failed. */
void
prepare_begin(struct container *c)
{
	struct pool *pool = c->host->pool;
	struct err err;

	if (!c->adopting) {
		c->number = ++pool->serial;
		(void)snprintf(c->name, sizeof(c->name),
		    "il-%.16s-%" PRIx64 "-%u", c->host->instance,
		    (uint64_t)pool->started_s, c->number);
	}
	c->volume_next = 0;
	if (choose_uid(c, &err) != 0)
		container_fail(c, refusal_of(&err), err.text);
	else if (c->spare)
		spare_prepare(c);
	else
		prepare_next(c);
}

/* ---- what a container holds ---- */

/* What was never mounted writes nothing; otherwise the kernel may have to. */
void
prepare_let_go(struct container *c)
{
	for (size_t i = 0; i < CLASS_VOLUMES; i++) {
		if (c->called)
			reservation_leave(c->reserved[i]);
		else
			reservation_free(c->reserved[i]);
		c->reserved[i] = NULL;
	}
}

/* A volume that cannot be opened ends the start (launch.c). */
void
prepare_reserve(struct container *c, bool grows)
{
	const struct class_mount *mounts = c->class->mounts;
	struct err err;

	for (size_t i = 0; mounts[i].volume != NULL; i++) {
		int fd = workspace_volume_open(c->host->base, c->sandbox,
		    class_volume(c->class, i, c->packages), &err);

		c->reserved[i] = reservation_of_volume(c->host->ledger, fd);
	}
	if (c->reserved[0] != NULL)
		c->reserved[0]->grows = grows;
}

void
container_new(struct pool *pool, const struct ticket *ticket, bool writable,
    bool grows)
{
	struct host *host = pool->host;
	struct container *c = xcalloc(1, sizeof(*c));

	c->host = host;
	c->class = ticket->class;
	c->writable = writable;
	memcpy(c->sandbox, ticket->sandbox, sizeof(c->sandbox));
	c->interpreter = ticket->interpreter;
	c->imports = warm_imports(pool, ticket);
	c->spare = *c->sandbox == '\0' && !c->class->in_memory &&
	    !c->class->installs;
	memcpy(c->packages, ticket->packages, sizeof(c->packages));
	c->listen_fd = -1;
	c->control_fd = -1;
	c->pidfd = -1;
	c->ooms_fd = -1;
	lock_wait_init(&c->wait, host->loop);
	for (size_t i = 0; i < CLASS_VOLUMES; i++)
		c->volumes[i] = (struct attachment){ -1, -1, -1 };
	c->api_packages = (struct attachment){ -1, -1, -1 };
	container_set(c, CONTAINER_PREPARING);
	if (!c->spare)
		prepare_reserve(c, grows);
	prepare_begin(c);
	TAILQ_INSERT_TAIL(&pool->containers, c, link);
}
