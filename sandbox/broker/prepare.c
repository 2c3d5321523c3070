/* SPDX-License-Identifier: MIT */
/*
 * The steps before docker run: the container's user is chosen, its volumes are
 * locked and attached one after the other.  A volume with an error is checked
 * before; one whose files are not that user's is given to it.
 *
 * Spare cells are up, warm and nobody's yet.  A spare cell is a container like
 * any other of its class, but what a sandbox mounts is empty in it, and its
 * user is one that no sandbox has.  Loop devices for the volumes are its own
 * already, since its container is limited by their numbers.  The first sandbox
 * that needs a cell gets it, for good: its volumes are attached to these
 * devices and mounted in the cell, and from then on it is that sandbox's cell
 * as if it had been started for it.  A failure on this way ends the cell, and a
 * cell is started as ever.
 *
 *	IDLE, spare ─ spare_adopt() ─▶ PREPARING ─▶ PREPARED ─ spare_run() ─▶
 *	STARTING ─ spare_done() ─▶ IDLE
 *
 * The broker itself may not mount, and the engine mounts only at a start.  So
 * each spare cell has a mounter of its own, which is there before the cell.  A
 * mounter comes up and goes as all containers do (container.c).  It may use the
 * loop devices of that cell and no other, runs one program of ours
 * (../mounter/) in an image that has no other file, serves one request, and
 * ends.  Where the host does not let it do that, there are spare cells only to
 * try it again, less and less often.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "broker/api_packages.h"
#include "broker/docker.h"
#include "broker/engine.h"
#include "broker/ledger.h"
#include "broker/mounter_image.h"
#include "broker/pool.h"
#include "volume/owner.h"
#include "volume/uid.h"

#define VOLUME_WAIT_MS 15000 /* for an older container to let go of it */
#define CHECK_MS 60000	     /* e2fsck, and giving */
#define FRESH_MS 1000	     /* the engine's state may be so old */
#define ATTACH_MS 5000	     /* then whoever waits gets another cell */

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

	if (!process_succeeded(result)) {
		log_err("-u: %s sandbox=%s", process_describe(result).text,
		    c->sandbox);
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
	struct process_end end = process_describe(result);
	char uid[16];

	/* 1: errors were corrected. */
	if (result->outcome != PROCESS_EXITED || result->code > 1) {
		log_err("e2fsck: %s sandbox=%s", end.text, c->sandbox);
		container_fail(c, REFUSAL_START,
		    result->outcome == PROCESS_NOT_STARTED ?
			end.text :
			"the sandbox's file system is damaged");
		return;
	}
	log_warn("checked %s: %s sandbox=%s", volume_name(c), end.text,
	    c->sandbox);
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
		if (c->class->in_memory)
			api_packages_attach(c->host, c->interpreter.name,
			    &c->api_packages);
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

/* ---- who mounts in a cell that is up ---- */

/* The host could not do it, or we could not: cells start as ever meanwhile.  A
 * mounter that fails in a pause was begun before it, and failed by its cause:
 * one restart of the engine is one failure, however many cells were spare. */
static void
note_failed_mount(struct pool *pool, const char *what)
{
	struct pause *pause = &pool->mount_pause;
	int64_t now_ms = clock_monotonic_ms();

	if (!pause_holds(pause, now_ms))
		pause_note_failure(pause, REFUSAL_START, what, now_ms);
	log_warn("no volume is mounted in a cell that is up: %s; next try in "
		 "%" PRId64 " s (IL_SPARE_CELLS=0: none)",
	    what, (pause->until_ms - now_ms + 999) / 1000);
}

/* The cell's mounter does not do its work: the cell ends, and for a while none
 * is started. */
static void
mounter_fail(struct container *cell, const char *what)
{
	mounter_end(cell);
	note_failed_mount(cell->host->pool, what);
	if (cell->adopting)
		container_fail(cell, REFUSAL_START, "nobody can mount");
	else
		container_end(cell, false);
}

void
mounter_end(struct container *cell)
{
	struct container *m = cell->mounter;

	cell->mounter = NULL;
	if (m == NULL)
		return;
	m->cell = NULL;
	container_end(m, false);
}

void
mounter_settle(struct container *m)
{
	if (m->state >= CONTAINER_ENDING && m->cell != NULL)
		mounter_fail(m->cell,
		    m->failure != 0 ? m->failure_text :
				      "its container went away");
	if (m->state == CONTAINER_GONE) {
		TAILQ_REMOVE(&m->host->pool->mounters, m, link);
		container_free(m);
	}
}

void
mounter_forbid(struct container *m)
{
	m->host->pool->unmountable = true;
	log_warn("no cell is kept spare: no process of a container's is known "
		 "here");
	container_end(m->cell, false);
}

static void
import_on_end(void *arg, const struct process_result *result)
{
	struct container *m = arg;

	container_undo_run(m);
	if (process_succeeded(result))
		container_run(m);
	else
		container_fail(m, REFUSAL_IMAGE, process_describe(result).text);
}

/* No registry has its image: it is made of the bytes in this program. */
void
mounter_import(struct container *m)
{
	const struct host *host = m->host;
	auto_argv struct argv argv = { .count = 0 };
	auto_free char *path = xprintf("%s/%s/image.tar", host->cells_dir,
	    m->name);
	auto_close int fd = open(path,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct err err;

	m->repaired = true;
	/* Nobody connects meanwhile. */
	loop_timer_clear(host->loop, &m->watch);
	if (fd < 0 ||
	    fd_write_all(fd, mounter_image, mounter_image_len, &err) != 0) {
		container_fail(m, REFUSAL_IMAGE, "no archive of its image");
		return;
	}
	docker_argv_import(&argv, host->config->docker_binary, host->instance,
	    path, m->interpreter.image);
	subprocess_start(&m->tool, host->loop, &argv,
	    (int)host->config->start_ms, import_on_end, m);
}

static void
mounter_start(struct container *cell)
{
	struct host *host = cell->host;
	struct container *m = container_alloc(host, &class_mounter);

	(void)snprintf(m->interpreter.image, sizeof(m->interpreter.image), "%s",
	    host->images->mounter);
	m->cell = cell;
	cell->mounter = m;
	TAILQ_INSERT_TAIL(&host->pool->mounters, m, link);
	container_run(m);
}

/* The mounts hold the devices now. */
static void
spare_done(struct container *c, const char *trouble)
{
	if (trouble != NULL) {
		container_fail(c, REFUSAL_START, trouble);
		return;
	}
	container_release_volumes(c);
	container_timer(c, -1, NULL);
	c->adopting = false;
	c->adopted = true;
	container_set(c, CONTAINER_IDLE);
}

/* Act on the mounter's answer.  False: that is none. */
static bool
take_answer(struct container *m, const struct frame_view *view)
{
	struct container *c = m->cell;
	bool ready = m->state == CONTAINER_IDLE;
	char at[32];
	char text[160];
	int64_t code;
	int64_t why;

	if (view->kind != FRAME_ATTACHED ||
	    !frame_get_int(view, TAG_CODE, &code) ||
	    !frame_get_int(view, TAG_WHY, &why) ||
	    !frame_get_text(view, TAG_TEXT, at, sizeof(at)) ||
	    ready != (c->adopting && c->state == CONTAINER_STARTING))
		return false;
	(void)snprintf(text, sizeof(text), "%s: %s", at, strerror((int)code));
	if (!ready) {
		mounter_fail(c, text);
		return true;
	}
	mounter_end(c);
	if (why == ATTACH_DONE)
		pause_note_success(&c->host->pool->mount_pause);
	spare_done(c, why == ATTACH_DONE ? NULL : text);
	if (why == ATTACH_HOST)
		note_failed_mount(c->host->pool, text);
	return true;
}

bool
mounter_take(struct container *m, const struct frame_view *view)
{
	if (view->kind != FRAME_READY || m->state != CONTAINER_STARTING)
		return take_answer(m, view);
	container_idle(m);
	container_set(m->cell, CONTAINER_PREPARED);
	return true;
}

/* Send the cell, then its volumes; a volume that is not there has no device. */
static int
mounter_send(const struct container *c, struct err *err)
{
	const struct container *m = c->mounter;
	struct frame frame;

	if (m == NULL || m->state != CONTAINER_IDLE || c->pidfd < 0)
		return err_set(err, ERR_UNAVAILABLE, "nobody can mount");
	for (int part = 0; part <= CLASS_VOLUMES; part++) {
		frame_start(&frame, FRAME_ATTACH);
		frame_add_int(&frame, TAG_PART, part);
		if (part == 0) {
			frame_add_int(&frame, TAG_OWNER, c->owner);
			frame_add_int(&frame, TAG_USER, c->uid);
			frame_add_int(&frame, TAG_ACCESS,
			    c->writable ? ACCESS_WRITE : ACCESS_READ);
		}
		if (fd_send_packet(m->control_fd, frame.data, frame.len,
			part == 0 ? c->pidfd : c->volumes[part - 1].device_fd,
			0, err) != 0)
			return -1;
	}
	return 0;
}

/* ---- the beginning ---- */

/* Get devices that hold nothing yet, and a mounter for these. */
static void
spare_prepare(struct container *c)
{
	struct err err;

	for (size_t i = 0; i < CLASS_VOLUMES; i++) {
		if (attachment_hold(&c->volumes[i], &err) != 0) {
			container_fail(c, REFUSAL_START, err.text);
			return;
		}
	}
	mounter_start(c);
}

/* First comes the user, then the volumes.  Also called for the second try,
 * after a mount that failed. */
void
prepare_begin(struct container *c)
{
	struct err err;

	c->volume_next = 0;
	if (choose_uid(c, &err) != 0)
		container_fail(c, refusal_of(&err), err.text);
	else if (c->spare)
		spare_prepare(c);
	else
		prepare_next(c);
}

/* A volume that cannot be opened ends the start (prepare_next()). */
static void
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

/* The cell is never spare again.  Its number is one of now, as it had nothing
 * of a sandbox of this name that has been removed. */
void
spare_adopt(struct container *c, const struct ticket *ticket, bool writable,
    bool grows)
{
	c->spare = false;
	c->adopting = true;
	c->number = ++c->host->serial;
	c->writable = writable;
	memcpy(c->sandbox, ticket->sandbox, sizeof(c->sandbox));
	memcpy(c->packages, ticket->packages, sizeof(c->packages));
	for (size_t i = 0; i < CLASS_VOLUMES; i++)
		cleanup_close(&c->volumes[i].volume_fd);
	container_set(c, CONTAINER_PREPARING);
	prepare_reserve(c, grows);
	prepare_begin(c);
}

static void
attach_on_timer(void *arg)
{
	mounter_fail(arg, "its container did not answer");
}

void
spare_run(struct container *c)
{
	struct err err;

	container_set(c, CONTAINER_STARTING);
	container_timer(c, ATTACH_MS, attach_on_timer);
	if (mounter_send(c, &err) != 0)
		container_fail(c, REFUSAL_START, err.text);
}

void
container_new(struct pool *pool, const struct ticket *ticket, bool writable,
    bool grows)
{
	struct container *c = container_alloc(pool->host, ticket->class);

	c->writable = writable;
	memcpy(c->sandbox, ticket->sandbox, sizeof(c->sandbox));
	c->interpreter = ticket->interpreter;
	c->imports = warm_imports(pool, ticket);
	c->spare = *c->sandbox == '\0' && !c->class->in_memory &&
	    !c->class->installs;
	memcpy(c->packages, ticket->packages, sizeof(c->packages));
	container_set(c, CONTAINER_PREPARING);
	if (!c->spare)
		prepare_reserve(c, grows);
	prepare_begin(c);
	TAILQ_INSERT_TAIL(&pool->containers, c, link);
}
