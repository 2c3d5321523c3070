/* SPDX-License-Identifier: MIT */
/*
 * Reads and writes inodes where ext4 has them: superblock, group descriptor,
 * inode table. Every value is checked, since the volume's user wrote it.
 */
#include "volume/owner.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/text.h"

/* The layout of ext4 (Documentation/filesystems/ext4): all of it is little
 * endian. */
#define BLOCK 4096
#define SUPER_AT 1024
#define SUPER_SIZE 1024
#define S_INODES 0x00
#define S_BLOCKS 0x04
#define S_LOG_BLOCK 0x18 /* 1,024 << it */
#define S_INODES_PER_GROUP 0x28
#define S_MAGIC 0x38
#define S_INODE_SIZE 0x58
#define S_INCOMPAT 0x60
#define S_RO_COMPAT 0x64
#define S_UUID 0x68
#define S_DESC_SIZE 0xfe
#define S_SEED 0x270
#define MAGIC 0xef53

#define INCOMPAT_JOURNAL 0x4 /* there is something to replay */
#define INCOMPAT_64BIT 0x80
#define INCOMPAT_SEED 0x2000
/* Also types in folders, extents, flexible groups. */
#define INCOMPAT_KNOWN (0x2 | 0x40 | INCOMPAT_64BIT | 0x200 | INCOMPAT_SEED)
#define RO_COMPAT_CHECKSUMS 0x400

/* A group's descriptor; they lie one after the other from block 1 on. */
#define G_TABLE 0x08
#define G_FLAGS 0x12
#define G_UNUSED 0x1c
#define G_TABLE_HIGH 0x28
#define G_UNUSED_HIGH 0x32
#define DESC_MAX 64
#define FLAG_NO_INODES 0x1

#define INODE 256
#define INODES_PER_BLOCK (BLOCK / INODE)
#define ROOT 2
#define I_UID 0x02
#define I_GID 0x18
#define I_LINKS 0x1a
#define I_GENERATION 0x64
#define I_UID_HIGH 0x78
#define I_GID_HIGH 0x7a
#define I_CHECKSUM 0x7c
#define I_CHECKSUM_HIGH 0x82

#define COUNTER_FILE ".uids"
#define COUNTER_LEN 11 /* ten digits and a line feed */
/* The file is written once for so many numbers. */
#define RESERVE 64

#define FLOOR_LEAST (INT64_C(256) << 20)
#define FLOOR_MOST (INT64_C(2) << 30)

/* ---- the counter of users, written ahead: a crash skips numbers ---- */

static uint32_t
random_between(uint32_t first, uint32_t last)
{
	char hex[9];

	text_random_hex(hex, 8);
	return first + (uint32_t)strtoul(hex, NULL, 16) % (last - first + 1);
}

/* 0 when the file does not hold one. */
static uint32_t
counter_read(int fd)
{
	char text[COUNTER_LEN + 1] = "";
	int64_t value = 0;

	if (pread(fd, text, COUNTER_LEN, 0) != COUNTER_LEN ||
	    text[COUNTER_LEN - 1] != '\n')
		return 0;
	text[COUNTER_LEN - 1] = '\0';
	(void)text_parse_int(text, UID_SANDBOX_FIRST, UID_SANDBOX_LAST, &value);
	return (uint32_t)value;
}

/* Durable before the first of these numbers is given. */
static int
counter_reserve(struct uids *uids, struct err *err)
{
	uint32_t reserved = uids->next + RESERVE;
	char text[COUNTER_LEN + 1];

	if (reserved > UID_SANDBOX_LAST)
		reserved = UID_SANDBOX_LAST;
	(void)snprintf(text, sizeof(text), "%010u\n", reserved);
	if (pwrite(uids->fd, text, COUNTER_LEN, 0) != COUNTER_LEN ||
	    fdatasync(uids->fd) != 0)
		return err_system(err, "write " COUNTER_FILE);
	uids->reserved = reserved;
	return 0;
}

