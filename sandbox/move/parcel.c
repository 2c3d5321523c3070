/* SPDX-License-Identifier: MIT */
/*
 * The form of a parcel; a parcel is packed, sent, received, and stored here.
 * Volumes are read twice, for their hashes and then for the stream, under the
 * lock that a loop device would have: nothing can mount them meanwhile.
 */
#include "move/parcel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <sodium.h>

#include "base/basics.h"
#include "base/config.h"
#include "base/fd.h"
#include "base/text.h"
#include "protocol/lease.h"
#include "store/moves.h"
#include "volume/owner.h"

#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define ROUND_MS 5000 /* then the broker is asked for the cell once more */

/* ---- volumes ---- */

static int
volume_is(const struct dirent *entry)
{
	const char *end = strrchr(entry->d_name, '.');

	return end > entry->d_name && strcmp(end, ".ext4") == 0;
}

int
volumes_each(const char *base, const char *sandbox, volume_fn fn, void *arg,
    struct err *err)
{
	auto_free char *path = xprintf("%s/%s", base, sandbox);
	auto_close int fd = open(path, FOLDER);
	struct dirent **volumes = NULL;
	int count = fd < 0 ? -1 :
			     scandirat(fd, ".", &volumes, volume_is, alphasort);
	int result = 0;

	if (count < 0) {
		(void)err_system(err, "%s", path);
		err->code = errno == ENOENT ? ERR_NOT_FOUND : ERR_SYSTEM;
		return -1;
	}
	for (int i = 0; i < count; i++) {
		if (result == 0)
			result = fn(arg, fd, sandbox, volumes[i]->d_name, err);
		free(volumes[i]);
	}
	free(volumes);
	return result;
}

bool
volume_lock(const struct config *config, int fd, const char *sandbox,
    int64_t wait_ms)
{
	auto_free char *socket = config_state_path(config, SOCKET_BROKER_CTL);
	int64_t until_ms = clock_monotonic_ms() + wait_ms;
	int64_t rest_ms;
	struct err err;

	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return true;
	do {
		/* without a broker the volume's user ends by itself */
		(void)lease_kept(socket, sandbox, true, &rest_ms, ROUND_MS,
		    &err);
		if (fd_lock_within(fd, ROUND_MS))
			return true;
	} while (clock_monotonic_ms() < until_ms);
	return false;
}

/* ---- the head ---- */

_Static_assert(sizeof(struct parcel_head) == 136,
    "a head is the same on all nodes, and has no gaps");

bool
parcel_head_is_good(const struct parcel_head *head)
{
	const size_t most = sizeof(head->node);
	size_t len = 0;

	while (len < most && (unsigned char)head->node[len] > ' ' &&
	    head->node[len] != 0x7f)
		len++;
	return memcmp(head->word, PARCEL_WORD, sizeof(PARCEL_WORD)) == 0 &&
	    len < most && head->node[len] == '\0' && head->rows >= 0 &&
	    head->rows <= (int64_t)PERSON_ROWS_MAX && head->manifest >= 0 &&
	    head->manifest <= (int64_t)PARCEL_MANIFEST_MAX &&
	    head->blocks >= 0 && head->blocks <= PARCEL_BLOCKS_MAX;
}

int64_t
parcel_size(const struct parcel_head *head)
{
	return (int64_t)sizeof(*head) + head->rows + head->manifest +
	    head->blocks;
}

static void
hash_rows(const struct parcel *p, unsigned char hash[MANIFEST_HASH])
{
	(void)crypto_generichash(hash, MANIFEST_HASH,
	    (const unsigned char *)buf_str(&p->rows), p->rows.len, NULL, 0);
}

/* ---- packing ---- */

void
parcel_init(struct parcel *p)
{
	*p = (struct parcel){ .rows = BUF_INIT(PERSON_ROWS_MAX),
		.text = BUF_INIT(PARCEL_MANIFEST_MAX),
		.backup = -1 };
}

