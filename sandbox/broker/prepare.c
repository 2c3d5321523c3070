/* SPDX-License-Identifier: MIT */
/*
 * The steps before docker run: the container's user is chosen, then its volumes
 * are locked and attached one after the other.  A volume with an error is
 * checked first.  A volume whose files belong to another user is given to the
 * container's user.
 *
 * Standby cells are up and warm and belong to no sandbox yet.  A standby cell
 * is a container like any other of its class, but the folders for volumes are
 * empty, and no sandbox has its uid.  It owns loop devices for the volumes from
 * its start, since its container's limits name them.  The first sandbox that
 * needs a cell takes it over for good: the sandbox's volumes are attached to
 * these devices and mounted in the cell, which from then on is that sandbox's
 * cell.  A failure on this way ends the cell, and a cell is started as usual.
 *
 *	IDLE ─ standby_adopt() ─▶ PREPARING ─▶ PREPARED ─ standby_mount() ─▶
 *	STARTING ─ standby_done() ─▶ IDLE
 *
 * The broker itself may not mount, and the engine mounts only at a start.  So
 * each standby cell has a mounter of its own, which is up before the cell
 * starts.  A mounter starts and ends as all containers do (container.c).  It
 * may use the loop devices of that cell and no other, runs one program of ours
 * (../mounter/) in an image that has no other file, serves one request, and
 * ends.  Where the host does not let it mount, a standby cell is started only
 * to try again, less and less often.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/basics.h"
#include "base/fd.h"
#include "base/loop.h"
#include "broker/engine.h"
#include "broker/policy.h"
#include "volume/owner.h"

#define VOLUME_WAIT_MS 15000 /* for an older container to unlock a volume */
#define CHECK_MS 60000	     /* e2fsck, or a change of owner */
#define FRESH_MS 1000	     /* maximum age of the engine's state */
#define ATTACH_MS 5000	     /* for the mounter's answer */

void
cells_init(struct cells *cells)
{
	*cells = (struct cells){ .mount_pause.most_ms = PAUSE_MOUNTS_MS };
	TAILQ_INIT(&cells->all);
	TAILQ_INIT(&cells->mounters);
}

void
cells_release(struct cells *cells)
{
	struct container *c;

	TAILQ_CONCAT(&cells->all, &cells->mounters, link);
	while ((c = TAILQ_FIRST(&cells->all)) != NULL) {
		TAILQ_REMOVE(&cells->all, c, link);
		container_free(c);
	}
	for (size_t i = 0; i < cells->package_count; i++)
		attachment_release(&cells->packages[i].volume);
	free(cells->packages);
	*cells = (struct cells){ .package_count = 0 };
}

/* ---- packages of the APIs' runs ---- */

static struct api_packages_volume *
known_volume(struct host *host, const char *name)
{
	for (size_t i = 0; i < host->cells->package_count; i++) {
		if (strcmp(host->cells->packages[i].name, name) == 0)
			return &host->cells->packages[i];
	}
	return NULL;
}

/* The volume is opened for reading only, and so is the device; the journal is
 * empty (publish_on_checked()).  docker mounts the device by its number,
 * perhaps after a newer volume was published.  The cell's own descriptor keeps
 * the number from being reused until then. */
static void
api_packages_attach(struct host *host, const char *interpreter,
    struct attachment *a)
{
	struct cells *cells = host->cells;
	struct attachment volume = { -1, -1, -1 };
	struct api_packages_volume *known;
	char target[API_PACKAGES_TARGET_MAX];
	char name[VOLUME_NAME_MAX];
	auto_close int folder = -1;
	struct err err;