/* A file that is empty or damaged begins anew, somewhere at random. */
int
uids_open(struct uids *uids, int base, struct err *err)
{
	uids->fd = openat(base, COUNTER_FILE,
	    O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (uids->fd < 0)
		return err_system(err, "open " COUNTER_FILE);
	uids->next = counter_read(uids->fd);
	if (uids->next == 0)
		uids->next = random_between(UID_SANDBOX_FIRST,
		    UID_SANDBOX_LAST);
	uids->reserved = uids->next;
	uids->memory = random_between(UID_MEMORY_FIRST, UID_MEMORY_LAST);
	return 0;
}

/* Behind the last number comes the first again: there are 117 million. */
int
uids_take(struct uids *uids, uint32_t *uid, struct err *err)
{
	if (uids->next == UID_SANDBOX_LAST) {
		uids->next = UID_SANDBOX_FIRST;
		uids->reserved = uids->next;
	}
	if (uids->next == uids->reserved && counter_reserve(uids, err) != 0)
		return -1;
	*uid = uids->next++;
	return 0;
}

uint32_t
uids_take_for_memory(struct uids *uids)
{
	uint32_t uid = uids->memory++;

	if (uids->memory > UID_MEMORY_LAST)
		uids->memory = UID_MEMORY_FIRST;
	return uid;
}

bool
uid_is_of_one_sandbox(uint32_t uid)
{
	return uid >= UID_SANDBOX_FIRST && uid <= UID_SANDBOX_LAST;
}

bool
uid_is_sandboxs(uint32_t uid)
{
	return uid == UID_COMMON || uid_is_of_one_sandbox(uid);
}

int64_t
disk_floor(int64_t total)
{
	int64_t share = total / 50;

	return share < FLOOR_LEAST ? FLOOR_LEAST :
	    share > FLOOR_MOST	   ? FLOOR_MOST :
				     share;
}

/* ---- reading ---- */

struct ext4 {
	int fd;
	uint64_t blocks;
	uint32_t inodes;
	uint32_t per_group;
	size_t desc_size;
	uint32_t incompat;
	uint32_t seed; /* of the checksums */
	uint32_t crc_table[256];
};

static uint16_t
get16(const unsigned char *at)
{
	return (uint16_t)(at[0] | at[1] << 8);
}

static uint32_t
get32(const unsigned char *at)
{
	return get16(at) | (uint32_t)get16(at + 2) << 16;
}

/* A number of 32 bits in two halves. */
static uint32_t
get_halves(const unsigned char *at, size_t low, size_t high)
{
	return get16(at + low) | (uint32_t)get16(at + high) << 16;
}

static void
put16(unsigned char *at, uint32_t value)
{
	at[0] = (unsigned char)value;
	at[1] = (unsigned char)(value >> 8);
}

/* CRC32C, as ext4 has it: neither end is inverted. */
static void
crc_prepare(uint32_t table[256])
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78 : 0);
		table[i] = crc;
	}
}

static uint32_t
crc(const struct ext4 *fs, uint32_t sum, const void *data, size_t len)
{
	const unsigned char *at = data;

	for (; len > 0; len--)
		sum = sum >> 8 ^ fs->crc_table[(sum ^ *at++) & 0xff];
	return sum;
}

static bool
read_at(const struct ext4 *fs, void *data, size_t len, uint64_t at)
{
	return pread(fs->fd, data, len, (off_t)at) == (ssize_t)len;
}

/* Only what workspace.c makes is understood: 4 KiB blocks, 256 byte inodes,
 * checksums. */
