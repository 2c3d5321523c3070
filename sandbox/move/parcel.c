/* SPDX-License-Identifier: MIT */
/*
 * The form of a parcel, and how one is packed, sent and received.  Volumes are
 * read twice, for their hashes and then for the stream, under the lock that a
 * loop device would have: nothing can mount them meanwhile.
 */
#include "move/parcel.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sodium.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/err.h"
#include "base/text.h"
#include "move/volumes.h"
#include "protocol/lease.h"
#include "store/moves.h"

#define WORD "inline-person"
#define WORDS 7
#define VERSION "1"

/* ---- the head ---- */

void
parcel_head_print(const struct parcel_head *head, char text[PARCEL_HEAD])
{
	char hex[2 * MANIFEST_HASH + 1];
	char line[PARCEL_HEAD];
	int len;

	(void)sodium_bin2hex(hex, sizeof(hex), head->hash, MANIFEST_HASH);
	len = snprintf(line, sizeof(line),
	    WORD " " VERSION " %s %zu %zu %" PRId64 " %s", head->node,
	    head->rows, head->manifest, head->blocks, hex);
	memset(text, '\n', PARCEL_HEAD);
	memcpy(text, line, (size_t)len);
}

int
parcel_head_read(struct parcel_head *head, const char text[PARCEL_HEAD],
    struct err *err)
{
	auto_free char *copy = xstrndup(text, PARCEL_HEAD);
	char *words[WORDS] = { NULL };
	char *rest = copy;
	int64_t rows;
	int64_t manifest;

	copy[strcspn(copy, "\n")] = '\0';
	for (size_t i = 0; i < WORDS; i++)
		words[i] = strsep(&rest, " ");
	if (rest != NULL || words[WORDS - 1] == NULL ||
	    strcmp(words[0], WORD) != 0 || strcmp(words[1], VERSION) != 0 ||
	    strlen(words[2]) > PARCEL_NODE_MAX ||
	    !text_parse_int(words[3], 0, PERSON_ROWS_MAX, &rows) ||
	    !text_parse_int(words[4], 0, PARCEL_MANIFEST_MAX, &manifest) ||
	    !text_parse_int(words[5], 0, PARCEL_BLOCKS_MAX, &head->blocks) ||
	    !text_parse_hex(words[6], strlen(words[6]), head->hash,
		MANIFEST_HASH))
		return err_set(err, ERR_INPUT,
		    "no person as this version sends them");
	(void)snprintf(head->node, sizeof(head->node), "%s", words[2]);
	head->rows = (size_t)rows;
	head->manifest = (size_t)manifest;
	return 0;
}

int64_t
parcel_size(const struct parcel_head *head)
{
	return PARCEL_HEAD + (int64_t)head->rows + (int64_t)head->manifest +
	    head->blocks;
}

static void
hash_rows(const struct parcel *p, unsigned char hash[MANIFEST_HASH])
{
	(void)crypto_generichash(hash, MANIFEST_HASH,
	    (const unsigned char *)buf_str(&p->rows), p->rows.len, NULL, 0);
}

static int64_t
sum_blocks(const struct manifest *m)
{
	int64_t sum = 0;

	for (size_t i = 0; i < m->block_count; i++)
		sum += m->blocks[i].len;
	return sum;
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
	for (size_t i = 0; p->volumes != NULL && i < p->manifest.file_count;
	     i++)
		cleanup_close(&p->volumes[i]);
	free(p->volumes);
	manifest_release(&p->manifest);
	buf_release(&p->rows);
	buf_release(&p->text);
	parcel_init(p);
}

/* A parcel whose volumes are packed. */
struct packing {
	struct parcel *p;
	const char *sandbox;
	char *socket; /* of the broker */
	int64_t until_ms;
};

