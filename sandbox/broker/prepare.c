/*
 * What is done before docker run: who the container runs as is chosen, its
 * volumes are locked and attached one after the other.  One with an error is
 * checked before, one whose files are not that user's is given to it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/log.h"
#include "argv.h"
#include "class.h"
#include "container_parts.h"
#include "engine.h"
#include "ledger.h"
#include "owner.h"
#include "uid.h"
#include "workspace.h"

#define VOLUME_WAIT_MS 15000 /* for an older container to let go of it */
#define CHECK_MS 60000	     /* e2fsck, and giving */
#define FRESH_MS 1000	     /* the engine's state may be so old */
#define OUTPUT_MAX 4096

static void prepare_next(struct container *c);

static enum refusal
refusal_of(const struct err *err)
{
	return err->code == ERR_NOT_FOUND ? REFUSAL_NO_WORKSPACE :
					    REFUSAL_START;
}

/* The volumes of the class, in the order in which they are attached. */
static const char *
volume_name(const struct container *c, size_t i)
{
	return class_volume(c->class, i);
}

const char *
prepare_target(const struct container *c, size_t i)
{
	return i == 0 && c->class->workspace_at != NULL ?
	    c->class->workspace_at :
	    c->class->packages_at;
}

/* Checked and its user's: attach it, and go on. */
static void
volume_is_right(struct container *c)
{
	struct err err;

	if (attachment_attach(&c->volumes[c->volume_next], &err) != 0) {
		container_fail(c, REFUSAL_START, err.text);
		return;
	}
	c->volume_next++;
	prepare_next(c);
}

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
	log_info("%s belongs to uid=%u now sandbox=%s",
	    volume_name(c, c->volume_next), c->uid, c->sandbox);
	volume_is_right(c);
}

/* Its files are another user's: of the one that all sandboxes had, or of one
 * that another sandbox has, too.  A program does it, as it takes a while. */
static void
volume_give(struct container *c)
{
	auto_argv struct argv argv;
	struct process_spec spec;
	struct err err;

	argv_init(&argv);
	argv_add_all(&argv,
	    (const char *const[]){ "/proc/self/exe", "-u", NULL });
	argv_addf(&argv, "%u", c->uid);
	argv_addf(&argv, "%s/%s/%s", c->host->config->base_dir, c->sandbox,
	    volume_name(c, c->volume_next));
	spec = (struct process_spec){ .argv = argv.words,
		.output_max = OUTPUT_MAX,
		.timeout_ms = CHECK_MS };
	if (subprocess_start(&c->tool, &spec, give_on_end, c, &err) != 0)
		container_fail(c, REFUSAL_START, err.text);
}

static void
check_on_end(void *arg, const struct process_result *result)
{
	struct container *c = arg;
	char text[160];

	process_describe(result, text, sizeof(text));
	/* 1: errors were corrected. */
	if (result->outcome != PROCESS_EXITED || result->code > 1) {
		log_err("e2fsck: %s sandbox=%s", text, c->sandbox);
		container_fail(c, REFUSAL_START,
		    "the sandbox's file system is damaged");
		return;
	}
	log_warn("checked %s: %s sandbox=%s", volume_name(c, c->volume_next),
	    text, c->sandbox);
	if (owner_of(c->volumes[c->volume_next].volume_fd) != c->uid)
		volume_give(c);
	else
		volume_is_right(c);
}

/* With the lock held and the device given up: e2fsck works on the file.  When
 * there is no reason to doubt it, only its journal is replayed. */
static void
volume_check(struct container *c, size_t i)
{
	auto_argv struct argv argv;
	struct process_spec spec;
	struct err err;

	attachment_detach(&c->volumes[i]);
	argv_init(&argv);
	argv_add_all(&argv, (const char *const[]){ "e2fsck", "-p", NULL });
	/* It would make a lost+found where nothing was lost. */
	if (c->repaired || workspace_volume_damaged(c->volumes[i].volume_fd))
		argv_add(&argv, "-f");
	argv_addf(&argv, "%s/%s/%s", c->host->config->base_dir, c->sandbox,
	    volume_name(c, i));
	spec = (struct process_spec){ .argv = argv.words,
		.output_max = OUTPUT_MAX,
		.timeout_ms = CHECK_MS };
	if (subprocess_start(&c->tool, &spec, check_on_end, c, &err) != 0)
		container_fail(c, REFUSAL_START, err.text);
}