static bool
open_super(struct ext4 *fs, int fd)
{
	unsigned char super[SUPER_SIZE];

	*fs = (struct ext4){ .fd = fd };
	if (!read_at(fs, super, sizeof(super), SUPER_AT) ||
	    get16(super + S_MAGIC) != MAGIC ||
	    get32(super + S_LOG_BLOCK) != 2 ||
	    get16(super + S_INODE_SIZE) != INODE ||
	    (get32(super + S_RO_COMPAT) & RO_COMPAT_CHECKSUMS) == 0)
		return false;
	fs->incompat = get32(super + S_INCOMPAT);
	fs->blocks = get32(super + S_BLOCKS);
	fs->inodes = get32(super + S_INODES);
	fs->per_group = get32(super + S_INODES_PER_GROUP);
	fs->desc_size = (fs->incompat & INCOMPAT_64BIT) != 0 ?
	    get16(super + S_DESC_SIZE) :
	    32;
	if (fs->inodes < ROOT || fs->per_group < INODES_PER_BLOCK ||
	    fs->per_group % INODES_PER_BLOCK != 0 || fs->desc_size < 32 ||
	    fs->desc_size > DESC_MAX)
		return false;
	crc_prepare(fs->crc_table);
	fs->seed = (fs->incompat & INCOMPAT_SEED) != 0 ?
	    get32(super + S_SEED) :
	    crc(fs, UINT32_MAX, super + S_UUID, 16);
	return true;
}

/* Where a group's inodes are, and how many have ever been used. */
static bool
find_table(const struct ext4 *fs, uint32_t group, uint64_t *at, uint32_t *used)
{
	unsigned char desc[DESC_MAX] = { 0 };
	uint64_t block;
	uint32_t unused;

	if (!read_at(fs, desc, fs->desc_size, BLOCK + group * fs->desc_size))
		return false;
	block = get32(desc + G_TABLE) |
	    (uint64_t)get32(desc + G_TABLE_HIGH) << 32;
	unused = get_halves(desc, G_UNUSED, G_UNUSED_HIGH);
	if ((get16(desc + G_FLAGS) & FLAG_NO_INODES) != 0)
		unused = fs->per_group;
	if (unused > fs->per_group || block == 0 ||
	    block + fs->per_group / INODES_PER_BLOCK > fs->blocks)
		return false;
	*at = block * BLOCK;
	*used = fs->per_group - unused;
	return true;
}

/* Inode 2 is the root folder. */
uint32_t
owner_of(int volume_fd)
{
	struct ext4 fs;
	unsigned char inode[INODE];
	uint64_t at;
	uint32_t used;

	if (!open_super(&fs, volume_fd) || !find_table(&fs, 0, &at, &used) ||
	    used < ROOT ||
	    !read_at(&fs, inode, sizeof(inode), at + (ROOT - 1) * INODE))
		return 0;
	return get_halves(inode, I_UID, I_UID_HIGH);
}

/* ---- changing ---- */

/* Over the number, the generation and the inode itself, with zeros in place of
 * the checksum. */
static uint32_t
checksum(const struct ext4 *fs, uint32_t number, const unsigned char *inode)
{
	unsigned char copy[INODE];
	unsigned char id[4];
	uint32_t sum;

	put16(id, number);
	put16(id + 2, number >> 16);
	memcpy(copy, inode, sizeof(copy));
	put16(copy + I_CHECKSUM, 0);
	put16(copy + I_CHECKSUM_HIGH, 0);
	sum = crc(fs, fs->seed, id, sizeof(id));
	sum = crc(fs, sum, inode + I_GENERATION, 4);
	return crc(fs, sum, copy, sizeof(copy));
}

/* Root's files stay root's. True: it was changed. */
static bool
change_id(unsigned char *inode, size_t low, size_t high, uint32_t uid)
{
	uint32_t id = get_halves(inode, low, high);

	if (id == uid || !uid_is_sandboxs(id))
		return false;
	put16(inode + low, uid);
	put16(inode + high, uid >> 16);
	return true;
}