	attachment_detach(a);
	if (!api_packages_target(interpreter, target))
		return;
	workspace_packages_name(interpreter, name);
	known = known_volume(host, name);
	if (known == NULL) {
		folder = workspace_open_folder(host->base, API_PACKAGES_ID);
		if (folder >= 0)
			volume.volume_fd = openat(folder, name,
			    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (volume.volume_fd < 0)
			return;
		if (attachment_attach(&volume, &err) != 0) {
			log_err("no packages for Python %s: %s", interpreter,
			    err.text);
			attachment_release(&volume);
			return;
		}
		cells->packages = xrealloc(cells->packages,
		    (cells->package_count + 1) * sizeof(*cells->packages));
		known = &cells->packages[cells->package_count++];
		memcpy(known->name, name, sizeof(name));
		known->volume = volume;
	}
	a->device_fd = fcntl(known->volume.device_fd, F_DUPFD_CLOEXEC, 0);
	if (a->device_fd >= 0)
		a->device = known->volume.device;
	else
		log_err("no packages for Python %s: %m", interpreter);
}

void
api_packages_replace(struct host *host, const char *name)
{
	struct api_packages_volume *known = known_volume(host, name);
	struct container *c;
	struct container *next;
	char mounted[VOLUME_NAME_MAX];

	if (known != NULL) {
		attachment_release(&known->volume);
		*known = host->cells->packages[--host->cells->package_count];
	}
	for (c = TAILQ_FIRST(&host->cells->all); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		workspace_packages_name(c->interpreter.name, mounted);
		if (!c->class->in_memory || strcmp(mounted, name) != 0)
			continue;
		c->retire = true;
		if (c->state < CONTAINER_LEASED)
			container_end(c, false);
	}
}

/* ---- volumes ---- */

static void prepare_next(struct container *c);

/* A missing volume means a missing sandbox; all other failures are the
 * broker's. */
static enum refusal
refusal_of(const struct err *err)
{
	return err->code == ERR_NOT_FOUND ? REFUSAL_NO_WORKSPACE :
					    REFUSAL_START;
}

/* File name of the i-th volume; NULL after the last one. */
static const char *
volume_name(const struct container *c, size_t i)
{
	return class_volume(c->class, i, c->packages);
}

/* Step 4: the volume is locked, whole and its user's: attach it, and go on. */
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

static void fix_on_end(void *arg, const struct process_result *result);

/* Run a program on the file of the volume. */
static void
volume_run(struct container *c, const char *const *words)
{
	auto_argv struct argv argv;

	argv_init(&argv, words);
	argv_addf(&argv, "%s/%s/%s", c->host->config->base_dir, c->sandbox,
	    volume_name(c, c->volume_next));
	subprocess_start(&c->tool, c->host->loop, &argv, CHECK_MS, fix_on_end,
	    c);
}

/* Step 3: the volume's files are given to the sandbox's user where another owns
 * them.  That is the user that all sandboxes once had, or one that another
 * sandbox has, too.  A program does it, since it takes a while; c->gives: it
 * has. */
static void
fix_on_end(void *arg, const struct process_result *result)
{
	struct container *c = arg;
	struct process_end end = process_describe(result);
	const char *volume = volume_name(c, c->volume_next);
	char uid[16];

	/* 1, of e2fsck: errors were corrected. */
	if (result->outcome != PROCESS_EXITED ||
	    result->code > (c->gives ? 0 : 1)) {
		log_err("%s: %s sandbox=%s", c->gives ? "-u" : "e2fsck",
		    end.text, c->sandbox);
		container_fail(c, REFUSAL_START,
		    c->gives ?
			"the sandbox's files could not be given to its user" :
			result->outcome == PROCESS_NOT_STARTED ?
			end.text :
			"the sandbox's file system is damaged");
		return;
	}
	if (c->gives)
		log_info("%s belongs to uid=%u now sandbox=%s", volume,
		    c->owner, c->sandbox);
	else
		log_warn("checked %s: %s sandbox=%s", volume, end.text,
		    c->sandbox);
	c->gives = !c->gives &&
	    owner_of(c->volumes[c->volume_next].volume_fd) != c->owner;
	(void)snprintf(uid, sizeof(uid), "%u", c->owner);
	if (c->gives)
		volume_run(c, ARGV_WORDS("/proc/self/exe", "-u", uid));
	else
		volume_attach(c);
}

/* Step 2: e2fsck works on the file, which is locked and has no device.  Without
 * a reason to doubt it, only the journal is replayed (-f would make a
 * lost+found where nothing was lost). */
static void
volume_check(struct container *c)
{
	struct attachment *volume = &c->volumes[c->volume_next];

	attachment_detach(volume);
	volume_run(c,
	    c->repaired || workspace_volume_damaged(volume->volume_fd) ?
		ARGV_WORDS("e2fsck", "-p", "-f") :
		ARGV_WORDS("e2fsck", "-p"));
}

/* Is there a reason to check it? */
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
		container_fail(c, REFUSAL_START,
		    "its file system has to be checked first");
	else
		volume_check(c);
}