void
parcel_release(struct parcel *p)
{
	for (uint64_t i = 0; p->volumes != NULL && i < p->manifest.file_count;
	     i++)
		cleanup_close(&p->volumes[i]);
	free(p->volumes);
	manifest_release(&p->manifest);
	buf_release(&p->rows);
	buf_release(&p->text);
	parcel_init(p);
}

/* A parcel, and how long to wait for its volumes. */
struct packing {
	struct parcel *p;
	const struct config *config;
	int64_t until_ms;
};

static int
pack_volume(void *arg, int folder, const char *sandbox, const char *volume,
    struct err *err)
{
	const struct packing *packing = arg;
	struct parcel *p = packing->p;
	auto_free char *name = xprintf("%s/%s", sandbox, volume);
	int fd = openat(folder, volume,
	    O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	uint64_t i = p->manifest.file_count;
	struct stat st;

	if (fd < 0)
		return err_system(err, "%s", name);
	(void)manifest_add(&p->manifest, name);
	p->volumes = xrealloc(p->volumes, (i + 1) * sizeof(*p->volumes));
	p->volumes[i] = fd;
	if (!manifest_is_name(name))
		return err_set(err, ERR_CONFLICT, "%s is no volume", name);
	if (!volume_lock(packing->config, fd, sandbox,
		packing->until_ms - clock_monotonic_ms()))
		return err_set(err, ERR_BUSY, "%s is in use", name);
	if (fstat(fd, &st) != 0)
		return err_system(err, "%s", name);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_CONFLICT, "%s is no volume", name);
	return manifest_add_data(&p->manifest, fd, st.st_size, NULL, NULL, err);
}

/* The manifest's text, and the head. */
static int
close_parcel(struct parcel *p, const char *node, struct err *err)
{
	if (p->manifest.file_count > 0)
		manifest_print(&p->manifest, &p->text);
	if (p->text.overflow)
		return err_set(err, ERR_LIMIT, "a sandbox as large as that");
	p->head = (struct parcel_head){ .word = PARCEL_WORD,
		.rows = (int64_t)p->rows.len,
		.manifest = (int64_t)p->text.len,
		.blocks = manifest_bytes(&p->manifest) };
	(void)snprintf(p->head.node, sizeof(p->head.node), "%s", node);
	hash_rows(p, p->head.hash);
	return 0;
}

int
parcel_pack(struct parcel *p, const struct config *config, struct db *db,
    int64_t user_id, const char *node, int64_t wait_ms, struct err *err)
{
	struct person_sandbox sandbox;
	struct packing packing = { p, config, clock_monotonic_ms() + wait_ms };

	if (person_rows(db, user_id, &p->rows, err) < 0 ||
	    person_look(db, buf_str(&p->rows), &sandbox, err) != 0)
		return -1;
	p->manifest.time = clock_wall_ms() / 1000;
	if (sandbox.active &&
	    volumes_each(config->base_dir, sandbox.id, pack_volume, &packing,
		err) != 0)
		return -1;
	if (sandbox.active && p->manifest.file_count == 0)
		return err_set(err, ERR_CONFLICT, "sandbox %s has no volume",
		    sandbox.id);
	return close_parcel(p, node, err);
}

int
parcel_pack_saved(struct parcel *p, int backup, const struct manifest *m,
    struct db *db, int64_t user_id, const char *node, struct err *err)
{
	struct person_sandbox sandbox;
	int found = person_rows(db, user_id, &p->rows, err);

	p->backup = backup;
	if (found == 1)
		return err_set(err, ERR_NOT_FOUND,
		    "user %" PRId64 " is not in this backup", user_id);
	if (found < 0 || person_look(db, buf_str(&p->rows), &sandbox, err) != 0)
		return -1;
	p->manifest.time = m->time;
	for (uint64_t i = 0; sandbox.active && i < m->file_count; i++)
		if (strncmp(m->files[i].name, sandbox.id, SANDBOX_ID_LEN) == 0)
			manifest_copy(&p->manifest, m, &m->files[i]);
	if (sandbox.active && p->manifest.file_count == 0)
		return err_set(err, ERR_NOT_FOUND,
		    "sandbox %s was in use when the backup was made, and its "
		    "files are not in there",
		    sandbox.id);
	return close_parcel(p, node, err);
}