/* 1: changed, 0: it was right, -1: this is no inode of the file system. */
static int
change_inode(const struct ext4 *fs, uint32_t number, unsigned char *inode,
    uint32_t uid)
{
	bool changed;
	uint32_t sum;

	if (get16(inode + I_LINKS) == 0)
		return 0;
	if (checksum(fs, number, inode) !=
	    get_halves(inode, I_CHECKSUM, I_CHECKSUM_HIGH))
		return -1;
	changed = change_id(inode, I_UID, I_UID_HIGH, uid);
	changed = change_id(inode, I_GID, I_GID_HIGH, uid) || changed;
	if (!changed)
		return 0;
	sum = checksum(fs, number, inode);
	put16(inode + I_CHECKSUM, sum);
	put16(inode + I_CHECKSUM_HIGH, sum >> 16);
	return 1;
}

/* The inodes first..first+15, which are one block, but for the root folder;
 * only: that alone. */
static int
change_block(const struct ext4 *fs, uint64_t at, uint32_t first, bool only,
    uint32_t uid, struct err *err)
{
	unsigned char block[BLOCK];
	bool dirty = false;

	if (!read_at(fs, block, sizeof(block), at))
		return err_system(err, "read the inodes from %u on", first);
	for (uint32_t i = 0; i < INODES_PER_BLOCK; i++) {
		int rc;

		if ((first + i == ROOT) != only)
			continue;
		rc = change_inode(fs, first + i, block + i * INODE, uid);
		if (rc < 0)
			return err_set(err, ERR_SYSTEM,
			    "the checksum of inode %u is wrong", first + i);
		dirty = dirty || rc > 0;
	}
	if (dirty && pwrite(fs->fd, block, sizeof(block), (off_t)at) != BLOCK)
		return err_system(err, "write the inodes from %u on", first);
	return 0;
}

/* All inodes of a block group that have ever been used. */
static int
change_group(const struct ext4 *fs, uint32_t group, uint32_t uid,
    struct err *err)
{
	uint64_t at;
	uint32_t used;

	if (!find_table(fs, group, &at, &used))
		return err_set(err, ERR_SYSTEM, "group %u is wrong", group);
	for (uint32_t i = 0; i < used; i += INODES_PER_BLOCK) {
		if (change_block(fs, at + (uint64_t)i * INODE,
			group * fs->per_group + i + 1, false, uid, err) != 0)
			return -1;
	}
	return 0;
}

/* All but the root folder first, then, when they are on the disk, that: it
 * says that the work is done. */
int
owner_change(int volume_fd, uint32_t uid, struct err *err)
{
	struct ext4 fs;
	uint64_t at;
	uint32_t used;

	if (!open_super(&fs, volume_fd) ||
	    (fs.incompat & ~(uint32_t)(INCOMPAT_KNOWN | INCOMPAT_JOURNAL)) != 0)
		return err_set(err, ERR_SYSTEM, "a file system unlike ours");
	if ((fs.incompat & INCOMPAT_JOURNAL) != 0)
		return err_set(err, ERR_CONFLICT, "the journal is not empty");
	for (uint32_t group = 0; (uint64_t)group * fs.per_group < fs.inodes;
	     group++) {
		if (change_group(&fs, group, uid, err) != 0)
			return -1;
	}
	if (fdatasync(volume_fd) != 0)
		return err_system(err, "keep the inodes");
	if (!find_table(&fs, 0, &at, &used) ||
	    change_block(&fs, at, 1, true, uid, err) != 0)
		return -1;
	return fdatasync(volume_fd) != 0 ? err_system(err, "keep the root") : 0;
}

/* By the root folder alone; its checksum is checked and made anew. */
int
owner_disown(int volume_fd, struct err *err)
{
	struct ext4 fs;
	uint64_t at;
	uint32_t used;

	if (!open_super(&fs, volume_fd) || !find_table(&fs, 0, &at, &used) ||
	    used < ROOT)
		return err_set(err, ERR_INPUT, "a file system unlike ours");
	return change_block(&fs, at, 1, true, UID_COMMON, err);
}