/* Step 1: open the next volume and lock it.  After a failed mount the volumes
 * are locked already, and all of them are checked. */
static void
prepare_next(struct container *c)
{
	struct attachment *volume = &c->volumes[c->volume_next];
	struct err err;

	if (volume_name(c, c->volume_next) == NULL) {
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
	    volume_name(c, c->volume_next), &err);
	/* No packages of this version are installed yet. */
	if (volume->volume_fd < 0 && err.code == ERR_NOT_FOUND &&
	    volume_name(c, c->volume_next) == c->packages &&
	    !c->class->network) {
		attachment_detach(volume);
		c->volume_next++;
		prepare_next(c);
		return;
	}
	if (volume->volume_fd < 0) {
		container_fail(c, refusal_of(&err), err.text);
		return;
	}
	lock_wait_start(&c->wait, c->host->loop, volume->volume_fd,
	    VOLUME_WAIT_MS, volume_on_locked, c);
	/* An older container has the lock: can the engine end that? */
	if (c->wait.child != 0)
		(void)engine_refresh(c->host->engine, FRESH_MS);
}

/* ---- the container's user ---- */

/* Does the container of another sandbox, or another cell in memory, have that
 * uid now? */
static bool
uid_is_used(const struct container *c, uint32_t uid)
{
	const struct container *other;

	TAILQ_FOREACH(other, &c->host->cells->all, link) {
		if (other != c && (other->uid == uid || other->owner == uid) &&
		    (c->class->in_memory || c->standby ||
			strcmp(other->sandbox, c->sandbox) != 0))
			return true;
	}
	return false;
}

/* Set c->uid: a cell in memory has a number of its own, others the one of the
 * sandbox's volume.  Where the volume has none, or one that another container
 * uses now, a new number is chosen and the volumes are given to it.
 * ERR_NOT_FOUND: there is no such sandbox. */
static int
choose_uid(struct container *c, struct err *err)
{
	auto_close int fd = -1;

	if (c->class->in_memory || c->standby) {
		do
			c->uid = uids_take_for_memory(c->host->uids);
		while (uid_is_used(c, c->uid));
		return 0;
	}
	fd = workspace_volume_open(c->host->base, c->sandbox,
	    c->class->installs ? c->packages : WORKSPACE_VOLUME, err);
	if (fd < 0)
		return -1;
	c->owner = owner_of(fd);
	if (!uid_is_of_one_sandbox(c->owner) || uid_is_used(c, c->owner)) {
		if (uids_take(c->host->uids, &c->owner, err) != 0)
			return -1;
		log_info("new user of the sandbox: uid=%u"
			 " sandbox=%s",
		    c->owner, c->sandbox);
	}
	if (!c->adopting)
		c->uid = c->owner;
	return 0;
}

/* ---- the mounter of a standby cell ---- */

/* Mounting failed: meanwhile cells start as usual.  A mounter that fails during
 * the backoff was begun before it and failed for the same cause, so one restart
 * of the engine is one failure, however many cells were on standby. */
static void
note_failed_mount(struct cells *cells, const char *what)
{
	struct pause *pause = &cells->mount_pause;
	int64_t now_ms = clock_monotonic_ms();

	if (!pause_holds(pause, now_ms))
		pause_note_failure(pause, REFUSAL_START, what, now_ms);
	log_warn("no volume is mounted in a cell that is up: %s; next try in "
		 "%" PRId64 " s (IL_TUNE_SPARE_CELLS=0: none)",
	    what, (pause->until_ms - now_ms + 999) / 1000);
}

/* The cell's mounter does not work: the cell ends, and for a while no standby
 * cell is started. */
static void
mounter_fail(struct container *cell, const char *what)
{
	mounter_end(cell);
	note_failed_mount(cell->host->cells, what);
	if (cell->adopting)
		container_fail(cell, REFUSAL_START, "no mounter is ready");
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
		TAILQ_REMOVE(&m->host->cells->mounters, m, link);
		container_free(m);
	}
}