/* ---- sending ---- */

/* Read a block; blocks of a stream only in their order.  ERR_INPUT: its bytes
 * are not those of the manifest; ERR_CONFLICT: the volume has changed. */
static int
parcel_load(const struct parcel *p, const struct saved *file,
    const struct block *block, unsigned char *data, struct err *err)
{
	bool comes = p->source != NULL;

	if (!comes && p->volumes == NULL)
		return block_read(p->backup, block, data, err);
	if ((comes ? p->source(p->arg, data, (size_t)block->len, err) :
		     block_load(p->volumes[file - p->manifest.files], block,
			 data, err)) != 0)
		return -1;
	return block_is(block, data) ?
	    0 :
	    err_set(err, comes ? ERR_INPUT : ERR_CONFLICT,
		"%s is not as it was", file->name);
}

int
parcel_send(const struct parcel *p, parcel_fn fn, void *arg, struct err *err)
{
	auto_free unsigned char *data = xmalloc(MANIFEST_BLOCK);

	if (fn(arg, &p->head, sizeof(p->head), err) != 0 ||
	    fn(arg, buf_str(&p->rows), p->rows.len, err) != 0 ||
	    fn(arg, buf_str(&p->text), p->text.len, err) != 0)
		return -1;
	for (uint64_t i = 0; i < p->manifest.file_count; i++) {
		const struct saved *file = &p->manifest.files[i];
		const struct block *block = p->manifest.blocks + file->first;

		for (uint64_t k = 0; k < file->count; k++, block++)
			if (parcel_load(p, file, block, data, err) != 0 ||
			    fn(arg, data, (size_t)block->len, err) != 0)
				return -1;
	}
	return 0;
}

/* ---- receiving ---- */

static int
parcel_receive_part(const struct parcel *p, struct buf *part, int64_t len,
    struct err *err)
{
	char *room = buf_reserve(part, (size_t)len);

	if (p->source(p->arg, room, (size_t)len, err) != 0)
		return -1;
	buf_commit(part, (size_t)len);
	return 0;
}

int
parcel_receive(struct parcel *p, int64_t size, parcel_source source, void *arg,
    struct err *err)
{
	unsigned char hash[MANIFEST_HASH];

	p->source = source;
	p->arg = arg;
	if (source(arg, &p->head, sizeof(p->head), err) != 0)
		return -1;
	if (!parcel_head_is_good(&p->head))
		return err_set(err, ERR_INPUT,
		    "no person as this version sends them");
	if (parcel_size(&p->head) != size)
		return err_set(err, ERR_INPUT, "it is not as long as it says");
	if (parcel_receive_part(p, &p->rows, p->head.rows, err) != 0 ||
	    parcel_receive_part(p, &p->text, p->head.manifest, err) != 0)
		return -1;
	hash_rows(p, hash);
	if (memcmp(hash, p->head.hash, sizeof(hash)) != 0 ||
	    strlen(buf_str(&p->rows)) != p->rows.len)
		return err_set(err, ERR_INPUT, "the rows are wrong");
	if (p->text.len > 0 &&
	    !manifest_parse(&p->manifest, buf_str(&p->text), p->text.len))
		return err_set(err, ERR_INPUT, "the manifest is wrong");
	return manifest_bytes(&p->manifest) == p->head.blocks ?
	    0 :
	    err_set(err, ERR_INPUT, "the blocks are not those that it names");
}

struct arrival {
	struct db *db;
	int base;
	int64_t user_id;
	const struct parcel *p;
	struct person_sandbox sandbox;
	int *fds; /* the files, which have no names yet */
	uint64_t count;
	unsigned char data[MANIFEST_BLOCK];
};

/* ---- the folder of who arrives ---- */

/* Remove a folder of the sandbox's name: an arrival left it that ended before
 * its rows were inserted. */