static void
volume_on_attached(void *arg, const struct err *failure)
{
	struct container *c = arg;
	const struct attachment *volume = &c->volumes[c->volume_next];

	if (failure != NULL) {
		container_fail(c, REFUSAL_START, failure->text);
		return;
	}
	if (c->reserved[c->volume_next] != NULL)
		reservation_supersede(c->host->ledger,
		    c->reserved[c->volume_next]);
	if (workspace_volume_damaged(volume->volume_fd) ||
	    owner_of(volume->volume_fd) != c->uid) {
		volume_check(c, c->volume_next);
		return;
	}
	c->volume_next++;
	prepare_next(c);
}

static void
prepare_next(struct container *c)
{
	struct attachment *volume = &c->volumes[c->volume_next];
	struct err err;
	int fd;

	if (c->volume_next == c->volume_count) {
		container_set(c, CONTAINER_PREPARED);
		return;
	}
	if (c->repaired) {
		volume_check(c, c->volume_next);
		return;
	}
	fd = workspace_volume_open(c->host->base, c->sandbox,
	    volume_name(c, c->volume_next), &err);
	if (fd < 0) {
		container_fail(c, refusal_of(&err), err.text);
		return;
	}
	attachment_start(volume, fd, VOLUME_WAIT_MS, volume_on_attached, c);
	/* An older container holds it: is the engine there to end that? */
	if (lock_wait_is_on(&volume->wait))
		(void)engine_refresh(c->host->engine, FRESH_MS);
}

/* ---- who it runs as ---- */

/* Another sandbox's container, or another cell in memory, has it now. */
static bool
is_taken(const struct container *c, uint32_t uid)
{
	const struct container *other;

	TAILQ_FOREACH(other, c->host->all, link)
	{
		if (other != c && other->uid == uid &&
		    (c->class->in_memory ||
			strcmp(other->sandbox, c->sandbox) != 0))
			return true;
	}
	return false;
}

/* What the first volume says that has one; 0: none has. */
static int
sandbox_uid(const struct container *c, uint32_t *uid, struct err *err)
{
	static const char *const names[] = { WORKSPACE_VOLUME,
		PACKAGES_VOLUME };

	*uid = 0;
	for (size_t i = 0; i < 2 && *uid == 0; i++) {
		auto_close int fd = workspace_volume_open(c->host->base,
		    c->sandbox, names[i], err);

		if (fd < 0)
			return -1;
		*uid = owner_of(fd);
		if (!uid_is_of_one_sandbox(*uid))
			*uid = 0;
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
	if (c->class->in_memory) {
		do
			c->uid = uids_take_for_memory(c->host->uids);
		while (is_taken(c, c->uid));
		return 0;
	}
	if (sandbox_uid(c, &c->uid, err) != 0)
		return -1;
	if (c->uid != 0 && !is_taken(c, c->uid))
		return 0;
	if (uids_take(c->host->uids, &c->uid, err) != 0)
		return -1;
	log_info("the sandbox has a user of its own now: uid=%u sandbox=%s",
	    c->uid, c->sandbox);
	return 0;
}

void
prepare_begin(struct container *c)
{
	struct err err;

	c->number = ++c->host->serial;
	(void)snprintf(c->name, sizeof(c->name), "il-%.16s-%" PRIx64 "-%u",
	    c->host->instance, (uint64_t)c->host->started_s, c->number);
	c->volume_count = (c->class->workspace_at != NULL ? 1U : 0U) +
	    (c->class->packages_at != NULL ? 1U : 0U);
	c->volume_next = 0;
	if (choose_uid(c, &err) != 0)
		container_fail(c, refusal_of(&err), err.text);
	else
		prepare_next(c);
}

/* ---- what a container holds ---- */

/* A volume that cannot be opened ends the start (launch.c). */
void
prepare_reserve(struct container *c, bool grows)
{
	struct err err;

	for (size_t i = 0; i < CONTAINER_VOLUMES; i++) {
		const char *volume = class_volume(c->class, i);
		int fd = volume == NULL ? -1 :
					  workspace_volume_open(c->host->base,
					      c->sandbox, volume, &err);

		if (fd >= 0)
			c->reserved[i] = reservation_of_volume(c->host->ledger,
			    fd);
	}
	if (c->reserved[0] != NULL)
		c->reserved[0]->grows = grows;
}

/* What was never mounted writes nothing; otherwise the kernel may have to. */
void
prepare_let_go(struct container *c)
{
	for (size_t i = 0; i < CONTAINER_VOLUMES; i++) {
		if (c->called)
			reservation_leave(c->reserved[i]);
		else
			reservation_free(c->reserved[i]);
		c->reserved[i] = NULL;
	}
}