static int
pack_volume(void *arg, int folder, const char *volume, struct err *err)
{
	const struct packing *packing = arg;
	struct parcel *p = packing->p;
	auto_free char *name = xprintf("%s/%s", packing->sandbox, volume);
	int fd = openat(folder, volume,
	    O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	size_t i = p->manifest.file_count;
	struct stat st;

	if (fd < 0)
		return err_system(err, "%s", name);
	(void)manifest_add(&p->manifest, name);
	p->volumes = xrealloc(p->volumes, (i + 1) * sizeof(*p->volumes));
	p->volumes[i] = fd;
	if (!manifest_is_name(name))
		return err_set(err, ERR_CONFLICT, "%s is no volume", name);
	if (!volume_lock(packing->socket, fd, packing->sandbox,
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
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	bool good = p->manifest.file_count == 0 ||
	    manifest_print(&p->manifest, out);

	(void)fclose(out);
	buf_add(&p->text, text, len);
	free(text);
	if (!good || p->text.overflow)
		return err_set(err, ERR_LIMIT, "a sandbox as large as that");
	p->head.rows = p->rows.len;
	p->head.manifest = p->text.len;
	p->head.blocks = sum_blocks(&p->manifest);
	hash_rows(p, p->head.hash);
	(void)snprintf(p->head.node, sizeof(p->head.node), "%s", node);
	return 0;
}

int
parcel_pack(struct parcel *p, const struct config *config, struct db *db,
    int64_t user_id, const char *node, int64_t wait_ms, struct err *err)
{
	auto_free char *socket = config_state_path(config, SOCKET_BROKER_CTL);
	struct person_sandbox sandbox;
	struct packing packing = {
		.p = p,
		.sandbox = sandbox.id,
		.socket = socket,
		.until_ms = clock_monotonic_ms() + wait_ms,
	};

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
	for (size_t i = 0; sandbox.active && i < m->file_count; i++) {
		const struct saved *file = &m->files[i];

		if (strncmp(file->name, sandbox.id, SANDBOX_ID_LEN) != 0 ||
		    !volume_is(file->name))
			continue;
		manifest_add(&p->manifest, file->name)->size = file->size;
		for (size_t k = 0; k < file->count; k++)
			manifest_add_block(&p->manifest,
			    &m->blocks[file->first + k]);
	}
	if (sandbox.active && p->manifest.file_count == 0)
		return err_set(err, ERR_NOT_FOUND,
		    "sandbox %s was in use when the backup was made, and its "
		    "files are not in there",
		    sandbox.id);
	return close_parcel(p, node, err);
}

/* ---- sending ---- */

int
parcel_load(const struct parcel *p, const struct saved *file,
    const struct block *block, unsigned char *data, struct err *err)
{
	bool comes = p->source != NULL;

	if (!comes && p->volumes == NULL)
		return block_read(p->backup, block, data, err);
	if ((comes ? p->source(p->arg, data, block->len, err) :
		     block_load(p->volumes[file - p->manifest.files], block,
			 data, err)) != 0)
		return -1;
	return block_is(block, data) ?
	    0 :
	    err_set(err, comes ? ERR_INPUT : ERR_CONFLICT,
		"%s is not as it was", file->name);
}

static int
send_blocks(const struct parcel *p, parcel_fn fn, void *arg, struct err *err)
{
	auto_free unsigned char *data = xmalloc(MANIFEST_BLOCK);

	for (size_t i = 0; i < p->manifest.file_count; i++) {
		const struct saved *file = &p->manifest.files[i];

		for (size_t k = 0; k < file->count; k++) {
			const struct block
			    *block = &p->manifest.blocks[file->first + k];

			if (parcel_load(p, file, block, data, err) != 0 ||
			    fn(arg, data, block->len, err) != 0)
				return -1;
		}
	}
	return 0;
}

int
parcel_send(const struct parcel *p, parcel_fn fn, void *arg, struct err *err)
{
	char head[PARCEL_HEAD];

	parcel_head_print(&p->head, head);
	if (fn(arg, head, sizeof(head), err) != 0 ||
	    fn(arg, buf_str(&p->rows), p->rows.len, err) != 0 ||
	    fn(arg, buf_str(&p->text), p->text.len, err) != 0)
		return -1;
	return send_blocks(p, fn, arg, err);
}

/* ---- receiving ---- */

static int
receive_part(const struct parcel *p, struct buf *part, size_t len,
    struct err *err)
{
	char *room = buf_reserve(part, len);

	if (room == NULL)
		return err_set(err, ERR_LIMIT, "a part as long as that");
	if (p->source(p->arg, room, len, err) != 0)
		return -1;
	buf_commit(part, len);
	return 0;
}

static int
receive_manifest(struct parcel *p, struct err *err)
{
	FILE *in;
	bool good;

	if (receive_part(p, &p->text, p->head.manifest, err) != 0)
		return -1;
	in = fmemopen(p->text.data, p->text.len, "r");
	good = in != NULL && manifest_parse(&p->manifest, in);
	if (in != NULL)
		(void)fclose(in);
	return good ? 0 : err_set(err, ERR_INPUT, "the manifest is wrong");
}

int
parcel_receive(struct parcel *p, int64_t size, parcel_source source, void *arg,
    struct err *err)
{
	unsigned char hash[MANIFEST_HASH];
	char head[PARCEL_HEAD];

	p->source = source;
	p->arg = arg;
	if (source(arg, head, sizeof(head), err) != 0 ||
	    parcel_head_read(&p->head, head, err) != 0)
		return -1;
	if (parcel_size(&p->head) != size)
		return err_set(err, ERR_INPUT, "it is not as long as it says");
	if (receive_part(p, &p->rows, p->head.rows, err) != 0)
		return -1;
	hash_rows(p, hash);
	if (memcmp(hash, p->head.hash, sizeof(hash)) != 0 ||
	    strlen(buf_str(&p->rows)) != p->rows.len)
		return err_set(err, ERR_INPUT, "the rows are wrong");
	if (p->head.manifest > 0 && receive_manifest(p, err) != 0)
		return -1;
	return sum_blocks(&p->manifest) == p->head.blocks ?
	    0 :
	    err_set(err, ERR_INPUT, "the blocks are not those that it names");
}