void
mounter_forbid(struct container *m)
{
	m->host->cells->unmountable = true;
	log_warn("no standby cells: the processes of containers are unknown "
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

/* No registry has the mounter's image: it is imported from the bytes in this
 * program. */
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
	/* No mounter connects meanwhile. */
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
	TAILQ_INSERT_TAIL(&host->cells->mounters, m, link);
	container_run(m);
}

/* Act on the mounter's answer.  False: the frame is no answer. */
static bool
mounter_read_answer(struct container *m, const struct frame_view *view)
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
	if (why != ATTACH_DONE) {
		container_fail(c, REFUSAL_START, text);
		if (why == ATTACH_HOST)
			note_failed_mount(c->host->cells, text);
		return true;
	}
	pause_note_success(&c->host->cells->mount_pause);
	/* The mounts now own the devices. */
	container_release_volumes(c);
	container_timer(c, -1, NULL);
	c->adopting = false;
	c->adopted = true;
	container_set(c, CONTAINER_IDLE);
	return true;
}

bool
mounter_handle(struct container *m, const struct frame_view *view)
{
	if (view->kind != FRAME_READY || m->state != CONTAINER_STARTING)
		return mounter_read_answer(m, view);
	container_idle(m);
	container_set(m->cell, CONTAINER_PREPARED);
	return true;
}

/* Send the cell, then its volumes; a missing volume has no device. */
static int
mounter_send(const struct container *c, struct err *err)
{
	const struct container *m = c->mounter;
	struct frame frame;

	if (m == NULL || m->state != CONTAINER_IDLE || c->pidfd < 0)
		return err_set(err, ERR_UNAVAILABLE, "no mounter is ready");
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

/* ---- entry points ---- */

/* The user is chosen first, then the volumes are prepared.  A standby cell gets
 * empty devices and a mounter for them. */
void
prepare_begin(struct container *c)
{
	struct err err;

	c->volume_next = 0;
	if (choose_uid(c, &err) != 0) {
		container_fail(c, refusal_of(&err), err.text);
		return;
	}
	if (!c->standby) {
		prepare_next(c);
		return;
	}
	for (size_t i = 0; i < CLASS_VOLUMES; i++) {
		if (attachment_reserve(&c->volumes[i], &err) != 0) {
			container_fail(c, REFUSAL_START, err.text);
			return;
		}
	}
	mounter_start(c);
}

/* Take what the ticket says, reserve room for the volumes, and begin to
 * prepare. A volume that cannot be opened ends the start later
 * (prepare_next()). */
static void
prepare_order(struct container *c, const struct ticket *ticket, bool writable,
    bool grows)
{
	struct err err;

	c->writable = writable;
	memcpy(c->sandbox, ticket->sandbox, sizeof(c->sandbox));
	memcpy(c->packages, ticket->packages, sizeof(c->packages));
	container_set(c, CONTAINER_PREPARING);
	for (size_t i = 0; !c->standby && volume_name(c, i) != NULL; i++)
		c->reserved[i] = reservation_of_volume(c->host->ledger,
		    workspace_volume_open(c->host->base, c->sandbox,
			volume_name(c, i), &err));
	if (c->reserved[0] != NULL)
		c->reserved[0]->grows = grows;
	prepare_begin(c);
}

/* The cell never returns to standby.  It gets a new number, since it uses no
 * volume of a sandbox of this name that was removed before. */
void
standby_adopt(struct container *c, const struct ticket *ticket, bool writable,
    bool grows)
{
	c->standby = false;
	c->adopting = true;
	c->number = ++c->host->serial;
	for (size_t i = 0; i < CLASS_VOLUMES; i++)
		cleanup_close(&c->volumes[i].volume_fd);
	prepare_order(c, ticket, writable, grows);
}

static void
attach_on_timer(void *arg)
{
	mounter_fail(arg, "its container did not answer");
}

void
standby_mount(struct container *c)
{
	struct err err;

	container_set(c, CONTAINER_STARTING);
	container_timer(c, ATTACH_MS, attach_on_timer);
	if (mounter_send(c, &err) != 0)
		container_fail(c, REFUSAL_START, err.text);
}

void
container_new(struct host *host, const struct ticket *ticket, uint32_t imports,
    bool writable, bool grows)
{
	struct container *c = container_alloc(host, ticket->class);

	c->interpreter = ticket->interpreter;
	c->imports = imports;
	c->standby = *ticket->sandbox == '\0' && !c->class->in_memory &&
	    !c->class->installs;
	prepare_order(c, ticket, writable, grows);
	TAILQ_INSERT_TAIL(&host->cells->all, c, link);
}