static int
arrival_remove_left(const struct arrival *a, struct err *err)
{
	int fd = openat(a->base, a->sandbox.id, FOLDER);
	auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	while (dir != NULL && (e = readdir(dir)) != NULL)
		(void)unlinkat(fd, e->d_name, 0);
	return unlinkat(a->base, a->sandbox.id, AT_REMOVEDIR) == 0 ||
		errno == ENOENT ?
	    0 :
	    err_system(err, "remove %s", a->sandbox.id);
}

/* New files get the base folder's owner, which is the broker. */
static int
arrival_give(const struct arrival *a, int fd, struct err *err)
{
	struct stat st;
	struct stat now;

	if (fstat(a->base, &st) != 0 || fstat(fd, &now) != 0 ||
	    ((now.st_uid != st.st_uid || now.st_gid != st.st_gid) &&
		fchown(fd, st.st_uid, st.st_gid) != 0))
		return err_system(err, "change the owner of a volume");
	return 0;
}

/* Make the sandbox's folder, with all files in it. */
static int
arrival_name(const struct arrival *a, struct err *err)
{
	const char *id = a->sandbox.id;
	auto_close int folder = -1;

	if (mkdirat(a->base, id, 0700) == 0)
		folder = openat(a->base, id, FOLDER);
	if (folder < 0)
		return err_system(err, "make %s", id);
	if (arrival_give(a, folder, err) != 0)
		return -1;
	for (uint64_t i = 0; i < a->count; i++) {
		auto_free char *path = xprintf("/proc/self/fd/%d", a->fds[i]);
		const char *name = a->p->manifest.files[i].name;

		if (linkat(AT_FDCWD, path, folder, name + SANDBOX_ID_LEN + 1,
			AT_SYMLINK_FOLLOW) != 0)
			return err_system(err, "name %s", name);
	}
	return fsync(folder) == 0 && fsync(a->base) == 0 ?
	    0 :
	    err_system(err, "keep %s", id);
}

/* ---- arriving ---- */

static int
arrival_check_room(const struct arrival *a, struct err *err)
{
	struct statvfs st;

	if (fstatvfs(a->base, &st) != 0)
		return err_system(err, "ask for the disk's room");
	return (int64_t)(st.f_bavail * st.f_frsize) >= a->p->head.blocks +
		    disk_floor((int64_t)(st.f_blocks * st.f_frsize)) ?
	    0 :
	    err_set(err, ERR_LIMIT, "the disk has no room for a sandbox of %s",
		text_size(a->p->head.blocks).text);
}

/* 1: the person is here. */
static int
arrival_check(struct arrival *a, struct err *err)
{
	const struct manifest *m = &a->p->manifest;
	const char *rows = buf_str(&a->p->rows);
	bool good;
	int here;

	if (person_look(a->db, rows, &a->sandbox, err) != 0)
		return -1;
	/* The manifest names volumes of that sandbox alone. */
	good = a->sandbox.active == (m->file_count > 0);
	for (uint64_t i = 0; i < m->file_count; i++)
		good = good &&
		    strncmp(m->files[i].name, a->sandbox.id, SANDBOX_ID_LEN) ==
			0;
	if (!good)
		return err_set(err, ERR_INPUT,
		    "a sandbox without files, or files without a sandbox");
	here = person_is_here(a->db, a->user_id, &a->sandbox, err);
	if (here != 0)
		return here;
	return person_put(a->db, a->user_id, rows, false, err) != 0 ||
		arrival_check_room(a, err) != 0 ?
	    -1 :
	    0;
}

/* here: the blocks are checked only, and none is written. */
static int
arrival_store_volume(struct arrival *a, const struct saved *file, bool here,
    struct err *err)
{
	const struct block *block = a->p->manifest.blocks + file->first;
	int fd = -1;

	if (!here) {
		fd = openat(a->base, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
		if (fd >= 0)
			a->fds[a->count++] = fd;
		if (fd < 0 &&
		    (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
			return err_set(err, ERR_CONFIG,
			    "the file system of IL_BASE_DIR must support "
			    "O_TMPFILE, as ext4, xfs and btrfs do");
		if (fd < 0 || ftruncate(fd, file->size) != 0)
			return err_system(err, "make %s", file->name);
		if (arrival_give(a, fd, err) != 0)
			return -1;
	}
	for (uint64_t i = 0; i < file->count; i++, block++) {
		if (parcel_load(a->p, file, block, a->data, err) != 0)
			return -1;
		if (!here && block_store(fd, block, a->data, err) != 0)
			return err_wrap(err, "%s", file->name);
	}
	/* before it mounts the volume, the broker gives all files in it to a
	 * user of this host */
	if (!here && owner_disown(fd, err) != 0)
		return err_wrap(err, "%s", file->name);
	return here || fsync(fd) == 0 ? 0 :
					err_system(err, "keep %s", file->name);
}

/* Returns -1; errno stays, which says why. */
static int
arrival_undo(const struct arrival *a)
{
	const int why = errno;
	struct err err;

	if (a->count > 0 && arrival_remove_left(a, &err) != 0)
		log_warn("a folder stays: %s", err.text);
	errno = why;
	return -1;
}

/* One arrival after another: another stream may have brought the person
 * meanwhile. */
static int
arrival_commit(struct arrival *a, struct err *err)
{
	auto_close int lock = openat(a->base, ".", FOLDER);
	int here;

	if (lock < 0 || flock(lock, LOCK_EX) != 0)
		return err_system(err, "lock the folder of sandboxes");
	here = person_is_here(a->db, a->user_id, &a->sandbox, err);
	if (here != 0)
		return here;
	if (a->count > 0 && arrival_remove_left(a, err) != 0)
		return -1;
	if (a->count > 0 && arrival_name(a, err) != 0)
		return arrival_undo(a);
	if (person_put(a->db, a->user_id, buf_str(&a->p->rows), true, err) == 0)
		return 0;
	if (err->code == ERR_CONFLICT)
		return arrival_undo(a);
	err->code = ERR_UNKNOWN;
	return -1;
}

int
arrival_store(struct db *db, int base, int64_t user_id, const struct parcel *p,
    struct err *err)
{
	const struct manifest *m = &p->manifest;
	struct arrival a = { .db = db,
		.base = base,
		.user_id = user_id,
		.p = p,
		.fds = xcalloc(m->file_count, sizeof(*a.fds)) };
	int here = arrival_check(&a, err);
	int result = here < 0 ? -1 : 0;

	for (uint64_t i = 0; result == 0 && i < m->file_count; i++)
		result = arrival_store_volume(&a, &m->files[i], here == 1, err);
	if (result == 0)
		result = here == 1 ? 1 : arrival_commit(&a, err);
	if (result < 0 && err->code == ERR_SYSTEM &&
	    (errno == ENOSPC || errno == EDQUOT))
		err->code = ERR_LIMIT;
	while (a.count > 0)
		(void)close(a.fds[--a.count]);
	free(a.fds);
	return result;
}

/* The first row of a code or of a status counts.  il-node refuses nobody by
 * 403, 404 or 429: these are nginx's, before it has asked il-node. */
static const struct {
	int status;
	enum err_code code;
} answers[] = {
	{ 200, ERR_NONE },
	{ 400, ERR_INPUT },
	{ 403, ERR_INPUT },
	{ 404, ERR_INPUT },
	{ 409, ERR_CONFLICT },
	{ 409, ERR_NOT_FOUND },
	{ 503, ERR_UNAVAILABLE },
	{ 503, ERR_BUSY },
	{ 429, ERR_BUSY },
	{ 507, ERR_LIMIT },
	{ 500, ERR_UNKNOWN },
};

#define ANSWERS (sizeof(answers) / sizeof(*answers))

int
arrival_status(enum err_code code)
{
	for (size_t i = 0; i < ANSWERS; i++)
		if (answers[i].code == code)
			return answers[i].status;
	return 503;
}

/* nginx makes a 413 of an answer that broke off. */
enum err_code
arrival_code(int status)
{
	for (size_t i = 0; i < ANSWERS; i++)
		if (answers[i].status == status)
			return answers[i].code;
	return ERR_UNKNOWN;
}
